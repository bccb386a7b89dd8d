"""What is published in shared pools has a number, which changes when any slice of them does, and then only."""

import gc
from dataclasses import replace
from weakref import ref

from extender.model.change import Changed
from extender.model.device import ResourceSlice
from extender.scheduling.editions import Editions
from extender.state.belief import Belief
from tests.scheduling.mixed import NET, cluster, gpus, published

FABRIC = published("fabric", NET, 2, is_everywhere=True)


def believing(*slices: ResourceSlice) -> Belief:
    return cluster(gpus("a", 2), *slices, nodes="ab")


def editions(known: Editions, belief: Belief) -> list[int]:
    snapshot = belief.cluster.snapshot
    return [known.of(snapshot, node) for node in range(len(snapshot.layout.nodes))]


def test_who_sees_nothing_shared_has_no_edition() -> None:
    assert editions(Editions(), believing()) == [0, 0]


def test_who_sees_the_same_pools_has_the_same_edition_as_long_as_no_slice_of_them_is_another_one() -> None:
    known, belief = Editions(), believing(FABRIC)
    first, second = editions(known, belief)
    belief.apply(Changed(replace(gpus("a", 2), generation=2)))
    assert editions(known, belief) == [first, second]
    assert first == second != 0


def test_an_edition_never_comes_back() -> None:
    known, belief, seen = Editions(), believing(FABRIC), set[int]()
    for generation in range(1, 4):
        belief.apply(Changed(replace(FABRIC, generation=generation)))
        seen |= set(editions(known, belief))
    assert len(seen) == 3


def test_what_was_published_before_is_not_kept_for_its_number() -> None:
    known, belief = Editions(), believing(FABRIC)
    editions(known, belief)
    before = ref(belief.cluster.snapshot.inventory)
    belief.apply(Changed(replace(gpus("a", 2), generation=2)))
    editions(known, belief)
    gc.collect()
    assert before() is None
