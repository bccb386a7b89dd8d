import asyncio
import errno
import logging
import os
import shutil
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import ClientConnectionError, ClientSession

from extender.telemetry.expiry import expiry_in
from extender.web import listener
from extender.web import server as module
from extender.web.listener import Listener
from extender.web.server import Server
from extender.web.tls import Certificates, Files, _naming, names_in
from tests.web.certificates import authority, issued, locked_by
from tests.web.raw_client import connected
from tests.web.record import recorded
from tests.web.standin import StandIn, begun, serving

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


def refusal(served: ssl.SSLContext, context: ssl.SSLContext) -> str:
    """Return why the server's side refuses the handshake of a client."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(back, there, server_hostname="127.0.0.1").do_handshake()
    with pytest.raises(ssl.SSLError) as refused:
        served.wrap_bio(there, back, server_side=True).do_handshake()
    return str(refused.value)


async def handshake(server: Server, context: ssl.SSLContext) -> str | None:
    """Speak TLS and nothing else; return the version that was agreed upon."""
    port = server.ports[0]
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    version: str | None = writer.get_extra_info("ssl_object").version()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return version


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(
    ("newest", "agreed"),
    [(ssl.TLSVersion.TLSv1_1, None), (ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")],
)
async def test_nothing_older_than_tls_1_2_is_spoken(tmp_path: Path, newest: ssl.TLSVersion, agreed: str | None) -> None:
    ca = authority(tmp_path, "ca")
    context = client(ca)
    # Whatever the client's own library thinks of it: it is the server that refuses.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
    files = Files(*issued(tmp_path, "server", ca))
    async with serving(StandIn(), tls=files) as server:
        if agreed:
            assert await handshake(server, context) == agreed
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await handshake(server, context)
            assert "UNSUPPORTED_PROTOCOL" in refusal(Certificates(files).context, context)


@pytest.mark.parametrize(
    ("name", "alternative", "status"),
    [
        ("system:kube-scheduler", "DNS:elsewhere.example.com", 200),
        ("scheduler", "DNS:kube-scheduler.example.com", 200),
        ("scheduler", "URI:spiffe://example.com/scheduler", 200),
        ("scheduler", "DNS:elsewhere.example.com", 403),
        ("system:kube-scheduler2", "DNS:x.kube-scheduler.example.com", 403),
    ],
)
async def test_where_names_are_set_only_clients_of_these_names_may_call(
    tmp_path: Path, name: str, alternative: str, status: int
) -> None:
    ca = authority(tmp_path, "ca")
    files = Files(*issued(tmp_path, "server", ca), ca)
    names = frozenset(("system:kube-scheduler", "kube-scheduler.example.com", "spiffe://example.com/scheduler"))
    standin = StandIn()
    async with serving(standin, tls=files, client_names=names) as server:
        assert await filtered(server, client(ca, issued(tmp_path, name, ca, alternative))) == status
    assert len(standin.asked) == (status == 200)


async def test_strangers_are_ended_soon_and_leave_nothing_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.2)
    ca = authority(tmp_path, "ca")
    files = Files(*issued(tmp_path, "server", ca), ca)
    async with serving(StandIn(), tls=files) as server:
        # One says nothing, one begins and stops, one speaks plain HTTP, one has no certificate.
        for said in (b"", b"\x16\x03\x01\x02", recorded("filter-names")):
            async with connected(server.ports[0]) as connection:
                connection.writer.write(said)
                with suppress(ConnectionError):
                    assert b"HTTP" not in await asyncio.wait_for(connection.ends(), 20)
        with pytest.raises((ClientConnectionError, ssl.SSLError)):
            await filtered(server, client(ca))
    assert caplog.records == []


def alert_after(port: int, context: ssl.SSLContext) -> str:
    """Call as kube-scheduler does, which is let in as far as it knows, and return what the server's alert says."""
    with (
        socket.create_connection(("127.0.0.1", port), 20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(b"POST /filter HTTP/1.1\r\n\r\n")
        with pytest.raises(ssl.SSLError) as alert:
            connection.recv(1)
    return str(alert.value.reason)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_client_hears_why_its_certificate_is_refused_and_the_log_has_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    ca, other = authority(tmp_path, "ca"), authority(tmp_path, "other")
    files = Files(*issued(tmp_path, "server", ca), ca)
    stranger = client(ca, issued(tmp_path, "stranger", other))

    async def called() -> list[str]:
        async with serving(StandIn(), tls=files) as server:
            contexts = stranger, stranger, client(ca)
            found = [await asyncio.to_thread(alert_after, server.ports[0], context) for context in contexts]
            assert await metric(server, 'clients_refused_total{why="certificate"}') == "2.0"
            assert await metric(server, 'clients_refused_total{why="no certificate"}') == "1.0"
            return found

    with asyncio.Runner(loop_factory=loop) as runner:
        alerts = runner.run(called())
    assert alerts == ["TLSV1_ALERT_UNKNOWN_CA", "TLSV1_ALERT_UNKNOWN_CA", "TLSV13_ALERT_CERTIFICATE_REQUIRED"]
    (record,) = caplog.records
    assert record.message == "a client was refused for its certificate"
    assert record.__dict__["reason"] == "unable to get local issuer certificate"


async def test_that_a_client_is_refused_for_its_name_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = authority(tmp_path, "ca")
    files, names = Files(*issued(tmp_path, "server", ca), ca), frozenset(("scheduler",))
    async with serving(StandIn(), tls=files, client_names=names) as server:
        for name in ("first", "second", "first"):
            assert await filtered(server, client(ca, issued(tmp_path, name, ca))) == 403
        assert await metric(server, 'clients_refused_total{why="name"}') == "3.0"
    told = [record.__dict__["client"] for record in caplog.records]
    assert told == ["first, 127.0.0.1", "second, 127.0.0.1"]


class Renewing:
    """A server with mutual TLS whose files are replaced while it serves, and its client."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ours, self.theirs = folder, authority(folder, "ours"), folder / "theirs.pem"
        self.first, self.second = authority(folder, "first"), authority(folder, "second")
        self.theirs.write_bytes(self.first.read_bytes())
        self.certificate, self.key = issued(folder, "server", self.ours)
        self.files = Files(self.certificate, self.key, self.theirs)

    def client(self, by: Path) -> ssl.SSLContext:
        return client(self.ours, issued(self.folder, f"client-of-{by.stem}", by))

    def certificate_renewed(self) -> None:
        issued(self.folder, "server", self.ours)

    def half_renewed(self) -> bytes:
        """Replace the certificate, and return the key that is to follow."""
        key = self.key.read_bytes()
        self.certificate_renewed()
        fresh = self.key.read_bytes()
        self.key.write_bytes(key)
        return fresh


@pytest.fixture
def renewing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Renewing:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    return Renewing(tmp_path)


async def serial(server: Server, context: ssl.SSLContext) -> str:
    """Return the serial number of the certificate that a new client is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", server.ports[0], ssl=context)
    shown: str = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return shown


async def metric(server: Server, name: str) -> str:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{server.ports[1]}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next((line.rpartition(" ")[2] for line in lines if line.startswith(f"dra_extender_{name} ")), "")


async def until(looked: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await looked():  # noqa: ASYNC110 - files are looked at, nobody tells of them
            await asyncio.sleep(0.01)


async def test_a_renewed_certificate_is_shown_to_the_next_client_and_costs_nobody_a_connection(
    renewing: Renewing,
) -> None:
    context = renewing.client(renewing.first)
    async with serving(StandIn(), tls=renewing.files) as server:
        before = await serial(server, context)
        async with connected(server.ports[0], context) as connection:
            assert (await connection.post("/filter", recorded("filter-names"))).status == 200
            renewing.certificate_renewed()

            async def shown() -> bool:
                return await serial(server, context) != before

            await until(shown)
            assert (await connection.post("/filter", recorded("filter-names"))).status == 200
        assert await metric(server, 'certificate_reloads_total{result="taken"}') == "1.0"


async def test_a_half_written_pair_changes_nothing_but_is_told_once(
    renewing: Renewing, caplog: pytest.LogCaptureFixture
) -> None:
    context = renewing.client(renewing.first)
    async with serving(StandIn(), tls=renewing.files) as server:
        before = await serial(server, context)
        key = renewing.half_renewed()

        async def refused() -> bool:
            return await metric(server, "certificates_valid") == "0.0"

        await until(refused)
        assert (await serial(server, context), await filtered(server, context)) == (before, 200)
        await asyncio.sleep(0.05)
        assert await metric(server, 'certificate_reloads_total{result="refused"}') == "1.0"
        complaints = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert [record.message for record in complaints] == ["certificates refused, the earlier ones stay in use"]
        assert "MISMATCH" in complaints[0].__dict__["error"]
        renewing.key.write_bytes(key)

        async def taken() -> bool:
            return await metric(server, "certificates_valid") == "1.0"

        await until(taken)
        assert await serial(server, context) != before


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("-----BEGIN")], ids=["gone", "cut"])
@pytest.mark.parametrize("which", ["certificate", "key", "theirs"])
async def test_a_file_that_cannot_be_read_changes_nothing(
    renewing: Renewing, which: str, damage: Callable[[Path], object]
) -> None:
    context = renewing.client(renewing.first)
    async with serving(StandIn(), tls=renewing.files) as server:
        damage(getattr(renewing, which))

        async def refused() -> bool:
            return await metric(server, "certificates_valid") == "0.0"

        await until(refused)
        assert await filtered(server, context) == 200
        with pytest.raises((ClientConnectionError, ssl.SSLError)):
            await filtered(server, renewing.client(renewing.second))


async def test_when_the_files_that_are_in_use_run_out_is_told(renewing: Renewing) -> None:
    async with serving(StandIn(), tls=renewing.files) as server:

        async def told(file: str) -> float:
            return float(await metric(server, f'certificate_expiry_timestamp_seconds{{file="{file}"}}'))

        assert await told("certificate") == expiry_in(renewing.certificate.read_bytes())
        assert await told("clientAuthorities") == expiry_in(renewing.theirs.read_bytes())
        lasting = authority(renewing.folder, "lasting", days=9).read_bytes()
        renewing.theirs.write_bytes(lasting)
        await until(partial(taken, server, 1))
        assert await told("clientAuthorities") == expiry_in(lasting)
        renewing.theirs.write_bytes(b"-----BEGIN")

        async def refused() -> bool:
            return await metric(server, "certificates_valid") == "0.0"

        await until(refused)
        assert await told("clientAuthorities") == expiry_in(lasting)


async def test_that_a_client_is_refused_is_told_again_once_files_were_replaced(
    renewing: Renewing, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = renewing.client(renewing.second)
    async with serving(StandIn(), tls=renewing.files) as server:
        for files in (1, 2):
            with pytest.raises((ClientConnectionError, ssl.SSLError)):
                await filtered(server, stranger)
            renewing.certificate_renewed()
            await until(partial(taken, server, files))
    assert len([record for record in caplog.records if "refused for its certificate" in record.message]) == 2


async def test_clients_of_an_authority_that_was_taken_away_are_not_answered_any_more(renewing: Renewing) -> None:
    old, new = renewing.client(renewing.first), renewing.client(renewing.second)
    # TLS 1.2 sessions are resumed without a look at the client's certificate.
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    standin = StandIn()
    async with serving(standin, tls=renewing.files) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ports[0], ssl=old)
        session = await resumable(server.ports[0], old)
        await resumable(server.ports[0], old, session)
        assert await filtered(server, old) == 200
        renewing.theirs.write_bytes(renewing.second.read_bytes())

        async def answered() -> bool:
            with suppress(ClientConnectionError, ssl.SSLError):
                return await filtered(server, new) == 200
            return False

        await until(answered)
        asked = len(standin.asked)
        # Neither a new connection, nor one that is open already, nor a session of before gets in.
        with pytest.raises((ClientConnectionError, ssl.SSLError)):
            await filtered(server, old)
        assert await reader.read() == b""
        with pytest.raises((OSError, ssl.SSLError)):
            await resumable(server.ports[0], old, session)
        assert len(standin.asked) == asked
        writer.close()


async def test_of_clients_of_such_an_authority_a_call_that_is_being_read_is_answered(renewing: Renewing) -> None:
    old, new = renewing.client(renewing.first), renewing.client(renewing.second)
    async with (
        serving(StandIn(), tls=renewing.files) as server,
        connected(server.ports[0], old) as idle,
        connected(server.ports[0], old) as connection,
    ):
        await idle.post("/filter", recorded("filter-names"))
        rest = await begun(server, connection, recorded("filter-names"))
        renewing.theirs.write_bytes(renewing.second.read_bytes())
        assert await idle.ends() == b""
        assert (await connection.send(rest)).status == 200
        assert await connection.ends() == b""
        assert await filtered(server, new) == 200


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("failing", [1, 2])
def test_what_could_not_be_switched_to_is_tried_again(
    renewing: Renewing, monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop], failing: int
) -> None:
    left, tried, real = [2], [0], Listener._accepted
    made: list[asyncio.Server] = []

    async def accepted(self: Listener, *given: Any) -> asyncio.Server:
        tried[0] += 1
        if left[0] and tried[0] % failing == 0:
            left[0] -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        made.append(await real(self, *given))
        return made[-1]

    async def renewed() -> None:
        old, new = renewing.client(renewing.first), renewing.client(renewing.second)
        async with serving(StandIn(), tls=renewing.files) as server:
            listener = server._listeners[0]
            assert listener._server
            second = await real(listener, listener._server, listener._context, {"host": "127.0.0.1", "port": 0})
            listener._accepting.append(second)
            monkeypatch.setattr(Listener, "_accepted", accepted)
            renewing.theirs.write_bytes(renewing.second.read_bytes())
            await until(partial(taken, server, 1))
            assert (left, await metric(server, "certificates_valid")) == ([0], "1.0")
            assert [each.is_serving() for each in made] == [False] * 2 * (failing - 1) + [True] * 2
            assert await metric(server, 'certificate_reloads_total{result="refused"}') == "2.0"
            assert await filtered(server, new) == 200
            with pytest.raises((ClientConnectionError, ssl.SSLError)):
                await filtered(server, old)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(renewed())


