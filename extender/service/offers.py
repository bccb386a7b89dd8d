"""Which nodes each pod was offered, as the scheduler was answered last: on others it is not bound."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.model.names import NodeName, Uid
from extender.web.names import Names

# A bind follows its filter within milliseconds, or waits for volumes; a pod that is forgotten is asked about again.
MOST_PODS: Final = 10_000
# All nodes of a fleet are 700 KB of names, for each pod that may go anywhere.
MOST_BYTES: Final = 1 << 24


@dataclass(slots=True)
class Offers:
    """Remembers the last offers, within bounds. One writer."""

    most_pods: int = MOST_PODS
    most_bytes: int = MOST_BYTES
    _last: OrderedDict[Uid, bytes | tuple[str, ...]] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._last)

    def put(self, pod: Uid, names: Sequence[str]) -> None:
        """Remember that *pod* was offered *names*, in place of what it was offered before; none end its offer."""
        self.forget(pod)
        if not names:
            return
        # What came as JSON is kept so: thousands of names are not decoded for a look-up of one.
        self._last[pod] = names.json if isinstance(names, Names) else tuple(names)
        self._bytes += _size(self._last[pod])
        while len(self._last) > self.most_pods or self._bytes > self.most_bytes:
            self.forget(next(iter(self._last)))

    def has(self, pod: Uid, node: NodeName) -> bool:
        """Tell whether *node* was among what *pod* was offered last."""
        names = self._last.get(pod, ())
        return f'"{node}"'.encode() in names if isinstance(names, bytes) else node in names

    def forget(self, pod: Uid) -> None:
        """End the offer of *pod*, if it has one."""
        names = self._last.pop(pod, None)
        if names is not None:
            self._bytes -= _size(names)


def _size(names: bytes | tuple[str, ...]) -> int:
    # The strings of a tuple belong to the snapshot.
    return len(names) if isinstance(names, bytes) else 8 * len(names)
