"""What pods ask of a node that shares its devices, and what is typical of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Models of devices are numbered; an ask has a bit for each that will do. All bits: any model.
ANY: Final = -1


class Ask(NamedTuple):
    """*devices* with *amount* free on each, of one of the *models*, and CPU and memory beside them.

    Amounts are whole numbers of a unit that is the same for all, at most about a million to a device.
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

    @property
    def total(self) -> int:
        return sum(weight for _, weight in self.asks)

    @property
    def served(self) -> tuple[tuple[Ask, int], ...]:
        """Return those that need devices."""
        return tuple((ask, weight) for ask, weight in self.asks if ask.total)