async def test_files_that_are_put_back_after_a_switch_failed_are_in_use_as_they_are(
    renewing: Renewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Listener._accepted

    async def refused(_listener: Listener, *_given: Any) -> asyncio.Server:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with serving(StandIn(), tls=renewing.files) as server:
        before = renewing.theirs.read_bytes()
        monkeypatch.setattr(Listener, "_accepted", refused)
        renewing.theirs.write_bytes(renewing.second.read_bytes())
        await until(partial(told, server, "certificates_valid", "0.0"))
        renewing.theirs.write_bytes(before)
        monkeypatch.setattr(Listener, "_accepted", real)
        await until(partial(told, server, "certificates_valid", "1.0"))
        assert await filtered(server, renewing.client(renewing.first)) == 200


async def told(server: Server, name: str, value: str) -> bool:
    return await metric(server, name) == value


async def test_a_file_that_could_not_be_read_for_a_moment_is_read_again(
    renewing: Renewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates, left = Certificates(renewing.files), [1]
    real = Certificates._built

    def built(self: Certificates) -> ssl.SSLContext:
        if left[0]:
            left[0] -= 1
            with _naming("clientAuthorities", renewing.theirs):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(self)

    monkeypatch.setattr(Certificates, "_built", built)
    renewing.theirs.write_bytes(renewing.second.read_bytes())
    assert not certificates.refresh()
    with pytest.raises(OSError, match="Too many open files"):
        certificates.refresh()
    assert certificates.refresh()
    assert certificates.refresh()
    assert certificates.has_other_clients
    certificates.taken()
    assert not certificates.refresh()


async def test_where_files_are_not_looked_after_any_more_a_restart_is_asked_for(
    renewing: Renewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refreshed(_certificates: Certificates) -> bool:
        raise ValueError

    standin = StandIn()
    async with serving(standin, tls=renewing.files):
        monkeypatch.setattr(Certificates, "refresh", refreshed)

        async def ended() -> bool:
            return not standin.alive

        await until(ended)


class Handshake:
    """A handshake of which the last part, with a call behind it, is sent when it is told to be."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self._reader, self._writer = reader, writer
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._spoken = context.wrap_bio(self._came, self._goes, server_hostname="127.0.0.1")

    async def begun(self) -> None:
        """Go on until all but the last part is done."""
        while True:
            try:
                return self._spoken.do_handshake()
            except ssl.SSLWantReadError:
                self._writer.write(self._goes.read())
                self._came.write(await self._reader.read(1 << 16))

    async def ended(self, call: bytes) -> bytes:
        """Send the last part with *call*, and return how the answer begins; b"" where there is none."""
        self._spoken.write(call)
        self._writer.write(self._goes.read())
        with suppress(ConnectionError):
            while came := await self._reader.read(1 << 16):
                self._came.write(came)
                with suppress(ssl.SSLWantReadError):
                    return self._spoken.read()
        return b""


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    ("renewed", "answers"), [(["theirs"], 0), (["own"], 1), (["own", "theirs"], 0), (["theirs", "own"], 0)]
)
def test_a_handshake_that_ends_after_authorities_were_replaced_lets_nobody_in(
    renewing: Renewing, loop: Callable[[], asyncio.AbstractEventLoop], renewed: list[str], answers: int
) -> None:
    standin, old = StandIn(), renewing.client(renewing.first)
    body = recorded("filter-names")
    call = b"POST /filter HTTP/1.1\r\nHost: e\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def late() -> bytes:
        async with serving(standin, tls=renewing.files) as server, connected(server.ports[0]) as plain:
            handshake = Handshake(plain.reader, plain.writer, old)
            await handshake.begun()
            for number, what in enumerate(renewed, 1):
                if what == "own":
                    renewing.certificate_renewed()
                else:
                    renewing.theirs.write_bytes(renewing.second.read_bytes())
                await until(partial(taken, server, number))
            return await handshake.ended(call)

    with asyncio.Runner(loop_factory=loop) as runner:
        said = runner.run(late())
    assert (said[:12], len(standin.asked)) == (b"HTTP/1.1 200"[: 12 * answers], answers)


async def taken(server: Server, times: int) -> bool:
    return await metric(server, 'certificate_reloads_total{result="taken"}') == f"{times}.0"


async def resumable(port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSession:
    """Ask for readiness of nothing on a connection of its own, in *session*; return a session to go on in."""

    def ask() -> ssl.SSLSession:
        plain = socket.create_connection(("127.0.0.1", port), timeout=20)
        with plain, context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as spoken:
            spoken.sendall(b"GET / HTTP/1.1\r\nHost: e\r\n\r\n")
            assert spoken.recv(12) == b"HTTP/1.1 404"
            assert spoken.session is not None
            assert spoken.session_reused == (session is not None)
            return spoken.session

    return await asyncio.to_thread(ask)


def test_files_that_do_not_fit_together_are_an_error(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    certificate, _ = issued(tmp_path, "server", ca)
    with pytest.raises(OSError, match="KEY_VALUES_MISMATCH"):
        Certificates(Files(certificate, ca.with_suffix(".key")))


def test_a_key_with_a_password_is_said_to_have_one_and_asks_nobody(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    certificate, key = issued(tmp_path, "server", ca)
    locked = locked_by(key, "secret")
    with pytest.raises(OSError, match=r"^tls\.key: \S*server\.locked with \S*: the key has a pass phrase, and one wi"):
        Certificates(Files(certificate, locked))


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("-----BEGIN")], ids=["gone", "cut"])
@pytest.mark.parametrize("which", ["certificate", "key", "clientAuthorities"])
def test_the_file_that_cannot_be_used_is_named_with_its_setting(
    tmp_path: Path, which: str, damage: Callable[[Path], object]
) -> None:
    ours, theirs = authority(tmp_path, "ours"), authority(tmp_path, "theirs")
    certificate, key = issued(tmp_path, "server", ours)
    path = {"certificate": certificate, "key": key, "clientAuthorities": theirs}[which]
    damage(path)
    with pytest.raises(OSError, match=rf"^tls\.{which}: {path}\b"):
        Certificates(Files(certificate, key, theirs))


@pytest.mark.parametrize(
    ("described", "names"),
    [
        (None, []),
        ({}, []),
        (
            {
                "subject": ((("organizationName", "o"),), (("commonName", "a"),)),
                "subjectAltName": (("DNS", "b"), ("URI", "c"), ("DirName", ((("commonName", "d"),),))),
            },
            ["a", "b", "c"],
        ),
    ],
)
def test_a_certificate_names_its_subject_and_its_alternatives(
    described: dict[str, object] | None, names: list[str]
) -> None:
    assert list(names_in(described)) == names
