import shutil
import ssl
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession

from extender.web.server import Server
from extender.web.tls import Certificates, Files
from tests.web.certificates import authority, issued
from tests.web.record import recorded
from tests.web.standin import StandIn, serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def client(ca: Path, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    if own:
        context.load_cert_chain(*own)
    return context


async def filtered(server: Server, context: ssl.SSLContext) -> int:
    url = f"https://127.0.0.1:{server.ports[0]}/filter"
    async with ClientSession() as session, session.post(url, data=recorded("filter-names"), ssl=context) as answer:
        return answer.status


async def test_calls_are_answered_over_tls(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    async with serving(StandIn(), tls=Files(*issued(tmp_path, "server", ca))) as server:
        assert await filtered(server, client(ca)) == 200


async def test_only_clients_of_the_authority_are_answered(tmp_path: Path) -> None:
    ca, other = authority(tmp_path, "ca"), authority(tmp_path, "other")
    files = Files(*issued(tmp_path, "server", ca), ca)
    standin = StandIn()
    async with serving(standin, tls=files) as server:
        for context in (client(ca), client(ca, issued(tmp_path, "stranger", other))):
            with pytest.raises((ClientConnectionError, ssl.SSLError)):
                await filtered(server, context)
        assert standin.asked == []
        assert await filtered(server, client(ca, issued(tmp_path, "scheduler", ca))) == 200


async def test_o2_probes_need_no_certificate(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    files = Files(*issued(tmp_path, "server", ca), ca)
    async with serving(StandIn(), tls=files) as server, ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{server.ports[1]}/livez")
        assert await answer.text() == "ok"


async def test_a_renewed_certificate_is_shown_to_the_next_client(tmp_path: Path) -> None:
    old, new = authority(tmp_path, "old"), authority(tmp_path, "new")
    certificates = Certificates(Files(*issued(tmp_path, "server", old)))
    assert not certificates.refresh()
    issued(tmp_path, "server", new)
    assert certificates.refresh()
    assert not certificates.refresh()


def test_files_that_do_not_fit_together_are_an_error(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    certificate, _ = issued(tmp_path, "server", ca)
    with pytest.raises(OSError, match="KEY_VALUES_MISMATCH"):
        Certificates(Files(certificate, ca.with_suffix(".key")))
