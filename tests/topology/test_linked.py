from collections.abc import Sequence

import numpy as np
import pytest

from extender.allocation.board import Board
from extender.allocation.choose import choose
from extender.allocation.features import ALL
from extender.allocation.preference import Tightest
from extender.allocation.question import At, ask
from extender.allocation.solve import Manner, Solution
from extender.model.device import Device
from extender.topology.choice import Ranker
from extender.topology.linked import Linked, Wired
from extender.topology.partitioned import Partitioned
from extender.topology.residual import Mix
from extender.topology.shape import Shape, shape_of
from tests.allocation.small import CLASSES, claim, cluster, device, holder, node, published, question, request
from tests.topology.shapes import CUBE_MESH, PAIRS, levels

MIX = Mix.of({1: 40, 2: 30, 4: 25, 8: 5})


def linked(*shapes: Shape) -> Linked:
    """Link the devices of a board, in their order, as the shapes say; those that are left over have no links."""
    rankers = [Ranker(shape, MIX) for shape in shapes]

    def wiring(board: Board, at: At) -> Sequence[Wired]:
        del board, at
        starts = [sum(shape.size for shape in shapes[:index]) for index in range(len(shapes))]
        return [
            Wired(ranker, tuple(range(start, start + ranker.quality.shape.size)))
            for ranker, start in zip(rankers, starts, strict=True)
        ]

    return Linked(wiring, Tightest(), (), Partitioned())


def devices(count: int) -> list[Device]:
    return [device(f"{index:02}", {"side": index // 4, "parity": index % 2}) for index in range(count)]


def given(linking: Linked, count: int, *held: int, total: int = 8, selectors: Sequence[str] = ()) -> list[int]:
    """Return the devices that a request for *count* is given."""
    holders = [holder(f"held-{index}", "n", f"{index:02}") for index in held]
    snapshot = cluster(node("n"), published("n", *devices(total)), *holders).snapshot
    asked = question(request(count, selectors=selectors))
    answer = choose(snapshot, 0, asked, manner=Manner(preference=linking, is_lenient=True))
    assert isinstance(answer, Solution)
    return [pick.place for pick in answer.picks]


ODD = "device.attributes['gpu.example.com'].parity == 1"


@pytest.mark.parametrize(
    ("count", "held", "selectors", "best"),
    [
        pytest.param(2, (), (), [0, 3], id="the first pair with two links that breaks least"),
        pytest.param(2, (0,), (), [1, 2], id="a pair in the quad that is broken"),
        pytest.param(4, (0,), (), [4, 5, 6, 7], id="the quad that is whole"),
        pytest.param(2, (), (ODD,), [1, 5], id="the best of those that a selector leaves"),
    ],
)
def test_a_request_gets_the_best_devices(
    count: int, held: tuple[int, ...], selectors: tuple[str, ...], best: list[int]
) -> None:
    assert given(linked(CUBE_MESH), count, *held, selectors=selectors) == best


def test_devices_without_links_come_last_and_are_still_had() -> None:
    assert given(linked(PAIRS), 2, total=10) == [0, 2]
    assert given(linked(PAIRS), 9, total=10) == list(range(9))
    assert given(linked(PAIRS), 2, *range(7), total=10) == [7, 8]


def test_of_two_kinds_the_one_with_the_better_set_is_taken() -> None:
    # Of the first kind only devices without a bridge are left.
    assert given(linked(PAIRS, PAIRS), 2, 0, 1, 4, 6, total=16) == [8, 10]


def test_more_devices_than_all_sets_are_looked_at_of_are_had_too() -> None:
    assert given(linked(levels(450, 100, cell=8)), 2, *range(3, 8), total=16) == [0, 1]
    assert given(linked(levels(450, 100, cell=8)), 11, *range(5), total=16) == list(range(5, 16))


def test_what_was_picked_for_another_request_is_not_free() -> None:
    snapshot = cluster(node("n"), published("n", *devices(8))).snapshot
    claims = [claim(request(1), name=name) for name in "cd"]
    answer = choose(snapshot, 0, ask(claims, CLASSES, ALL), manner=Manner(linked(PAIRS), is_lenient=True))
    assert isinstance(answer, Solution)
    # The bridge of the first is broken; nobody has to break another.
    assert [pick.place for pick in answer.picks] == [0, 2]


def test_sets_of_no_devices_are_left_to_others() -> None:
    assert given(linked(CUBE_MESH), 0) == []


def test_matrices_in_gigabytes_become_a_shape() -> None:
    weights = np.array([[0.0, 22.5], [22.5, 0.0]])
    links = np.array([[0, 1], [1, 0]])
    assert shape_of(weights, links, 22.5) == Shape(((0, 22500), (22500, 0)), ((0, 1), (1, 0)), 22500)
    assert shape_of(weights, links, None) == Shape(((0, 22500), (22500, 0)))
