"""Whether pods are sent ahead at all, and which of them."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# Minor versions of Kubernetes whose scheduler was seen to look at a nominated node alone.
MINORS: Final = (36, 37)
# A nomination is one write more for each pod. What it saves grows with the nodes that the scheduler does not look at.
FEWEST_NODES: Final = 1000
# Pods that wait for their turn before the one that is nominated. With fewer the scheduler asks before that is written:
# it is told what was planned all the same, and the write would only be in the way of the binding.
FEWEST_BEFORE: Final = 4
# After so many nominations in a row of which the scheduler took none up, it does not look at them as it should.
ENOUGH: Final = 32


@dataclass(slots=True)
class Sending:
    """Whether pods are sent ahead. *minor* is that of the API server, which may not tell."""

    mode: Literal["auto", "always", "never"] = "always"
    minor: Callable[[], Awaitable[int | None]] | None = None
    is_known: bool = False
    _ignored: int = 0

    async def find_out(self) -> None:
        """Learn whether this version's scheduler heeds nominations: the API does not promise that."""
        minor = await self.minor() if self.minor and self.mode == "auto" else MINORS[-1]
        self.is_known = minor in MINORS
        if not self.is_known:
            why = "the API server does not tell its version" if minor is None else f"Kubernetes 1.{minor} was not tried"
            LOG.warning("pods are not sent ahead", extra={keys.REASON: why})

    def pays(self, nodes: int) -> bool:
        """Tell whether the scheduler is spared more than the nomination costs."""
        is_heeded = self._ignored < ENOUGH
        return self.is_known and is_heeded and (self.mode == "always" or nodes >= FEWEST_NODES)

    def heeded(self, *, is_right: bool) -> None:
        """Remember whether the scheduler has looked at a nominated node alone, one that its plugins let pass."""
        self._ignored = 0 if is_right else self._ignored + 1
        if self._ignored == ENOUGH:
            LOG.warning("nominations are not taken up: no more pods are sent ahead", extra={keys.COUNT: ENOUGH})

    @property
    def fewest_before(self) -> int:
        """How many pods have to wait before one that will have heard of its node when it is asked about."""
        return 0 if self.mode == "always" else FEWEST_BEFORE
