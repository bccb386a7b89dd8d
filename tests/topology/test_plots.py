"""The plots that are kept show what the tables beside them say."""

from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from loadtests import drawing
from loadtests.bench.report import RESULTS
from loadtests.quality import plots


@pytest.mark.parametrize(
    ("table", "read"),
    [("quality", plots.fleet), ("links", plots.links), ("openb", plots.openb), ("together", plots.together)],
)
def test_every_plot_is_drawn_from_the_table_that_is_kept(table: str, read: Callable[..., object]) -> None:
    found = list(read((RESULTS / f"{table}.txt").read_text()))  # type: ignore[call-overload]  # all read alike
    assert found
    for name, title, bars in found:
        assert len(bars) > 2
        assert all(0 <= bar.share <= 1 for bar in bars)
        drawn = drawing.bars(title, bars)
        assert len(ET.fromstring(drawn).findall("{http://www.w3.org/2000/svg}rect")) == len(bars)  # noqa: S314 - our own text
        assert (plots.PLOTS / f"{name}.svg").read_text() == drawn
