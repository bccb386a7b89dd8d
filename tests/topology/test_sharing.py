from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.fragmentation import Measure
from extender.topology.sharing import NOWHERE, Fleet, Placer, Spot
from extender.topology.typical import PodAsk, Typical
from loadtests.quality.openb import FGD, OURS, Formula, Tuned, best, move
from tests.topology.fleets import Node, asks, nodes, rows_of, typicals
from tests.tree import ROOT


def naive(fleet: list[Node], measure: Measure, ask: PodAsk) -> tuple[int, int, int, list[int]] | None:
    """Return the gain, what is left on the node, the node, and the amounts of the devices, trying all sets of them.

    Of more devices than one, those with the least free go together.
    """
    found = []
    for row, node in enumerate(fleet):
        enough = sorted((free, place) for place, free in enumerate(node.free) if free >= ask.amount)
        before = measure.worth(rows_of([node]))
        for pairs in combinations(enough, ask.devices) if node.fits(ask) else ():
            ranks = [enough.index(pair) for pair in pairs]
            if ranks and ranks[-1] - ranks[0] >= ask.devices:
                continue
            then = node.given(ask, tuple(place for _, place in pairs))
            gain = int(measure.gain(measure.worth(rows_of([then])) - before, ask)[0])
            found.append((-gain, sum(node.free), row, [free for free, _ in pairs]))
    return min(found, default=None)


def summary(fleet: list[Node], spot: Spot | None) -> tuple[int, int, int, list[int]] | None:
    if spot is None:
        return None
    free = fleet[spot.row].free
    return -spot.gain, sum(free), spot.row, [free[place] for place in spot.devices]


@given(nodes(), typicals(), asks())
def test_the_best_spot_is_the_one_that_trying_all_finds(fleet: list[Node], typical: Typical, ask: PodAsk) -> None:
    rows = rows_of(fleet)
    measure = Measure(typical, rows)
    assert summary(fleet, best(Placer(Fleet(rows), measure), ask)) == naive(fleet, measure, ask)


@given(nodes(), typicals(), st.lists(asks(), max_size=12), st.data())
def test_what_is_remembered_is_what_is_worked_out_anew(
    fleet: list[Node], typical: Typical, pods: list[PodAsk], data: st.DataObject
) -> None:
    measure = Measure(typical, rows_of(fleet))
    shared = Fleet(rows_of(fleet))
    placer = Placer(shared, measure)
    placed: list[tuple[PodAsk, Spot]] = []
    for ask in pods:
        anew = Placer(Fleet(shared.rows), measure)
        assert placer.gains(ask).tolist() == anew.gains(ask).tolist()
        spot = best(placer, ask)
        assert spot == best(anew, ask)
        if spot:
            move(shared, ask, spot)
            placed.append((ask, spot))
        is_over: bool = data.draw(st.booleans())
        if placed and is_over:
            move(shared, *placed.pop(data.draw(st.integers(0, len(placed) - 1))), 1)
    for ask, spot in placed:
        move(shared, ask, spot, 1)
    assert all((now == then).all() for now, then in zip(shared.rows, rows_of(fleet), strict=True))


@given(nodes(), typicals(), asks(), st.data())
def test_names_of_nodes_and_devices_change_no_value(
    fleet: list[Node], typical: Typical, ask: PodAsk, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(fleet))))
    moved = [fleet[old]._replace(free=tuple(data.draw(st.permutations(fleet[old].free)))) for old in order]
    measure = Measure(typical, rows_of(fleet))
    gains = Placer(Fleet(rows_of(fleet)), measure).gains(ask)
    assert Placer(Fleet(rows_of(moved)), Measure(typical, rows_of(moved))).gains(ask).tolist() == gains[order].tolist()


@given(nodes(), typicals(), asks())
def test_many_alike_nodes_are_worth_what_one_is(fleet: list[Node], typical: Typical, ask: PodAsk) -> None:
    measure = Measure(typical, rows_of(fleet))
    many = Placer(Fleet(rows_of(fleet * 20)), measure).gains(ask)
    assert many.tolist() == Placer(Fleet(rows_of(fleet)), measure).gains(ask).tolist() * 20


def test_another_measure_is_followed_at_once() -> None:
    share, whole = PodAsk(1, 1, 4, 1), PodAsk(1, 1, 8, 1)
    rows = rows_of([Node(8, 8, (8,)), Node(8, 8, (8, 5))])
    placer = Placer(Fleet(rows), Measure(Typical.of({share: 1}), rows))
    before = placer.gains(share).tolist()
    placer.follow(Measure(Typical.of({whole: 1}), rows))
    assert placer.gains(share).tolist() == Placer(Fleet(rows), placer.measure).gains(share).tolist() != before


def test_a_node_that_is_told_anew_is_looked_at_anew() -> None:
    ask = PodAsk(1, 1, 4, 1)
    fleet = Fleet(rows_of([Node(8, 8, (2,))]))
    placer = Placer(fleet, Measure(Typical.of({ask: 1}), rows_of([Node(8, 8, (8,))])))
    assert (best(placer, ask), placer.gains(ask).tolist(), placer.spot(ask, 0)) == (None, [NOWHERE], None)
    fleet.set(0, 8, 8, np.array([6]))
    assert best(placer, ask) == placer.spot(ask, 0) != None  # noqa: E711 - three at once


@pytest.mark.parametrize("formula", [FGD, OURS], ids=["fgd", "ours"])
def test_where_nothing_is_typical_the_tightest_node_is_taken_and_of_equal_ones_the_first(formula: Formula) -> None:
    rows = rows_of([Node(8, 8, (8, 8)), Node(8, 8, (8, 3)), Node(8, 8, (5, 6))])
    spot = best(Placer(Fleet(rows), Tuned(Typical(()), rows, formula)), PodAsk(1, 1, 4, 1))
    assert spot is not None
    assert (spot.row, spot.devices) == (1, (0,))


def test_a_share_goes_where_it_leaves_devices_whole() -> None:
    share, whole = PodAsk(1, 1, 4, 1), PodAsk(1, 1, 8, 1)
    rows = rows_of([Node(8, 8, (8, 8)), Node(8, 8, (8, 4))])
    spot = best(Placer(Fleet(rows), Measure(Typical.of({share: 1, whole: 1}), rows)), share)
    assert spot is not None
    assert (spot.row, spot.devices) == (1, (1,))


def test_a_pod_without_devices_goes_where_cpu_is_not_what_devices_wait_for() -> None:
    share, plain = PodAsk(4, 1, 8, 1), PodAsk(4, 1)
    rows = rows_of([Node(8, 8, (8, 8)), Node(12, 8, (8, 8))])
    spot = best(Placer(Fleet(rows), Measure(Typical.of({share: 1}), rows)), plain)
    assert spot is not None
    assert spot.row == 1


def test_the_code_that_the_document_shows_runs() -> None:
    _, shown = (ROOT / "docs" / "fragmentation.md").read_text().split("```python\n")
    empty = rows_of([Node(64000, 262144, (1000,) * 8)])
    half = rows_of([Node(64000, 262144, (1000,) * 7 + (500,))])
    known: dict[str, Any] = {
        "whole": empty,
        "rows": half,
        **{one.__name__: one for one in (PodAsk, Typical, Measure, Fleet, Placer)},
    }
    exec(shown.partition("```")[0], known)  # noqa: S102 - our own document
    assert known["spot"][:2] == (0, (7,))
