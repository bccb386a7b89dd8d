"""Metrics for whoever asks, written anew only as often as that costs the scheduler's calls little."""

from dataclasses import dataclass
from time import perf_counter
from typing import Final

from extender.telemetry.metrics import Metrics

# Nobody has to be known to ask: all who do get at most this part of the time together.
SHARE: Final = 0.1


@dataclass(slots=True)
class Scrapes:
    """The exposition of *metrics*, kept for as long as writing it has earned."""

    metrics: Metrics
    _kept: tuple[bytes, str] = (b"", "")
    _until: float = 0.0

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics with their content type, as *accept* asks for it or as it was asked for just before."""
        started = perf_counter()
        if started >= self._until:
            self._kept = self.metrics.exposition(accept)
            ended = perf_counter()
            self._until = ended + (ended - started) * (1 / SHARE - 1)
        return self._kept
