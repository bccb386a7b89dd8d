"""Whether what we were told is still so: a cluster that was restored has never had what came after its backup."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.kube.told import Reverted, Seen, Told, Trouble, Unserved
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
WHY_NOT: Final = "the cluster was set back to an earlier state: everything is read anew"
DOUBT: Final = "the cluster seems to be in an earlier state: it is looked at again"


def _nobody() -> None:
    """Tell nobody."""


@dataclass(slots=True)
class History:
    """Over once the cluster was set back, and never begun again: all that we hold and remember has versions of it.

    *end* is told then. A process of its own knows nothing, and is soon where the cluster is. While that is in doubt
    nothing is answered or written either.
    """

    end: Callable[[], None] = _nobody
    is_over: bool = False
    _doubted: set[str] = field(default_factory=set)

    def note(self, told: Told) -> None:
        """Take note of what following tells: that the cluster was set back, or may have been."""
        match told:
            case Reverted() if not self.is_over:
                self._end(told)
            case Trouble(is_behind=True):
                self._doubted.add(told.resource.name)
            case Seen() | Unserved():
                self._doubted.discard(told.resource.name)

    def why_not(self) -> str:
        """Say why nothing is answered or written; nothing as long as that is done."""
        if self.is_over:
            return WHY_NOT
        return DOUBT if self._doubted else ""

    def _end(self, told: Reverted) -> None:
        said = f"it is at {told.version}, after {told.known}"
        LOG.critical("the cluster was set back", extra={keys.RESOURCE: str(told.resource), keys.ERROR: said})
        self.is_over = True
        self.end()
