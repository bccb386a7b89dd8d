"""What a question remembers of nodes by their state: never more than what the state decides."""

from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np
import pytest

from extender.allocation.choose import choosing
from extender.allocation.columns import blank
from extender.allocation.fit import Fitter
from extender.allocation.grid import grid_of
from extender.allocation.memory import NODE_SIZE
from extender.allocation.node_state import KIND_SIZE, STATE_SIZE, Found, Naming, States
from extender.allocation.snapshot import Snapshot
from extender.model.change import Changed, Gone
from extender.model.claim import Constraint, DerivedAttribute, ResourceClaim
from extender.model.device import Attribute, Counter, CounterConsumption, CounterSet, Device, ResourceSlice
from extender.model.names import ObjectKey
from extender.model.quantity import parse_quantity
from extender.model.taint import Taint
from extender.state.cluster import Cluster
from tests.allocation.small import (
    DRIVER,
    chosen,
    cluster,
    device,
    holder,
    node,
    published,
    question,
    request,
    selector,
    verdicts,
)

IS_A: Final = question(request(selectors=["device.attributes['gpu.example.com'].model == 'A'"]))
EVERY: Final = question(request(mode="All"))
ZONES: Final = (node("n1", "a"), node("n2", "b"))


def good(name: str = "d", *, shared: bool = False) -> Device:
    return device(name, {"model": "A"}, allow_multiple_allocations=shared)


def test_a_view_names_the_slices_that_are_seen_not_their_places_among_all() -> None:
    halves = (
        published("b", good("d0"), name="b1", count=2, selector=selector("a")),
        published("b", device("d1", {"model": "B"}), name="b2", count=2, selector=selector("b")),
    )
    built, fitter = cluster(*ZONES, *halves, published("a", selector=selector("q"))), Fitter(IS_A)
    assert verdicts(fitter, built.snapshot) == ["FITS", "NO"]
    built.apply(Gone(ResourceSlice, ObjectKey("", "a")))
    built.apply(Changed(published("c", selector=selector("q"))))
    assert verdicts(fitter, built.snapshot) == ["FITS", "NO"]


def test_what_is_shared_comes_before_or_after_what_is_private() -> None:
    # The selector errs on the shared device; only one of the nodes has another one before it.
    slices = [
        published("m", device("bad"), all_nodes=True),
        published("a", good(), node_name="n1"),
        published("z", good(), node_name="n2"),
    ]
    snapshot = cluster(*ZONES, *slices).snapshot
    assert verdicts(Fitter(IS_A), snapshot) == chosen(IS_A, snapshot) == ["FITS", "FAILS"]


def test_a_state_tells_how_devices_can_be_written_down() -> None:
    # An allocation has one term of a node selector, so devices that are published by two of them cannot be given.
    built, fitter = cluster(ZONES[0], published("m", good(), selector=selector("a"))), Fitter(IS_A)
    assert verdicts(fitter, built.snapshot) == ["FITS"]
    built.apply(Changed(published("m", good(), selector=selector("a", "a"))))
    assert verdicts(fitter, built.snapshot) == ["FAILS"]


def test_an_error_is_met_on_a_device_that_somebody_has_a_share_of() -> None:
    # Not shareable any more, but not taken whole either: the search looks at it.
    held = holder("h", "n1", "d", share="s")
    snapshot = cluster(node("n1"), published("n1", device("d"), good("e")), held).snapshot
    assert verdicts(Fitter(IS_A), snapshot) == chosen(IS_A, snapshot) == ["FAILS"]


@pytest.mark.parametrize("text", ["1", "device.attributes['gpu.example.com'].model"])
def test_an_attribute_without_a_value_is_part_of_the_state_where_another_is_derived(text: str) -> None:
    odd = replace(good(), attributes=(*good().attributes, ("odd", Attribute("invalid", "no value"))))
    wanted = request(derived_attributes=(DerivedAttribute("a.example.com/z", text),))
    asked = question(wanted, Constraint(match_attribute="a.example.com/z"))
    snapshot = cluster(*ZONES, published("n1", good()), published("n2", odd)).snapshot
    assert verdicts(Fitter(asked), snapshot) == chosen(asked, snapshot) == ["FITS", "FAILS"]


def partition(name: str, model: str) -> Device:
    draws = CounterConsumption("set", (Counter("slots", parse_quantity("1")),))
    return device(name, {"model": model}, consumes_counters=(draws,))


@pytest.mark.parametrize("busy", ["n1", "n2"])
def test_a_device_that_is_not_asked_for_is_part_of_the_state_for_what_it_draws_from_counters(busy: str) -> None:
    sets = (CounterSet("set", (Counter("slots", parse_quantity("1")),)),)
    slices = [
        item
        for pool in ("n1", "n2")
        for item in (
            published(pool, partition("a", "A"), partition("b", "B"), count=2),
            replace(published(pool, name=f"{pool}-counters", count=2), shared_counters=sets),
        )
    ]
    snapshot = cluster(*ZONES, *slices, holder("h", busy, "b")).snapshot
    fitter = Fitter(IS_A)
    assert verdicts(fitter, snapshot) == ["NO" if pool == busy else "FITS" for pool in ("n1", "n2")]
    _, (first, second) = fitter.states_of(snapshot, np.arange(2))
    assert first != second


