"""Whoever may not have a device is told whose it is, or of what there is too little, and beside whom."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.model.claim import ResourceClaim
from extender.model.device import Capacity, Counter, CounterConsumption, Device, Traits
from extender.model.names import DeviceName
from extender.model.quantity import parse_quantity
from extender.scheduling.account import note_of, of_plan
from extender.scheduling.planner import Rejection
from extender.scheduling.rivals import contest_of
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.scheduling.test_r2_r3_contested import chip, sharing

P = pod("p", "a")
DRAWS = (CounterConsumption("chip", (Counter("slots", parse_quantity("2")),)),)


def having(name: str, index: int, share: str = "", memory: str = "") -> ResourceClaim:
    item = held(claim(name), device("n1", index))
    return sharing(item, share, memory) if share else item


def of_parts(*claims: ResourceClaim, slots: int = 3) -> Belief:
    """Have *claims* hold partitions that draw from one chip with too few *slots*; the last device draws nothing."""
    drawing = [replace(each, traits=Traits(consumes_counters=DRAWS)) for each in gpus("n1", 3).devices]
    devices = replace(gpus("n1", 3), slice_count=2, devices=(*drawing, Device(DeviceName("d3"))))
    return belief_of(node("n1"), devices, *((chip(slots),) if slots else ()), *claims, P)


def test_a_claim_that_holds_what_an_earlier_one_holds_is_told_which() -> None:
    belief = belief_of(node("n1"), gpus("n1", 2), having("z", 1), having("y", 0), having("x", 0), having("a", 0), P)
    assert contest_of(having("a", 0), belief) == "claim a: the earlier claim ns/y holds gpu.example.com/n1/d0"
    assert contest_of(having("y", 0), belief) == ""


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ([having("x", 0), having("u", 3)], "the earlier claim ns/x"),
        ([having("x", 0), having("y", 1)], "2 earlier claims, such as ns/x"),
    ],
    ids=["one", "several"],
)
def test_a_partition_whose_counters_are_short_is_told_so_and_not_that_somebody_holds_it(
    earlier: list[ResourceClaim], told: str
) -> None:
    mine = having("a", 2)
    belief = of_parts(*earlier, mine)
    plan = planner_of(belief).plan(P, None, 0.0)
    assert isinstance(plan, Rejection)
    note = note_of(of_plan(P, plan, 1, 0.0))
    assert note.endswith(f"earlier claims: claim a: gpu.example.com/n1/d2 does not suffice for it and {told}")


def test_a_partition_without_counters_is_told_so_where_nobody_else_draws_from_them() -> None:
    mine = having("a", 2)
    belief = of_parts(having("u", 3), mine, slots=0)
    assert contest_of(mine, belief).endswith("d2 does not suffice for it and earlier claims")


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_share_is_told_that_there_is_too_little_or_whose_the_device_is(*, is_whole: bool) -> None:
    memory = (("memory", Capacity(parse_quantity("80Gi"))),)
    shared = Device(DeviceName("d0"), capacity=memory, traits=Traits(allow_multiple_allocations=True))
    first, mine = having("x", 0, "" if is_whole else "s1", "60Gi"), having("a", 0, "s2", "60Gi")
    devices = replace(gpus("n1", 1), devices=(shared,))
    belief = belief_of(node("n1"), devices, first, mine, features=Features(consumable_capacity=True))
    name = "gpu.example.com/n1/d0"
    short = f"claim a: {name} does not suffice for it and the earlier claim ns/x"
    assert contest_of(mine, belief) == (f"claim a: the earlier claim ns/x holds {name}" if is_whole else short)
