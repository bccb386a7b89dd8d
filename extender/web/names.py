"""Names of nodes, thousands in a request, decoded only when somebody reads them."""

from collections.abc import Iterator, Sequence
from itertools import compress
from operator import eq
from typing import Final, overload

import numpy as np
import orjson
from numpy.typing import NDArray

QUOTE, COMMA, SPACE = b'", '
# Letters that are looked at at once: few enough for the processor's nearest cache.
CHUNK: Final = 1 << 16
OVERLAP: Final = len('",","') - 1

Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]


class Names(Sequence[str]):
    """The strings of a JSON array, and that array as it was written, or is when somebody wants it.

    *plain* is how many there are in an array of plain strings, which may come without being decoded.
    """

    __slots__ = ("_decoded", "_json", "_length", "_quotes", "is_plain")

    def __init__(self, json: bytes | None, decoded: list[str] | None = None, plain: int | None = None) -> None:
        self._json, self._decoded = json, decoded
        self._length = len(decoded or ()) if plain is None else plain
        self._quotes: Positions | None = None
        self.is_plain = plain is not None

    @property
    def json(self) -> bytes:
        """The array."""
        if self._json is None:
            self._json = orjson.dumps(self._decoded)
        return self._json

    @property
    def quotes(self) -> Positions:
        """The positions of all quotes, where the strings are plain."""
        if self._quotes is None:
            self._quotes = (np.frombuffer(self.json, np.uint8) == QUOTE).nonzero()[0]
        return self._quotes

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
        if not self.is_plain:
            return Names(None, list(compress(self.decoded, flags.tolist())))
        opening = self.quotes[0::2]
        # From each opening quote to before the next one, or the end.
        letters = np.frombuffer(self.json, np.uint8)[1:][np.repeat(flags, np.diff(opening, append=len(self.json)))]
        return Names(b"[" + letters[:-1].tobytes() + b"]", plain=int(np.count_nonzero(flags)))

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
        if isinstance(other, Names) and self.is_plain and other.is_plain:
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
    is_array = json.startswith(b'["') and json.endswith(b'"]')
    if not is_array or b"\\" in json or json[2:3] == b"," or json[-3:-2] == b",":
        return None
    letters = np.frombuffer(json, np.int8)
    quotes = commas = between = 0
    for start in range(0, len(letters), CHUNK):
        # And the first of the next chunk: what stands between two strings may begin in one and end in the other.
        part = letters[start : start + CHUNK + OVERLAP]
        is_quote, is_comma = part == QUOTE, part == COMMA
        is_between = is_quote[:-2] & is_comma[1:-1] & is_quote[2:]
        # Between two such there is a string; and what is no ASCII is less than nothing here.
        if part.min() < SPACE or (is_between[:-2] & is_between[2:]).any():
            return None
        quotes += int(np.count_nonzero(is_quote[:CHUNK]))
        commas += int(np.count_nonzero(is_comma[:CHUNK]))
        between += int(np.count_nonzero(is_between[:CHUNK]))
    # The first quote, the last, and two at each comma: there is no other.
    is_plain = between == commas and quotes == 2 * (commas + 1)
    return Names(json, plain=commas + 1) if is_plain else None
