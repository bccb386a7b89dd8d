"""The matrices of links without the names of devices: nodes that are alike have them in common, for they are large."""

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass
from extender.topology.links import Links
from extender.topology.shape import Shape, shape_of

# Behind a switch all pairs are alike, but for the host's memory and network, which are nearer on one NUMA node, and on
# one socket that is several of them.
BESIDE: Final = 0.95
ACROSS: Final = 0.9
# The NUMA node of a device, and all of its list.
Zone = tuple[int | None, frozenset[int]]


@dataclass(frozen=True, eq=False)
class Form:
    """How devices are linked, whichever they are. *weights*, *links*, *origin*: as those of ``Links``.

    *zones*: the NUMA nodes of each device, where these make a difference.
    """

    weights: NDArray[np.float64]
    links: NDArray[np.int64]
    origin: NDArray[np.int64]
    link_weight: float | None
    zones: tuple[Zone, ...]

    @cached_property
    def shape(self) -> Shape:
        # What stands beside a switch may have links that are counted: these are as strong wherever they lead.
        near = np.where(self.links > 0, 1.0, _nearness(self.zones)) if self.zones else 1.0
        weights = self.weights * near
        return shape_of(weights, self.links, self.link_weight)

    @property
    def cells(self) -> int:
        """How large it is: the number of pairs."""
        return self.weights.size


class Forms:
    """Forms that somebody has, each of them once. One writer."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, bytes, tuple[Zone, ...]], Form] = WeakValueDictionary()

    def shared(self, links: Links) -> tuple[Links, Form]:
        """Return the form of *links*, and these with its matrices in place of equal ones of their own."""
        zones = tuple((place.first_numa, place.numa) for place in links.places) if links.is_flat else ()
        key = links.shape, hashlib.sha256(links.origin.tobytes()).digest(), zones
        form = self._known.get(key)
        if form is None:
            form = self._known[key] = Form(links.weights, links.links, links.origin, links.link_weight, zones)
        return replace(links, weights=form.weights, links=form.links, origin=form.origin), form


def _nearness(zones: tuple[Zone, ...]) -> NDArray[np.float64]:
    """Tell by what the weight of each pair is multiplied. What is unknown is shared with nobody, unless all of it is.

    So what is near is so in both directions: weights that form a tree form one still.
    """
    if not any(first is not None for first, _ in zones):
        return np.ones((len(zones), len(zones)))
    return np.array([[_near(zone, other) for other in zones] for zone in zones])


def _near(one: Zone, other: Zone) -> float:
    if one[0] is not None and one[0] == other[0]:
        return 1.0
    return ACROSS if one[1].isdisjoint(other[1]) else BESIDE
