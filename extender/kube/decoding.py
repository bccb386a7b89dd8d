"""JSON as Go writes it, which is more than orjson reads: what configures drivers is kept and shown as it was sent.

Go nests ten thousand levels, and lets through surrogates without their other half and bytes that are no UTF-8. One
object with such a thing must not hide all the others of its list, nor end a watch.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import orjson

from extender.model.parse.opaque import MARK

# What is cut off here has to be too deep for ``flaw_in``, whatever is around it; orjson stops at 1024 levels.
DEEPEST: Final = 500
# Half of a surrogate pair, without the other half behind it, or before it.
HALVES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
REPLACED: Final = "\ufffd"
BACKSLASH: Final = rb"\\"
# The mark as an escape, and that as a template, in which backslashes are escaped themselves.
TEMPLATE: Final = MARK.encode("unicode_escape").replace(BACKSLASH[:1], BACKSLASH)
# As long, and nothing that JSON may have in a string.
HIDDEN: Final = b"\0\0"
QUOTE, OPENS, CLOSES = b'"{}'
# The bit that makes a brace of either bracket, and leaves braces as they are.
BRACE_OF_BRACKET: Final = ord("[") ^ ord("{")


Read = Callable[[bytes], Any]


def decoded(text: bytes) -> Any:  # noqa: ANN401 - JSON may be anything
    """Read *text*; raise JSONDecodeError where Go would not have written it."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(mended(text))


def mended(text: bytes) -> bytes:
    """Return *text* with ``MARK`` for what is no character, and null for what nests too deep.

    What can be read comes back as it was. Each byte is looked at a few times, however deep it is and whatever is there.
    """
    if HIDDEN[:1] in text:
        return text
    # Whatever backslash is left begins an escape.
    hidden = text.replace(BACKSLASH, HIDDEN)
    return _unicode(_shallow(HALVES.sub(TEMPLATE, hidden)).replace(HIDDEN, BACKSLASH))


def _shallow(hidden: bytes) -> bytes:
    """Put null for each value that lies below the deepest level; all within it goes with it."""
    pieces, end = [], 0
    for opens, closes in _abysses(hidden):
        pieces.append(hidden[end:opens])
        end = closes + 1
    return b"null".join((*pieces, hidden[end:]))


def _abysses(hidden: bytes) -> Iterator[list[int]]:
    """Yield where each value below the deepest level opens, and where it closes."""
    # Without those that are escaped, every other quote opens a string, and the others close one.
    plain = np.frombuffer(hidden.replace(b'\\"', HIDDEN), np.uint8)
    is_outside = ~np.logical_xor.accumulate(plain == QUOTE)
    braces = plain | BRACE_OF_BRACKET
    places = np.flatnonzero(((braces == OPENS) | (braces == CLOSES)) & is_outside)
    depths = np.cumsum(np.where(braces[places] == OPENS, 1, -1))
    edges = places[np.diff(depths > DEEPEST, prepend=False)]
    # What does not close is cut short, and no JSON.
    yield from edges[: edges.size // 2 * 2].reshape(-1, 2).tolist()


def _unicode(text: bytes) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError:
        # What people have replaced themselves is theirs, and escaped it is the same.
        theirs = text.replace(REPLACED.encode(), REPLACED.encode("unicode_escape"))
        return theirs.decode(errors="replace").replace(REPLACED, MARK).encode()
    return text
