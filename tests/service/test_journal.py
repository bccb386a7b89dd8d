"""Each decision is handed over to be told, the same of a waiting pod too; that a pod is bound is told once."""

from typing import Any

import pytest

from extender.scheduling.decision import Decision, Outcome
from extender.service.journal import Journal
from extender.telemetry.metrics import Metrics
from tests.scheduling.stage import N1, POD


class Handed:
    """Stands in for notices: remembers what was put, and whether it is news."""

    def __init__(self) -> None:
        self.put_so_far: list[tuple[str, bool]] = []

    def put(self, decision: Decision, *, is_news: bool) -> None:
        self.put_so_far.append((decision.reason, is_news))


def journal_of(notices: Handed) -> Journal:
    nobody: Any = None  # what waits is not looked at
    return Journal(nobody, notices, Metrics(), lambda: 0.0)  # type: ignore[arg-type]  # only what is used


def decided(outcome: Outcome, reason: str, at: float = 0.0) -> Decision:
    return Decision(pod=POD.key, uid=POD.uid, at=at, generation=1, outcome=outcome, reason=reason, node=N1)


@pytest.mark.parametrize(
    ("outcome", "reason", "handed"),
    [
        (Outcome.REJECTED, "InUse", [True, False]),
        (Outcome.FAILED, "BindFailed", [True, False]),
        (Outcome.WAITING, "BindingConditionsPending", [True, False]),
        (Outcome.BOUND, "DevicesAllocated", [True]),
        (Outcome.OFFERED, "Fits", []),
    ],
)
def test_what_is_decided_again_is_handed_over_to_be_told_again(
    outcome: Outcome, reason: str, handed: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    notices = Handed()
    journal = journal_of(notices)
    for at in (0.0, 1.0):
        journal.put(decided(outcome, reason, at))
    assert notices.put_so_far == [(reason, is_news) for is_news in handed]
    assert len(caplog.records) == min(len(handed), 1)