def test_one_pool_in_two_slices_is_no_two_pools_in_a_slice_each() -> None:
    sets = (CounterSet("set", (Counter("slots", parse_quantity("1")),)),)
    slices = [
        item
        for node_name, other in (("n1", "n1"), ("n2", "n2-other"))
        for item in (
            published(node_name, partition("a", "A"), count=2),
            replace(published(other, name=f"{node_name}-z", node_name=node_name, count=2), shared_counters=sets),
        )
    ]
    snapshot = cluster(*ZONES, *slices).snapshot
    assert verdicts(Fitter(IS_A), snapshot) == chosen(IS_A, snapshot) == ["FITS", "NO"]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """List the nodes that are searched."""
    searched: list[int] = []

    def counted(snapshot: Snapshot, place: int, *rest: object) -> object:
        searched.append(place)
        return choosing(snapshot, place, *rest)  # type: ignore[arg-type]  # the same arguments

    monkeypatch.setattr("extender.allocation.fit.choosing", counted)
    return searched


def test_a_state_has_one_name_whatever_other_nodes_are_like(searches: list[int]) -> None:
    big = published("n1", *(good(f"d{index}", shared=True) for index in range(4)))
    built, fitter = cluster(*ZONES, big, published("n2", good(shared=True))), Fitter(IS_A)
    fitter.fit(built.snapshot)
    fitter.fit(built.apply(Changed(holder("h", "n2", "d"))))
    assert searches == [0, 1, 1]
    fitter.fit(built.apply(Gone(ResourceClaim, ObjectKey("ns", "h"))))
    assert searches == [0, 1, 1]


def test_a_state_takes_no_more_memory_however_much_a_node_sees() -> None:
    devices = [good(f"d{index}", shared=True) for index in range(100)]
    snapshot, fitter = cluster(*ZONES, published("m", *devices, all_nodes=True)).snapshot, Fitter(IS_A)
    fitter.fit(snapshot)
    states = States(IS_A).continued(snapshot)
    naming = Naming(states, snapshot, fitter.matches_in(snapshot), blank(snapshot.inventory.rows))
    assert [len(name) for name in naming.of(grid_of(snapshot.layout, np.arange(2)))] == [16, 16]


def tainted(*pools: str) -> Cluster:
    """Publish a device on each of six nodes; those of some *pools* are tainted."""
    sick = Taint(key="sick", effect="NoSchedule")
    names = [f"n{index}" for index in range(6)]
    devices = {name: device("d", taints=(sick,) if name in pools else ()) for name in names}
    return cluster(*map(node, names), *(published(name, devices[name]) for name in names))


@pytest.mark.parametrize("turns", range(1, 8))
def test_works_that_take_turns_do_not_disturb_each_other(turns: int) -> None:
    first, second = tainted("n0", "n2", "n4").snapshot, tainted("n1", "n3", "n5").snapshot
    fitter = Fitter(EVERY)
    work = fitter.pieces(first)
    for _ in islice(work, turns):
        pass
    assert verdicts(fitter, second) == ["FITS", "NO"] * 3
    for _ in work:
        pass
    assert verdicts(fitter, first) == ["NO", "FITS"] * 3
    assert verdicts(fitter, second) == ["FITS", "NO"] * 3


@pytest.mark.parametrize("turns", range(1, 8))
def test_a_work_that_is_given_up_leaves_nothing_behind(turns: int) -> None:
    built = tainted()
    fitter, earlier = Fitter(EVERY), built.snapshot
    fitter.fit(earlier)
    later = built.apply(Changed(tainted("n0").snapshot.inventory.slices[0]))
    work = fitter.pieces(later)
    for _ in islice(work, turns):
        pass
    work.close()
    assert verdicts(fitter, earlier) == ["FITS"] * 6
    assert verdicts(fitter, later) == ["NO"] + ["FITS"] * 5


def test_states_of_which_the_same_was_found_out_share_it() -> None:
    states = States(IS_A)
    for number in range(3):
        states.remember(number, Found(1, 5))
    states.remember(9, Found(0, 5))
    assert len({id(found) for found in states.known.values()}) == 2
    assert states.known == {0: Found(1, 5), 1: Found(1, 5), 2: Found(1, 5), 9: Found(0, 5)}


def test_a_question_takes_more_memory_the_more_devices_and_states_it_tells_apart() -> None:
    names = [f"n{index}" for index in range(4)]
    pools = [published(name, *(device(f"d{place}", {"id": f"{name}-{place}"}) for place in range(2))) for name in names]
    snapshot = cluster(*map(node, names), *pools).snapshot
    alike = Fitter(question(request(2)))
    apart = Fitter(question(request(2), Constraint(distinct_attribute=f"{DRIVER}/id")))
    assert (alike.size, apart.size) == (0, 0)
    assert verdicts(alike, snapshot) == verdicts(apart, snapshot) == ["FITS"] * 4
    assert alike.size == 4 * NODE_SIZE + STATE_SIZE + KIND_SIZE
    assert apart.size >= 4 * NODE_SIZE + 4 * STATE_SIZE + 8 * KIND_SIZE
