"""Everything about a question and a node that a search looks up and never changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from extender.allocation.board import Board
from extender.allocation.cel import Verdict
from extender.allocation.counters import Balance, balance_of
from extender.allocation.eligibility import Eligible, Judge, Met, eligible, size_of
from extender.allocation.features import Features
from extender.allocation.masks import mask_of, places_of
from extender.allocation.pools import Pool
from extender.allocation.question import RESULTS, Ask, At, ClaimQuestion, Question, Rule, Slot
from extender.allocation.usage import Usage
from extender.allocation.values import Values
from extender.allocation.work import Toll, Work
from extender.model.names import DeviceKey
from extender.model.taint import evicts

UsageOf = Callable[[DeviceKey], Usage]
# Candidates that are examined for an ask in one piece of work: half a millisecond, about.
EXAMINED: Final = 256
# The name of what is told of devices, which none of them publishes or derives.
TOLD: Final = ""


class TooMany(Met):
    """A claim cannot be answered within the number of results that it may have."""


@dataclass(slots=True)
class Situation:
    """A question before a board. *asks* and *eligible* are by place in the question, *values* by claim and rule.

    *given* is for preferences: who was given which places already, before the ask for which sets are ordered.
    """

    question: Question
    board: Board
    usages: tuple[Usage, ...]
    asks: Mapping[At, Ask]
    eligible: dict[At, Eligible]
    values: tuple[tuple[Values, ...], ...]
    covered: Mapping[At, tuple[int, ...]]
    usage_of: UsageOf
    judge: Judge
    shareable: int
    shared: int
    given: tuple[tuple[At, int], ...] = ()
    _balances: dict[int, Balance] = field(default_factory=dict)

    @property
    def unheld(self) -> int:
        """The mask of the candidates that nobody holds."""
        return mask_of(place for place, usage in enumerate(self.usages) if not usage.is_held)

    def bound(self, keys: Mapping[At, Sequence[object]]) -> "Situation":
        """Return the same where all devices of each ask in *keys*, which has a key for each candidate, have one key."""
        rules = [list(part.rules) for part in self.question.claims]
        values, covered = [list(known) for known in self.values], dict(self.covered)
        for at, told in keys.items():
            rule = Rule(attribute=TOLD, is_match=True, requests=frozenset((self.asks[at].name,)))
            covered[at] = (*covered[at], len(rules[at.claim]))
            rules[at.claim].append(rule)
            values[at.claim].append(Values.told(rule, self.board, self.question.features, told))
        parts = zip(self.question.claims, rules, strict=True)
        claims = tuple(replace(part, rules=tuple(known)) for part, known in parts)
        question = replace(self.question, claims=claims)
        return replace(self, question=question, values=tuple(map(tuple, values)), covered=covered)

    def is_shareable(self, place: int) -> bool:
        """Tell whether several may have the candidate at once."""
        return bool(self.shareable >> place & 1)

    def is_shared(self, place: int) -> bool:
        """Tell whether somebody has a share of the candidate already."""
        return bool(self.shared >> place & 1)

    def evicting(self, at: At, mask: int) -> int:
        """Return those of *mask* for which pods that are given them by this ask are evicted, sooner or later."""
        tolerations, candidates = self.asks[at].tolerations, self.board.candidates
        among = places_of(self.board.evicting & mask)
        return mask_of(place for place in among if evicts(candidates[place].taints, tolerations))

    def passes(self, ask: Ask, place: int) -> bool:
        """Tell whether a candidate passes all tests of *ask*."""
        return all(
            test.selector is not None and self.judge(test.selector)[place].verdict is Verdict.MATCH
            for test in ask.tests
        )

    def size(self, at: At) -> int:
        """Return how many devices an ask takes."""
        return size_of(self.asks[at], self.eligible[at])

    def needed(self, at: At) -> int:
        """Return how many devices an ask needs: who takes all there is has nothing where there is none."""
        return max(self.size(at), int(self.asks[at].takes_all))

    def slots(self, claim: int) -> tuple[Slot, ...]:
        return self.question.claims[claim].slots

    def balance(self, pool: int) -> Balance:
        """Return the balance of a pool: devices on any node count, as long as anybody holds them."""
        opened = self._balances.get(pool)
        if opened is None:
            opened = self._balances[pool] = self._opened(self.board.pools[pool])
        return opened.copy()

    def _opened(self, seen: Pool) -> Balance:
        held = (
            device
            for item in (*seen.here, *seen.elsewhere)
            for device in item.devices
            if device.traits.consumes_counters and self.usage_of(DeviceKey(item.driver, item.pool, device.name)).is_held
        )
        return balance_of(seen, held)


def examining(
    question: Question, board: Board, usages: tuple[Usage, ...], usage_of: UsageOf, judge: Judge
) -> Work[Situation]:
    """Examine *board* for every ask of *question*. Raise Met where upstream refuses before it searches.

    Piece by piece: a claim may have hundreds of asks.
    """
    found = yield from _eligible(question, board, usages, judge)
    values = tuple(tuple(_values(part, board, question.features)) for part in question.claims)
    for at, ask in question.asks.items():
        for rule in question.covered[at] if ask.derivations else ():
            yield from values[at.claim][rule].deriving(ask, places_of(found[at].free))
    return Situation(
        question=question,
        board=board,
        usages=usages,
        asks=question.asks,
        eligible=found,
        values=values,
        covered=question.covered,
        usage_of=usage_of,
        judge=judge,
        shareable=board.shareable if question.features.consumable_capacity else 0,
        shared=mask_of(place for place, usage in enumerate(usages) if usage.shares > 0 or usage.consumed),
    )


def _values(part: ClaimQuestion, board: Board, features: Features) -> Iterator[Values]:
    """Yield the values of each rule: what is published under one name is looked up, and kept, once."""
    derived = {item.name for slot in part.slots for ask in slot.asks for item in ask.derivations}
    known: dict[str, Values] = {}
    for rule in part.rules:
        fresh = Values(rule, board, features)
        yield fresh if rule.attribute in derived else replace(known.setdefault(rule.attribute, fresh), rule=rule)


def _eligible(question: Question, board: Board, usages: tuple[Usage, ...], judge: Judge) -> Work[dict[At, Eligible]]:
    """Tell which devices each ask could be given, asks alike together."""
    found: dict[At, Eligible] = {}
    toll = Toll(EXAMINED)
    for at, ask in question.asks.items():
        known = found.get(question.alike[at])
        # Errors are told by the name of the ask.
        if known is not None and not known.errors:
            found[at] = known
        else:
            found[at] = eligible(ask, board, usages, judge, question.features)
            yield from toll.paid(len(usages))
        if question.may_crowd:
            _check_results(question, at, found)
    return found


def _check_results(question: Question, at: At, found: dict[At, Eligible]) -> None:
    """Raise TooMany where the slots examined so far need more results than a claim may have, whatever is chosen."""
    part = question.claims[at.claim]
    if at != question.slots[at.claim, at.slot][-1]:
        return
    examined = (question.slots[at.claim, slot] for slot in range(at.slot + 1))
    least = sum(min(size_of(question.asks[each], found[each]) for each in places) for places in examined)
    if least > RESULTS:
        where = f"claim {part.claim.key.name}, request {part.slots[at.slot].name}"
        raise TooMany(
            f"{where}: {least} devices are more than the {RESULTS} of a claim",
            is_local=any(ask.takes_all for wanted in part.slots for ask in wanted.asks),
        )
