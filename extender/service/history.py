"""Whether what we were told is still so: a cluster that was restored has never had what came after its backup."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.kube.told import Reverted, Told
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
WHY_NOT: Final = "the cluster was set back to an earlier state: everything is read anew"


def _nobody() -> None:
    """Tell nobody."""


@dataclass(slots=True)
class History:
    """Over once the cluster was set back, and never begun again: all that we hold and remember has versions of it.

    *end* is told then. A process of its own knows nothing, and is soon where the cluster is.
    """

    end: Callable[[], None] = _nobody
    is_over: bool = False

    def note(self, told: Told) -> None:
        """End where *told* says so."""
        if isinstance(told, Reverted) and not self.is_over:
            said = f"it is at {told.version}, after {told.known}"
            LOG.critical("the cluster was set back", extra={keys.RESOURCE: str(told.resource), keys.ERROR: said})
            self.is_over = True
            self.end()

    def why_not(self) -> str:
        """Say why nothing is answered or written any more; nothing as long as that is done."""
        return WHY_NOT if self.is_over else ""
