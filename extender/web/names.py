"""Names of nodes, thousands in a request, decoded only when somebody reads them."""

from collections.abc import Iterator, Sequence
from itertools import compress
from operator import eq
from typing import Final, overload

import numpy as np
import orjson
from numpy.typing import NDArray

QUOTE, COMMA, SPACE = b'", '
APART: Final = len('","') - 1

Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]


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

    def only(self, flags: Flags) -> "Names":
        """Leave the names with a flag."""
        if flags.all():
            return self
        if self.quotes is None:
            return Names(None, list(compress(self.decoded, flags.tolist())))
        opening, closing = self.quotes[0::2], self.quotes[1::2]
        # From each opening quote to before the next one, or the end.
        letters = np.frombuffer(self.json, np.uint8)[1:][np.repeat(flags, np.diff(opening, append=len(self.json)))]
        lengths = (closing - opening)[flags]
        starts = np.cumsum(lengths + APART) - lengths - APART + 1
        quotes = np.stack((starts, starts + lengths), axis=1).reshape(-1)
        return Names(b"[" + letters[:-1].tobytes() + b"]", quotes=quotes)

    def quoted(self) -> list[bytes]:
        """Return each name as it stands in an array of plain strings, which hold no commas."""
        return self.json[1:-1].split(b",")

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
        if isinstance(other, Names) and self.quotes is not None and other.quotes is not None:
            # Plain strings can be written in one way only.
            return self.json == other.json
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # a long list is no key

    def __repr__(self) -> str:
        return f"Names({self.decoded!r})"


def only(names: Sequence[str], flags: Flags) -> Sequence[str]:
    """Leave the names with a flag."""
    return names.only(flags) if isinstance(names, Names) else list(compress(names, flags.tolist()))


def plain_names(json: bytes) -> Names | None:
    """Take *json*, from its opening bracket to its closing one, for an array of plain strings; None where it is not.

    Plain is ASCII without escapes, commas or control characters, and nothing between two strings but a comma.
    """
    if not (json.startswith(b'["') and json.endswith(b'"]')) or b"\\" in json:
        return None
    letters = np.frombuffer(json, np.int8)
    quotes = (letters == QUOTE).nonzero()[0]
    closing, opening = quotes[1:-1:2], quotes[2::2]
    is_even = len(quotes) % 2 == 0
    if not is_even or (opening - closing != APART).any() or (letters[closing + 1] != COMMA).any():
        return None
    has_commas = np.count_nonzero(letters == COMMA) != len(closing)
    # What is no ASCII is less than nothing here.
    return None if has_commas or letters.min() < SPACE else Names(json, quotes=quotes)
