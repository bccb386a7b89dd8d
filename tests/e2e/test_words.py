"""What people read on their pods, word for word."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.controlplane.client import Object
from tests.e2e.world import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_HELPFUL = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


@dataclass(frozen=True)
class Case:
    """A request, and what is said of it: {here} is the prefix of our names, {driver} the driver."""

    request: Callable[[World], Object]
    condition: str
    reason: str
    note: str
    devices: Callable[[World], Object] = field(default=lambda _: {})


def selecting(text: str) -> Callable[[World], Object]:
    return lambda here: here.request(selectors=[{"cel": {"expression": text.replace("{driver}", here.driver)}}])


CASES = {
    "too many": Case(
        lambda here: here.request(count=3),
        "too few devices match the claim's requests",
        "NoMatch",
        "too few devices match the claim's requests: claim {here}-c, request gpu needs 3 free devices, has 2: "
        "no other matches (1 node, such as {here}-b); "
        "1 node: claim {here}-c, request gpu needs 3 free devices, has 0: 1 in use, no other matches "
        "(such as {here}-a); "
        "1 node: no devices are published for the node (such as {here}-c)",
    ),
    "none that match": Case(
        selecting("false"),
        "too few devices match the claim's requests",
        "NoMatch",
        "too few devices match the claim's requests: claim {here}-c, request gpu needs 1 free device, has 0: "
        "no other matches (2 nodes, such as {here}-a); "
        "1 node: no devices are published for the node (such as {here}-c)",
    ),
    "two of one kind": Case(
        lambda here: here.request(count=2),
        "no set of free devices fulfils the claim's constraints",
        "Constraint",
        "no set of free devices fulfils the claim's constraints: claim {here}-c needs 2 free devices with one value "
        "of {driver}/numa, best has 1 (1 node, such as {here}-b); "
        "1 node: claim {here}-c, request gpu needs 2 free devices, has 0: 1 in use, no other matches "
        "(such as {here}-a); "
        "1 node: no devices are published for the node (such as {here}-c)",
        lambda here: {"constraints": [{"requests": ["gpu"], "matchAttribute": f"{here.driver}/numa"}]},
    ),
    "no such class": Case(
        lambda here: here.request(device_class="absent"),
        "the claim's request cannot be answered as it is written",
        "InvalidRequest",
        "the claim's request cannot be answered as it is written: claim {here}-c, request gpu: deviceClassName: "
        "there is no class {here}-absent",
    ),
}


async def fleet(here: World) -> Object:
    """Make three nodes with one device in use, two, and none; return the pod that uses the one."""
    await here.device_class()
    for node, count in (("a", 1), ("b", 2)):
        await here.node(node)
        numas = [{"name": f"gpu-{index}", "attributes": {"numa": {"int": index}}} for index in range(count)]
        await here.slice(node, numas)
    await here.node("c")
    await here.template("one", here.request())
    first = await here.pod("first", templates=("one",))
    await here.bound(first)
    return first


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_rejected_pod_is_told_why(here: World, case: Case) -> None:
    await fleet(here)
    await here.claim("c", case.request(here), **case.devices(here))
    pod = await here.pod("p", claims=("c",))
    said = await here.refused(pod, case.condition)
    assert said == f"0/3 nodes are available: 3 {case.condition}. {NOT_HELPFUL}"
    assert await here.notes(pod, case.reason) == [case.note.format(here=here.name, driver=here.driver)]


async def test_a_bound_pod_is_told_what_it_was_given_and_what_else_there_was(here: World) -> None:
    first = await fleet(here)
    name, driver = here.name, here.driver
    assert await here.notes(first, "DevicesAllocated") == [
        (
            f"node {name}-a: gpu={driver}/{name}-a/gpu-0; score 10: on NUMA 0 alone, 1 device was free; "
            f"runner-up {name}-b with score 9: on NUMA 0 alone, 2 devices were free; 2 nodes fit"
        )
    ]
    await here.claim("two", here.request("first"), here.request("second"))
    second = await here.pod("second", claims=("two",))
    assert await here.bound(second) == "b"
    assert await here.notes(second, "DevicesAllocated") == [
        (
            f"node {name}-b: first={driver}/{name}-b/gpu-0, second={driver}/{name}-b/gpu-1; "
            "score 10: first: on NUMA 0 alone, second: on NUMA 1 alone, 2 devices were free; 1 node fits"
        )
    ]


async def test_pods_with_the_same_question_are_each_told_of_their_own_claim(here: World) -> None:
    await fleet(here)
    for name in ("first", "second"):
        await here.claim(name, here.request(count=3))
        pod = await here.pod(f"p-{name}", claims=(name,))
        (note,) = await here.notes(pod, "NoMatch")
        assert f"claim {here.full(name)}, request gpu needs 3 free devices" in note
        assert note.count("claim ") == note.count(f"claim {here.full(name)},")


async def test_a_selector_that_errs_on_a_device_names_it(here: World) -> None:
    await fleet(here)
    expression = f"device.attributes['{here.driver}'].numa == 0 || device.attributes['{here.driver}'].absent"
    await here.claim("c", here.request(selectors=[{"cel": {"expression": expression}}]))
    pod = await here.pod("p", claims=("c",))
    assert await here.bound(pod) == "b"


async def test_an_event_is_written_once_for_each_reason(here: World) -> None:
    await fleet(here)
    await here.claim("c", here.request(count=3))
    pod = await here.pod("p", claims=("c",))
    await here.notes(pod, "NoMatch")
    # Another pod's binding has it tried again, to the same end.
    asked = len(here.asked(pod))
    await here.bound(await here.pod("other", templates=("one",)))
    await here.until_asked(pod, asked + 1)
    await here.notes(pod, "NoMatch")
    assert len(await here.notes(pod, "NoMatch")) == 1


async def test_what_was_decided_is_told_in_full_to_whoever_asks(here: World) -> None:
    first = await fleet(here)
    await here.claim("c", here.request(count=3))
    pod = await here.pod("p", claims=("c",))
    (note,) = await here.notes(pod, "NoMatch")
    rejected = await here.stage.decided(pod)
    assert (rejected["outcome"], rejected["reason"], rejected["note"]) == ("Rejected", "NoMatch", note)
    assert {tally["example"]: tally["nodes"] for tally in rejected["rejected"]} == {
        here.full("a"): 1,
        here.full("b"): 1,
        here.full("c"): 1,
    }
    bound = await here.stage.decided(first)
    assert (bound["outcome"], bound["node"], bound["fitting"]) == ("Bound", here.full("a"), 2)
    assert [item["device"] for item in bound["given"]] == [[here.driver, here.full("a"), "gpu-0"]]
