from collections import Counter
from itertools import combinations

from hypothesis import given

from extender.topology.rings import bandwidth, rings_at_once, widest_ring
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
