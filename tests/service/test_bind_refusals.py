"""Bind believes nobody blindly: a pod that does not wait for us on that node is refused, and nothing is written."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from extender.config.settings import Answer, Settings
from extender.demo.apiserver.kinds import POD
from extender.model.names import NodeName, Uid
from extender.service.seats import Seats
from tests.service.door import Door, opened
from tests.service.test_counted import until

Json = dict[str, Any]
KEY = ("default", "p")
FREE = ["n1", "n2"]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened(settings=Settings(answer=Answer(policy="shortlist"))) as found:
        yield found


def nothing(_door: Door, _pod: Json) -> None:
    """Leave the pod as it is."""


def bound(door: Door, _pod: Json) -> None:
    door.server.registry.bind(POD, KEY, {"target": {"name": "n3"}})


def gone(door: Door, _pod: Json) -> None:
    door.server.registry.delete(POD, KEY, {})


def replaced(door: Door, pod: Json) -> None:
    gone(door, pod)
    spec = {name: value for name, value in pod["spec"].items() if name != "resourceClaims"}
    door.server.registry.create(POD, "default", {"metadata": {"name": "p"}, "spec": spec})


def deleting(door: Door, pod: Json) -> None:
    door.change(pod, "", lambda old: {**old, "metadata": {**old["metadata"], "finalizers": ["example.com/f"]}})
    door.server.registry.delete(POD, KEY, {})


def phase(name: str) -> Callable[[Door, Json], None]:
    def change(door: Door, pod: Json) -> None:
        door.change(pod, "status", lambda old: {**old, "status": {**old["status"], "phase": name}})

    return change


def gated(door: Door, pod: Json) -> None:
    door.change(pod, "", lambda old: {**old, "spec": {**old["spec"], "schedulingGates": [{"name": "later"}]}})


def foreign(door: Door, pod: Json) -> None:
    door.change(pod, "", lambda old: {**old, "spec": {**old["spec"], "schedulerName": "default-scheduler"}})


TABLE = [
    pytest.param(bound, {}, "the pod is on node n3 already", id="bound"),
    pytest.param(phase("Succeeded"), {}, "the pod has finished", id="succeeded"),
    pytest.param(phase("Failed"), {}, "the pod has finished", id="failed"),
    pytest.param(deleting, {}, "the pod is being deleted", id="deleting"),
    pytest.param(gated, {}, "the pod has scheduling gates", id="gated"),
    pytest.param(foreign, {}, "scheduler 'default-scheduler' is not configured here", id="foreign"),
    pytest.param(gone, {}, 'pod default/p cannot be read: pods "p" not found', id="gone"),
    pytest.param(replaced, {}, "pod default/p is another one by now", id="replaced"),
    pytest.param(nothing, {"PodUID": "other"}, "pod default/p is another one by now", id="uid"),
    pytest.param(nothing, {"PodName": "q"}, "pod default/q is another one by now", id="name"),
    pytest.param(nothing, {"PodNamespace": "q"}, "pod q/p is another one by now", id="namespace"),
    pytest.param(nothing, {"node": "n3"}, "the pod was not offered node n3", id="node"),
    pytest.param(nothing, {"node": "n9"}, "the pod was not offered node n9", id="unknown-node"),
]


@pytest.mark.parametrize("devices", [1, 0], ids=["devices", "plain"])
@pytest.mark.parametrize(("change", "asked", "message"), TABLE)
async def test_what_is_not_to_be_bound_is_refused_with_its_reason_and_nothing_is_written(
    door: Door, change: Callable[[Door, Json], None], asked: Json, message: str, devices: int
) -> None:
    pod = await door.pod("p", devices=devices)
    assert (await door.filter(pod, FREE))["NodeNames"] == FREE
    change(door, pod)
    await door.seen(pod)
    before = door.held()
    assert await door.bind(pod, **{"node": "n1", **asked}) == message
    assert door.held() == before


@pytest.mark.parametrize("devices", [1, 0], ids=["devices", "plain"])
async def test_a_pod_that_was_never_asked_about_is_not_bound(door: Door, devices: int) -> None:
    pod = await door.pod("p", devices=devices)
    before = door.held()
    assert await door.bind(pod, "n1") == "the pod was not offered node n1"
    assert door.held() == before


async def test_an_offer_ends_with_the_next_answer(door: Door) -> None:
    pod = await door.pod("p")
    await door.filter(pod, ["n1"])
    await door.filter(pod, ["n2"])
    assert await door.bind(pod, "n1") == "the pod was not offered node n1"
    await door.filter(pod, ["n9"])
    assert await door.bind(pod, "n2") == "the pod was not offered node n2"


async def test_what_was_offered_is_bound_and_asked_for_again_is_bound_already(door: Door) -> None:
    pod = await door.pod("p")
    await door.filter(pod, FREE)
    for _ in range(2):
        assert await door.bind(pod, "n2") == ""
    found = door.server.store.get(POD, KEY)
    assert found is not None
    assert found["spec"]["nodeName"] == "n2"


@pytest.mark.parametrize("devices", [1, 0], ids=["devices", "plain"])
async def test_a_bound_pod_that_is_asked_about_late_is_left_where_it_is(door: Door, devices: int) -> None:
    pod = await door.pod("p", devices=devices)
    await door.filter(pod, FREE)
    assert await door.bind(pod, "n2") == ""
    await until(lambda: door.service.belief.loads.is_on(Uid(pod["metadata"]["uid"]), NodeName("n2")))
    before = door.held()
    elsewhere = await door.filter(pod, ["n1"])
    assert elsewhere["FailedAndUnresolvableNodes"] == {"n1": "the pod is on node n2 already"}
    assert (await door.filter(pod, FREE))["NodeNames"] == ["n2"]
    # Whoever has the room that the scheduler took back need not go for it.
    victims = {"n2": {"Pods": [{"UID": "another"}], "NumPDBViolations": 0}}
    answer = await door.post("preempt", {"Pod": pod, "NodeNameToMetaVictims": victims})
    assert (answer.status, answer.body) == (200, b'{"NodeNameToMetaVictims":{}}')
    assert await door.bind(pod, "n2") == ""
    assert door.held() == before


def hindered(door: Door) -> None:
    door.service.answers.leading = lambda: "not leading"


def crowded(door: Door) -> None:
    door.service.answers.binds.seats, door.service.answers.binds.limit_s = Seats(0), 0.01


def freely(door: Door) -> None:
    door.service.answers.leading = lambda: ""
    door.service.answers.binds.seats = Seats()


@pytest.mark.parametrize("refuse", [hindered, crowded])
async def test_r6_a_pod_that_is_refused_before_anything_was_tried_is_offered_the_same_node_again(
    door: Door, refuse: Callable[[Door], None]
) -> None:
    pod = await door.pod("p")
    offered = (await door.filter(pod, FREE))["NodeNames"]
    refuse(door)
    assert await door.bind(pod, "n1")
    await until(lambda: door.service.answers.binds.is_idle)
    freely(door)
    assert (await door.filter(pod, FREE))["NodeNames"] == offered
