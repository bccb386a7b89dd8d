"""What a node can see of what is published, and whether that is still the same."""

from dataclasses import replace

from extender.allocation.columns import are_same
from extender.allocation.snapshot import Snapshot
from extender.allocation.surroundings import MOST, surroundings
from extender.model.change import Changed, Noun
from extender.model.device import NodeSelection, ResourceSlice
from extender.model.names import NodeName, PoolName
from extender.state.cluster import Cluster
from tests.scheduling.cast import gpus, node

N1 = NodeName("n1")


def cluster(*nouns: Noun) -> Cluster:
    found = Cluster()
    for noun in (node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 2), *nouns):
        found.apply(Changed(noun))
    return found


def part(name: str, node_name: str, generation: int = 1) -> ResourceSlice:
    """Publish a part of a pool that has slices on several nodes."""
    return replace(gpus(node_name, 1), name=name, pool=PoolName("net"), generation=generation, slice_count=2)


def names(snapshot: Snapshot, node_name: str) -> set[str]:
    return {item.name for item in surroundings(snapshot, NodeName(node_name)) if isinstance(item, ResourceSlice)}


def test_a_node_sees_its_own_slices_and_those_for_all() -> None:
    fabric = replace(gpus("net", 2), selection=NodeSelection(all_nodes=True))
    known = cluster(fabric)
    assert names(known.snapshot, "n1") == {"n1-gpus", "net-gpus"}
    assert names(known.snapshot, "unknown") == set()


def test_of_a_pool_on_several_nodes_every_slice_counts() -> None:
    known = cluster(part("a", "n1"), part("b", "n2"))
    before = surroundings(known.snapshot, N1)
    assert names(known.snapshot, "n1") == {"n1-gpus", "a", "b"}
    # Of a newer generation the pool is no longer whole where the old one is seen.
    known.apply(Changed(part("b", "n2", generation=2)))
    assert not are_same(before, surroundings(known.snapshot, N1))


def test_what_changes_elsewhere_leaves_everything_the_same() -> None:
    known = cluster()
    before = surroundings(known.snapshot, N1)
    known.apply(Changed(gpus("n2", 1)))
    known.apply(Changed(gpus("a", 1)))
    known.apply(Changed(node("a")))
    assert are_same(before, surroundings(known.snapshot, N1))
    known.apply(Changed(gpus("n1", 1)))
    assert not are_same(before, surroundings(known.snapshot, N1))


def test_of_a_pool_with_very_many_slices_any_change_counts() -> None:
    parts = [replace(part(f"s{index:03}", "n2"), slice_count=MOST + 1) for index in range(MOST)]
    known = cluster(replace(part("a", "n1"), slice_count=MOST + 1), *parts)
    before = surroundings(known.snapshot, N1)
    assert len(before) == 1
    known.apply(Changed(gpus("n2", 1)))
    assert not are_same(before, surroundings(known.snapshot, N1))
