"""What pods ask of a node that shares its devices, and what is typical of them."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass

# Models of devices are numbered; an ask has a bit for each that will do. All bits: any model.
ANY: Final = -1
# Pods that are counted before all counts are halved, and kinds of pods that are told of.
MEMORY: Final = 1 << 14
KINDS: Final = 512


class Ask(NamedTuple):
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
        return np.array([bool(self.models >> model & 1) for model in range(models)])


@dataclass(frozen=True, slots=True)
class Typical:
    """Asks, and how often each is met, in whole numbers; in one order, whatever order they came in."""

    asks: tuple[tuple[Ask, int], ...]

    @staticmethod
    def of(counts: Mapping[Ask, int], covering: int = 1000) -> "Typical":
        """Take the most frequent asks until *covering* of a thousand pods are met."""
        most_frequent = sorted(((ask, count) for ask, count in counts.items() if count), key=lambda pair: pair[::-1])
        wanted, met, taken = sum(counts.values()) * covering, 0, []
        for ask, count in reversed(most_frequent):
            if met * 1000 < wanted:
                taken.append((ask, count))
                met += count
        return Typical(tuple(sorted(taken)))

    @staticmethod
    def unknown(models: int, amount: int) -> "Typical":
        """Expect one pod for each model, which needs a device with *amount* and nothing beside it.

        Otherwise the first pods take what is scarce before the first of those comes that can use nothing else.
        """
        return Typical.of({Ask(0, 0, amount, 1, 1 << model): 1 for model in range(models)})

    @property
    def total(self) -> int:
        return sum(weight for _, weight in self.asks)

    @property
    def served(self) -> tuple[tuple[Ask, int], ...]:
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

    def meet(self, ask: Ask) -> Typical | None:
        """Count a pod; return what is typical when so much more was seen that it is worth to look anew."""
        self._counts[ask] += 1
        self._seen += 1
        if self._seen < self._due:
            return None
        typical = Typical(tuple(sorted(self._counts.most_common(KINDS))))
        if self._seen >= MEMORY:
            self._counts = Counter({ask: count // 2 for ask, count in self._counts.items() if count > 1})
            self._seen = self._counts.total()
        # A quarter more, so that what hangs on it stays for a while.
        self._due = self._seen + self._seen // 4 + 1
        return typical
