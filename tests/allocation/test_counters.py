"""What the counters of a pool admit."""

import pytest

from extender.allocation.counters import balance_of
from extender.allocation.pools import Pool
from extender.model.device import Counter, CounterConsumption
from extender.model.names import PoolKey, PoolName
from extender.model.quantity import parse_quantity
from tests.allocation.small import DRIVER, device


def drawn(amounts: str) -> tuple[CounterConsumption, ...]:
    """Draw amounts, as in "x1 y-2", from one counter set."""
    counters = (Counter(item[0], parse_quantity(item[1:])) for item in amounts.split())
    return (CounterConsumption(counter_set="set", counters=tuple(counters), compatibility_groups=()),)


@pytest.mark.parametrize(
    ("left", "draws", "is_admitted"),
    [
        pytest.param("x1 y0", "x1", True, id="all that is left"),
        pytest.param("x1 y0", "x2", False, id="more than is left"),
        pytest.param("x-1 y1", "y1", False, id="overdrawn elsewhere"),
        pytest.param("x-1 y1", "x0 y1", False, id="nothing more of what is overdrawn"),
        pytest.param("x-1 y1", "x-1", True, id="made up for"),
        pytest.param("x-2 y1", "x-1", False, id="made up for in part"),
        pytest.param("x-1 y1", "x-1 y2", False, id="made up for here, more than is left there"),
    ],
)
def test_nothing_becomes_active_that_leaves_its_pool_overdrawn(left: str, draws: str, *, is_admitted: bool) -> None:
    taking = device("d", consumes_counters=drawn(draws))
    assert balance_of(pool(left), ()).admits(taking, grouped=False) is is_admitted


def pool(left: str) -> Pool:
    (counted,) = drawn(left)
    counters = tuple((("set", counter.name), counter.value.nanos) for counter in counted.counters)
    return Pool(key=PoolKey(DRIVER, PoolName("p")), counters=counters)


def test_who_draws_too_much_keeps_others_out_until_that_is_given_back() -> None:
    balance, much = balance_of(pool("x1 y1"), ()), device("much", consumes_counters=drawn("x2"))
    other = device("other", consumes_counters=drawn("y1"))
    before = balance.take(much)
    assert not balance.admits(other, grouped=False)
    balance.give_back(much, before)
    assert balance.admits(other, grouped=False)


def test_of_thousands_of_counters_a_search_tells_those_that_it_drew_from() -> None:
    many = " ".join(f"{chr(place)}9" for place in range(0x4E00, 0x4E00 + 5000))
    balance = balance_of(pool(many), (device("held", consumes_counters=drawn("\u4e002")),)).copy()
    given = device("d", consumes_counters=drawn("\u4e013 \u4e021"))
    before = balance.take(given)
    assert len(balance.taken) == 2
    balance.give_back(given, before)
    assert not balance.taken
