"""The chips of a board: which devices are cut out of the same counters, and what is left of each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from extender.allocation.board import Board, Candidate
from extender.allocation.counters import Balance, Groups, drawn_by
from extender.allocation.masks import mask_of
from extender.allocation.pools import CounterKey
from extender.allocation.situation import Situation
from extender.model.device import Device
from extender.model.frozen import dataclass
from extender.model.quantity import Quantity
from extender.topology.partitions import Cut, Pattern, Rest

# Attributes that name a profile, without the driver's domain.
PROFILES: Final = ("profile", "partitionProfile")
# The profile of a device that has none and takes all that its chip has.
WHOLE: Final = "whole devices"
DIGITS: Final = "0123456789"
# What a pool has of each counter, by counter set.
Declared = dict[str, dict[CounterKey, int]]


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip of a pool. *cuts* is by place among the candidates; *wholes*: mask of those that take all of it."""

    name: str
    pool: int
    sets: tuple[str, ...]
    counters: tuple[CounterKey, ...]
    pattern: Pattern
    cuts: Mapping[int, int]
    wholes: int


def chips_of(board: Board) -> tuple[Chip, ...]:
    """Find the chips of *board*, in the order of their first devices."""
    declared = [_by_set(pool.counters) for pool in board.pools]
    return tuple(_chip(board, declared[pool], pool, sets, places) for pool, sets, places in _joined(board))


def rest_of(chip: Chip, situation: Situation, balance: Balance) -> Rest:
    """Return what *balance* leaves of *chip*. Who has a device without drawing from it keeps it from others too."""
    given = mask_of({place for at, place in situation.given if not situation.asks[at].is_admin})
    unheld = [0] * len(chip.pattern.cuts)
    for place, cut in chip.cuts.items():
        unheld[cut] += not (situation.usages[place].is_held or given >> place & 1)
    left = tuple(balance.left[key] for key in chip.counters)
    return chip.pattern.rest(left, tuple(balance.groups.get(name) for name in chip.sets), tuple(unheld))


def balances_of(situation: Situation, pools: Iterable[int]) -> dict[int, Balance]:
    """Return the balances of *pools*, and draw what was given in this attempt."""
    balances = {pool: situation.balance(pool) for pool in pools}
    active: set[int] = set()
    for at, place in situation.given:
        candidate = situation.board.candidates[place]
        if candidate.pool in balances and draws(situation, place, active) and not situation.asks[at].is_admin:
            balances[candidate.pool].take(candidate.device)
            active.add(place)
    return balances


def draws(situation: Situation, place: int, active: Iterable[int] = ()) -> bool:
    """Tell whether giving a candidate draws from counters: one that several may have does so once."""
    if not situation.board.candidates[place].device.traits.consumes_counters:
        return False
    return not (situation.is_shareable(place) and (situation.is_shared(place) or place in active))


def _joined(board: Board) -> Iterator[tuple[int, frozenset[str], list[int]]]:
    """Join counter sets from which one device draws together."""
    found: dict[int, tuple[set[str], list[int]]] = {}
    number_of: dict[tuple[int, str], int] = {}
    for place, candidate in enumerate(board.candidates):
        names = {item.counter_set for item in candidate.device.traits.consumes_counters}
        if not names:
            continue
        first, *others = sorted({number_of.get((candidate.pool, name), place) for name in names})
        sets, places = found.setdefault(first, (set(), []))
        places.append(place)
        for other in others:
            joined, members = found.pop(other, (set(), []))
            names |= joined
            places += members
        sets |= names
        number_of.update(dict.fromkeys(((candidate.pool, name) for name in names), first))
    for sets, places in found.values():
        yield board.candidates[places[0]].pool, frozenset(sets), places


def _by_set(counters: Iterable[tuple[CounterKey, int]]) -> Declared:
    found: Declared = {}
    for key, amount in counters:
        found.setdefault(key[0], {})[key] = amount
    return found


def _chip(board: Board, known: Declared, pool: int, names: frozenset[str], places: list[int]) -> Chip:
    sets = tuple(sorted(names))
    declared = {key: amount for name in sets for key, amount in known.get(name, {}).items()}
    counters = tuple(sorted(declared))
    whole = tuple(declared[key] for key in counters)
    made = {place: _cut(board.candidates[place], sets, counters, whole) for place in places}
    listed = sorted(set(made.values()), key=_rank)
    numbers = {cut: index for index, cut in enumerate(listed)}
    cuts = {place: numbers[cut] for place, cut in sorted(made.items())}
    copies = Counter(cuts.values())
    pattern = Pattern(
        whole,
        tuple(cut._replace(copies=copies[index]) for index, cut in enumerate(listed)),
        len(sets),
    )
    wholes = [place for place, cut in made.items() if cut.draws == whole]
    named = board.candidates[min(wholes)].key.device if wholes else ", ".join(sets)
    return Chip(named, pool, sets, counters, pattern, cuts, mask_of(wholes))


def _cut(candidate: Candidate, sets: tuple[str, ...], counters: tuple[CounterKey, ...], whole: tuple[int, ...]) -> Cut:
    drawn = drawn_by(candidate.device.traits)
    groups: dict[str, Groups] = {}
    for item in candidate.device.traits.consumes_counters:
        groups[item.counter_set] = frozenset(item.compatibility_groups)
    draws = tuple(drawn.get(key, 0) for key in counters)
    profile = _published(candidate.device) or (WHOLE if draws == whole else _drawn(drawn))
    return Cut(profile, draws, tuple(groups.get(name) for name in sets))


def _published(device: Device) -> str:
    texts = (
        str(attribute.value)
        for name, attribute in device.attributes
        if name.rpartition("/")[2] in PROFILES and attribute.kind == "string"
    )
    return next(texts, "")


def _drawn(drawn: Mapping[CounterKey, int]) -> str:
    """Name a profile by what it draws: alike for all that differ in the number of a slice."""
    amounts: dict[str, int] = {}
    for (_, counter), amount in drawn.items():
        kind = counter.rstrip(DIGITS).rstrip("-")
        amounts[kind] = amounts.get(kind, 0) + amount
    return " + ".join(f"{Quantity(amount)} {kind}" for kind, amount in sorted(amounts.items()))


def _rank(cut: Cut) -> tuple[str, tuple[int, ...], list[tuple[bool, list[str]]]]:
    """Order cuts alike on all chips of a pattern: nothing of it depends on what the chip is called."""
    return cut.profile, cut.draws, [(groups is None, sorted(groups or ())) for groups in cut.groups]
