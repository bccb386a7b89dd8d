"""What metrics tell of the present."""

from typing import Any

from extender.allocation.features import Features
from extender.scheduling.taste import Taste
from extender.service.gauges import Gauges
from extender.state.belief import Belief
from extender.topology.document import Document
from tests.scheduling.machines import fleet


def test_nodes_are_counted_by_how_their_links_are_known() -> None:
    nobody: Any = None
    belief = fleet({"a": "dgx-1v", "b": "dgx-1v", "c": "a100-pcie"}, {})
    taste = Taste(Document(), belief.learning.mix_for)
    gauges = Gauges(belief, nobody, nobody, lambda: 0.0, lambda: taste)
    assert gauges.links() == {("gpu.nvidia.com", "known"): 2, ("gpu.nvidia.com", "levels"): 1}


def test_a_ledger_without_holds_tells_zero_for_every_phase() -> None:
    nobody: Any = None
    gauges = Gauges(Belief(("s",), Features()), nobody, nobody, lambda: 0.0)
    assert gauges.holds() == {"offered": 0, "reserved": 0, "written": 0, "unknown": 0}
