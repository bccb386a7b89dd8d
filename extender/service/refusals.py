"""What the API server refuses to have taken back, told once: a policy of admission may refuse it for good."""

import logging
from dataclasses import field
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import Uid
from extender.scheduling.steps import LASTING, DeleteClaim, Done, Outcome, Refused, Release, TouchClaim, TouchPod
from extender.telemetry import keys
from extender.topology.memo import Memo

LOG: Final = logging.getLogger(__name__)
Undoing = Release | DeleteClaim | TouchClaim | TouchPod
# Objects of which it is remembered what was told.
MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Refusals:
    """Tells of each object why it is refused, and again when it is for another reason, or was not in between."""

    _told: Memo[tuple[str, Uid], str] = field(default_factory=lambda: Memo(MOST))

    def note(self, step: Undoing, outcome: Outcome) -> None:
        """Take note of how *step* ended."""
        about = step.pod if isinstance(step, TouchPod) else step.claim
        subject = type(step).__name__, about.uid
        if isinstance(outcome, Done):
            self._told.pop(subject, None)
        elif isinstance(outcome, Refused) and outcome.kind in LASTING and self._told.get(subject) != outcome.message:
            self._told[subject] = outcome.message
            key = keys.POD if isinstance(step, TouchPod) else keys.CLAIM
            fields = {key: str(about.key), keys.REASON: outcome.kind.value, keys.ERROR: outcome.message}
            if isinstance(step, TouchClaim | TouchPod):
                LOG.warning("what was sent before cannot be kept from landing", extra=fields)
            else:
                LOG.warning("what a pod had cannot be taken back", extra=fields)
