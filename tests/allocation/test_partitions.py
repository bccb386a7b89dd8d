"""Nodes with hundreds of partitions: what they draw from is added up once, not for each of them."""

from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.counters import ledger_of
from extender.allocation.fit import Fitter
from extender.allocation.inventory import Inventory
from extender.model.device import Counter, CounterConsumption, CounterSet
from extender.model.quantity import parse_quantity
from extender.state.cluster import Cluster
from tests.allocation.small import chosen, cluster, device, holder, node, published, question, request, verdicts

PARTITIONS = 200


def partitioned() -> Cluster:
    """Publish partitions of one device, of which only one at a time can be had."""
    draws = CounterConsumption("set", (Counter("slots", parse_quantity("4")),))
    partitions = [device(f"p{number:03}", consumes_counters=(draws,)) for number in range(PARTITIONS)]
    sets = (CounterSet("set", (Counter("slots", parse_quantity("7")),)),)
    counters = replace(published("n", name="counters", count=2), shared_counters=sets)
    return cluster(node("n"), published("n", *partitions, count=2), counters, holder("h", "n", "p007"))


@pytest.mark.parametrize("count", [1, 2])
def test_what_partitions_draw_is_added_up_once(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    snapshot, asked = partitioned().snapshot, question(request(count))
    opened: list[Any] = []
    looked_up: list[Any] = []
    by_name = Inventory.rows_by_name

    def counted_ledger(*arguments: Any) -> Any:
        opened.append(arguments)
        return ledger_of(*arguments)

    def counted_rows(*arguments: Any) -> Any:
        looked_up.append(arguments)
        return by_name(*arguments)

    monkeypatch.setattr("extender.allocation.situation.ledger_of", counted_ledger)
    monkeypatch.setattr(Inventory, "rows_by_name", counted_rows)
    fitter = Fitter(asked)
    assert verdicts(fitter, snapshot) == ["NO"]
    assert (len(opened), len(looked_up)) == (1, 1)
    expected = f"needs {count} device{'s' if count > 1 else ''} within what is left of their pool's counters, has 0"
    assert expected in str(fitter.fit(snapshot).reason(0))
    assert chosen(asked, snapshot) == ["NO"]
