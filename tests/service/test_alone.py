"""The only replica writes nothing before what a process before it has sent can land no more."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from extender.demo.apiserver.kinds import POD
from extender.kube.outcome import Unknown
from extender.kube.writes import Writes
from extender.service.alone import Alone
from tests.service.replicas import (
    LIMITS,
    PATIENT,
    QUICK,
    Cluster,
    asked,
    assert_in_vain,
    forbidden,
    known_of,
    on_loopback,
    until,
)

ALONE = replace(QUICK, enabled=False)
LASTING = replace(ALONE, server_seconds=1000)
TOUCHED = "dra-extender.x-k8s.io/touched"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with on_loopback() as made:
        yield made


async def test_what_an_earlier_process_has_sent_lands_nowhere_once_the_next_is_ready(cluster: Cluster) -> None:
    known = known_of(cluster)
    only = await cluster.start("a", LASTING, PATIENT)
    assert only.leads
    await assert_in_vain(cluster, known)
    assert await asked(only, known.pods["free"]) == ""
    assert cluster.devices() == ["gpu-0", "gpu-3"]


async def test_while_something_cannot_be_moved_on_nobody_is_answered_and_nothing_written(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writes, "touch_claim", forbidden)
    pod = cluster.pod("waits")
    only = await cluster.start("a", LASTING, is_awaited=False)
    await until(lambda: "what was written before this start may still arrive" in only.service.health.missing())
    await until(lambda: only.service.health.freshness.has_vital)
    await until(lambda: only.service.belief.pods.with_uid(pod.uid) is not None)
    assert await asked(only, pod) == "not ready: what was half written is still being looked after"
    assert (await only.readiness(), only.metric("leading"), only.writes()) == (503, 0, set())


async def test_what_cannot_be_moved_on_is_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writes, "touch_claim", forbidden)
    pod, began = cluster.pod("waits"), asyncio.get_running_loop().time()
    only = await cluster.start("a", ALONE)
    waited = asyncio.get_running_loop().time() - began
    assert waited >= LIMITS.bind_seconds + LIMITS.timeout_seconds + ALONE.server_seconds
    # What landed meanwhile is in a list of its own.
    assert only.metric("watch_lists_total", "resourceclaims") == 2
    assert (await only.readiness(), only.metric("leading")) == (200, 1)
    assert await asked(only, pod) == ""


async def test_a_start_that_has_nothing_to_move_on_writes_nothing_and_lists_once(cluster: Cluster) -> None:
    only = await cluster.start("a", LASTING)
    assert only.metric("watch_lists_total", "resourceclaims") == 1
    assert only.writes() <= {"devicetaintrules"}


async def test_an_allocation_by_others_is_noticed_while_what_was_sent_before_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_asked: object) -> Unknown:
        return Unknown("no answer")

    monkeypatch.setattr(Writes, "touch_claim", wait)
    pod = cluster.pod("theirs")
    only = await cluster.start("a", LASTING, is_awaited=False)
    await until(lambda: only.service.health.freshness.has_vital)
    assert only.service.leading.why_not()
    cluster.give(pod, "gpu-3", manager="kube-scheduler")
    await until(lambda: only.metric("foreign_allocations_seen_total") == 1)


async def test_who_has_a_node_is_left_alone(cluster: Cluster) -> None:
    pod = cluster.pod("bound")
    cluster.give(pod, "gpu-3")
    binding = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}}
    cluster.server.registry.bind(POD, pod.key, binding)
    await cluster.start("a", LASTING)
    claim = cluster.server.registry.get(cluster.kind("resourceclaims"), pod.key)
    assert TOUCHED not in claim["metadata"].get("annotations", {})


def test_the_only_replica_is_hindered_for_as_long_as_what_was_sent_before_may_land() -> None:
    clock = [100.0]
    alone = Alone(90.0, lambda: clock[0])
    assert alone.why_not() == alone.obstacle() == "what was written before this start may still arrive"
    assert not alone.leads()
    clock[0] = 190.0
    assert (alone.why_not(), alone.leads()) == ("", True)


def test_the_only_replica_is_hindered_no_more_once_that_is_cleared() -> None:
    alone = Alone(90.0, lambda: 100.0)
    alone.cleared()
    assert (alone.why_not(), alone.leads()) == ("", True)
