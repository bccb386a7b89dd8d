"""Each decision is handed over to be told, the same of a waiting pod too; that a pod is bound is told once.

What nobody knew of a binding is known as soon as the watch shows the pod on its node.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.demo.apiserver import kinds
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.decision import Decided, Decision
from extender.scheduling.endings import Bound, NotBound, Order
from extender.scheduling.placement import Placement
from extender.service.binds import CROWDED
from extender.service.journal import MOST_WAITING, Journal
from extender.telemetry.keys import ERROR
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import belief_of, claim, device, given
from tests.scheduling.stage import N1, POD
from tests.service.door import opened
from tests.service.test_counted import until


class Handed:
    """Stands in for notices: remembers what was put, and whether it is news."""

    def __init__(self) -> None:
        self.put_so_far: list[tuple[str, bool]] = []

    def put(self, decision: Decision, *, is_news: bool) -> None:
        self.put_so_far.append((decision.reason, is_news))


def journal_of(notices: Handed) -> Journal:
    nobody: Any = None  # what waits is not looked at
    return Journal(nobody, notices, Metrics(), lambda: 0.0)  # type: ignore[arg-type]  # only what is used


def decided(outcome: Decided, reason: str, at: float = 0.0) -> Decision:
    return Decision(pod=POD.key, uid=POD.uid, at=at, generation=1, outcome=outcome, reason=reason, node=N1)


@pytest.mark.parametrize(
    ("outcome", "reason", "handed"),
    [
        (Decided.REJECTED, "InUse", [True, False]),
        (Decided.FAILED, "BindFailed", [True, False]),
        (Decided.WAITING, "BindingConditionsPending", [True, False]),
        (Decided.BOUND, "DevicesAllocated", [True]),
        (Decided.OFFERED, "Fits", []),
    ],
)
def test_what_is_decided_again_is_handed_over_to_be_told_again(
    outcome: Decided, reason: str, handed: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    notices = Handed()
    journal = journal_of(notices)
    for at in (0.0, 1.0):
        journal.put(decided(outcome, reason, at))
    assert notices.put_so_far == [(reason, is_news) for is_news in handed]
    assert len(caplog.records) == min(len(handed), 1)


@pytest.mark.parametrize("outcome", [Decided.FAILED, Decided.WAITING])
def test_the_log_says_why_a_pod_is_not_bound(outcome: Decided, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    journal_of(Handed()).put(replace(decided(outcome, "BindFailed"), detail="403 Forbidden: no right"))
    assert caplog.records[0].__dict__[ERROR] == "403 Forbidden: no right"


@pytest.mark.parametrize("outcome", [Decided.FAILED, Decided.WAITING])
def test_of_a_pod_that_fails_again_and_again_each_reason_leaves_one_line_until_there_is_another(
    outcome: Decided, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    journal = journal_of(Handed())
    for detail in ("a", "a", "b", "b", "a"):
        journal.put(decided(Decided.OFFERED, "Fits"))
        journal.put(replace(decided(outcome, "BindFailed"), detail=detail))
    assert [record.__dict__[ERROR] for record in caplog.records] == ["a", "b", "a"]
    journal.put(replace(decided(outcome, "BindFailed"), uid=Uid("another"), detail="a"))
    assert len(caplog.records) == 4


@pytest.mark.parametrize(
    "details",
    [
        (
            'claim: resourceclaims "p-x2f4k" is forbidden: exceeded quota',
            'claim: resourceclaims "p-9sd7w" is forbidden: exceeded quota',
        ),
        ("node n1 does not have example.com/gpu", "node n2 does not have example.com/gpu"),
    ],
    ids=["another-name", "another-node"],
)
def test_the_same_reason_with_another_name_in_it_leaves_no_line(
    details: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    journal = journal_of(Handed())
    for node, detail in zip(("n1", "n2"), details, strict=True):
        failed = decided(Decided.FAILED, "BindFailed")
        journal.put(replace(failed, node=NodeName(node), detail=detail))
    assert [record.__dict__[ERROR] for record in caplog.records] == [details[0]]


def lines(caplog: pytest.LogCaptureFixture, *rejections: tuple[str, str]) -> list[str]:
    """Reject the pod again and again, by reasons and details; return the details of the lines that this leaves."""
    caplog.set_level("INFO")
    journal = journal_of(Handed())
    for reason, detail in rejections:
        journal.put(decided(Decided.OFFERED, "Fits"))
        journal.put(replace(decided(Decided.REJECTED, reason), detail=detail, node=None))
    return [record.__dict__[ERROR] for record in caplog.records]


def test_other_numbers_of_a_pod_that_is_rejected_leave_no_line(caplog: pytest.LogCaptureFixture) -> None:
    rejected = [("InUse", f"claim a, request gpu needs 8 free devices, has {free}") for free in range(5)]
    assert lines(caplog, *rejected) == [rejected[0][1]]


def test_another_reason_of_a_pod_that_is_rejected_leaves_a_line(caplog: pytest.LogCaptureFixture) -> None:
    rejected = [("InUse", "6 in use"), ("NoMatch", "no other matches"), ("InUse", "7 in use")]
    assert lines(caplog, *rejected) == [detail for _, detail in rejected]


def test_another_cause_of_the_same_reason_leaves_a_line(caplog: pytest.LogCaptureFixture) -> None:
    rejected = [("InvalidRequest", f"claim a: there is no class {name}") for name in ("h100", "a100")]
    assert lines(caplog, *rejected) == [detail for _, detail in rejected]


def test_a_pod_that_is_rejected_between_two_binds_that_fail_alike_is_told_to_have_failed_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    journal = journal_of(Handed())
    for _ in range(3):
        journal.put(replace(decided(Decided.REJECTED, "InUse"), detail="6 in use"))
        journal.put(replace(decided(Decided.FAILED, "BindFailed"), detail="no right"))
    assert [record.message for record in caplog.records] == ["rejected", "failed"]


PLACEMENT = Placement(N1, ((claim("a"), given(device("n1", 0))),))
ORDER = Order(POD.key, POD.uid, N1)
OPEN = NotBound("no answer", is_waiting=True, is_open=True, placement=PLACEMENT)
SHOWN = Footprint(key=POD.key, uid=POD.uid, node=N1, amounts=(("pods", 1),))


class Opened:
    """A journal in which the outcome of a binding is not known; time passes as it is told."""

    def __init__(self, *before: Change) -> None:
        self.belief, self.handed, self.now = belief_of(POD), Handed(), 5.0
        self.journal = Journal(self.belief, self.handed, Metrics(), lambda: self.now)  # type: ignore[arg-type]  # only what is used
        for change in before:
            self.belief.apply(change)
        self.journal.ended(ORDER, OPEN)
        self.now = 9.0

    @property
    def last(self) -> Decision:
        found = self.journal.decisions.get(POD.key)
        assert found is not None
        return found

    @property
    def told(self) -> list[str]:
        return [reason for reason, _ in self.handed.put_so_far]


def again(journal: Journal) -> None:
    """Have the pod bound once more, which is found on its node."""
    journal.ended(ORDER, Bound(replace(POD, node_name=N1)))


@pytest.mark.parametrize(
    "landed",
    [
        lambda journal: journal.shown(Changed(SHOWN)),
        lambda journal: journal.shown(Listed(Footprint, (SHOWN,))),
        again,
    ],
    ids=["shown", "listed", "bound again"],
)
def test_a_binding_of_which_nobody_knew_is_closed_where_the_pod_is_seen_on_its_node(
    landed: Callable[[Journal], None],
) -> None:
    opened = Opened()
    assert opened.told == ["BindOutcomeUnknown"]
    opened.journal.put(decided(Decided.OFFERED, "Fits"))
    landed(opened.journal)
    landed(opened.journal)
    assert (opened.last.outcome, opened.last.at, opened.last.node) == (Decided.BOUND, 9.0, N1)
    assert [(item.claim, item.device) for item in opened.last.given] == [("a", device("n1", 0))]
    assert opened.told == ["BindOutcomeUnknown", "DevicesAllocated"]
    assert b'decisions_total{outcome="Bound"} 1.0' in opened.journal.metrics.exposition()[0]


def test_a_pod_that_was_shown_to_be_bound_before_nobody_knew_is_bound() -> None:
    opened = Opened(Changed(SHOWN), Gone(Pod, POD.key))
    assert opened.told == ["DevicesAllocated"]


@pytest.mark.parametrize(
    "shown",
    [
        Changed(replace(SHOWN, uid=Uid("another"))),
        Changed(replace(SHOWN, node=NodeName("n2"))),
        Changed(claim("a")),
        Gone(Footprint, POD.key),
        Listed(ResourceClaim, (claim("a"),)),
    ],
    ids=["another pod", "another node", "a claim", "gone", "claims"],
)
def test_what_says_nothing_of_the_pod_on_its_node_closes_nothing(shown: Change) -> None:
    opened = Opened()
    opened.journal.shown(shown)
    assert opened.last.reason == "BindOutcomeUnknown"


def test_a_bind_that_failed_after_all_leaves_nothing_open() -> None:
    opened = Opened()
    opened.journal.ended(ORDER, NotBound("no"))
    opened.journal.shown(Changed(SHOWN))
    assert opened.told == ["BindOutcomeUnknown", "BindFailed"]


@pytest.mark.parametrize("landed", [lambda journal: journal.shown(Changed(SHOWN)), again], ids=["shown", "bound again"])
def test_a_bind_that_was_not_begun_leaves_open_what_is_open(landed: Callable[[Journal], None]) -> None:
    opened = Opened()
    opened.journal.ended(ORDER, NotBound(CROWDED, is_unbegun=True))
    landed(opened.journal)
    assert opened.told == ["BindOutcomeUnknown", "BindFailed", "DevicesAllocated"]
    assert [item.device for item in opened.last.given] == [device("n1", 0)]


def test_a_bind_that_finds_the_pod_bound_as_the_watch_has_shown_takes_nothing_back() -> None:
    opened = Opened()
    opened.journal.shown(Changed(SHOWN))
    opened.journal.ended(ORDER, Bound(replace(POD, node_name=N1), Placement(N1)))
    opened.journal.ended(ORDER, OPEN)
    assert opened.told == ["BindOutcomeUnknown", "DevicesAllocated"]
    assert [item.device for item in opened.last.given] == [device("n1", 0)]
    assert b'decisions_total{outcome="Bound"} 1.0' in opened.journal.metrics.exposition()[0]


def test_a_binding_of_a_pod_that_was_given_nothing_is_closed_as_well() -> None:
    opened = Opened()
    plain = replace(POD, uid=Uid("plain"))
    opened.journal.ended(replace(ORDER, uid=plain.uid), replace(OPEN, placement=None))
    opened.journal.shown(Changed(replace(SHOWN, uid=plain.uid)))
    assert (opened.last.uid, opened.last.outcome) == (plain.uid, Decided.BOUND)


def test_so_many_are_left_open_and_no_more() -> None:
    opened = Opened()
    for number in range(MOST_WAITING + 1):
        opened.journal.ended(replace(ORDER, uid=Uid(f"u{number}")), OPEN)
    assert len(opened.journal._waiting) == MOST_WAITING


async def test_a_binding_of_which_the_service_did_not_know_is_closed_by_what_it_follows() -> None:
    async with opened(["n1"]) as door:
        made, journal = await door.pod("p"), door.service.journal
        order = Order(ObjectKey("default", "p"), Uid(made["metadata"]["uid"]), N1)
        journal.ended(order, OPEN)
        door.server.registry.bind(kinds.POD, ("default", "p"), {"target": {"name": "n1"}})

        def is_bound() -> bool:
            last = journal.decisions.get(order.pod)
            return last is not None and last.outcome is Decided.BOUND

        await until(is_bound)
