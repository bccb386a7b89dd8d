"""The service put together: what goes wrong while it begins leaves nothing behind."""

import socket

import pytest

from extender.config.settings import Settings
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
