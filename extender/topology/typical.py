"""What pods ask of a node that shares its devices, and what is typical of them."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass

# Models of devices are numbered; an ask has a bit for each that will do. All bits: any model.
ANY: Final = -1
# Pods that are counted before all counts are halved, and kinds of pods that are told of, and one for each model.
MEMORY: Final = 1 << 14
KINDS: Final = 512


class PodAsk(NamedTuple):
    """*devices* with *amount* free on each, of one of the *models*, and CPU and memory beside them.

    Amounts are whole numbers of a unit that is the same for all: thousandths of a device, say; not bytes.
    """

    cpu: int
    memory: int
    amount: int = 0
    devices: int = 0
    models: int = ANY

    @property
    def total(self) -> int:
        return self.amount * self.devices

    def on(self, models: int) -> NDArray[np.bool_]:
        """Return which of so many models will do: bool[models]."""
        octets = (self.models & ((1 << models) - 1)).to_bytes(models + 7 >> 3, "little")
        return np.unpackbits(np.frombuffer(octets, np.uint8), count=models, bitorder="little").view(np.bool_)

    def numbers(self, models: int) -> NDArray[np.int64]:
        """Return the numbers of those: int64[some]."""
        # Of thousands of models most asks that are expected are for one.
        if self.models > 0 and not self.models & (self.models - 1):
            number = self.models.bit_length() - 1
            return np.array([number] if number < models else [], np.int64)
        return np.flatnonzero(self.on(models))

    def renumbered(self, numbers: Mapping[int, int]) -> "PodAsk":
        """Return the same ask where models have other *numbers*; of those without one nothing is left."""
        if self.models == ANY:
            return self
        found = self.numbers(self.models.bit_length()).tolist()
        return self._replace(models=sum(1 << numbers[model] for model in found if model in numbers))


@dataclass(frozen=True, slots=True)
class Typical:
    """Asks, and how often each is met, in whole numbers; in one order, whatever order they came in."""

    asks: tuple[tuple[PodAsk, int], ...]

    @staticmethod
    def of(counts: Mapping[PodAsk, int]) -> "Typical":
        return Typical(tuple(sorted((ask, count) for ask, count in counts.items() if count)))

    def renumbered(self, numbers: Mapping[int, int]) -> "Typical":
        """Return the same where models have other *numbers*."""
        return Typical(tuple(sorted(_renumbered(dict(self.asks), numbers).items())))

    @property
    def total(self) -> int:
        return sum(weight for _, weight in self.asks)

    @property
    def served(self) -> tuple[tuple[PodAsk, int], ...]:
        """Return those that need devices."""
        return tuple((ask, weight) for ask, weight in self.asks if ask.total)


NOTHING: Final = Typical(())


class Census:
    """Learns what is typical from what is asked: counts pods, and halves all counts from time to time to forget.

    *start* counts as if it had been asked for already.
    """

    def __init__(self, start: Typical = NOTHING) -> None:
        self._counts = Counter(dict(start.asks))
        self._seen = start.total
        self._due = self._seen + 1

    def meet(self, ask: PodAsk) -> Typical | None:
        """Count a pod; return what is typical when so much more was seen that it is worth to look anew."""
        self._counts[ask] += 1
        self._seen += 1
        if self._seen < self._due:
            return None
        typical = self._typical()
        if self._seen >= MEMORY:
            self._counts = Counter({ask: count // 2 for ask, count in self._counts.items() if count > 1})
            self._seen = self._counts.total()
        # A quarter more, so that what hangs on it stays for a while.
        self._due = self._seen + self._seen // 4 + 1
        return typical

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Go on where models have other *numbers*; what was asked of those without one is forgotten."""
        self._counts = _renumbered(self._counts, numbers)
        self._seen = self._counts.total()
        self._due = self._seen + 1

    def _typical(self) -> Typical:
        shapes = Counter[tuple[int, ...]]()
        for ask, count in self._counts.items():
            shapes[ask[:4]] += count
        told = dict(shapes.most_common(KINDS))
        # Of thousands of models one pod each is expected, all of one shape: these put none aside.
        most = KINDS + max((ask.models.bit_length() for ask in self._counts), default=0)
        counts = Counter({ask: count for ask, count in self._counts.items() if ask[:4] in told})
        return Typical(tuple(sorted(counts.most_common(most))))


def _renumbered(counts: Mapping[PodAsk, int], numbers: Mapping[int, int]) -> Counter[PodAsk]:
    """Count asks for models that have other *numbers*; those without one are forgotten, and asks for no others."""
    found = Counter[PodAsk]()
    for ask, count in counts.items():
        told = ask.renumbered(numbers)
        if told.models:
            found[told] += count
    return found
