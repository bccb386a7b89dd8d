"""Names of nodes, thousands in a request, decoded only when somebody reads them."""

from collections.abc import Iterator, Sequence
from operator import eq
from typing import Final, overload

import numpy as np
import orjson
from numpy.typing import NDArray

QUOTE, COMMA, SPACE = b'", '
APART: Final = len('","') - 1

Positions = NDArray[np.intp]


class Names(Sequence[str]):
    """The strings of a JSON array, and that array as it was written, or is when somebody wants it.

    *quotes* are the positions of all quotes in an array of plain strings, which may come without being decoded.
    """

    __slots__ = ("_decoded", "_json", "_length", "quotes")

    def __init__(self, json: bytes | None, decoded: list[str] | None = None, quotes: Positions | None = None) -> None:
        self._json, self._decoded, self.quotes = json, decoded, quotes
        self._length = len(decoded or ()) if quotes is None else len(quotes) // 2

    @property
    def json(self) -> bytes:
        """The array."""
        if self._json is None:
            self._json = orjson.dumps(self._decoded)
        return self._json

    @property
    def decoded(self) -> list[str]:
        """All names."""
        if self._decoded is None:
            names: list[str] = orjson.loads(self.json)
            self._decoded = names
        return self._decoded

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.decoded[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.decoded)

    def __contains__(self, name: object) -> bool:
        if self._decoded is None and isinstance(name, str):
            return f'"{name}"'.encode() in self.json
        return name in self.decoded

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | Names):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # a long list is no key

    def __repr__(self) -> str:
        return f"Names({self.decoded!r})"


def plain_names(json: bytes) -> Names | None:
    """Take *json*, from its opening bracket to its closing one, for an array of plain strings; None where it is not.

    Plain is ASCII without escapes, commas or control characters, and nothing between two strings but a comma.
    """
    if not (json.startswith(b'["') and json.endswith(b'"]') and json.isascii()) or b"\\" in json:
        return None
    letters = np.frombuffer(json, np.uint8)
    quotes = np.flatnonzero(letters == QUOTE)
    closing, opening = quotes[1:-1:2], quotes[2::2]
    is_even = len(quotes) % 2 == 0
    if not is_even or (opening - closing != APART).any() or (letters[closing + 1] != COMMA).any():
        return None
    has_commas = np.count_nonzero(letters == COMMA) != len(closing)
    return None if has_commas or letters.min() < SPACE else Names(json, quotes=quotes)
