"""How devices are connected, by number."""

from itertools import product

from hypothesis import given

from extender.topology.shape import Shape
from tests.topology.shapes import drawn_shapes, matrix


def widest(shape: Shape) -> list[list[int]]:
    """Follow all ways between any two."""
    found = [list(row) for row in shape.weights]
    for through, one, other in product(range(shape.size), repeat=3):
        if len({through, one, other}) == 3:
            found[one][other] = max(found[one][other], min(found[one][through], found[through][other]))
    return found


@given(drawn_shapes())
def test_the_least_tree_has_the_weakest_link_of_the_best_way_between_each_two(shape: Shape) -> None:
    assert [list(row) for row in shape.tree] == widest(shape)
    if not shape.links:
        assert shape.is_tree == (shape.tree == shape.weights)


def test_nothing_is_a_tree() -> None:
    assert Shape(()).tree == ()
    assert Shape(()).is_tree


def test_a_shape_of_many_devices_is_hashed_once() -> None:
    hashed = []

    class Counted(tuple[tuple[int, ...], ...]):
        __slots__ = ()

        def __hash__(self) -> int:
            hashed.append(len(self))
            return super().__hash__()

    shape = Shape(Counted(matrix(30, {}, 10)))
    assert len({shape, Shape(matrix(30, {}, 10))}) == 1
    assert {shape: 1}[shape] == 1
    assert hashed == [30]
