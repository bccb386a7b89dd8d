"""What the API server refuses to have taken back, told once: a policy of admission may refuse it for good."""

import logging
from dataclasses import dataclass, field
from typing import Final

from extender.model.names import Uid
from extender.scheduling.steps import DeleteClaim, Done, Outcome, Refusal, Refused, Release, TouchClaim, TouchPod
from extender.telemetry import keys
from extender.topology.memo import Memo

LOG: Final = logging.getLogger(__name__)
Undoing = Release | DeleteClaim | TouchClaim | TouchPod
# Refusals that last: the others say that there is nothing left to be done, or that it is to be tried again.
LASTING: Final = (Refusal.FORBIDDEN, Refusal.INVALID, Refusal.REJECTED, Refusal.IN_VAIN)
# Objects of which it is remembered what was told.
MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Refusals:
    """Tells of each object why it is refused, and again when it is for another reason, or was not in between."""

    _told: Memo[tuple[str, Uid], str] = field(default_factory=lambda: Memo(MOST))

    def note(self, step: Undoing, outcome: Outcome) -> None:
        """Take note of how *step* ended."""
        about = step.pod if isinstance(step, TouchPod) else step.claim
        place = type(step).__name__, about.uid
        if isinstance(outcome, Done):
            self._told.pop(place, None)
        elif isinstance(outcome, Refused) and outcome.kind in LASTING and self._told.get(place) != outcome.message:
            self._told[place] = outcome.message
            key = keys.POD if isinstance(step, TouchPod) else keys.CLAIM
            fields = {key: str(about.key), keys.REASON: outcome.kind.value, keys.ERROR: outcome.message}
            LOG.warning("what a pod had cannot be taken back", extra=fields)
