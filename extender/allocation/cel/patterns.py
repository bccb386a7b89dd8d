"""Regular expressions as RE2 builds them: paid for by what that takes, and kept within a bound for all selectors."""

import re
from collections import OrderedDict
from functools import cache
from typing import Any, Final, NamedTuple

from re2 import Options, _re2

from extender.allocation.cel.dialect import re2_of
from extender.allocation.cel.errors import Exhausted, Failed
from extender.allocation.cel.limits import MAX_TEXT, Budget


class Tier(NamedTuple):
    """How many bytes an expression may take, and the steps that it costs to try, beside what is built."""

    memory: int
    steps: int


# That an expression does not fit is found out in a time that grows with the room: the small one is tried first. The
# last holds a hundred letters of all alphabets, where upstream has no bound but that of a pattern's length.
TIERS: Final = (Tier(1 << 16, 0), Tier(1 << 20, 60_000), Tier(1 << 22, 350_000))
# What all take that are kept, at most: bytes.
ROOM: Final = 1 << 24
# Expressions that one evaluation has at hand, each of them paid for once.
AT_HAND: Final = 256
# Whether a pattern is one is told without room for what it makes.
UNBUILT: Final = 1 << 13
# Steps that are spent on that in one text. What is left is looked at when it is needed first.
CHECKED: Final = 100_000
# Steps to read a pattern at all, a character, a class of Unicode's, a repetition, and a set of characters in which no
# case is told apart; and to build one instruction.
PATTERN, CHARACTER, CLASS, REPETITION, FOLDED, INSTRUCTION = 50, 2, 600, 3, 250, 2
# What takes more to read is too large.
MOST: Final = 200_000
TOO_LARGE: Final = (
    f"a regular expression takes more than {TIERS[-1].memory >> 20} MB, or more than {MOST} steps to read"
)
# More than a thousand are none: the pattern is refused, or they are the number of a character.
REPETITIONS: Final = re.compile(r"\{([0-9]{0,4},?[0-9]{0,4})\}")
MOST_REPEATED: Final = 1000
FOLDING: Final = re.compile(r"\(\?[a-zA-Z]*i")
Regexp = Any  # the module re2 has no types


class Expression(NamedTuple):
    """A pattern that is built. *size*: its instructions; *price*: what it costs to have it."""

    regexp: Regexp
    size: int
    price: int
    memory: int


class Shelf:
    """The expressions that were needed last: of more than ROOM bytes the first are forgotten."""

    def __init__(self) -> None:
        self.taken = 0
        self._known: OrderedDict[str, Expression] = OrderedDict()

    def get(self, pattern: str) -> Expression | None:
        """Return what was built, which is needed now."""
        if pattern in self._known:
            self._known.move_to_end(pattern)
        return self._known.get(pattern)

    def put(self, pattern: str, expression: Expression) -> None:
        """Keep what was not known. What no literal can be is not asked for again."""
        if len(pattern) > MAX_TEXT:
            return
        self._known[pattern] = expression
        self.taken += expression.memory
        while self.taken > ROOM:
            self.taken -= self._known.popitem(last=False)[1].memory


_SHELF: Final = Shelf()


def expression_of(budget: Budget, pattern: str) -> Expression:
    """Return the expression of *pattern*; in each evaluation it is paid for once, whoever has built it before."""
    known = budget.expressions.get(pattern)
    if known is None:
        if len(budget.expressions) >= AT_HAND:
            budget.expressions.clear()
        known = budget.expressions[pattern] = _paid(budget, pattern)
    return known


def check(budget: Budget, pattern: str) -> None:
    """Raise Failed where *pattern* is none, as far as *budget* lasts."""
    given = re2_of(pattern)
    steps = weight(given)
    if steps <= budget.left:
        budget.spend(steps)
        _regexp(given, UNBUILT)


def weight(pattern: str) -> int:
    """Return about how many steps it takes to read *pattern*, built or not."""
    steps = PATTERN + CHARACTER * len(pattern)
    if "\\" in pattern:
        steps += CLASS * (pattern.count("\\p") + pattern.count("\\P"))
    if "{" in pattern:
        numbers = ",".join(REPETITIONS.findall(pattern)).split(",")
        steps += REPETITION * sum(int(number) for number in numbers if number and int(number) <= MOST_REPEATED)
    if "(?" in pattern and FOLDING.search(pattern):
        steps = 4 * steps + FOLDED * pattern.count("[")
    return steps


def _paid(budget: Budget, pattern: str) -> Expression:
    known = _SHELF.get(pattern)
    if known is not None:
        budget.spend(known.price)
        return known
    given, steps = _read(budget, pattern)
    for tier in TIERS:
        budget.spend(tier.steps)
        regexp = _regexp(given, tier.memory)
        steps += tier.steps
        if regexp is not None:
            size = regexp.ProgramSize()
            budget.spend(INSTRUCTION * size)
            built = Expression(regexp, size, steps + INSTRUCTION * size, tier.memory)
            _SHELF.put(pattern, built)
            return built
    raise Exhausted(TOO_LARGE)


def _read(budget: Budget, pattern: str) -> tuple[str, int]:
    """Pay for reading *pattern*; return what RE2 is given for it, and what was paid."""
    given, paid = pattern, 0
    for put in (str, re2_of):
        given = put(given)
        steps = max(weight(given), paid)
        if steps > MOST:
            raise Exhausted(TOO_LARGE)
        budget.spend(steps - paid)
        paid = steps
    return given, paid


@cache
def _options(memory: int) -> Options:
    options = Options()
    options.log_errors = False
    # What groups match is never asked for.
    options.never_capture = True
    options.max_mem = memory
    return options


def _regexp(pattern: str, memory: int) -> Regexp:
    """Build *pattern*, None where that takes more than *memory* bytes; raise Failed where it is none."""
    try:
        regexp = _re2.RE2(pattern.encode(), _options(memory))
    except UnicodeError as error:
        raise Failed(f"error parsing regexp: {error}") from None
    if regexp.ok():
        return regexp
    reason = regexp.error().decode("utf-8", "replace")
    if reason.startswith("pattern too large"):
        return None
    raise Failed(f"error parsing regexp: {reason}")
