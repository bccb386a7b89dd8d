"""Verbs are spoken on loopback, unless mutual TLS says who may call."""

from pathlib import Path

import pytest

from extender.config.load import Invalid, load
from extender.config.settings import Listen, Settings, Tls
from extender.service.listener_options import options_of
from extender.web.server import Address
from tests.web.certificates import authority, issued

LOOPBACK = ["127.0.0.1:1", "127.0.0.53:1", "localhost:1", "[::1]:1"]
OPEN = [
    "0.0.0.0:1", "[::]:1", ":1", "[]:1", "10.0.0.1:1", "192.168.0.1:1", "169.254.1.1:1", "[fe80::1]:1",
    "[::ffff:10.0.0.1]:1", "example.com:1", "localhost.example.com:1", "Localhost:1", "127.1:1", "2130706433:1",
]  # fmt: skip
NEEDED = "listen.verbs: must be loopback, or tls.clientAuthorities must say whose clients may call"


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_needs_no_tls(address: str) -> None:
    assert load(None, {}, {"listen.verbs": address}).listen.verbs == address


@pytest.mark.parametrize("tls", [{}, {"tls.certificate": "c", "tls.key": "k"}], ids=["plain", "one-sided"])
@pytest.mark.parametrize("address", OPEN)
def test_elsewhere_is_refused_without_mutual_tls(address: str, tls: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        load(None, {}, {"listen.verbs": address, **tls})
    assert caught.value.complaints == (NEEDED,)


@pytest.mark.parametrize("address", LOOPBACK + OPEN)
def test_with_mutual_tls_any_address_will_do(address: str) -> None:
    flags = {"tls.certificate": "c", "tls.key": "k", "tls.clientAuthorities": "a", "tls.clientNames": "x,y"}
    found = load(None, {}, {"listen.verbs": address, **flags})
    assert (found.listen.verbs, found.tls.client_names) == (address, ("x", "y"))


def test_names_of_clients_need_their_authorities() -> None:
    flags = {"tls.certificate": "c", "tls.key": "k", "tls.clientNames": "x"}
    with pytest.raises(Invalid, match=r"^tls\.clientAuthorities: is needed with tls\.clientNames$"):
        load(None, {}, flags)


def test_localhost_is_loopback_whatever_this_machine_takes_it_for() -> None:
    assert options_of(Settings(listen=Listen(verbs="localhost:1"))).verbs == Address("127.0.0.1", 1)


def test_files_of_tls_that_cannot_be_used_are_told_before_anything_begins(tmp_path: Path) -> None:
    ca = authority(tmp_path, "ca")
    certificate, key = issued(tmp_path, "server", ca)
    whole = Tls(certificate=str(certificate), key=str(key), client_authorities=str(ca), client_names=("x",))
    options = options_of(Settings(tls=whole))
    assert options.tls is not None
    assert options.client_names == frozenset(("x",))
    key.unlink()
    with pytest.raises(Invalid, match=r"^tls\.key: .*server\.key with .*server\.crt: No such file or directory$"):
        options_of(Settings(tls=whole))
