"""What the API server refuses to have taken back, told once: a policy of admission may refuse it for good."""

import logging
from dataclasses import field
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import Uid
from extender.scheduling.steps import (
    LASTING,
    DeleteClaim,
    Done,
    Outcome,
    Refused,
    Release,
    TouchClaim,
    TouchPod,
    Unknown,
    told_by,
)
from extender.telemetry import keys
from extender.topology.memo import Memo

LOG: Final = logging.getLogger(__name__)
Undoing = Release | DeleteClaim | TouchClaim | TouchPod
# What is undone, by the kind of the step, and to which object.
Subject = tuple[str, Uid]
# An API server that answers so of itself, as where a webhook is down.
BROKEN: Final = "error"
# Objects of which it is remembered what was told.
MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Refusals:
    """Tells of each object why it is refused, and again when it is for another reason, or was not in between."""

    _told: Memo[Subject, str] = field(default_factory=lambda: Memo(MOST))
    _heard: Memo[Subject, bool] = field(default_factory=lambda: Memo(MOST))

    def note(self, step: Undoing, outcome: Outcome) -> None:
        """Take note of how *step* ended."""
        about = step.pod if isinstance(step, TouchPod) else step.claim
        subject = type(step).__name__, about.uid
        if isinstance(outcome, Done):
            self._told.pop(subject, None)
            self._heard.pop(subject, None)
            return
        # Errors tell more than why, as a port that is another each time.
        why = outcome.message if isinstance(outcome, Refused) else BROKEN
        if self._is_lasting(subject, outcome) and self._told.get(subject) != why:
            self._told[subject] = why
            key = keys.POD if isinstance(step, TouchPod) else keys.CLAIM
            reason = outcome.kind.value if isinstance(outcome, Refused) else BROKEN
            fields = {key: str(about.key), keys.REASON: reason, keys.ERROR: told_by(outcome)}
            if isinstance(step, TouchClaim | TouchPod):
                LOG.warning("what was sent before cannot be kept from landing", extra=fields)
            else:
                LOG.warning("what a pod had cannot be taken back", extra=fields)

    def _is_lasting(self, subject: Subject, outcome: Outcome) -> bool:
        """Tell whether it may be refused for good; of an error of the API server, where it comes a second time."""
        if not isinstance(outcome, Unknown):
            return isinstance(outcome, Refused) and outcome.kind in LASTING
        was_heard, self._heard[subject] = self._heard.get(subject, False), outcome.is_answered
        return outcome.is_answered and was_heard
