"""Regular expressions: RE2, whose time is linear in the text whatever the pattern."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import re2

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import CHARACTERS_PER_STEP, Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.types import BOOL, INT, STRING, list_of

MEMORY = 8 << 20
# Upstream weighs a pattern by a quarter of its length, and multiplies with the text's.
PATTERN_PER_STEP = 4


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - the module re2 has no types
    """Compile a pattern; raise Failed where it is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError) as error:
        raise Failed(f"error parsing regexp: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def prepared(budget: Budget, text: str, pattern: str) -> Any:  # noqa: ANN401 - the module re2 has no types
    """Account for a search, and return the compiled pattern."""
    budget.spend((1 + len(text) // CHARACTERS_PER_STEP) * (1 + len(pattern) // PATTERN_PER_STEP))
    return compiled(pattern)


def matches(budget: Budget, text: str, pattern: str) -> bool:
    return prepared(budget, text, pattern).search(text) is not None


def find(budget: Budget, text: str, pattern: str) -> str:
    found = prepared(budget, text, pattern).search(text)
    return found[0] if found else ""


def find_all(budget: Budget, text: str, pattern: str, count: int = -1) -> tuple[str, ...]:
    expression = prepared(budget, text, pattern)
    found: list[str] = []
    end = -1
    for match in expression.finditer(text):
        if 0 <= count <= len(found):
            break
        # Go takes no empty match right after another one.
        if match.start() == match.end() == end:
            continue
        end = match.end()
        budget.spend(1)
        found.append(match[0])
    return tuple(found)


def overloads() -> Iterator[Overload]:
    pair = (STRING, STRING)
    yield metered(function("matches", pair, BOOL, matches))
    yield metered(method("matches", pair, BOOL, matches))
    yield metered(method("find", pair, STRING, find))
    yield metered(method("findAll", pair, list_of(STRING), find_all))
    yield metered(method("findAll", (*pair, INT), list_of(STRING), find_all))
