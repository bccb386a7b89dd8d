"""Amounts of resources in columns, a row for each node.

Behind the last is a row of nobody, -1, in which nothing ever stands.
"""

import numpy as np
from numpy.typing import NDArray

from extender.model.quantity import Amounts
from extender.state.seats import Rows

Numbers = NDArray[np.int64]


class Table:
    """An int64 column of *rows* for each resource that was seen."""

    def __init__(self, rows: int) -> None:
        self._columns: dict[str, Numbers] = {}
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
            self._column(resource)[row] += sign * number

    def add_all(self, rows: Rows, resource: str, numbers: Numbers) -> None:
        """Add to many rows at once, to some of them more than once."""
        np.add.at(self._column(resource), rows, numbers)

    def of(self, resource: str, rows: Rows) -> Numbers:
        """Return what stands in *rows*: int64[rows]."""
        column = self._columns.get(resource)
        return np.zeros(len(rows), np.int64) if column is None else column[rows]

    def at(self, row: int) -> dict[str, int]:
        """Return what stands in one row, by resource."""
        found = ((resource, int(column[row])) for resource, column in self._columns.items())
        return {resource: number for resource, number in found if number}

    def _column(self, resource: str) -> Numbers:
        column = self._columns.get(resource)
        if column is None:
            column = self._columns[resource] = _roomy(np.zeros(0, np.int64), self._rows)
        return column


def _roomy(column: Numbers, rows: int) -> Numbers:
    return np.concatenate((column, np.zeros(rows + 1 - len(column), np.int64)))
