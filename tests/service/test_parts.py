"""The service put together: what goes wrong while it begins leaves nothing behind."""

import socket

import pytest

from extender.config.settings import Settings, Waking
from extender.kube.access import Access, Fixed
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Options
from tests.service.door import HERE


async def test_a_mistake_at_the_beginning_leaves_nobody_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []

    def mistaken(service: Service) -> None:
        ports.extend(service.server.ports)
        raise ZeroDivisionError

    monkeypatch.setattr(Service, "work", mistaken)
    with pytest.raises(ZeroDivisionError):
        async with running(Settings(), Fixed(Access(server="http://127.0.0.1:1")), Options(verbs=HERE, probes=HERE)):
            pass
    assert len(ports) == 2
    for port in ports:
        with socket.socket() as caller, pytest.raises(ConnectionRefusedError):
            caller.connect(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("waking", "taken_back", "sent_ahead"),
    [
        (Waking(), True, True),
        (Waking(nominate_ahead="never"), True, False),
        (Waking(nominate=False), False, False),
    ],
    ids=["by default", "nobody ahead", "nobody"],
)
async def test_whoever_is_nominated_may_have_it_taken_back(
    waking: Waking, *, taken_back: bool, sent_ahead: bool
) -> None:
    settings = Settings(waking=waking)
    there = Fixed(Access(server="http://127.0.0.1:1"))
    async with running(settings, there, Options(verbs=HERE, probes=HERE)) as service:
        assert (service.sink.lapses is not None, service.sink.ahead is not None) == (taken_back, sent_ahead)
