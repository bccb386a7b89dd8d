"""Names of nodes, thousands in a request, decoded only when somebody reads them."""

from collections.abc import Sequence
from operator import eq
from typing import overload


class Names(Sequence[str]):
    """The strings of a JSON array, and that array as it was written or will be."""

    __slots__ = ("_decoded", "_length", "json")

    def __init__(self, json: bytes, length: int, decoded: list[str] | None = None) -> None:
        self.json, self._length, self._decoded = json, length, decoded

    @property
    def decoded(self) -> list[str]:
        """All names."""
        if self._decoded is None:
            # Only arrays without escapes come without their strings.
            self._decoded = self.json[2:-2].decode("ascii").split('","')
        return self._decoded

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.decoded[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | Names):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # a long list is no key

    def __repr__(self) -> str:
        return f"Names({self.decoded!r})"


def plain_names(json: bytes) -> Names | None:
    """Take *json*, from its opening bracket to its closing one, for an array of plain strings; None where it is not.

    As many quotes as ``","`` leaves room for, no escape, ASCII: then every part between them is one name.
    """
    if not (json.startswith(b'["') and json.endswith(b'"]') and json.isascii()) or b"\\" in json:
        return None
    # Counted from within the first name: one that is a comma would otherwise make a separator with its own quotes.
    commas = json.count(b'","', 2)
    if json.count(b'"') != 2 * commas + 2 or len(json) < len(b'[""]'):
        return None
    return Names(json, commas + 1)
