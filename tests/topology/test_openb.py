import pytest

from loadtests.quality.openb import MARKS, outcome
from loadtests.quality.traces import DATA

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the openb traces beside the tree")


@pytest.mark.parametrize(("trace", "least"), [("default", 95.5), ("gpuspec33", 94.0)])
def test_once_all_devices_are_asked_for_no_fewer_are_given_away_than_measured(trace: str, least: float) -> None:
    assert outcome(trace, "ours, learning", seed=42).allocated[MARKS.index(100)] > least
