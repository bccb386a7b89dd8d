"""What is expected of nodes with partitions and shares, which links do not rate."""

from typing import Final

import numpy as np

from extender.allocation.fit import Fitter
from extender.allocation.grid import Flags, grid_of
from extender.allocation.question import At
from extender.allocation.snapshot import Snapshot
from extender.topology.memo import Memo
from extender.topology.quality import ONE
from extender.topology.ratings import Values

# Asks that are remembered.
ASKS: Final = 256
# Partitions of a node that are counted: less than what differences of worth come to.
MOST: Final = 1000


class Special:
    """Remembers which nodes have some. One writer."""

    def __init__(self) -> None:
        self._known: Memo[tuple[int, At], tuple[object, object, Flags]] = Memo(ASKS)

    def nodes(self, fitter: Fitter, at: At, snapshot: Snapshot) -> Flags:
        """Tell which nodes have partitions or shares for an ask, bool[nodes]."""
        offers, layout = fitter.offers_in(snapshot), snapshot.layout
        known = self._known.get((id(fitter), at))
        if known is None or known[0] is not offers or known[1] is not layout:
            rows = offers.of[at].usable & offers.special
            flags = np.asarray(grid_of(layout, np.arange(len(layout.nodes))).flags(rows).any(axis=1), np.bool_)
            known = self._known[id(fitter), at] = offers, layout, flags
        return known[2]


def room(fitter: Fitter, at: At, snapshot: Snapshot) -> Values:
    """Value nodes by how many partitions nobody has, int64[nodes]: no less than what spreading counts."""
    offers, layout = fitter.offers_in(snapshot), snapshot.layout
    rows = offers.of[at].usable & offers.special & (snapshot.usage.codes == 0)
    counted: Values = grid_of(layout, np.arange(len(layout.nodes))).flags(rows).sum(axis=1, dtype=np.int64)
    return np.asarray(2 * ONE - MOST + np.minimum(counted, MOST), np.int64)
