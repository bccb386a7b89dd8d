import sys
from collections.abc import Iterator
from itertools import combinations
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.topology.choice import Ranker
from extender.topology.companions import PARTNERED, STRANDED, ZONED
from extender.topology.policy import KEEPING, MOST_ZONES, STEP, ZONE
from extender.topology.quality import ONE, Quality
from extender.topology.residual import Mix, Residual, measure
from extender.topology.shape import Shape
from tests.topology.shapes import CUBE_MESH, drawn_shapes, levels, matrix, relabelled

MIX = Mix.of({1: 40, 2: 30, 4: 25, 8: 5})


def families(free: int, size: int) -> Iterator[list[int]]:
    """Yield every family of disjoint sets."""
    yield []
    for chosen in combinations(places_of(free), size):
        mask = mask_of(chosen)
        # The sets of a family in the order of their lowest devices.
        above = free & ~mask & -(mask & -mask)
        for rest in families(above, size):
            yield [mask, *rest]


@given(drawn_shapes(most=7), st.data())
def test_packings_are_those_that_brute_force_finds(shape: Shape, data: st.DataObject) -> None:
    residual = Residual(Quality(shape), MIX)
    free = data.draw(st.integers(0, shape.full))
    size = data.draw(st.integers(2, 4))
    best = max(sum(map(residual.quality.of, family)) for family in families(free, size))
    assert residual.packed(free, size) == best


def test_an_empty_node_of_eight_is_worth_one_and_a_full_one_nothing() -> None:
    residual = Residual(Quality(CUBE_MESH), MIX)
    assert (residual.value(0xFF), residual.value(0)) == (ONE, 0)


def test_sizes_that_a_shape_cannot_have_are_worth_nothing_on_it() -> None:
    # Half as many sets of two and of four as eight devices have, and none of eight.
    residual = Residual(Quality(Shape(matrix(4, {}, 10))), MIX)
    assert residual.value(0xF) == ONE * 55 // (2 * 60)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 16, 30])
def test_a_set_that_is_lost_counts_the_same_on_nodes_of_all_sizes(size: int) -> None:
    flat = Shape(matrix(size, {}, 10))
    residual = Residual(Quality(flat), Mix.of({2: 1}))
    assert residual.value(flat.full) - residual.value(flat.full >> 2) == ONE // 4


@pytest.mark.parametrize("size", [33, 64, 100])
def test_what_is_left_of_a_large_node_never_counts_more_than_what_policies_prefer(size: int) -> None:
    flat = levels(450, cell=size)
    value = Residual(Quality(flat), Mix.of({2: 1, 5: 1, 8: 1})).value(flat.full)
    assert value > 3 * ONE
    # Beside it count links, NUMA nodes and partners, and what is left stranded by two drivers of each kind.
    stranded = KEEPING * STRANDED * size // (1000 * measure(size))
    beside = 1000 * (PARTNERED + 2 * ZONED) + 4 * stranded
    assert ONE + MOST_ZONES * ZONE + KEEPING * value // 1000 + beside <= STEP


def test_a_mix_of_singles_alone_sees_no_value_in_devices() -> None:
    assert Residual(Quality(CUBE_MESH), Mix.of({1: 5})).value(0xFF) == 0


@given(drawn_shapes(), st.data())
def test_numbers_of_devices_do_not_matter(shape: Shape, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(shape.size))))
    one, other = Residual(Quality(shape), MIX), Residual(Quality(relabelled(shape, order)), MIX)
    for mask in range(1 << shape.size):
        assert other.value(mask) == one.value(mask_of(order[place] for place in places_of(mask)))


@given(drawn_shapes(), st.data())
def test_freed_devices_are_never_worth_less(shape: Shape, data: st.DataObject) -> None:
    residual = Residual(Quality(shape), MIX)
    few = data.draw(st.integers(0, shape.full))
    assert residual.value(few) <= residual.value(few | data.draw(st.integers(0, shape.full)))


