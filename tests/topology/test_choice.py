from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.topology.choice import KEPT, Ranker
from extender.topology.memo import Memo
from extender.topology.policy import KEEPING
from extender.topology.residual import Mix
from extender.topology.shape import Shape
from tests.topology.shapes import CUBE_MESH, FLAT, PAIRS, TREE, drawn_shapes, levels, matrix, relabelled

MIX = Mix.of({1: 40, 2: 30, 4: 25, 8: 5})


def chosen(shape: Shape, free: int, size: int, among: int = -1) -> tuple[int, ...]:
    best = Ranker(shape, MIX).best(free, size, among)
    assert best is not None
    return places_of(best.mask)


@pytest.mark.parametrize(
    ("shape", "free", "size", "best"),
    [
        pytest.param(CUBE_MESH, 0xFF, 2, (0, 3), id="a pair with two links that leaves a pair in its quad"),
        pytest.param(CUBE_MESH, 0b1111_1001, 2, (0, 3), id="a pair out of the quad that is broken already"),
        pytest.param(CUBE_MESH, 0xFF, 4, (0, 1, 2, 3), id="a perfect quad"),
        pytest.param(CUBE_MESH, 0b1111_1110, 1, (1,), id="a single out of what is broken already"),
        pytest.param(PAIRS, 0b1111_1110, 1, (2,), id="a single whose partner is gone"),
        pytest.param(TREE, 0b1111_0111, 2, (0, 1), id="a pair where a buddy would be left alone"),
        pytest.param(FLAT, 0b1111_0110, 3, (1, 2, 4), id="behind a switch the lowest"),
    ],
)
def test_what_is_chosen(shape: Shape, free: int, size: int, best: tuple[int, ...]) -> None:
    assert chosen(shape, free, size) == best


def test_too_many_devices_are_not_chosen() -> None:
    assert Ranker(CUBE_MESH, MIX).best(0b111, 4) is None
    assert list(Ranker(CUBE_MESH, MIX).choices(0b111, 4)) == []
    # There is no room for so many of anything.
    assert Ranker(CUBE_MESH, MIX).best(0b111, 1 << 62) is None
    assert Ranker(levels(450, cell=16), MIX).best(0b111, 4) is None


def test_devices_that_may_not_be_taken_still_count_in_what_is_left() -> None:
    # Either of 4 and 5 is as good by itself; 4 breaks the pair that is left over if only devices that may be are seen.
    assert chosen(PAIRS, 0b0111_1111, 1, among=0b0101_0000) == (6,)


@given(drawn_shapes(), st.data())
def test_every_set_comes_once_the_best_first(shape: Shape, data: st.DataObject) -> None:
    free = data.draw(st.integers(1, shape.full))
    among = data.draw(st.integers(0, shape.full))
    size = data.draw(st.integers(1, shape.size))
    found = list(Ranker(shape, MIX).choices(free, size, among))
    expected = {mask_of(places) for places in combinations(places_of(free & among), size)}
    assert [one.mask for one in found] == list(dict.fromkeys(one.mask for one in found))
    assert {one.mask for one in found} == expected
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)


@given(drawn_shapes(), st.data())
def test_numbers_of_devices_do_not_change_the_value(shape: Shape, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(shape.size))))
    one, other = Ranker(shape, MIX), Ranker(relabelled(shape, order), MIX)
    free = data.draw(st.integers(1, shape.full))
    there = mask_of(order[place] for place in places_of(free))
    for size in range(1, free.bit_count() + 1):
        values = [choice.value for choice in other.choices(free, size)]
        assert values == [choice.value for choice in one.choices(there, size)]


def test_more_sets_than_are_remembered_still_come_in_order() -> None:
    shape = Shape(matrix(9, {(one, one + 1): 10 * one for one in range(8)}, 5))
    ranker = Ranker(shape, MIX)
    for _ in range(2):
        values = [choice.value for choice in ranker.choices(shape.full, 4)]
        assert len(values) == 126 > KEPT
        assert values == sorted(values, reverse=True)


def test_the_parts_make_the_value() -> None:
    choice = Ranker(CUBE_MESH, MIX).best(0xFF, 2)
    assert choice is not None
    assert choice.value == choice.quality + KEEPING * choice.change // 1000


@given(st.integers(1, 0xFF), st.sampled_from([1, 2, 4]))
def test_what_is_worked_out_quickly_is_what_the_policy_says(free: int, size: int) -> None:
    ranker = Ranker(CUBE_MESH, MIX)
    for choice in ranker.choices(free, size):
        assert choice.value == sum(ranker.summands(free, choice.mask)) == ranker.of(free, choice.mask).value


def test_an_empty_node_is_not_opened_for_a_single() -> None:
    ranker = Ranker(CUBE_MESH, MIX)
    empty, opened = ranker.best(0xFF, 1), ranker.best(0b1111_1110, 1)
    assert empty is not None
    assert opened is not None
    assert opened.value > empty.value


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_a_large_tree_is_filled_where_it_is_broken(size: int) -> None:
    shape = levels(450, 100, 20, cell=16)
    free = shape.full & ~0xFFF0
    best = Ranker(shape, MIX).best(free, size)
    assert best is not None
    assert best.mask & ~free == 0
    assert best.mask.bit_count() == size
    assert (best.mask < 1 << 16) == (size <= 4)


def test_arbitrary_links_between_many_are_followed() -> None:
    ring = {(one, one + 1): 100 for one in range(15)} | {(0, 15): 100}
    best = Ranker(Shape(matrix(16, ring, 10)), MIX).best((1 << 16) - 1 & ~0b10010, 2)
    assert best is not None
    assert best.quality == 1_000_000


def test_a_memo_forgets_the_oldest() -> None:
    memo: Memo[int, int] = Memo(2)
    for number in range(3):
        memo[number] = number
    assert memo == {1: 1, 2: 2}
