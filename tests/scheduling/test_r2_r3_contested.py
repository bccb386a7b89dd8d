"""R2, R3: of two claims that hold one device the one that was shown first keeps it."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.device import (
    Capacity,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    ResourceSlice,
    Traits,
)
from extender.model.names import DeviceName, ObjectKey
from extender.model.node import Pod
from extender.model.quantity import parse_quantity
from extender.scheduling.endings import Bound, NotBound
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import freed, unusable
from extender.scheduling.steps import AwaitShown, BindPod, Step, Unknown
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.domain import writer_of
from extender.state.seniority import Seniority
from tests.scheduling.cast import OURS, belief_of, claim, consumer, device, gpus, held, node, planner_of, pod
from tests.scheduling.server import Server, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, bind, world_of


def intruded(server: Server, _step: Step) -> None:
    """Have somebody else allocate the same device just before us."""
    server.put(held(claim("x"), device("n1", 0), device("n1", 1)))


def test_r2_the_claim_that_the_watch_shows_second_is_rolled_back_before_its_pod_is_bound() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = intruded, 0
    result = bind(world)
    assert isinstance(result, NotBound)
    assert "claim a: the earlier claim ns/x holds gpu.example.com/n1/d" in result.message
    assert BindPod not in [type(step) for step in world.taken]
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "x") is not None


def test_r2_the_claim_that_the_watch_shows_first_keeps_its_device() -> None:
    world = world_of(claim("a"))

    def fault(server: Server, _step: Step) -> None:
        server.put(held(claim("x"), device("n1", 0), device("n1", 1)))

    world.fault, world.at = fault, 1
    assert isinstance(bind(world), Bound)


def test_r2_nothing_is_bound_before_the_watch_has_shown_the_write() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = (lambda _server, _step: Unknown("late")), 1
    assert isinstance(bind(world), NotBound)
    assert isinstance(world.taken[1], AwaitShown)
    assert allocation_of(world.server, "a") is None


def test_r3_an_allocated_claim_whose_devices_an_earlier_one_holds_is_refused_by_filter_and_by_bind() -> None:
    first, second = held(claim("x"), device("n1", 0)), held(claim("a", version=2), device("n1", 0))
    world = world_of(first, second)
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_CONTESTED
    assert isinstance(bind(world), NotBound)
    assert world.taken == []


def test_r3_of_those_that_were_listed_together_the_older_version_counts_as_earlier() -> None:
    world = world_of(held(claim("a"), device("n1", 0)), held(claim("x"), device("n1", 0)))
    claims = tuple(reversed(world.server.claims.values()))
    world.belief.apply(Listed(ResourceClaim, claims))
    assert isinstance(planner_of(world.belief).plan(POD, [N1, N2], 0.0), Offer)


def begun(*claims: ResourceClaim, pods_first: bool = True) -> Belief:
    """Begin anew where of all pods POD alone waits."""
    belief, lists = belief_of(node("n1"), gpus("n1", 2)), [Listed(Pod, (POD,)), Listed(ResourceClaim, claims)]
    for change in lists if pods_first else reversed(lists):
        belief.apply(change)
    return belief


def written(by: str, version: int, *users: Pod) -> ResourceClaim:
    """Return a claim that *by* has given the one device, reserved for *users*."""
    name, writer = f"{by}-{version}", writer_of((OURS,)) if by == "ours" else by
    given = held(claim(name, version=version), device("n1", 0))
    return replace(given, writers=(writer,) if writer else (), reserved_for=tuple(map(consumer, users)))


def in_the_way(belief: Belief, claims: tuple[ResourceClaim, ...]) -> list[str]:
    return [each.key.name for each in claims if belief.contested(each)]


@pytest.mark.parametrize("pods_first", [True, False])
@pytest.mark.parametrize(
    "senior",
    [written("kube-scheduler", 300), written("", 300), written("ours", 300, OTHER), written("ours", 300, POD, OTHER)],
    ids=["of another writer", "of nobody knows whom", "of a bound pod", "shared with a bound pod"],
)
@pytest.mark.parametrize("mine", [written("ours", 250, POD), written("ours", 250)], ids=["waiting", "unused"])
def test_r3_of_those_that_were_listed_together_what_we_wrote_and_no_bound_pod_has_gives_way(
    senior: ResourceClaim, mine: ResourceClaim, *, pods_first: bool
) -> None:
    claims = (mine, senior)
    assert in_the_way(begun(*claims, pods_first=pods_first), claims) == [mine.key.name]


@pytest.mark.parametrize("pods_first", [True, False])
@pytest.mark.parametrize("by", ["ours", "kube-scheduler"])
def test_r3_of_those_that_are_alike_the_older_version_counts_as_earlier(by: str, *, pods_first: bool) -> None:
    claims = (written(by, 300, POD), written(by, 250, POD))
    assert in_the_way(begun(*claims, pods_first=pods_first), claims) == [f"{by}-300"]


def test_r3_what_was_shown_first_stays_first_whatever_is_listed_later() -> None:
    mine, other = written("ours", 250, POD), written("kube-scheduler", 300)
    belief = begun()
    belief.apply(Changed(mine))
    belief.apply(Changed(other))
    for change in (Listed(Pod, (POD,)), Listed(ResourceClaim, (other, mine))):
        belief.apply(change)
        assert in_the_way(belief, (mine, other)) == [other.key.name]


def test_r3_only_what_is_contested_is_freed() -> None:
    both = pod("p", "a", "c")
    kept = held(claim("c"), device("n1", 1), by=both)
    world = world_of(held(claim("x"), device("n1", 0)), held(claim("a"), device("n1", 0), by=both), kept, subject=both)
    assert [item.key.name for item in unusable(both, world.belief, 0.0)] == ["a"]
    assert world.carry(freed(both, world.belief, 0.0))
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "c") is not None
    assert isinstance(bind(world, subject=both), NotBound | Bound)


def test_r3_shares_that_are_left_from_before_a_gate_was_closed_stay_with_all_who_have_them() -> None:
    first, second = (sharing(held(claim(name), device("n1", 0)), name) for name in ("x", "a"))
    belief = belief_of(node("n1"), gpus("n1", 1), first, second, features=Features(consumable_capacity=False))
    assert belief.contested(second) is None
    third = held(claim("w"), device("n1", 0))
    belief.apply(Changed(third))
    assert belief.contested(third) == device("n1", 0)


@pytest.mark.parametrize("is_verified", [True, False])
def test_r3_a_share_that_has_sufficed_is_kept_while_the_slices_of_its_node_are_away(*, is_verified: bool) -> None:
    """As while a kubelet starts anew. Of one that nobody has looked at before nobody knows."""
    shared = Traits(allow_multiple_allocations=True)
    memory = (("memory", Capacity(parse_quantity("80Gi"))),)
    published = replace(gpus("n1", 1), devices=(Device(DeviceName("d0"), capacity=memory, traits=shared),))
    first, second = (sharing(held(claim(name), device("n1", 0)), name, "30Gi") for name in "xa")
    belief = belief_of(node("n1"), published, first, second)
    if is_verified:
        assert belief.contested(second) is None
    belief.apply(Gone(ResourceSlice, ObjectKey("", published.name)))
    assert belief.contested(second) == (None if is_verified else device("n1", 0))
    # What it holds since, or what there is since, is another question.
    more = sharing(held(claim("a"), device("n1", 0)), "a", "60Gi")
    belief.apply(Changed(more))
    assert belief.contested(more) == device("n1", 0)
    less = replace(published.devices[0], capacity=(("memory", Capacity(parse_quantity("40Gi"))),))
    belief.apply(Changed(second))
    belief.apply(Changed(replace(published, devices=(less,))))
    assert belief.contested(second) == device("n1", 0)


def test_r3_a_share_that_has_sufficed_gives_way_once_there_is_less() -> None:
    shared = Traits(allow_multiple_allocations=True)
    first, second = (sharing(held(claim(name), device("n1", 0)), name, "30Gi") for name in "xa")
    belief = belief_of(node("n1"), first, second)
    for memory, found in (("80Gi", None), ("40Gi", device("n1", 0))):
        there = (("memory", Capacity(parse_quantity(memory))),)
        one = Device(DeviceName("d0"), capacity=there, traits=shared)
        belief.apply(Changed(replace(gpus("n1", 1), devices=(one,))))
        assert belief.contested(second) == found


def test_r3_a_partition_that_was_away_itself_has_not_sufficed_for_that() -> None:
    draws = (CounterConsumption("chip", (Counter("slots", parse_quantity("4")),)),)
    parts = tuple(replace(each, traits=Traits(consumes_counters=draws)) for each in gpus("n1", 2).devices)
    first, second = held(claim("x"), device("n1", 0)), held(claim("a"), device("n1", 1))
    belief = belief_of(node("n1"), first, second)
    assert belief.contested(second) is None
    belief.apply(Changed(replace(gpus("n1", 2), slice_count=2, devices=parts)))
    assert belief.contested(second) == device("n1", 1)


@pytest.mark.parametrize("is_verified", [True, False])
def test_r3_a_partition_that_has_sufficed_is_kept_while_what_it_draws_from_is_away(*, is_verified: bool) -> None:
    """As while a driver publishes its slices one by one."""
    draws = (CounterConsumption("chip", (Counter("slots", parse_quantity("4")),)),)
    parts = tuple(replace(each, traits=Traits(consumes_counters=draws)) for each in gpus("n1", 2).devices)
    devices = replace(gpus("n1", 2), slice_count=2, devices=parts)
    first, second = held(claim("x"), device("n1", 0)), held(claim("a"), device("n1", 1))
    belief = belief_of(node("n1"), devices, chip(8), first, second)
    if is_verified:
        assert belief.contested(second) is None
    belief.apply(Gone(ResourceSlice, ObjectKey("", chip(8).name)))
    assert belief.contested(second) == (None if is_verified else device("n1", 1))
    belief.apply(Gone(ResourceSlice, ObjectKey("", devices.name)))
    belief.apply(Changed(devices))
    assert belief.contested(second) == (None if is_verified else device("n1", 1))
    # The same device twice is another question, and so is less than there was.
    belief.apply(Changed(again := held(claim("w"), device("n1", 1))))
    assert belief.contested(again) == device("n1", 1)
    belief.apply(Changed(chip(7)))
    assert belief.contested(second) == device("n1", 1)


def chip(slots: int) -> ResourceSlice:
    """Return a slice with what partitions draw from."""
    counters = (CounterSet("chip", (Counter("slots", parse_quantity(str(slots))),)),)
    return replace(gpus("n1", 0), name="n1-chip", slice_count=2, shared_counters=counters)


def sharing(item: ResourceClaim, share: str, memory: str = "") -> ResourceClaim:
    """Return *item* with a share of each device that it has."""
    assert item.allocation is not None
    taken = (("memory", parse_quantity(memory)),) if memory else ()
    results = tuple(replace(one, share_id=share, consumed_capacity=taken) for one in item.allocation.devices)
    return replace(item, allocation=replace(item.allocation, devices=results))


def test_r3_who_came_before_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (held(claim(name), device("n1", at), by=pod(name)) for at, name in enumerate("ab"))
    belief = belief_of(node("n1"), gpus("n1", 2), first, second)
    assert belief.contested(second) is None
    monkeypatch.setattr(Seniority, "before", None)
    assert belief.contested(second) is None
    monkeypatch.undo()
    belief.apply(Changed(replace(second, allocation=first.allocation, resource_version="9")))
    assert belief.contested(second) == device("n1", 0)


def test_r3_so_it_is_for_shares_that_consume_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (sharing(held(claim(name), device("n1", 0)), name) for name in "ab")
    belief = belief_of(node("n1"), gpus("n1", 1), first, second)
    assert belief.contested(second) is None
    monkeypatch.setattr(Seniority, "before", None)
    assert belief.contested(second) is None
