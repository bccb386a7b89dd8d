"""What is remembered of decisions, and what is news."""

from dataclasses import replace

import pytest

from extender.model.names import NodeName, ObjectKey, Uid
from extender.scheduling.account import NOTE_BYTES, note_of, of_result
from extender.scheduling.decision import Decided, Decision, Ranked
from extender.scheduling.endings import NotBound
from extender.scheduling.record import Decisions
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import TEXTS, Word
from tests.scheduling.stage import N1, POD

FIRST = Decision(
    pod=ObjectKey("ns", "p"), uid=Uid("1"), at=1.0, generation=1, outcome=Decided.REJECTED, reason="InUse", detail="a"
)


def test_the_last_decision_of_a_pod_is_remembered() -> None:
    decisions = Decisions()
    decisions.put(FIRST)
    later = replace(FIRST, at=2.0, outcome=Decided.BOUND)
    decisions.put(later)
    assert decisions.get(FIRST.pod) == later
    assert decisions.get(ObjectKey("ns", "q")) is None


@pytest.mark.parametrize(
    ("second", "is_news"),
    [
        (FIRST, False),
        (replace(FIRST, at=9.0, generation=7), False),
        (replace(FIRST, fitting=3, offered=2), False),
        (replace(FIRST, detail="b"), True),
        (replace(FIRST, reason="NoMatch"), True),
        (replace(FIRST, outcome=Decided.BOUND), True),
        (replace(FIRST, node=NodeName("n1")), True),
        (replace(FIRST, uid=Uid("2")), True),
        (replace(FIRST, pod=ObjectKey("ns", "q")), True),
    ],
)
def test_news_is_what_says_something_else(second: Decision, *, is_news: bool) -> None:
    decisions = Decisions()
    assert decisions.put(FIRST)
    assert decisions.put(second) is is_news


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (NotBound("no"), "BindFailed"),
        (NotBound("broken", is_unready=True), "BindingConditionsFailed"),
        (NotBound("not ready", is_waiting=True), "BindingConditionsPending"),
        (NotBound("no answer", is_waiting=True, is_open=True), "BindOutcomeUnknown"),
    ],
)
def test_binds_that_failed_or_could_not_be_made_ready_or_wait_or_that_nobody_knows_of_have_each_a_reason(
    result: NotBound, reason: str
) -> None:
    assert of_result(POD, result, N1, None, 0.0).reason == reason


@pytest.mark.parametrize(
    ("free", "words", "note"),
    [
        (None, "", "node n1: no new devices; score 10"),
        (0, "0 devices were free", "node n1: no new devices; score 10: 0 devices were free"),
        (1, "1 device was free", "node n1: no new devices; score 10: 1 device was free"),
    ],
)
def test_how_many_devices_were_free_is_told_where_they_are_the_nodes_own(
    free: int | None, words: str, note: str
) -> None:
    best = Ranked(NodeName("n1"), 10, free)
    assert best.words == words
    assert note_of(replace(FIRST, outcome=Decided.BOUND, node=NodeName("n1"), best=(best,))) == note


NO_DEVICES = TEXTS[Word.NO_DEVICES]


@pytest.mark.parametrize(
    ("reason", "detail", "rejected", "note"),
    [
        pytest.param(
            Word.NO_DEVICES,
            NO_DEVICES,
            (Tally(Word.NO_DEVICES, 2, NO_DEVICES, N1),),
            f"{NO_DEVICES} (2 nodes, such as n1)",
            id="of all alike",
        ),
        pytest.param(
            Word.IN_USE,
            "1 in use",
            (Tally(Word.NO_DEVICES, 2, NO_DEVICES, N1), Tally(Word.IN_USE, 1, "1 in use", N1)),
            f"{TEXTS[Word.IN_USE]}: 1 in use (1 node, such as n1); 2 nodes: {NO_DEVICES} (such as n1)",
            id="of the nearest miss",
        ),
        pytest.param(
            Word.NOT_OFFERED,
            "devices are free on n2",
            (Tally(Word.NO_DEVICES, 1, NO_DEVICES, N1),),
            f"{TEXTS[Word.NOT_OFFERED]}: devices are free on n2; 1 node: {NO_DEVICES} (such as n1)",
            id="of none",
        ),
        pytest.param(
            Word.IN_USE,
            "0",
            tuple(Tally(Word.IN_USE, 1, str(number), N1) for number in range(7)),
            f"{TEXTS[Word.IN_USE]}: 0 (1 node, such as n1); "
            + "".join(f"1 node: {number} (such as n1); " for number in range(1, 6))
            + "and 1 more",
            id="of many",
        ),
    ],
)
def test_what_nodes_lack_is_told_once(reason: Word, detail: str, rejected: tuple[Tally, ...], note: str) -> None:
    assert note_of(replace(FIRST, reason=reason, detail=detail, rejected=rejected)) == note


@pytest.mark.parametrize(
    ("detail", "note"),
    [
        ("x" * NOTE_BYTES, "x" * NOTE_BYTES),
        ("x" * NOTE_BYTES + "y", "x" * (NOTE_BYTES - 3) + "…"),
        ("x" * (NOTE_BYTES - 4) + "üüü", "x" * (NOTE_BYTES - 4) + "…"),
    ],
    ids=["fits", "too long", "in the middle of a letter"],
)
def test_a_note_that_was_cut_off_shows_it(detail: str, note: str) -> None:
    assert note_of(replace(FIRST, outcome=Decided.FAILED, reason="BindFailed", detail=detail)) == note


def test_those_decided_about_longest_ago_are_forgotten_first() -> None:
    decisions = Decisions(most=2)
    pods = [ObjectKey("ns", name) for name in "abc"]
    for pod in (pods[0], pods[1], pods[0], pods[2]):
        decisions.put(replace(FIRST, pod=pod))
    assert len(decisions) == 2
    assert [decisions.get(pod) is not None for pod in pods] == [True, False, True]