LARGE = {"flat": levels(450, cell=16), "tree": levels(450, 100, 20, cell=8), "uneven": levels(50, 30, 20, 10)}


@pytest.mark.parametrize("shape", LARGE.values(), ids=LARGE)
def test_in_a_large_tree_only_counts_in_cells_matter(shape: Shape) -> None:
    residual = Residual(Quality(shape), MIX)
    assert residual.value(shape.full) == shape.size * ONE // 8
    assert residual.value(0b0111) == residual.value(0b1011) == residual.value(0b1011 << 8)


def test_in_a_large_tree_cells_that_are_whole_are_worth_more_than_halves() -> None:
    residual = Residual(Quality(levels(450, 100, cell=8)), MIX)
    assert residual.value(0x00FF) > residual.value(0x0F0F) > residual.value(0x0F07)


@given(st.integers(0, (1 << 16) - 1), st.permutations(range(8)))
def test_in_a_large_tree_cells_can_change_places(free: int, order: list[int]) -> None:
    shape = levels(450, 100, cell=8)
    residual = Residual(Quality(shape), MIX)
    moved = mask_of((order[place % 8] if place < 8 else place) ^ 8 for place in places_of(free))
    assert Residual(Quality(shape), MIX).value(moved) == residual.value(free)


def test_many_devices_with_arbitrary_links_count_the_sets_that_stay_whole() -> None:
    pairs = {(one, one + 1): 100 for one in range(0, 16, 2)} | {(0, 3): 50}
    residual = Residual(Quality(Shape(matrix(16, pairs, 10))), Mix.of({2: 1}))
    assert residual.value((1 << 16) - 1) == 2 * ONE
    assert residual.value(0b1111) == ONE * 2 // 4


@pytest.mark.parametrize("shape", [levels(450, 430, 22), levels(450, 100, cell=4)], ids=["three-levels", "two-levels"])
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_filling_cells_from_below_loses_nothing_on_machines_of_eight(shape: Shape, size: int) -> None:
    residual = Residual(Quality(shape), MIX)
    for free in range(1 << 8):
        assert residual.packing._by_cells(free, size) == residual.packed(free, size)


@given(st.integers(0, (1 << 12) - 1), st.sampled_from([2, 3, 4, 8]))
def test_filling_cells_from_below_never_counts_more_than_there_is(free: int, size: int) -> None:
    residual = Residual(Quality(levels(450, 100, 20, cell=3)), MIX)
    assert residual.packing._by_cells(free, size) <= residual.packed(free, size)


def steps(shape: Shape, size: int) -> int:
    """Count the calls that it takes to choose *size* out of most devices."""
    counted = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal counted
        counted += 1

    free = shape.full & ~mask_of(range(0, shape.size, 5))
    ranker = Ranker(shape, MIX)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert ranker.best(free, size)
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.parametrize("size", [1, 2, 8])
def test_one_device_whose_weights_form_no_tree_makes_little_work(size: int) -> None:
    shape = levels(22, 18, 10, cell=16)
    odd = {(0, other): 10 for other in range(16, 64)} | {
        pair: shape.weights[pair[0]][pair[1]] for pair in combinations(range(64), 2) if pair[0]
    }
    spoilt = Shape(matrix(64, odd, 22))
    assert not spoilt.is_tree
    assert steps(spoilt, size) <= 5 * steps(shape, size)


@pytest.mark.parametrize("size", [1, 2, 8])
def test_levels_that_are_not_nested_make_little_work(size: int) -> None:
    shape = levels(22, 18, 10, cell=16)
    crossing = {(one, other): 20 for one, other in combinations(range(64), 2) if one % 8 == other % 8}
    rows = {pair: max(shape.weights[pair[0]][pair[1]], crossing.get(pair, 0)) for pair in combinations(range(64), 2)}
    spoilt = Shape(matrix(64, rows))
    assert not spoilt.is_tree
    assert steps(spoilt, size) <= 5 * steps(shape, size)
