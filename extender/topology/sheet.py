"""The links of some devices while layers are laid over one another."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.topology.provenance import NOTHING, Source

Pairs = NDArray[np.bool_]


@dataclass(slots=True)
class Sheet:
    """Weights and links of every two devices. weights: float64[devices, devices], links and origin: int64 alike."""

    weights: NDArray[np.float64]
    links: NDArray[np.int64]
    origin: NDArray[np.int64]
    sources: list[Source] = field(default_factory=lambda: [NOTHING])
    link_weight: float | None = None
    is_flat: bool = False
    complaints: list[str] = field(default_factory=list)

    def put(self, pair: tuple[int, int], weight: float, source: Source, links: int = 0) -> None:
        """Set the weight between two devices, both ways."""
        origin = self._number(source)
        for place in (pair, pair[::-1]):
            self.weights[place], self.links[place], self.origin[place] = weight, links, origin

    def fill(self, pairs: Pairs, weight: float, source: Source) -> None:
        """Set the weight between many, which have no links yet; *pairs* has both ways: bool[devices, devices]."""
        self.weights[pairs], self.origin[pairs] = weight, self._number(source)

    def _number(self, source: Source) -> int:
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source)


def blank(devices: int) -> Sheet:
    """Return a sheet on which nothing is known."""
    shape = (devices, devices)
    return Sheet(np.zeros(shape, np.float64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
