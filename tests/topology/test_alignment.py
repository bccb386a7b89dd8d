"""How close devices of different kinds are, and the best way to pair them."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.aliases import Place
from extender.topology.alignment import FIRST_NUMA, NODE, ROOT, SOME_NUMA, affinity, cover, paired, zones_of
from extender.topology.assignment import assigned
from extender.topology.quality import ONE


def place(root: str = "", *numa: int) -> Place:
    return Place(root=frozenset(filter(None, root.split())), numa=frozenset(numa), first_numa=numa[0] if numa else None)


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        pytest.param(place("a", 0), place("a", 0), ROOT, id="one root"),
        pytest.param(place("a b", 0), place("b c", 1), ROOT, id="one of several roots, and NUMA nodes do not matter"),
        pytest.param(place("a", 0), place("b", 0), FIRST_NUMA, id="one NUMA node"),
        pytest.param(place("a", 0, 1), place("b", 1, 0), SOME_NUMA, id="each other's second NUMA node"),
        pytest.param(place("a", 0), place("b", 1), NODE, id="nothing but the node"),
        pytest.param(place(), place(), NODE, id="what is not known is not the same"),
    ],
)
def test_devices_are_as_close_as_the_closest_thing_that_they_share(one: Place, other: Place, near: int) -> None:
    assert affinity(one, other) == affinity(other, one) == near


def heaviest(weights: list[list[int]], count: int) -> int:
    rows, columns = range(len(weights)), range(len(weights[0]) if weights else 0)
    return max(
        sum(weights[row][column] for row, column in zip(chosen, order, strict=True))
        for chosen in combinations(rows, count)
        for order in permutations(columns, count)
    )


@st.composite
def drawn_weights(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    columns = draw(st.integers(1, 5))
    row = st.lists(st.integers(-9, 9), min_size=columns, max_size=columns)
    weights = draw(st.lists(row, min_size=1, max_size=5))
    return weights, draw(st.integers(0, min(len(weights), columns)))


@given(drawn_weights())
def test_no_other_pairs_are_heavier(drawn: tuple[list[list[int]], int]) -> None:
    weights, count = drawn
    pairs = assigned(weights, count)
    assert len(pairs) == len({row for row, _ in pairs}) == len({column for _, column in pairs}) == count
    assert sum(weights[row][column] for row, column in pairs) == heaviest(weights, count)


drawn_places = st.builds(
    lambda roots, zones: place(" ".join(roots), *zones),
    st.lists(st.sampled_from("abc"), max_size=2),
    st.lists(st.integers(0, 2), max_size=2, unique=True),
)
some_places = st.lists(drawn_places, max_size=5)


@given(some_places, some_places)
def test_pairing_does_not_depend_on_the_order_of_devices(ones: list[Place], others: list[Place]) -> None:
    shuffled = [sorted(places, key=repr) for places in (ones, others)]
    assert paired(ones, others).mean == paired(*shuffled).mean == paired(others, ones).mean
    assert cover(ones, others) == cover(*shuffled)
    assert zones_of(ones) == zones_of(shuffled[0])


def test_cover_counts_each_device_on_its_own_numa_node() -> None:
    gpus = [place("", 0), place("", 0), place("", 1), place()]
    assert cover(gpus, [place("", 0)]) == ONE // 2
    assert cover(gpus, [place("", 0), place("", 1)]) == 3 * ONE // 4
    assert cover([], [place("", 0)]) == 0


def test_cpus_cover_devices_as_far_as_each_numa_node_has_its_part_of_them() -> None:
    near, far = place("", 0), place("", 1)
    assert cover([near, far], [near] * 8 + [far] * 8) == ONE
    assert cover([near, far], [near] * 2 + [far] * 14) == ONE // 2 + ONE // 8
    assert cover([near], [near] * 12 + [far] * 4) == 3 * ONE // 4
    assert cover([near, near, far], [near, far]) == ONE
    assert cover([near, far], [near] * 2 + [far]) == ONE
    assert cover([near, far], [near, far, place("", 2)]) == 2 * ONE // 3
