import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given

from extender.topology import rings as rings_module
from extender.topology.rings import STEPS, _Search, bandwidth, rings_at_once, widest_ring
from extender.topology.shape import Matrix, Shape
from tests.topology.shapes import CUBE_MESH, DOUBLE, FLAT, PAIRS, TREE, drawn_shapes, matrix, rings

EIGHT = tuple(range(8))


def test_the_cube_mesh_has_eight_perfect_pairs() -> None:
    found = Counter(bandwidth(CUBE_MESH, pair) for pair in combinations(range(8), 2))
    assert found == {50: 8, 25: 8, 10: 12}
    assert {pair for pair in combinations(range(8), 2) if bandwidth(CUBE_MESH, pair) == 50} == set(DOUBLE)


def test_the_cube_mesh_has_two_perfect_quads_and_six_with_one_ring() -> None:
    found = {quad: rings_at_once(CUBE_MESH.links, quad) for quad in combinations(range(8), 4)}
    assert {quad for quad, count in found.items() if count == 2} == {(0, 1, 2, 3), (4, 5, 6, 7)}
    assert Counter(found.values()) == {0: 62, 1: 6, 2: 2}


def test_three_rings_pass_all_eight_of_the_cube_mesh() -> None:
    assert rings_at_once(CUBE_MESH.links, EIGHT) == 3
    assert bandwidth(CUBE_MESH, EIGHT) == 75


def test_without_a_ring_of_links_the_widest_ring_counts() -> None:
    # Three devices of which two are not linked: the ring has to pass by PCIe there.
    assert bandwidth(CUBE_MESH, (0, 3, 7)) == 10


def test_behind_a_switch_the_weakest_pair_counts() -> None:
    assert bandwidth(FLAT, EIGHT) == 450
    assert bandwidth(TREE, (0, 1, 2, 3)) == 430
    assert bandwidth(TREE, (0, 1, 4)) == 22


def test_bridged_pairs_are_worth_what_lies_between_them_in_a_ring() -> None:
    assert bandwidth(PAIRS, (0, 1, 2, 3)) == 22
    assert bandwidth(PAIRS, (0, 2, 4, 5)) == 14


def test_one_device_counts_as_one() -> None:
    assert bandwidth(CUBE_MESH, (5,)) == 1


def test_rings_of_many_devices_all_linked_with_all_are_found_in_bounded_steps() -> None:
    everyone = matrix(8, {}, 1)
    assert rings_at_once(everyone, EIGHT) == 3


def uneven(devices: int, links: int) -> Matrix:
    """Link all with all alike but for one pair."""
    return matrix(devices, {(0, 1): links - 1}, links)


@pytest.mark.parametrize(
    ("links", "found"),
    [
        pytest.param(matrix(9, {}, 4), 16, id="all linked alike"),
        pytest.param(matrix(10, {}, 1), 4, id="all linked alike, one link of each left over"),
        pytest.param(uneven(9, 4), 15, id="all but one pair linked alike"),
        pytest.param(uneven(12, 18), 98, id="more rings than can be listed"),
    ],
)
def test_among_many_devices_rings_do_not_all_need_the_same_link(links: Matrix, found: int) -> None:
    assert rings_at_once(links, tuple(range(len(links)))) == found


def test_of_rings_that_were_found_one_counts_though_the_steps_are_spent() -> None:
    """Sixteen devices in a ring of their own, with some other links, of which the first way finds no ring."""
    drawn = random.Random(44)  # noqa: S311 - the same each time
    size = drawn.randint(13, 18)
    around = drawn.sample(range(size), size)
    assert rings_at_once(bound(drawn, around), tuple(range(size))) == 1


def bound(drawn: random.Random, around: Sequence[int]) -> Matrix:
    """Link each with the next one of *around*, and some others by chance."""
    pairs = list(zip(around, (*around[1:], around[0]), strict=True))
    more = [drawn.sample(range(len(around)), 2) for _ in range(drawn.randint(2, 2 * len(around)))]
    return matrix(len(around), {(min(pair), max(pair)): 1 for pair in (*pairs, *more)})


def bipartite(one: int, other: int) -> Matrix:
    sides = range(one + other)
    return tuple(tuple(int((row < one) != (column < one)) for column in sides) for row in sides)


@pytest.mark.parametrize(("one", "other", "found"), [(6, 8, 0), (5, 7, 0), (7, 7, 3)])
def test_between_two_sides_a_search_for_rings_ends_when_its_steps_are_spent(
    one: int, other: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Counter[str]()

    class Looked(_Search):
        def _onward(self, path: Sequence[int]) -> list[int]:
            looks["onward"] += 1
            return super()._onward(path)

        def _list(self, last: int, passed: int, ring: int, first: int = 0) -> None:
            looks["list"] += 1
            super()._list(last, passed, ring, first)

    monkeypatch.setattr(rings_module, "_Search", Looked)
    sides = range(one + other)
    apart = tuple(tuple(int((row < one) != (column < one)) for column in sides) for row in sides)
    rings_at_once.cache_clear()
    assert rings_at_once(apart, tuple(sides)) == found
    assert looks.total() <= STEPS


def test_too_many_devices_for_a_search_are_judged_by_their_weakest_pair() -> None:
    many = Shape(matrix(14, {(one, one + 1): 50 for one in range(13)} | {(0, 13): 50}, 10))
    assert bandwidth(many, tuple(range(14))) == 10


def packed(links: Matrix, choices: list[list[tuple[int, int]]]) -> int:
    """Count by trying every ring at every step."""
    best = 0
    for index, ring in enumerate(choices):
        if all(links[one][other] for one, other in ring):
            left = [list(row) for row in links]
            for one, other in ring:
                left[one][other] -= 1
                left[other][one] -= 1
            best = max(best, 1 + packed(tuple(map(tuple, left)), choices[index:]))
    return best


@given(drawn_shapes(most=5))
def test_rings_are_those_that_brute_force_finds(shape: Shape) -> None:
    for size in range(3, shape.size + 1):
        for places in combinations(range(shape.size), size):
            choices = rings(places)
            if shape.links:
                assert rings_at_once(shape.links, places) == packed(shape.links, choices)
            widest = max(min(shape.weights[one][other] for one, other in ring) for ring in choices)
            assert widest_ring(shape, places) == widest
