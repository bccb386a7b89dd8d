"""Amounts of resources in columns, a row for each node.

Behind the last is a row of nobody, -1, in which nothing ever stands.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.model.quantity import Amounts
from extender.state.node_rows import Rows

Numbers = NDArray[np.int64]
# Nobody waits for so many to be put into a column.
FEW: Final = 64


class Table:
    """An int64 column of *rows* for each resource that stands in many of them.

    What others are called is for whoever makes pods to say, ten thousand names in one: these are kept row by row.
    """

    def __init__(self, rows: int) -> None:
        self._columns: dict[str, Numbers] = {}
        self._few: dict[str, dict[int, int]] = {}
        self._rows = rows

    def grow(self, rows: int) -> None:
        """Make room for *rows*, which are more than before."""
        self._rows = rows
        for resource, column in self._columns.items():
            # The row of nobody stays the last one.
            self._columns[resource] = _roomy(column[:-1], rows)

    def add(self, row: int, amounts: Amounts, sign: int) -> None:
        """Add *amounts* to a row, or take them away."""
        for resource, number in amounts:
            column = self._columns.get(resource)
            if column is None:
                self._add_few(resource, row, sign * number)
            else:
                column[row] += sign * number

    def add_all(self, rows: Rows, resource: str, numbers: Numbers) -> None:
        """Add to many rows at once, to some of them more than once."""
        if resource not in self._columns and len(rows) <= self._most:
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                self.add(row, ((resource, number),), 1)
        else:
            np.add.at(self._column(resource), rows, numbers)

    def of(self, resource: str, rows: Rows) -> Numbers:
        """Return what stands in *rows*: int64[rows]."""
        column, few = self._columns.get(resource), self._few.get(resource)
        if column is None and few is not None:
            column = self._spread(few)
        return np.zeros(len(rows), np.int64) if column is None else column[rows]

    def at(self, row: int) -> dict[str, int]:
        """Return what stands in one row, by resource."""
        found = {resource: int(column[row]) for resource, column in self._columns.items()}
        found |= {resource: few[row] for resource, few in self._few.items() if row in few}
        return {resource: number for resource, number in found.items() if number}

    @property
    def _most(self) -> int:
        """In how many rows what has no column may stand: up to there a column takes more."""
        return min(FEW, self._rows // 16)

    def _add_few(self, resource: str, row: int, number: int) -> None:
        few = self._few.setdefault(resource, {})
        few[row] = few.get(row, 0) + number
        if not few[row]:
            del few[row]
        if not few:
            del self._few[resource]
        elif len(few) > self._most:
            self._columns[resource] = self._spread(self._few.pop(resource))

    def _spread(self, few: Mapping[int, int]) -> Numbers:
        column = np.zeros(self._rows + 1, np.int64)
        for row, number in few.items():
            column[row] = number
        return column

    def _column(self, resource: str) -> Numbers:
        column = self._columns.get(resource)
        if column is None:
            column = self._columns[resource] = self._spread(self._few.pop(resource, {}))
        return column


def _roomy(column: Numbers, rows: int) -> Numbers:
    return np.concatenate((column, np.zeros(rows + 1 - len(column), np.int64)))
