"""The nodes that the scheduler asks about, thousands by name, as numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extender.model.names import NodeName

# Of a name that is not known: in an array with a spare place at its end, that one.
UNKNOWN: Final = -1

Rows = NDArray[np.integer[Any]]
Lookup = Callable[[Sequence[str]], Rows]
NOTHING: Final[tuple[Sequence[str], Rows]] = ((), np.empty(0, np.int64))


def by_dictionary(everything: Sequence[NodeName]) -> Lookup:
    """Look names up one by one."""
    numbers: dict[str, int] = {name: number for number, name in enumerate(everything)}
    return lambda names: np.fromiter(map(numbers.get, names, repeat(UNKNOWN)), np.int64, len(names))


@dataclass(slots=True)
class Roll:
    """Looks names up. One writer.

    numbering: how that is done, given the names of all nodes.
    """

    numbering: Callable[[Sequence[NodeName]], Lookup] = by_dictionary
    _everything: Sequence[NodeName] = ()
    _lookup: Lookup = field(default_factory=lambda: by_dictionary(()))
    _last: tuple[Sequence[str], Rows] = NOTHING

    def numbers(self, names: Sequence[str], everything: Sequence[NodeName]) -> Rows:
        """Return the number of each of *names* in *everything*, or UNKNOWN."""
        if not self.knows(everything):
            self._everything, self._lookup, self._last = everything, self.numbering(everything), NOTHING
        elif self._last[0] is names or self._last[0] == names:
            return self._last[1]
        found = self._lookup(names)
        self.remember(names, found)
        return found

    def flags(self, names: Sequence[str], everything: Sequence[NodeName]) -> NDArray[np.bool_]:
        """Tell which of *everything* are among *names*: bool[everything]."""
        # The spare place at the end is that of names that are not known.
        flags = np.zeros(len(everything) + 1, np.bool_)
        flags[self.numbers(names, everything)] = True
        return flags[:-1]

    def remember(self, names: Sequence[str], numbers: Rows) -> None:
        """Have the *numbers* of *names* at hand, which are asked for next: those that are offered are to be scored."""
        if not isinstance(names, list):
            self._last = names, numbers

    def knows(self, everything: Sequence[NodeName]) -> bool:
        """Tell whether names are looked up in *everything* already: to begin with others takes milliseconds."""
        return self._everything is everything
