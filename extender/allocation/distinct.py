"""Numbers without those that are there twice, in order.

``np.unique`` alone, and what is made of it, imports numpy's masked arrays: 6 MB, and 30 ms of the first call.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", bound=np.generic)
Whole = NDArray[np.signedinteger[Any]]


def distinct(numbers: NDArray[N]) -> NDArray[N]:
    """Return each of *numbers* once, the least first."""
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def either(left: Whole, right: Whole) -> NDArray[np.int64]:
    """Return what is in *left* or *right*, each once, the least first: int64[n]."""
    return distinct(np.concatenate((left, right), dtype=np.int64))
