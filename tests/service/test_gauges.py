"""What metrics tell of the present."""

from typing import Any

from extender.allocation.features import Features
from extender.service.gauges import Gauges
from extender.state.belief import Belief


def test_a_ledger_without_holds_tells_zero_for_every_phase() -> None:
    nobody: Any = None
    gauges = Gauges(Belief(("s",), Features()), nobody, nobody, lambda: 0.0)
    assert gauges.holds() == {"offered": 0, "reserved": 0, "written": 0, "unknown": 0}
