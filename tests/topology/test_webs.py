"""Sets are found along links exactly where trying all sets finds them, each once."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice, pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of
from extender.topology.webs import STRIDE, meshes, rings

Found = Callable[[Sequence[int], int, int], Iterator[int]]


def is_mesh(near: Sequence[int], places: tuple[int, ...]) -> bool:
    return all(near[one] >> other & 1 for one, other in combinations(places, 2))


def is_ring(near: Sequence[int], places: tuple[int, ...]) -> bool:
    ways = ((places[0], *others, places[0]) for others in permutations(places[1:]))
    return any(all(near[one] >> other & 1 for one, other in pairwise(way)) for way in ways)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Draw links, which devices are free, and how many are wanted."""
    size = draw(st.integers(3, 7))
    pairs = list(combinations(range(size), 2))
    # In every second graph links lead from one half to the other only.
    pairs = [pair for pair in pairs if sum(pair) % 2] if draw(st.booleans()) else pairs
    links = draw(st.sets(st.sampled_from(pairs)))
    near = [mask_of(other for other in range(size) if {(one, other), (other, one)} & links) for one in range(size)]
    return near, draw(st.integers(0, (1 << size) - 1)), draw(st.integers(3, size))


@pytest.mark.parametrize(("found", "is_one"), [(meshes, is_mesh), (rings, is_ring)])
@given(drawn())
def test_all_sets_are_found_and_none_twice(
    found: Found, is_one: Callable[[Sequence[int], tuple[int, ...]], bool], drawn: tuple[list[int], int, int]
) -> None:
    near, among, size = drawn
    free = [place for place in range(len(near)) if among >> place & 1]
    expected = sorted(mask_of(places) for places in combinations(free, size) if is_one(near, places))
    assert sorted(filter(None, found(near, among, size))) == expected


def test_whoever_looks_in_vain_can_stop() -> None:
    """Among three groups that are linked with each other no four are all linked."""
    groups = [mask_of(place for place in range(60) if place % 3 != group) for group in range(3)]
    near = [groups[place % 3] for place in range(60)]
    assert list(islice(meshes(near, (1 << 60) - 1, 4), 10)) == [0] * 10
    assert len(list(meshes(near, (1 << 60) - 1, 4))) <= 60**3 // STRIDE


class Counted(list[int]):
    """Links that count how often one asks for those of a device."""

    asked = 0

    def __getitem__(self, place: int) -> int:  # type: ignore[override]  # no slices are asked for
        self.asked += 1
        return super().__getitem__(place)


RING = [(place, (place + 1) % 384) for place in range(384)]
LADDER = [*pairwise(range(192)), *pairwise(range(192, 384)), *((place, place + 192) for place in range(192))]


@pytest.mark.parametrize("links", [RING, RING[:-1], LADDER], ids=["a ring", "a path", "a ladder"])
def test_rings_are_looked_for_with_pauses_wherever_one_may_begin(links: list[tuple[int, int]]) -> None:
    near = Counted([0] * 384)
    for one, other in links:
        near[one] |= 1 << other
        near[other] |= 1 << one
    near.asked = before = 0
    looking = rings(near, (1 << 384) - 1, 5)
    found: int | None = 0
    while found is not None:
        found = next(looking, None)
        assert not found
        assert near.asked - before <= 5 * 384
        before = near.asked
