"""The names of a cluster's nodes, found in JSON without making a string of each.

Rows of eight-byte words, gathered from the bytes at every opening quote, are hashed, looked up in an open-addressed
table and compared in full.
"""

from collections.abc import Sequence
from itertools import repeat
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.distinct import distinct
from extender.web.names import Names

# With fewer names a dictionary is faster.
WORTHWHILE: Final = 150
WORD: Final = 8
UNKNOWN: Final = -1
SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)

Rows = NDArray[np.int32]
Words = NDArray[np.uint64]


class NameTable:
    """Finds the rows of names, each of which is there once."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._row_of = {name: row for row, name in enumerate(self.names)}
        # Zeros end names here: with some in a name no hash would tell it from another. No node has such a name.
        is_odd = any("\0" in name for name in self.names)
        encoded = [] if is_odd else [name.encode() for name in self.names]
        self._width = -(-max(map(len, (*encoded, b"-"))) // WORD) * WORD
        self._words = _words_of(b"".join(name.ljust(self._width, b"\0") for name in encoded), self._width)
        # uint64[lengths, words]: what is left of a gathered row once everything behind the name is cut off.
        self._masks = _words_of(np.tri(self._width + 1, self._width, -1, np.uint8) * 255, self._width)
        self._multipliers = _distinguishing(self._words)
        self._bits = max(10, (4 * len(encoded)).bit_length())
        self._hashes, self._rows, self._longest_probe = self._table()

    def rows(self, names: Sequence[str]) -> Rows:
        """Return the row of each name, UNKNOWN where there is none: int32[names]."""
        if not isinstance(names, Names) or not names.is_plain or len(names) < WORTHWHILE or not len(self._words):
            return np.fromiter(map(self._row_of.get, names, repeat(UNKNOWN)), np.int32, len(names))
        padded = names.json + bytes(self._width)
        starts = names.quotes[0::2] + 1
        lengths = names.quotes[1::2] - starts
        overlapping = np.ndarray((len(padded) - self._width + 1,), f"V{self._width}", padded, 0, (1,))
        words = overlapping[starts].view(np.uint64).reshape(len(starts), -1)
        words &= self._masks.take(np.minimum(lengths, self._width), axis=0)
        rows = self._probed(words)
        rows[lengths > self._width] = UNKNOWN
        return rows

    def _probed(self, words: Words) -> Rows:
        hashes = _hash(words, self._multipliers)
        slots = self._slots(hashes)
        wrong = (self._hashes.take(slots) != hashes).nonzero()[0]
        for _ in range(self._longest_probe):
            if not len(wrong):
                break
            slots[wrong] += 1
            wrong = wrong[self._hashes.take(slots[wrong]) != hashes[wrong]]
        rows = self._rows.take(slots)
        rows[wrong] = UNKNOWN
        # A hash may be that of another name by chance; row -1 is compared with some row and stays -1.
        is_other = self._words.take(rows, axis=0, mode="wrap") != words
        # Most often all names are known, and that is told ten times as fast as which are not.
        if is_other.any():
            rows[is_other.any(axis=1)] = UNKNOWN
        return rows

    def _slots(self, hashes: Words) -> NDArray[np.intp]:
        return (hashes >> np.uint64(64 - self._bits)).astype(np.intp)

    def _table(self) -> tuple[Words, Rows, int]:
        """Place every hash at its slot or after it; return the table, and how far the farthest had to go."""
        hashes = _hash(self._words, self._multipliers)
        slots = self._slots(hashes)
        size = (1 << self._bits) + len(hashes)
        table, rows = np.zeros(size, np.uint64), np.full(size, UNKNOWN, np.int32)
        homeless, distance = np.arange(len(hashes)), -1
        while len(homeless):
            # Of those that want the same slot the first gets it, where it is free; the others go one further.
            _, first = np.unique(slots[homeless], return_index=True)
            placed = homeless[first]
            placed = placed[rows[slots[placed]] == UNKNOWN]
            table[slots[placed]], rows[slots[placed]] = hashes[placed], placed
            homeless = np.setdiff1d(homeless, placed, assume_unique=True)
            slots[homeless] += 1
            distance += 1
        return table, rows, max(distance, 0)


def _words_of(data: bytes | NDArray[np.uint8], width: int) -> Words:
    raw = data if isinstance(data, bytes) else data.tobytes()
    return np.frombuffer(raw, np.uint64).reshape(-1, width // WORD)


def _hash(words: Words, multipliers: Words) -> Words:
    hashes: Words = words @ multipliers
    hashes ^= hashes >> np.uint64(32)
    hashes *= SPREAD
    return hashes


def _distinguishing(words: Words) -> Words:
    """Find odd multipliers with which no two names have the same hash."""
    drawn = Random(0)  # noqa: S311 - of hashes, not of secrets; numpy's would be 6 MB
    while True:
        multipliers: Words = np.array([drawn.getrandbits(64) | 1 for _ in range(words.shape[1])], np.uint64)
        if len(distinct(_hash(words, multipliers))) == len(words):
            return multipliers
