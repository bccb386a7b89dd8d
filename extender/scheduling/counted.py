"""Devices of which only the number is known: device plugins hand them out, and all that we can do is score nodes.

A node is taken for one of equally linked devices, and is the better the less a pod spoils of what they are good for
together: what is left over is used up before whole nodes are torn open. Which nodes fit is the scheduler's to say.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.model.footprint import amounts_of, requested
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.ranking import FULL
from extender.state.loads import Loads
from extender.state.table import Numbers
from extender.topology.demand import EXPECTED
from extender.topology.quality import Quality
from extender.topology.residual import Residual
from extender.topology.shape import Shape

# Devices of a node up to which a resource counts devices; larger numbers count shares, or something else altogether.
MOST: Final = 64
SIZES: Final = MOST + 1
# Beside a value, room for the free devices that decide among equal values.
STEP: Final = 1 << 20
# In none of the names of resources that are not somebody's own.
NATIVE: Final = "kubernetes.io/"
NOT_DEVICES: Final = ("hugepages-", "attachable-volumes-", "requests.")


def counts_of(pod: Pod) -> Mapping[str, int]:
    """Return how many devices of which extended resources *pod* asks for."""
    if not any(is_extended(name) for item in pod.containers for name, _ in item.requests):
        return {}
    return {name: count for name, count in amounts_of(requested(pod.containers)) if is_extended(name)}


def is_extended(name: str) -> bool:
    """Tell whether *name* is that of an extended resource, qualified by a domain that is not Kubernetes' own."""
    return "/" in name and NATIVE not in name and not name.startswith(NOT_DEVICES)


class Counted:
    """Scores nodes by what is left of their devices. What is worked out once is remembered by numbers, not by nodes."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._changes: dict[int, Numbers] = {}

    def scores(
        self, asked: Mapping[str, int], nodes: Numbers, everything: tuple[NodeName, ...]
    ) -> Mapping[NodeName, int]:
        """Score those *nodes* of *everything* that hold what is *asked*; none where it is not known what is free.

        nodes: int64[nodes], places in *everything*.
        """
        if not self._loads.is_known:
            return {}
        holds, values = self._valued(asked, self._loads.rows_of(everything)[nodes])
        fitting = np.flatnonzero(holds)
        return scored(values[fitting], [everything[node] for node in nodes[fitting].tolist()])

    def _valued(self, asked: Mapping[str, int], rows: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
        """Return which rows hold all that is *asked*, and what they are worth: bool[rows], int64[rows]."""
        holds, values = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int64)
        for resource, count in asked.items():
            has = self._loads.allocatable(resource, rows)
            free = has - self._loads.used(resource, rows)
            fits = (free >= count) & (has <= MOST)
            holds &= fits
            has, free = np.where(fits, has, 0), np.where(fits, free, 0)
            values += STEP * self._changed(count, has * SIZES + free) - free
        return holds, values

    def _changed(self, count: int, codes: Numbers) -> Numbers:
        """Return by how much *count* devices change what is left, by how many a node has and how many are free.

        codes: int64[rows], places in a square of both numbers.
        """
        if count > MOST:
            return np.zeros(len(codes), np.int64)
        known = self._changes.get(count)
        if known is None:
            known = self._changes[count] = np.ones(SIZES * SIZES, np.int64)
        # A change is never for the better, so that one stands for what is not known yet.
        for code in np.flatnonzero((np.bincount(codes, minlength=len(known)) > 0) & (known > 0)).tolist():
            known[code] = change(*divmod(code, SIZES), count)
        return known[codes]


def change(size: int, free: int, count: int) -> int:
    """Return by how much what *free* of *size* devices are good for changes without *count* of them, of ONE."""
    if free < count:
        return 0
    residual = _residual(size)
    # All sets are alike, so that the first devices stand for any.
    return residual.value((1 << free - count) - 1) - residual.value((1 << free) - 1)


@lru_cache(maxsize=SIZES)
def _residual(size: int) -> Residual:
    return Residual(Quality(flat(size)), EXPECTED)


def flat(size: int) -> Shape:
    """Return the shape of devices that are all linked alike."""
    return Shape(tuple(tuple(int(one != other) for other in range(size)) for one in range(size)))


def scored(values: Numbers, names: Sequence[NodeName]) -> Mapping[NodeName, int]:
    """Score nodes by their values, int64[names]; those far behind the best have no score."""
    scores = _ranked(values)
    best = np.flatnonzero(scores)
    return dict(zip([names[node] for node in best.tolist()], scores[best].tolist(), strict=True))


def _ranked(values: Numbers) -> Numbers:
    """Return scores: full for the highest value, one less for the next, none for all below: int64[values]."""
    distinct, places = np.unique(values, return_inverse=True)
    return np.maximum(0, FULL + 1 - len(distinct) + places)
