"""Strings: the standard functions and version 2 of cel-go's extension. Positions count characters."""

from collections.abc import Iterator

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import CHARACTERS_PER_STEP, LONG, Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.types import BOOL, INT, STRING, list_of

# What Go's strings.TrimSpace removes; Python's strip also removes the separators 0x1c to 0x1f.
SPACES = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# What Go's strconv writes for some characters in quotes.
ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
QUOTING = str.maketrans(ESCAPES)

# All of a part may be met at each of so many places, before Python searches in a way that is linear. So many of these
# meetings, of one character with another, cost a step.
PLACES, MEETINGS_PER_STEP = 2500, 1000


def out_of_range(position: int) -> Failed:
    return Failed(f"index out of range: {position}")


def searched(budget: Budget, text: str, part: str) -> None:
    """Account for a search for *part* all through *text*."""
    budget.walk(text)
    if len(text) > LONG:
        places = min(len(text) - len(part) + 1, PLACES)
        budget.spend(max(places, 0) * len(part) // MEETINGS_PER_STEP)


def contains(budget: Budget, text: str, part: str) -> bool:
    if len(text) > CHARACTERS_PER_STEP:
        searched(budget, text, part)
    return part in text


def starts_with(budget: Budget, text: str, part: str) -> bool:
    budget.walk(part)
    return text.startswith(part)


def ends_with(budget: Budget, text: str, part: str) -> bool:
    budget.walk(part)
    return text.endswith(part)


def char_at(text: str, position: int) -> str:
    if 0 <= position <= len(text):
        return text[position : position + 1]
    raise out_of_range(position)


def index_of(budget: Budget, text: str, part: str, start: int = 0) -> int:
    searched(budget, text, part)
    if start < 0:
        raise out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def last_index_of(budget: Budget, text: str, part: str) -> int:
    searched(budget, text, part)
    return _last(text, part)


def last_index_of_before(budget: Budget, text: str, part: str, start: int) -> int:
    """Find the last occurrence that begins at *start* or before."""
    searched(budget, text, part)
    if start < 0:
        raise out_of_range(start)
    if not part:
        return min(start, len(text))
    return _last(text[: start + len(part)], part) if start < len(text) else -1


def _last(text: str, part: str) -> int:
    """Find the last *part*. Python's own search from the end takes quadratic time, that from the beginning does not."""
    if len(text) < LONG:
        return text.rfind(part)
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - found - len(part)


def lower_ascii(budget: Budget, text: str) -> str:
    if len(text) > CHARACTERS_PER_STEP:
        budget.characters(len(text))
    return text.lower() if text.isascii() else text.translate(LOWER)


def upper_ascii(budget: Budget, text: str) -> str:
    if len(text) > CHARACTERS_PER_STEP:
        budget.characters(len(text))
    return text.upper() if text.isascii() else text.translate(UPPER)


def replace(budget: Budget, text: str, old: str, new: str, times: int = -1) -> str:
    searched(budget, text, old)
    count = text.count(old) if times < 0 else min(times, text.count(old))
    budget.characters(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, times if times >= 0 else -1)


def split(budget: Budget, text: str, separator: str, times: int = -1) -> tuple[str, ...]:
    """Split as Go does: at most *times* parts, none for 0, all for a negative number; "" separates characters."""
    searched(budget, text, separator)
    if times == 0:
        return ()
    parts = text.count(separator) + 1 if separator else len(text)
    budget.items(parts if times < 0 else min(parts, times))
    if separator:
        return tuple(text.split(separator, times - 1 if times > 0 else -1))
    if 0 < times < len(text):
        return (*text[: times - 1], text[times - 1 :])
    return tuple(text)


def substring(budget: Budget, text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise out_of_range(start)
    budget.characters(len(text) - start)
    return text[start:]


def substring_between(budget: Budget, text: str, start: int, end: int) -> str:
    if start > end:
        raise Failed(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise out_of_range(start)
    if not 0 <= end <= len(text):
        raise out_of_range(end)
    budget.characters(end - start)
    return text[start:end]


def trim(budget: Budget, text: str) -> str:
    budget.walk(text)
    return text.strip(SPACES)


def quote(budget: Budget, text: str) -> str:
    budget.characters(2 * len(text) + 2)
    return f'"{text.translate(QUOTING)}"'


def join(budget: Budget, parts: tuple[object, ...], separator: str = "") -> str:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise Failed("join: invalid input: not a string")
    budget.spend(1 + len(texts))
    budget.characters(sum(map(len, texts)) + len(separator) * max(len(texts) - 1, 0))
    return separator.join(texts)


def overloads() -> Iterator[Overload]:
    strings = list_of(STRING)
    for name, parameters, result, compute in (
        ("contains", (STRING, STRING), BOOL, contains),
        ("startsWith", (STRING, STRING), BOOL, starts_with),
        ("endsWith", (STRING, STRING), BOOL, ends_with),
        ("indexOf", (STRING, STRING), INT, index_of),
        ("indexOf", (STRING, STRING, INT), INT, index_of),
        ("lastIndexOf", (STRING, STRING), INT, last_index_of),
        ("lastIndexOf", (STRING, STRING, INT), INT, last_index_of_before),
        ("lowerAscii", (STRING,), STRING, lower_ascii),
        ("upperAscii", (STRING,), STRING, upper_ascii),
        ("replace", (STRING, STRING, STRING), STRING, replace),
        ("replace", (STRING, STRING, STRING, INT), STRING, replace),
        ("split", (STRING, STRING), strings, split),
        ("split", (STRING, STRING, INT), strings, split),
        ("substring", (STRING, INT), STRING, substring),
        ("substring", (STRING, INT, INT), STRING, substring_between),
        ("trim", (STRING,), STRING, trim),
        ("join", (strings,), STRING, join),
        ("join", (strings, STRING), STRING, join),
    ):
        yield metered(method(name, parameters, result, compute))
    yield method("charAt", (STRING, INT), STRING, char_at)
    yield metered(function("strings.quote", (STRING,), STRING, quote))
