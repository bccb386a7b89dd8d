"""Dictionary-encoded columns: an int32 code per row, and the distinct values behind the codes.

Codes mean nothing outside their column: two columns are equal when their rows decode to equal values.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import is_
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass

V = TypeVar("V", bound=Hashable)
Codes = NDArray[np.int32]
# Values that no row uses any more are kept until they outnumber the rows by this factor (uuids come and go).
WASTE = 2
SPARE = 1024
# So many are remembered of a column.
EDITS = 32


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

    def encoded(self, values: Iterable[V | None]) -> list[int]:
        """Return the code of each of *values*."""
        return [0 if value is None else self.code(value) for value in values]


class Edit(NamedTuple):
    """Of which codes others were made, while these are there, and in which rows alone they may differ."""

    before: "ref[Codes]"
    rows: Collection[int]


@dataclass(frozen=True, slots=True)
class Column(Generic[V]):
    """Rows of one attribute. codes: int32[rows], read-only; *edits*: how they were made, the last first."""

    codes: Codes
    dictionary: Dictionary[V]
    edits: tuple[Edit, ...] = field(default=(), compare=False)

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

    def changed(self, codes: Mapping[int, int]) -> "Column[V]":
        """Set the *codes* of some rows."""
        fresh = self.codes.copy()
        for row, code in codes.items():
            fresh[row] = code
        fresh.setflags(write=False)
        edits = Edit(ref(self.codes), tuple(codes)), *self.edits[: EDITS - 1]
        return Column(fresh, self.dictionary, edits).compacted()

    def compacted(self) -> "Column[V]":
        """Drop the values that no row uses, once they are the larger part."""
        values = self.dictionary.values
        if len(values) <= WASTE * len(self.codes) + SPARE:
            return self
        used, codes = np.unique(self.codes, return_inverse=True)
        dictionary: Dictionary[V] = Dictionary()
        renamed = dictionary.encoded(values[code] for code in used.tolist())
        return frozen(np.array(renamed, np.int32)[codes], dictionary)


def differing(before: Column[V], after: Column[V]) -> NDArray[np.int64] | None:
    """Return the rows in which two columns differ, in order; None where their codes cannot be compared."""
    if before is after:
        return np.zeros(0, np.int64)
    if len(before) != len(after) or (before.dictionary is not after.dictionary and before.codes.any()):
        return None
    rows = _set_between(before, after)
    if rows is None:
        return np.flatnonzero(before.codes != after.codes)
    return np.array([row for row in sorted(rows) if before.codes[row] != after.codes[row]], np.int64)


def _set_between(before: Column[Any], after: Column[Any]) -> set[int] | None:
    """Return the rows in which alone two columns may differ; None where that is not remembered.

    Thousands of rows that are compared push all else out of the processor's caches.
    """
    # Mostly one was made of the other, and otherwise both of a third.
    for codes, rows in _made_of(after):
        if codes is before.codes:
            return rows
    known = {id(codes): (codes, rows) for codes, rows in _made_of(before)}
    for codes, rows in _made_of(after):
        if id(codes) in known:
            return known[id(codes)][1] | rows
    return None


def _made_of(column: Column[Any]) -> Iterator[tuple[Codes, set[int]]]:
    """Yield the codes that a column was made of, while they are there, with the rows that were set since."""
    yield column.codes, set()
    rows = set[int]()
    for edit in column.edits:
        rows = rows.union(edit.rows)
        codes = edit.before()
        if codes is not None:
            yield codes, rows


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
    return frozen(np.array(dictionary.encoded(values), np.int32), dictionary)
