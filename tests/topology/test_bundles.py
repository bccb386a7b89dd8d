"""What free devices of two kinds are good for together is what the heaviest pairs of them are worth."""

from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.topology.aliases import Place
from extender.topology.alignment import NODE, affinity
from extender.topology.assignment import assigned
from extender.topology.bundles import Bundles, Level

MOST = 5
# Roots lie within NUMA nodes, of some devices nothing is known.
known = st.builds(
    lambda zone, root: Place(
        root=frozenset({f"{zone}{root}"} if root else ()), first_numa=zone, numa=frozenset({zone})
    ),
    st.integers(0, 1),
    st.sampled_from(["", "a", "b"]),
)
places = st.lists(known | st.just(Place()), min_size=1, max_size=MOST)
masks = st.integers(0, (1 << MOST) - 1)


@given(places, places, masks, masks)
def test_pairs_are_worth_what_the_heaviest_matching_is(
    ones: list[Place], others: list[Place], free: int, left: int
) -> None:
    free, left = free & (1 << len(ones)) - 1, left & (1 << len(others)) - 1
    near = [[affinity(ones[one], others[other]) for other in places_of(left)] for one in places_of(free)]
    weights = [[close if close > NODE else 0 for close in row] for row in near]
    pairs = assigned(weights, min(len(weights), len(weights[0]))) if weights and weights[0] else ()
    assert Bundles(ones, others).worth(free, left) == sum(weights[one][other] for one, other in pairs)


@given(places, places, masks, masks, masks)
def test_partners_are_missed_together_no_less_than_one_by_one(
    ones: list[Place], others: list[Place], free: int, left: int, taken: int
) -> None:
    bundles = Bundles(ones, others)
    free, left = free & (1 << len(ones)) - 1, left & (1 << len(others)) - 1
    losses, worth = bundles.losses(free, left), bundles.worth(free, left)
    without = {one: worth - bundles.worth(free, left & ~(1 << one)) for one in places_of(left)}
    assert losses == {one: lost for one, lost in without.items() if lost}
    gone = taken & left
    assert worth - bundles.worth(free, left & ~gone) >= sum(losses.get(one, 0) for one in places_of(gone))


class Rows(tuple[int, ...]):
    """The partners of each anchor, counting how often one's are asked for."""

    __slots__ = ()
    asked: ClassVar[list[Any]] = []

    def __getitem__(self, anchor: Any) -> Any:
        self.asked.append(anchor)
        return super().__getitem__(anchor)


def test_whoever_is_missed_is_found_by_pairing_once() -> None:
    # Two that share many partners, and two with one of their own beside the same one.
    many = (1 << 64) - 1
    level = Level(1, Rows((many, many, 1 << 64, 1 << 64 | 1 << 65)), None)
    assert level.missed(0b1111, many | 0b11 << 64) == 0b11 << 64
    assert len(Rows.asked) == 4


@given(st.lists(masks, min_size=1, max_size=MOST), masks, masks)
def test_without_one_that_is_missed_there_is_a_pair_less(rows: list[int], free: int, left: int) -> None:
    level, free = Level(1, tuple(rows), None), free & (1 << len(rows)) - 1
    missed, pairs = level.missed(free, left), level.pairs(free, left)
    assert missed == mask_of(one for one in places_of(left) if level.pairs(free, left & ~(1 << one)) < pairs)
