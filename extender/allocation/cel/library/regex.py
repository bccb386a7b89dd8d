"""Regular expressions: RE2, whose time is linear in the text whatever the pattern."""

from collections.abc import Iterator
from itertools import islice

from re2 import _re2

from extender.allocation.cel.limits import CHARACTERS_PER_STEP, Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.patterns import Expression, expression_of
from extender.allocation.cel.types import BOOL, INT, STRING, list_of
from extender.allocation.cel.values import writable

NAMES = frozenset(("matches", "find", "findAll"))
# Where the states are too many to be kept, each byte meets each instruction: so many of these meetings cost a step.
MEETINGS_PER_STEP = 16
# What it costs beside to cut out a match.
MATCH = 10
ANYWHERE = _re2.RE2.Anchor.UNANCHORED
NOWHERE = (-1, -1)


def matches(budget: Budget, text: str, pattern: str) -> bool:
    expression, raw = expression_of(budget, pattern), _bytes_of(text)
    return _next(budget, raw, 0, expression) != NOWHERE


def find(budget: Budget, text: str, pattern: str) -> str:
    return next(_found(budget, text, expression_of(budget, pattern)), "")


def find_all(budget: Budget, text: str, pattern: str, count: int = -1) -> tuple[str, ...]:
    found = _found(budget, text, expression_of(budget, pattern))
    return tuple(found if count < 0 else islice(found, count))


def _bytes_of(text: str) -> bytes:
    return text.encode() if text.isascii() else writable(text).encode()


def _price(expression: Expression, count: int) -> int:
    """Return the steps of a search that may look at *count* bytes."""
    return 1 + count // CHARACTERS_PER_STEP + count * expression.size // MEETINGS_PER_STEP


def _next(budget: Budget, raw: bytes, start: int, expression: Expression) -> tuple[int, int]:
    """Return where the next match begins and ends; to look for it may take a look at all that is left."""
    while True:
        budget.spend(_price(expression, len(raw) - start))
        found: tuple[int, int] = expression.regexp.Match(ANYWHERE, raw, start, len(raw))[0]
        start = found[0]
        if not 0 <= start < len(raw) or not _is_amid(raw[start]):
            return found
        # RE2 sees bytes: to it two within a character are no boundary of a word, where Go sees no place at all.
        while start < len(raw) and _is_amid(raw[start]):
            start += 1


def _is_amid(byte: int) -> bool:
    """Tell whether a byte of UTF-8 goes on with a character."""
    return byte & 0xC0 == 0x80


def _found(budget: Budget, text: str, expression: Expression) -> Iterator[str]:
    """Yield what is found."""
    raw = _bytes_of(text)
    start, last, mark, characters = 0, -1, 0, 0
    while True:
        budget.spend(MATCH)
        begin, end = _next(budget, raw, start, expression)
        if begin < 0:
            return
        # Go takes no empty match right after another one.
        if not begin == end == last:
            first = characters + _re2.BytesToCharLen(raw, mark, begin)
            mark, characters = end, first + _re2.BytesToCharLen(raw, begin, end)
            yield text[first:characters]
        if start == len(raw):
            return
        start, last = end if end > start else start + _re2.CharLenToBytes(raw, start, 1), end


def overloads() -> Iterator[Overload]:
    pair = (STRING, STRING)
    yield metered(function("matches", pair, BOOL, matches))
    yield metered(method("matches", pair, BOOL, matches))
    yield metered(method("find", pair, STRING, find))
    yield metered(method("findAll", pair, list_of(STRING), find_all))
    yield metered(method("findAll", (*pair, INT), list_of(STRING), find_all))
