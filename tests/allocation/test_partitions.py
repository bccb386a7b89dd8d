"""Nodes with hundreds of partitions: what they draw from is added up once, not for each of them."""

from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.causes import Shortage
from extender.allocation.counters import balance_of
from extender.allocation.fit import Fitter
from extender.allocation.inventory import Inventory
from extender.allocation.reason import Reason
from extender.model.change import Changed
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

    def counted_balance(*arguments: Any) -> Any:
        opened.append(arguments)
        return balance_of(*arguments)

    def counted_rows(*arguments: Any) -> Any:
        looked_up.append(arguments)
        return by_name(*arguments)

    monkeypatch.setattr("extender.allocation.situation.balance_of", counted_balance)
    monkeypatch.setattr(Inventory, "rows_by_name", counted_rows)
    fitter = Fitter(asked)
    assert verdicts(fitter, snapshot) == ["NO"]
    assert (len(opened), len(looked_up)) == (1, 1)
    expected = f"needs {count} device{'s' if count > 1 else ''} within what is left of their pool's counters, has 0"
    assert expected in str(fitter.fit(snapshot).reason(0))
    assert chosen(asked, snapshot) == ["NO"]


def chip(*partitions: str, groups: tuple[str, ...] = ()) -> Cluster:
    """Publish a device of four slots as a whole and in *partitions* of so many, each of its own of *groups*."""
    sizes = {"whole": "4"} | {f"p{index}": size for index, size in enumerate(partitions)}
    of = dict(zip(sizes, ("", *groups) if groups else [""] * len(sizes), strict=True))
    draws = {
        name: CounterConsumption(
            "set", (Counter("slots", parse_quantity(size)),), compatibility_groups=(of[name],) if of[name] else ()
        )
        for name, size in sizes.items()
    }
    devices = [device(name, consumes_counters=(draw,)) for name, draw in draws.items()]
    sets = (CounterSet("set", (Counter("slots", parse_quantity("4")),)),)
    counters = replace(published("n", name="counters", count=2), shared_counters=sets)
    return cluster(node("n"), published("n", *devices, count=2), counters)


BEYOND = "beyond what is left of their pool's counters"


@pytest.mark.parametrize(
    ("taken", "count", "groups", "shortage", "text"),
    [
        pytest.param("whole", 4, (), Shortage.COUNTERS, f"has 0: 3 {BEYOND}, 1 in use", id="taken whole"),
        pytest.param(
            "whole", 5, (), Shortage.NO_MATCH, f"has 0: 3 {BEYOND}, 1 in use, no other matches", id="too many"
        ),
        pytest.param("p0", 4, (), Shortage.COUNTERS, f"has 2: 1 {BEYOND}, 1 in use", id="in part"),
        pytest.param(
            "p2",
            4,
            ("a", "b", "b"),
            Shortage.COUNTERS,
            f"has 1: 1 {BEYOND}, 1 in use, 1 of groups that do not go with what is active in their pool",
            id="groups",
        ),
    ],
)
def test_partitions_that_their_pool_refuses_are_none_of_those_that_a_request_has(
    taken: str, count: int, groups: tuple[str, ...], shortage: Shortage, text: str
) -> None:
    built = chip("1", "1", "3", groups=groups)
    built.apply(Changed(holder("h", "n", taken)))
    asked = question(request(count))
    reason = Fitter(asked).fit(built.snapshot).reason(0, asked)
    assert isinstance(reason, Reason)
    assert reason.message == f"claim c, request r needs {count} free devices, {text}"
    assert reason.shortage is shortage
