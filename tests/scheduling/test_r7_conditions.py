"""R7: devices that have to be made ready: bind waits for them without holding anybody up."""

from dataclasses import replace

import pytest

from extender.model.claim import DeviceCondition
from extender.model.device import Traits
from extender.scheduling.conditions import SKEW_S, Readiness, standing_of, time_of
from extender.scheduling.endings import Bound, Ending, NotBound
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer
from extender.scheduling.steps import AwaitShown, BindPod, Reserve, TouchClaim
from extender.state.belief import READY_WITHIN_S
from tests.scheduling.cast import claim, consumer, device, held, planner_of
from tests.scheduling.server import World, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, A, bind, world_of

WAITS = Traits(binding_conditions=("attached",), binding_failure_conditions=("broken",))
START = 1_800_000_000.0


def reported(world: World, kind: str) -> None:
    known = world.server.claims[A]
    assert known.allocation is not None
    item = known.allocation.devices[0]
    condition = DeviceCondition(device=item.device, share_id=None, type=kind, status="True")
    world.server.put(replace(known, device_conditions=(condition,)))
    world.server.deliver(world.belief)


def waiting() -> World:
    world = world_of(claim("a"), traits=WAITS)
    result = bind(world, now=START)
    assert isinstance(result, NotBound)
    assert result.is_waiting
    assert result.message.startswith("waiting for conditions")
    return world


def test_r7_bind_writes_the_allocation_and_waits_without_holding_anybody_up() -> None:
    world = waiting()
    assert BindPod not in [type(step) for step in world.taken]
    allocation = allocation_of(world.server, "a")
    assert allocation is not None
    assert allocation.timestamp == time_of(START) == "2027-01-15T08:00:00Z"
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Offer)
    assert list(plan.nodes) == [N1]


@pytest.mark.parametrize(("after_s", "is_waiting"), [(5, True), (6, False)])
def test_r7_drivers_have_as_long_as_is_configured(after_s: int, *, is_waiting: bool) -> None:
    world = waiting()
    world.belief.ready_within_s = 5
    result = bind(world, now=START + after_s)
    assert isinstance(result, NotBound)
    assert result.is_waiting is is_waiting
    assert is_waiting or result.message == "device gpu.example.com/n1/d0 is waiting for attached for 5 s"
    assert (allocation_of(world.server, "a") is None) is not is_waiting


def test_r7_nothing_is_written_while_a_pod_waits_that_has_all_its_claims() -> None:
    world = waiting()
    world.taken.clear()
    for after_s in (10, 20):
        result = bind(world, now=START + after_s)
        assert isinstance(result, NotBound)
        assert result.is_waiting
        assert world.taken == []
    reported(world, "attached")
    assert isinstance(bind(world, now=START + 30), Bound)
    assert [type(step) for step in world.taken][:1] == [TouchClaim]


def test_r7_a_claim_that_others_wait_for_is_reserved_for_the_pod_as_well() -> None:
    world = waiting()
    second = replace(OTHER, claims=POD.claims)
    world.server.put(second)
    world.server.deliver(world.belief)
    world.taken.clear()
    for expected in ([Reserve], []):
        result = bind(world, now=START + 1, subject=second)
        assert isinstance(result, NotBound)
        assert result.is_waiting
        assert [type(step) for step in world.taken if not isinstance(step, AwaitShown)] == expected
        world.server.deliver(world.belief)
        world.taken.clear()


def test_r7_once_the_conditions_are_met_the_pod_is_bound() -> None:
    world = waiting()
    reported(world, "attached")
    assert isinstance(bind(world, now=START + 2 * READY_WITHIN_S), Bound)


@pytest.mark.parametrize("kind", ["broken", "late"])
def test_r7_devices_that_fail_or_take_too_long_are_freed(kind: str) -> None:
    world = waiting()
    if kind == "broken":
        reported(world, "broken")
    else:
        assert bind(world, now=START + READY_WITHIN_S) == NotBound(
            "waiting for conditions: device gpu.example.com/n1/d0 is waiting for attached",
            is_waiting=True,
            placement=Placement(N1),
        )
    result = bind(world, now=START + (1 if kind == "broken" else READY_WITHIN_S + 1))
    assert isinstance(result, NotBound)
    assert result.ending is Ending.CONDITIONS_FAILED
    assert allocation_of(world.server, "a") is None
    assert world.server.claims[A].reserved_for == ()
    assert isinstance(planner_of(world.belief).plan(POD, [N2], 0.0), Offer)


def test_r7_devices_that_were_given_when_the_clock_was_ahead_are_freed_and_given_anew() -> None:
    world, corrected = waiting(), START - 3600.0
    result = bind(world, now=corrected)
    assert isinstance(result, NotBound)
    assert not result.is_waiting
    assert allocation_of(world.server, "a") is None
    again = bind(world, now=corrected + 1)
    assert isinstance(again, NotBound)
    assert again.is_waiting
    allocation = allocation_of(world.server, "a")
    assert allocation is not None
    assert allocation.timestamp == time_of(corrected + 1)


