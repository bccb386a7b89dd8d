"""What metrics tell of the present."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from extender.allocation.features import Features
from extender.model.change import Changed
from extender.model.device import CounterConsumption, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.problem import Problem
from extender.scheduling.taste import Taste
from extender.scheduling.waking import Waker
from extender.service.gauges import Gauges
from extender.state.belief import Belief
from extender.state.domain import Domain
from extender.state.ledger import ClaimHold, Promise
from extender.topology.document import Document
from tests.scheduling.cast import planner_of
from tests.scheduling.machines import fleet


def test_nodes_are_counted_by_how_their_links_are_known() -> None:
    nobody: Any = None
    belief = fleet({"a": "dgx-1v", "b": "dgx-1v", "c": "a100-pcie"}, {})
    taste = Taste(Document(), belief.learning.mix_for)
    gauges = Gauges(belief, nobody, nobody, lambda: 0.0, lambda: taste)
    assert gauges.links() == {("gpu.nvidia.com", "known"): 2, ("gpu.nvidia.com", "levels"): 1}


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (("known", "known"), "known"),
        (("known", "levels"), "levels"),
        (("contested", "levels"), "contested"),
        (("known", "contested", "levels"), "contested"),
    ],
)
def test_a_node_with_several_kinds_of_devices_of_a_driver_is_counted_once(groups: tuple[str, ...], told: str) -> None:
    nobody: Any = None
    # A third device, which stands alone, has no links.
    alone, other = group_of("contested", members=1), group_of("levels", driver="other")
    machines = {4: (*map(group_of, groups), alone, other), 7: (alone,)}
    atlas = SimpleNamespace(numbers=lambda _snapshot: np.array([4, 7, 4], np.int32), machines=machines)
    taste: Any = SimpleNamespace(atlas=atlas)
    gauges = Gauges(Belief(("s",), Features()), nobody, nobody, lambda: 0.0, lambda: taste)
    assert gauges.links() == {("gpu", told): 2, ("other", "levels"): 2}


def group_of(links: str, driver: str = "gpu", members: int = 2) -> object:
    """Return what is looked at of a group of devices whose *links* are known so."""
    known = SimpleNamespace(complaints=("differ",) * (links == "contested"), is_known=links == "known")
    return SimpleNamespace(links=known, members=(SimpleNamespace(key=SimpleNamespace(driver=driver)),) * members)


def test_only_who_leads_counts_the_pods_that_wait() -> None:
    nobody: Any = None
    belief = Belief(("s",), Features())
    waker, leading = Waker(belief, planner_of(belief)), [True, False]
    waker.put(Uid("p"))
    gauges = Gauges(belief, nobody, waker, lambda: 0.0, leads=lambda: leading.pop(0))
    assert [gauges.waiting(), gauges.waiting()] == [1, 0]


def test_only_who_leads_counts_what_it_has_offered() -> None:
    nobody: Any = None
    belief, leading = Belief(("s",), Features()), [True, False]
    belief.ledger.offer(Promise(Uid("p"), NodeName("n"), (ClaimHold(Uid("c"), ()),)))
    belief.ledger.reserve(Promise(Uid("q"), NodeName("n"), (ClaimHold(Uid("d"), ()),)))
    gauges = Gauges(belief, nobody, nobody, lambda: 0.0, leads=lambda: leading.pop(0))
    for offered in (1, 0):
        assert gauges.holds() == {"offered": offered, "reserved": 1, "written": 0, "unknown": 0}


def test_objects_that_cannot_be_read_are_counted_pods_too() -> None:
    nobody: Any = None
    belief = Belief(("s",), Features())
    gauges = Gauges(belief, nobody, nobody, lambda: 0.0)
    assert gauges.unreadable() == {}
    for kind in ("Pod", "Footprint", "ResourceSlice"):
        belief.apply(Changed(Problem(kind, ObjectKey("ns", kind.lower()), "spec", "is broken")))
    assert gauges.unreadable() == {"Pod": 2, "ResourceSlice": 1}


def test_a_ledger_without_holds_tells_zero_for_every_phase() -> None:
    nobody: Any = None
    gauges = Gauges(Belief(("s",), Features()), nobody, nobody, lambda: 0.0)
    assert gauges.holds() == {"offered": 0, "reserved": 0, "written": 0, "unknown": 0}


def part(pool: str, generation: int, count: int, driver: str = "gpu") -> ResourceSlice:
    """Return one slice of a pool, which says that there are *count* of its generation."""
    device = Device(DeviceName(f"{driver}-{pool}-{generation}"))
    return ResourceSlice(
        name=device.name,
        driver=DriverName(driver),
        pool=PoolName(pool),
        generation=generation,
        slice_count=count,
        selection=NodeSelection(node_name=NodeName(pool)),
        devices=(device,),
    )


def test_a_pool_counts_as_incomplete_from_its_newest_generation_on_until_all_of_that_is_there() -> None:
    nobody: Any = None
    belief = Belief(("s",), Features(), domain=Domain(drivers=frozenset({"gpu", "nic"})))
    gauges = Gauges(belief, nobody, nobody, lambda: 0.0)
    assert gauges.incomplete() == {}
    for published in (part("n1", 1, 1), part("n1", 1, 1, "nic"), part("n1", 1, 2, "foreign")):
        belief.apply(Changed(published))
    assert gauges.incomplete() == {"gpu": 0, "nic": 0}
    rest = replace(part("n1", 2, 2), name="rest")
    for published, count in ((part("n1", 2, 2), 1), (part("n2", 4, 3), 2), (rest, 1)):
        belief.apply(Changed(published))
        assert gauges.incomplete() == {"gpu": count, "nic": 0}


@pytest.mark.parametrize(("features", "count"), [(Features(device_compatibility_groups=True), 0), (Features(), 1)])
def test_a_pool_of_which_a_slice_is_not_understood_counts_as_incomplete(features: Features, count: int) -> None:
    nobody: Any = None
    consumed = (CounterConsumption("set", (), ("mig",)),)
    device = Device(DeviceName("d"), traits=Traits(consumes_counters=consumed))
    belief = Belief(("s",), features)
    belief.apply(Changed(replace(part("n1", 1, 1), devices=(device,))))
    assert Gauges(belief, nobody, nobody, lambda: 0.0).incomplete() == {"gpu": count}
