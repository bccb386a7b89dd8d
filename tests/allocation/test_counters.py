"""What the counters of a pool admit."""

import pytest

from extender.allocation.counters import Balance
from extender.model.device import Counter, CounterConsumption
from extender.model.quantity import parse_quantity
from tests.allocation.small import device


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
    (counted,) = drawn(left)
    balance = Balance({("set", counter.name): counter.value.nanos for counter in counted.counters})
    assert balance.admits(device("d", consumes_counters=drawn(draws)), grouped=False) is is_admitted
