"""The links of some devices while layers are laid over one another, and where each weight comes from."""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.bool_]
Layer = Literal["none", "levels", "peers", "products"]


class Source(NamedTuple):
    """One origin of weights: its layer, what was read there, and the place in the configuration that asked for it."""

    layer: Layer
    read: str
    rule: str

    def __str__(self) -> str:
        return f"{self.read} ({self.rule})" if self.rule else self.read


NOTHING: Final = Source("none", "nothing is known", "")


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