@pytest.mark.parametrize(
    ("after_s", "expected"),
    [(-SKEW_S - 1, Readiness.FAILED), (-SKEW_S, Readiness.WAITING), (READY_WITHIN_S, Readiness.WAITING)],
    ids=["ahead by more than clocks differ", "ahead by what clocks differ", "behind"],
)
def test_r7_nothing_is_waited_for_longer_than_a_driver_may_take_and_clocks_differ(
    after_s: float, expected: Readiness
) -> None:
    assert standing_of([waiting().server.claims[A]], START + after_s, READY_WITHIN_S).readiness is expected


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ((), Readiness.WAITING),
        ((("attached", "False"),), Readiness.WAITING),
        ((("attached", "True"),), Readiness.READY),
        ((("attached", "True"), ("broken", "True")), Readiness.FAILED),
        ((("broken", "True"),), Readiness.FAILED),
        ((("broken", "False"), ("attached", "True")), Readiness.READY),
    ],
)
def test_r7_a_failure_outweighs_everything(reports: tuple[tuple[str, str], ...], expected: Readiness) -> None:
    base = held(claim("a"), device("n1", 0))
    assert base.allocation is not None
    waits = replace(
        base.allocation.devices[0], binding_conditions=("attached",), binding_failure_conditions=("broken",)
    )
    item = replace(
        base,
        allocation=replace(base.allocation, devices=(waits,)),
        device_conditions=tuple(
            DeviceCondition(device=waits.device, share_id=None, type=kind, status=status) for kind, status in reports
        ),
    )
    assert standing_of([item], START, READY_WITHIN_S).readiness is expected
    assert standing_of([held(claim("b"), device("n1", 1)), item], START, READY_WITHIN_S).readiness is expected
    other = replace(item, device_conditions=tuple(replace(report, share_id="s") for report in item.device_conditions))
    assert standing_of([other], START, READY_WITHIN_S).readiness is Readiness.WAITING


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_r7_what_has_failed_is_not_waited_for_whatever_else_is(order: tuple[int, int]) -> None:
    claims = []
    for name, number in (("a", 0), ("b", 1)):
        item = held(claim(name), device("n1", number))
        assert item.allocation is not None
        (one,) = item.allocation.devices
        one = replace(one, binding_conditions=("attached",), binding_failure_conditions=("broken",))
        claims.append(replace(item, allocation=replace(item.allocation, devices=(one,))))
    broken = DeviceCondition(device=device("n1", 0), share_id=None, type="broken", status="True")
    claims[0] = replace(claims[0], device_conditions=(broken,))
    found = standing_of([claims[number] for number in order], START, READY_WITHIN_S)
    assert (found.readiness, found.detail) == (Readiness.FAILED, "device gpu.example.com/n1/d0 reports broken")


def test_r7_a_pod_is_not_given_a_part_in_what_others_have_and_cannot_be_made_ready() -> None:
    world = waiting()
    reported(world, "broken")
    world.server.put(replace(world.server.claims[A], reserved_for=(consumer(OTHER),)))
    world.server.deliver(world.belief)
    world.taken.clear()
    result = bind(world, now=START + 1)
    assert result == NotBound("device gpu.example.com/n1/d0 reports broken", is_unready=True)
    assert world.taken == []


def test_r7_who_waits_with_others_for_what_cannot_be_made_ready_gives_up_its_part_and_the_last_one_frees_it() -> None:
    world = waiting()
    reported(world, "broken")
    known = world.server.claims[A]
    world.server.put(replace(known, reserved_for=(*known.reserved_for, consumer(OTHER))))
    world.server.deliver(world.belief)
    assert bind(world, now=START + 1) == NotBound("device gpu.example.com/n1/d0 reports broken", is_unready=True)
    left = world.server.claims[A]
    assert (left.reserved_for, left.allocation) == ((consumer(OTHER),), known.allocation)
    world.server.put(replace(left, reserved_for=(consumer(POD),)))
    world.server.deliver(world.belief)
    bind(world, now=START + 2)
    assert allocation_of(world.server, "a") is None


def test_r7_a_pod_that_may_be_bound_keeps_its_part_in_what_others_have_and_cannot_be_made_ready() -> None:
    world = waiting()
    reported(world, "broken")
    known = world.server.claims[A]
    world.server.put(replace(known, reserved_for=(*known.reserved_for, consumer(OTHER))))
    world.server.deliver(world.belief)
    world.server.bind(POD, N1)
    result = bind(world, now=START + 1)
    assert isinstance(result, NotBound)
    assert result.is_open
    assert len(world.server.claims[A].reserved_for) == 2


@pytest.mark.parametrize("stamp", [None, "yesterday", ""])
def test_r7_a_claim_that_does_not_say_since_when_is_waited_for(stamp: str | None) -> None:
    base = held(claim("a"), device("n1", 0))
    assert base.allocation is not None
    waits = replace(base.allocation.devices[0], binding_conditions=("attached",))
    item = replace(base, allocation=replace(base.allocation, devices=(waits,), timestamp=stamp))
    assert standing_of([item], START, READY_WITHIN_S).readiness is Readiness.WAITING
