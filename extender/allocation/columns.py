"""Dictionary-encoded columns: an int32 code per row, and the distinct values behind the codes.

Codes mean nothing outside their column: two columns are equal when their rows decode to equal values.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from operator import is_
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass

V = TypeVar("V", bound=Hashable)
Codes = NDArray[np.int32]
# Values that no row uses any more are kept until they outnumber the rows by this factor (uuids come and go).
WASTE = 2
SPARE = 1024


@dataclass(slots=True)
class Dictionary(Generic[V]):
    """The distinct values of a column, append-only, so that codes given out stay true for every reader.

    Code 0 stands for absence and decodes to None.
    """

    values: list[V | None] = field(default_factory=lambda: [None])
    codes: dict[V, int] = field(default_factory=dict)

    def code(self, value: V) -> int:
        """Return the code of *value*, which is given one where it has none yet."""
        known = self.codes.get(value)
        if known is None:
            known = self.codes[value] = len(self.values)
            self.values.append(value)
        return known


@dataclass(frozen=True, slots=True)
class Column(Generic[V]):
    """Rows of one attribute. codes: int32[rows], read-only."""

    codes: Codes
    dictionary: Dictionary[V]

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, row: int) -> V | None:
        """Decode one row."""
        code: int = self.codes[row].item()
        return self.dictionary.values[code]

    def decoded(self) -> list[V | None]:
        """Decode every row."""
        values = self.dictionary.values
        return [values[code] for code in self.codes.tolist()]

    def table(self, measure: Callable[[V], int], absent: int = 0) -> NDArray[np.int64]:
        """Measure each distinct value once: int64[codes], to be indexed by codes."""
        values = self.dictionary.values
        return np.array([absent if value is None else measure(value) for value in values], np.int64)

    def spliced(self, start: int, stop: int, codes: Sequence[int] | Codes) -> "Column[V]":
        """Replace rows *start* to *stop*, which may change their number; return the same column for the same codes."""
        if len(codes) != stop - start:
            fresh = np.concatenate((self.codes[:start], np.asarray(codes, np.int32), self.codes[stop:]))
        elif np.array_equal(self.codes[start:stop], codes):
            return self
        else:
            fresh = self.codes.copy()
            fresh[start:stop] = codes
        return frozen(fresh, self.dictionary).compacted()

    def compacted(self) -> "Column[V]":
        """Drop the values that no row uses, once they are the larger part."""
        values = self.dictionary.values
        if len(values) <= WASTE * len(self.codes) + SPARE:
            return self
        used, codes = np.unique(self.codes, return_inverse=True)
        dictionary: Dictionary[V] = Dictionary()
        renamed = [0 if (value := values[code]) is None else dictionary.code(value) for code in used.tolist()]
        return frozen(np.array(renamed, np.int32)[codes], dictionary)


def are_same(left: Sequence[object], right: Sequence[object]) -> bool:
    """Tell whether these are the very same objects, as what never changes is as long as nothing takes its place."""
    return len(left) == len(right) and all(map(is_, left, right))


def frozen(codes: Codes, dictionary: Dictionary[V]) -> Column[V]:
    """Publish *codes* as a column; nobody may write to them from here on."""
    codes.setflags(write=False)
    return Column(codes, dictionary)


def blank(rows: int) -> Column[V]:
    """Return a column without any value."""
    return frozen(np.zeros(rows, np.int32), Dictionary())


def column_of(values: Iterable[V | None]) -> Column[V]:
    """Encode *values*, None where a row has none."""
    dictionary: Dictionary[V] = Dictionary()
    codes = [0 if value is None else dictionary.code(value) for value in values]
    return frozen(np.array(codes, np.int32), dictionary)
