"""Devices that cannot be written down as an allocation are not said to fit."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from extender.allocation.attempt import Pick
from extender.allocation.choose import choose
from extender.allocation.fit import Fitter
from extender.allocation.preference import Turn
from extender.allocation.question import At, Question
from extender.allocation.result import allocations
from extender.allocation.situation import Situation
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


class Preferred:
    """Prefers what comes first among *places*."""

    def __init__(self, *places: int) -> None:
        self._places = places

    def order(self, situation: Situation) -> Sequence[Turn]:
        return [Turn(at.claim, at.slot) for at in situation.asks]

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        del situation, at, picks
        yield from combinations([place for place in self._places if mask >> place & 1], size)


def test_what_alone_is_accepted_is_an_error_where_it_cannot_be_written_down() -> None:
    def accepts(situation: Situation, picks: tuple[Pick, ...]) -> bool:
        return all(situation.board.candidates[pick.place].key.pool == LATE for pick in picks)

    snapshot = zoned(LATE)
    preferred = choose(snapshot, 0, ONE, Manner(Preferred(1, 0), is_lenient=True))
    assert isinstance(preferred, Solution)
    assert allocations(preferred, lambda: "share")
    found = choose(snapshot, 0, ONE, Manner(Preferred(1, 0), is_lenient=True, accepts=accepts))
    assert isinstance(found, Failure)
    assert "2 terms" in found.message


def test_what_is_accepted_is_had_of_devices_that_can_be_written_down_where_there_are_such() -> None:
    def accepts(situation: Situation, picks: tuple[Pick, ...]) -> bool:
        return len({numas(situation)[pick.place] for pick in picks}) == 1

    def bound(situation: Situation) -> Situation:
        return situation.bound(dict.fromkeys(situation.asks, numas(situation)))

    devices = [device(f"d{index}", {"numa": numa}) for index, numa in enumerate((0, 1, 1))]
    last = published(LATE, *(device(name, {"numa": 0}) for name in "de"), selector=selector("a", "b"))
    snapshot = cluster(node("n", "a"), published("m", *devices, selector=selector("a")), last).snapshot
    preferred = Manner(Preferred(4, 3, 2, 1, 0), is_lenient=True, accepts=accepts, bound=bound)
    found = choose(snapshot, 0, TWO, preferred)
    assert isinstance(found, Solution)
    assert [pick.place for pick in found.picks] == [2, 1]


def numas(situation: Situation) -> list[object]:
    return [dict(candidate.device.attributes)["numa"].value for candidate in situation.board.candidates]


def test_rules_of_a_policy_have_no_say_in_what_is_found_first() -> None:
    def bound(situation: Situation) -> Situation:
        return situation.bound(dict.fromkeys(situation.asks, numas(situation)))

    def accepts(situation: Situation, picks: tuple[Pick, ...]) -> bool:
        return len({numas(situation)[pick.place] for pick in picks}) == 1

    # By the rule the first two are the first and the last, which cannot be written down; without it the first two can.
    devices = [device(f"d{index}", {"numa": numa}) for index, numa in enumerate((0, 1, 1))]
    last = published(LATE, device("d", {"numa": 0}), selector=selector("a", "b"))
    snapshot = cluster(node("n", "a"), published("m", *devices, selector=selector("a")), last).snapshot
    found = choose(snapshot, 0, TWO, Manner(Preferred(2, 1, 0, 3), is_lenient=True, accepts=accepts, bound=bound))
    assert isinstance(found, Solution)
    assert [pick.place for pick in found.picks] == [2, 1]


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
