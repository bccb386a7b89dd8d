"""What the API server refuses to have taken back is told once, and no refusal that does not last."""

import logging

import pytest

from extender.scheduling.steps import (
    DeleteClaim,
    Done,
    Later,
    Outcome,
    Refusal,
    Refused,
    Release,
    TouchClaim,
    TouchPod,
    Unknown,
)
from extender.service.refusals import MOST, Refusals, Undoing
from tests.scheduling.cast import claim, pod

NO = Refused(Refusal.FORBIDDEN, "denied by a policy")
STEPS: tuple[Undoing, ...] = (
    Release(claim("a"), pod("p").uid, deallocate=True),
    DeleteClaim(claim("a")),
    TouchClaim(claim("a")),
    TouchPod(pod("p")),
)


def told(caplog: pytest.LogCaptureFixture, *noted: tuple[Undoing, Outcome]) -> list[object]:
    refusals = Refusals()
    with caplog.at_level(logging.WARNING):
        for step, outcome in noted:
            refusals.note(step, outcome)
    return [vars(record)["error"] for record in caplog.records]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_refusal_is_told_once_and_again_for_another_reason(caplog: pytest.LogCaptureFixture, step: Undoing) -> None:
    other = Refused(Refusal.INVALID, "too long")
    assert told(caplog, (step, NO), (step, NO), (step, other), (step, NO)) == [NO.message, "too long", NO.message]


def test_a_refusal_is_told_again_where_it_was_none_in_between(caplog: pytest.LogCaptureFixture) -> None:
    step = STEPS[0]
    assert told(caplog, (step, NO), (step, Done()), (step, NO)) == [NO.message] * 2


def test_it_is_told_whose_it_is_and_of_each_step(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, *((step, NO) for step in STEPS)) == [NO.message] * len(STEPS)
    places = [(vars(record).get("claim"), vars(record).get("pod")) for record in caplog.records]
    assert places == [("ns/a", None)] * 3 + [(None, "ns/p")]


@pytest.mark.parametrize(
    "outcome", [Later(1.0), Refused(Refusal.CONFLICT), Refused(Refusal.NOT_FOUND), Refused(Refusal.UNSENT)]
)
def test_what_is_tried_again_or_over_is_not_told(caplog: pytest.LogCaptureFixture, outcome: Outcome) -> None:
    assert told(caplog, (STEPS[0], outcome)) == []


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_an_error_that_comes_again_is_told_once(caplog: pytest.LogCaptureFixture, step: Undoing) -> None:
    down = Unknown("500: failed calling webhook", is_answered=True)
    assert told(caplog, (step, down)) == []
    assert told(caplog, (step, down), (step, Done()), (step, down)) == []
    assert told(caplog, *[(step, down)] * 4) == [down.why]
    assert {vars(record)["reason"] for record in caplog.records} == {"error"}


def test_errors_that_differ_each_time_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    down = [Unknown(f"500: read tcp 10.0.0.1:{port}: connection reset", is_answered=True) for port in range(9)]
    assert told(caplog, *((STEPS[0], each) for each in down)) == [down[1].why]


def test_that_there_is_no_answer_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, *[(STEPS[0], Unknown("no answer in time"))] * 4) == []


def test_no_more_is_remembered_than_so_much(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(MOST + 10):
        refusals.note(TouchClaim(claim(f"c{number}")), NO)
    assert len(refusals._told) == MOST
    assert len(caplog.records) == MOST + 10


def test_of_what_is_moved_on_it_is_not_said_that_a_pod_had_it(caplog: pytest.LogCaptureFixture) -> None:
    told(caplog, *((step, NO) for step in STEPS))
    had, sent = "what a pod had cannot be taken back", "what was sent before cannot be kept from landing"
    assert [record.message for record in caplog.records] == [had, had, sent, sent]
