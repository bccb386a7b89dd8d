"""The service put together: what goes wrong while it begins leaves nothing behind."""

import asyncio
import socket
from typing import Any

import pytest

from extender.config.settings import Settings, Waking
from extender.demo.apiserver.kinds import POD
from extender.kube import resource as resource_module
from extender.kube.access import Access, Fixed
from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.model.parse import parse_pod
from extender.model.problem import Problem
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Options
from tests import kube_objects
from tests.service.door import HERE, opened


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


async def test_a_scrape_shows_until_when_the_certificate_of_the_kubeconfig_holds() -> None:
    there = Fixed(Access(server="http://127.0.0.1:1", until=7e9))
    async with running(Settings(), there, Options(verbs=HERE, probes=HERE)) as service, asyncio.timeout(20):
        line = b'expiry_timestamp_seconds{file="kubeconfig"} 7e+09'
        while line not in service.metrics.exposition()[0]:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


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


async def test_of_a_pod_of_another_scheduler_it_is_known_that_it_waits_whatever_it_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def parse(raw: Any) -> Pod | Problem:
        read.append(raw["metadata"]["name"])
        return parse_pod(raw)

    monkeypatch.setattr(resource_module.PODS, "parse", resource_module.of_any_version(parse))
    async with opened() as door:
        other = door.server.registry.create(POD, "default", kube_objects.pod("other", schedulerName="another"))
        await door.pod("ours")
        assert door.service.belief.pods.waits(ObjectKey("default", "other"), other["metadata"]["uid"])
        door.change(other, "", lambda pod: {**pod, "metadata": {**pod["metadata"], "annotations": {"a": "b"}}})
        await door.service.follows.renew()
        await door.pod("more")
        assert door.service.belief.pods.waits(ObjectKey("default", "other"), other["metadata"]["uid"])
    assert {"ours", "more"} == set(read)
