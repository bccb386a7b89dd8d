"""The plots of speed that are kept show what the tables beside them say."""

from loadtests import plots
from loadtests.bench.report import RESULTS


def test_every_rate_is_drawn_from_the_table_that_is_kept() -> None:
    drawn = {name: text for file in RESULTS.glob("endtoend-*.txt") for name, text in plots.rates(file.read_text())}
    assert drawn.keys() >= {"rate-one-500x10", "rate-match-500x10", "rate-one-5000x8"}
    for name, text in drawn.items():
        assert (plots.PLOTS / f"{name}.svg").read_text() == text


def test_the_curve_of_cost_has_every_verb_at_every_size() -> None:
    curve = plots.cost((RESULTS / "latency.txt").read_text())
    assert curve.count("<polyline") == 6
    assert all(size in curve for size in (">1,000<", ">5,000<", ">15,000<"))
    assert (plots.PLOTS / "verbs-by-size.svg").read_text() == curve
