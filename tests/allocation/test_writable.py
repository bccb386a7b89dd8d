"""Devices that cannot be written down as an allocation are not said to fit."""

import pytest

from extender.allocation.choose import choose
from extender.allocation.fit import Fitter
from extender.allocation.question import Question
from extender.allocation.result import allocations
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, FIRST, Failure, Manner, Solution
from tests.allocation.small import chosen, cluster, device, node, published, question, request, selector, verdicts
from tests.allocation.test_intended_rules import GPU, exact, told
from tests.allocation.test_intended_rules import device as raw_device
from tests.allocation.test_intended_rules import published as raw_slice

ONE, TWO = question(request()), question(request(2))
# Before the devices of one term in upstream's order, or after them.
EARLY, LATE = "a", "z"


def zoned(pool: str) -> Snapshot:
    several = published(pool, device("d"), selector=selector("a", "b"))
    return cluster(node("n", "a"), several, published("m", device("d"), selector=selector("a"))).snapshot


@pytest.mark.parametrize("manner", [FIRST, BEST], ids=["first", "best"])
@pytest.mark.parametrize(
    ("pool", "asked", "verdict"), [(EARLY, ONE, "FAILS"), (LATE, ONE, "FITS"), (LATE, TWO, "FAILS")]
)
def test_a_node_fits_only_if_its_devices_can_be_written_down(
    pool: str, asked: Question, verdict: str, manner: Manner
) -> None:
    snapshot = zoned(pool)
    found = choose(snapshot, 0, asked, manner)
    if isinstance(found, Solution):
        assert allocations(found, lambda: "share")
    else:
        assert isinstance(found, Failure)
        assert found.is_local is manner.is_lenient
        assert "2 terms" in found.message
    assert verdicts(Fitter(asked, manner), snapshot) == [verdict]
    assert chosen(asked, snapshot) == [verdict]


def test_after_a_device_of_one_node_the_terms_of_others_do_not_matter() -> None:
    several = published("a", device("d"), selector=selector("a", "b"))
    snapshot = cluster(node("n", "a"), several, published("n", device("d"))).snapshot
    assert verdicts(Fitter(TWO), snapshot) == chosen(TWO, snapshot) == ["FAILS"]
    # Upstream looks at a claim's devices in their order, too, and no further than to the first of one node.
    early = cluster(node("n", "a"), several, published("0", device("d"), node_name="n")).snapshot
    assert verdicts(Fitter(TWO), early) == chosen(TWO, early) == ["FITS"]


@pytest.mark.parametrize(("order", "field"), [("first", "fatalError"), ("best", "nodeError")])
def test_it_is_an_error_of_the_node_but_in_upstreams_order(order: str, field: str) -> None:
    item = raw_slice(GPU, raw_device("d"))
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    del item["spec"]["nodeName"]
    item["spec"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    labelled = {"metadata": {"name": "n1", "labels": {"zone": "a"}}}
    answer = told([item], exact("r"), order=order, node=labelled)
    assert answer["fits"] is False
    assert "2 terms" in answer[field]
