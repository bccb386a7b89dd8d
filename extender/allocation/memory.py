"""What is remembered of a question between one answer and the next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints
from extender.allocation.columns import Column
from extender.allocation.inventory import Inventory
from extender.allocation.matches import Matches
from extender.allocation.node_state import States
from extender.allocation.question import At, Question
from extender.allocation.reason import Fault, Reason
from extender.allocation.snapshot import Snapshot
from extender.model.claim import DeviceClass
from extender.model.frozen import dataclass
from extender.model.names import ClassName
from extender.model.taint import DeviceTaintRule

# Of a node that fits and has no alternatives, or on which the search was given up.
NO_REASON = -1
# Reasons beyond those that the nodes of the last answer can have, before the others are forgotten.
SPARE = 4096
# Different faults that one question tells apart: each of thousands of devices may err in words of its own.
FAULTS = 256
# Shortfalls whose reasons one question remembers.
SHORTFALLS = 1 << 16
# What a reason takes, beside its text: bytes.
REASON_SIZE = 300
# What an answer takes of a node and its devices, eight of them, with what is taken of these: bytes.
NODE_SIZE = 210
# What each further ask takes of a device: bytes.
MATCH_SIZE = 3


@dataclass(frozen=True, slots=True)
class Basis:
    """Which devices match as long as these slices, rules and classes hold, and the reasons of what nodes lack of it.

    added: what rules add to the taints of devices.
    """

    inventory: Inventory
    rules: Mapping[str, DeviceTaintRule]
    classes: Mapping[ClassName, DeviceClass]
    matches: Matches
    added: Column[Taints]
    shortfalls: dict[bytes, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes the matches take of all asks but one, which counts with the nodes."""
        return MATCH_SIZE * self.inventory.rows * max(0, len(self.matches.each) - 1)

    def holds(self, snapshot: Snapshot) -> bool:
        rules = self.rules is snapshot.rules and self.classes is snapshot.classes
        return rules and self.inventory is snapshot.inventory

    def remember(self, shortfall: bytes, reason: int) -> None:
        if len(self.shortfalls) >= SHORTFALLS:
            self.shortfalls.clear()
        self.shortfalls[shortfall] = reason


# Which ask of each list of alternatives the first solution on a node has: int16[lists].
Way = bytes
Told = Reason | Fault | Way


class Span:
    """A key for weak references, and nothing else: what others remember under it of the cluster goes with it."""


@dataclass(slots=True)
class Reasons:
    """The distinct reasons, without names of claims, and faults by the names of the question that nodes are asked.

    Of nodes that fit it is the ways, where there are alternatives. Append-only, so that numbers given out stay true. Of
    faults beyond a number all are one that says nothing.
    """

    all: list[Told] = field(default_factory=list)
    _numbers: dict[Told, int] = field(default_factory=dict)
    _faults: int = 0
    _bytes: int = 0

    @property
    def size(self) -> int:
        """About how many bytes these take."""
        return REASON_SIZE * len(self.all) + self._bytes

    def number(self, reason: Told) -> int:
        """Return the number of *reason*, which is given one where it has none yet."""
        if isinstance(reason, Fault) and reason not in self._numbers:
            self._faults += 1
            reason = reason if self._faults <= FAULTS else reason._replace(text="")
        known = self._numbers.setdefault(reason, len(self.all))
        if known == len(self.all):
            self.all.append(reason)
            self._bytes += len(reason if isinstance(reason, Way) else reason.text)
        return known

    def are_too_many(self, nodes: int) -> bool:
        return len(self.all) > 2 * nodes + SPARE


@dataclass(slots=True)
class Draft:
    """A fit while it is made, and what its work reads and writes: another work may begin and end in between."""

    snapshot: Snapshot
    verdicts: NDArray[np.int8]
    reason_codes: NDArray[np.int32]
    reasons: Reasons
    states: States


def renumbered(reasons: Sequence[Told], codes: NDArray[np.int32]) -> tuple[Reasons, NDArray[np.int32]]:
    """Keep only the reasons that *codes* name, and number these anew."""
    kept = Reasons()
    used, places = np.unique(codes, return_inverse=True)
    fresh = [NO_REASON if code == NO_REASON else kept.number(reasons[code]) for code in used.tolist()]
    return kept, np.array(fresh, np.int32)[places]


def lists_of(question: Question) -> list[tuple[int, int]]:
    """Name the lists of alternatives by claim and slot."""
    return list(dict.fromkeys(at[:2] for at in question.asks if at.ask))


def way_of(question: Question, asks: Iterable[At]) -> Way:
    """Return the way that *asks* are: of lists of which there is none it is the first."""
    chosen = {at[:2]: at.ask for at in asks}
    return np.array([chosen.get(place, 0) for place in lists_of(question)], np.int16).tobytes()
