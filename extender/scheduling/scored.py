"""The scores of thousands of nodes, as numbers: names and scores of each are made where somebody reads them."""

from collections.abc import ItemsView, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from extender.model.names import NodeName


class Scored(Mapping[NodeName, int]):
    """The score of each node with one of *numbers* in *everything*, the best first."""

    def __init__(self, everything: Sequence[NodeName], numbers: NDArray[np.int64], scores: NDArray[np.int64]) -> None:
        self.everything, self._numbers = everything, numbers.astype(np.int32)
        # A spare place at the end is that of the names that are not known.
        self.offered: NDArray[np.bool_] = np.zeros(len(everything) + 1, np.bool_)
        self.offered[numbers] = True
        self.scores: NDArray[np.int8] = np.zeros(len(everything) + 1, np.int8)
        self.scores[numbers] = scores

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[NodeName]:
        return (self.everything[number] for number in self._numbers.tolist())

    def __getitem__(self, name: NodeName) -> int:
        return self.by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def items(self) -> ItemsView[NodeName, int]:
        return self.by_name.items()

    @cached_property
    def by_name(self) -> dict[NodeName, int]:
        return dict(zip(self, self.scores[self._numbers].tolist(), strict=True))
