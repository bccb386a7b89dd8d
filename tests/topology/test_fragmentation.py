from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.fragmentation import Measure
from extender.topology.quality import ONE
from extender.topology.typical import ANY, PodAsk, Typical
from loadtests.quality.openb import FGD, OURS, Tuned
from tests.topology.fleets import Node, asks, fragments, nodes, rows_of, typicals, used
from tests.topology.fleets import price as price_of

HALF: Final = PodAsk(cpu=2, memory=0, amount=4, devices=1)
PAIR: Final = PodAsk(cpu=4, memory=0, amount=8, devices=2)


@pytest.mark.parametrize(
    ("node", "ask", "expected"),
    [
        (Node(8, 8, (8, 8)), HALF, 0),
        (Node(8, 8, (8, 3)), HALF, 3),
        (Node(1, 8, (8, 8)), HALF, 16),
        (Node(8, 8, (8, 3)), PAIR, 11),
        (Node(8, 8, (8, 8, 7)), PAIR, 7),
        (Node(8, 8, (8, 8)), HALF._replace(models=0b10), 16),
        (Node(8, 8, (8, 8), model=1), HALF._replace(models=0b10), 0),
        (Node(8, 8, (8, 8)), PodAsk(1, 1), 16),
    ],
    ids=["free", "a-rest", "no-cpu", "one-of-two", "a-rest-of-three", "other-model", "its-model", "no-devices-asked"],
)
def test_fragments_are_what_a_typical_pod_cannot_use(node: Node, ask: PodAsk, expected: int) -> None:
    measure = Tuned(Typical.of({ask: 3}), rows_of([node]), FGD)
    assert (measure.fragments(rows_of([node]))[0], measure.unit) == (3 * expected, 3)


@given(nodes(), typicals())
def test_fragments_are_those_of_the_definition(fleet: list[Node], typical: Typical) -> None:
    measure = Tuned(typical, rows_of(fleet), FGD)
    expected = [sum(weight * fragments(node, ask) for ask, weight in typical.asks) for node in fleet]
    assert measure.fragments(rows_of(fleet)).tolist() == expected
    assert measure.unit == typical.total


@given(nodes(), nodes(), typicals())
def test_worth_is_what_typical_pods_can_use_at_the_price_of_each(
    whole: list[Node], fleet: list[Node], typical: Typical
) -> None:
    models = {node.model for node in whole}
    fleet = [node for node in fleet if node.model in models]
    measure = Measure(typical, rows_of(whole))
    price = {ask: int(ONE * price_of(typical, whole, ask)) for ask, _ in typical.served}
    expected = [sum(price[ask] * used(node, ask, OURS) * _on(ask, node) for ask in price) for node in fleet]
    if fleet:
        assert measure.worth(rows_of(fleet)).tolist() == expected


def _on(ask: PodAsk, node: Node) -> bool:
    return bool(ask.models >> node.model & 1)


@given(nodes(), typicals(), asks())
def test_what_is_foreseen_of_a_place_is_what_comes(fleet: list[Node], typical: Typical, ask: PodAsk) -> None:
    tight = [node._replace(free=tuple(sorted(node.free))) for node in fleet]
    width = max(len(node.free) for node in tight)
    tight = [node._replace(free=(0,) * (width - len(node.free)) + node.free) for node in tight]
    measure = Measure(typical, rows_of(tight))
    foreseen = measure.after(rows_of(tight), ask)
    for row, node in enumerate(tight):
        for place in range(width - ask.devices + 1 if ask.devices else 1):
            if node.fits(ask) and (not ask.devices or node.free[place] >= ask.amount):
                then = node.given(ask, tuple(range(place, place + ask.devices)))
                assert foreseen[row, place] == measure.worth(rows_of([then]))[0]


@given(nodes(), typicals(), st.data())
def test_the_order_of_devices_does_not_matter(fleet: list[Node], typical: Typical, data: st.DataObject) -> None:
    moved = [node._replace(free=tuple(data.draw(st.permutations(node.free)))) for node in fleet]
    measure, other = Measure(typical, rows_of(fleet)), Measure(typical, rows_of(moved))
    assert measure.worth(rows_of(fleet)).tolist() == other.worth(rows_of(moved)).tolist()


@given(nodes(), typicals())
def test_an_empty_fleet_is_worth_what_it_has_if_every_typical_pod_can_be_served(
    fleet: list[Node], typical: Typical
) -> None:
    served = [ask for ask, _ in typical.served]
    rows = rows_of(fleet)
    measure = Measure(typical, rows)
    if served and all(any(node.fits(ask) for node in fleet) for ask in served):
        assert int(measure.worth(rows).sum()) == pytest.approx(measure.unit * int(rows.free.sum()), rel=1e-3)


def test_what_few_devices_can_serve_is_worth_more_on_them() -> None:
    whole = rows_of([Node(8, 8, (8,), 0)] * 3 + [Node(8, 8, (8,), 1)])
    some, all_ = PodAsk(1, 1, 8, 1, 0b10), PodAsk(1, 1, 8, 1, ANY)
    worth = Measure(Typical.of({some: 1, all_: 1}), whole).worth(whole)
    assert worth[3] == pytest.approx(5 * worth[0], rel=1e-4)


def test_devices_whose_cpu_is_used_up_are_worth_less_before_nothing_fits() -> None:
    measure = Measure(Typical.of({HALF: 1}), rows_of([Node(8, 8, (8, 8))]))
    plenty, some, none = measure.worth(rows_of([Node(8, 8, (8, 8)), Node(4, 8, (8, 8)), Node(1, 8, (8, 8))])).tolist()
    assert plenty > some > none == 0
    assert Tuned(Typical.of({HALF: 1}), rows_of([Node(8, 8, (8, 8))]), FGD).worth(
        rows_of([Node(8, 8, (8, 8)), Node(4, 8, (8, 8))])
    ).tolist() == [16, 16]
