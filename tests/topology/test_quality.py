from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.topology.quality import ONE, Parts, Quality
from extender.topology.shape import Shape
from tests.topology.shapes import CUBE_MESH, FLAT, drawn_shapes, levels, matrix, relabelled


def test_the_best_sets_of_the_cube_mesh_are_one() -> None:
    quality = Quality(CUBE_MESH)
    assert quality.of(0b1001) == quality.of(0b1111) == quality.of(0b11110000) == quality.of(0xFF) == ONE


def test_a_pair_without_links_is_worth_what_pcie_is_beside_two_links() -> None:
    assert Quality(CUBE_MESH).of(0b1000_0001) == ONE * 10 // 50


def test_the_parts_are_told_in_units() -> None:
    assert Quality(CUBE_MESH).parts(0b1111) == Parts(bandwidth=50, aggregate=225)


def test_behind_a_switch_all_sets_are_the_best() -> None:
    quality = Quality(FLAT)
    assert {quality.of(mask_of(chosen)) for size in range(1, 9) for chosen in combinations(range(8), size)} == {ONE}


def test_devices_without_any_links_are_all_the_best() -> None:
    assert Quality(Shape(matrix(7, {}))).of(0b1010) == ONE


def test_in_a_large_tree_sets_within_a_cell_are_the_best() -> None:
    quality = Quality(levels(450, 100, 20, cell=8))
    assert quality.of(0xF0) == ONE
    assert quality.of(0x0300_0030) < quality.of(0x3300) == ONE


@given(drawn_shapes(), st.data())
def test_numbers_of_devices_do_not_matter(shape: Shape, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(shape.size))))
    one, other = Quality(shape), Quality(relabelled(shape, order))
    for mask in range(1, 1 << shape.size):
        assert other.of(mask) == one.of(mask_of(order[place] for place in places_of(mask)))


@given(drawn_shapes(), st.data())
def test_the_best_set_is_never_worse_when_devices_are_freed(shape: Shape, data: st.DataObject) -> None:
    quality = Quality(shape)
    few = data.draw(st.integers(0, shape.full))
    more = few | data.draw(st.integers(0, shape.full))
    for size in range(1, few.bit_count() + 1):
        assert max(map(quality.of, quality.sets(few, size))) <= max(map(quality.of, quality.sets(more, size)))


@given(drawn_shapes())
def test_quality_is_a_share_and_some_set_reaches_its_rings(shape: Shape) -> None:
    quality = Quality(shape)
    for size in range(1, shape.size + 1):
        found = [quality.of(mask) for mask in quality.sets(shape.full, size)]
        assert all(0 <= one <= ONE for one in found)
        assert max(found) >= 800_000 * (quality.best(size).bandwidth > 0)
