"""Rows that agree in some columns, found without looking at their values."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.allocation.columns import Codes, Column
from extender.allocation.distinct import distinct
from extender.model.frozen import dataclass

# Up to so many possible combinations a table of all of them is quicker than sorting the rows.
TABLE = 1 << 20
# And up to so many for each row: a question of hundreds of asks has a table for every few of these.
SPARSE = 1 << 7


@dataclass(frozen=True, slots=True)
class Projection:
    """The distinct combinations of some columns. first: int64[combinations], a row of each; codes: int32[rows]."""

    first: NDArray[np.int64]
    codes: Codes


def project(columns: Sequence[Column[Hashable]], rows: int) -> Projection:
    """Group *rows* rows by their values in *columns*, all of them in one group where there are no columns."""
    keys, span = np.zeros(rows, np.int64), 1
    for column in columns:
        size = len(column.dictionary.values)
        if span * size > TABLE:
            keys, span = _dense(keys, span)
        keys = keys * size + column.codes
        span *= size
    codes, count = _dense(keys, span)
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(rows - 1, -1, -1)
    return Projection(first, codes.astype(np.int32))


def _dense(keys: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Give each key that occurs a number, in their order, and count them."""
    if not keys.size:
        return keys, 0
    if span > TABLE:
        found, codes = np.unique(keys, return_inverse=True)
        return codes, len(found)
    if span > SPARSE * len(keys):
        found = distinct(keys)
        return np.searchsorted(found, keys), len(found)
    occurs = np.zeros(span, np.bool_)
    occurs[keys] = True
    ranks = np.cumsum(occurs)
    return ranks[keys] - 1, int(ranks[-1])
