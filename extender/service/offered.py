"""Which nodes each pod was offered, as the scheduler was answered last: on others it is not bound."""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import numpy as np
import orjson

from extender.model.names import NodeName, Uid
from extender.web.names import Names

# A bind follows its filter within milliseconds, or waits for volumes; a pod that is forgotten is asked about again.
MOST_PODS: Final = 10_000
# All nodes of a fleet are 700 KB of names, for each pod that may go anywhere. Packed, they are 2 KB.
MOST_BYTES: Final = 1 << 24
# Names that have numbers: several times those of a large fleet, for nodes come and go.
MOST_NAMES = 1 << 16

# As JSON, or as strings.
Fresh = bytes | tuple[str, ...]
# Or packed: bit n stands for the name with number n.
Kept = Fresh | int


def _numbering() -> defaultdict[str, int]:
    return defaultdict(count().__next__)


@dataclass(slots=True)
class OfferedNodes:
    """Remembers the last offers, within bounds. One writer."""

    most_pods: int = MOST_PODS
    most_bytes: int = MOST_BYTES
    _last: OrderedDict[Uid, Kept] = field(default_factory=OrderedDict)
    # The large offers that are as they came: most pods are bound before anybody has to make room.
    _fresh: dict[Uid, Fresh] = field(default_factory=dict)
    _numbers: defaultdict[str, int] = field(default_factory=_numbering)
    _packed: int = 0
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._last)

    def put(self, pod: Uid, names: Sequence[str]) -> None:
        """Remember that *pod* was offered *names*, in place of what it was offered before; none end its offer."""
        self.forget(pod)
        if not names:
            return
        # What came as JSON is kept so: thousands of names are not decoded for a look-up of one.
        offer = names.json if isinstance(names, Names) else tuple(names)
        self._keep(pod, offer)
        # For small ones there is room as they are, however many: to pack thousands of them would gain nothing.
        if _size(offer) > self.most_bytes // self.most_pods:
            self._fresh[pod] = offer
        while self._bytes > self.most_bytes and self._fresh:
            self._pack(next(iter(self._fresh)))
        while len(self) > self.most_pods or self._bytes > self.most_bytes or len(self._numbers) > MOST_NAMES:
            self.forget(next(iter(self._last)))

    def has(self, pod: Uid, node: NodeName) -> bool:
        """Tell whether *node* was among what *pod* was offered last."""
        offer = self._last.get(pod, ())
        if isinstance(offer, int):
            return node in self._numbers and bool(offer >> self._numbers[node] & 1)
        return f'"{node}"'.encode() in offer if isinstance(offer, bytes) else node in offer

    def forget(self, pod: Uid) -> None:
        """End the offer of *pod*, if it has one."""
        offer = self._last.pop(pod, None)
        if offer is None:
            return
        self._bytes -= _size(offer)
        self._fresh.pop(pod, None)
        self._packed -= isinstance(offer, int)
        if self._numbers and not self._packed:
            self._numbers = _numbering()

    def _keep(self, pod: Uid, offer: Kept) -> None:
        self._last[pod] = offer
        self._bytes += _size(offer)
        self._packed += isinstance(offer, int)

    def _pack(self, pod: Uid) -> None:
        """Keep a bit for each name in place of the names where that is less."""
        offer = self._fresh.pop(pod)
        names = orjson.loads(offer) if isinstance(offer, bytes) else offer
        numbers = np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))
        flags = np.zeros(len(self._numbers), np.bool_)
        flags[numbers] = True
        packed = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
        self._bytes -= _size(offer)
        self._keep(pod, min(offer, packed, key=_size))


def _size(offer: Kept) -> int:
    if isinstance(offer, int):
        return -(-offer.bit_length() // 8)
    # The strings of a tuple belong to the snapshot.
    return len(offer) if isinstance(offer, bytes) else 8 * len(offer)
