"""The order of sets by what they leave of the chips that they are cut out of, as the search of one node takes it."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import Final, NamedTuple

from extender.allocation.board import Board
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal, Part
from extender.topology.chips import Chip, chips_of, draws, ledgers_of, rest_of
from extender.topology.memo import Memo
from extender.topology.partitions import EVEN, Demand, Pattern, Remains, Rest, share_of
from extender.topology.policy import KEEPING
from extender.topology.shape import mask_of, places_of

# Boards and patterns that are remembered.
BOARDS: Final = 1 << 14
PATTERNS: Final = 1 << 8
# Sets of each size that are carried from chip to chip.
CARRIED: Final = 8


class Offer(NamedTuple):
    """Places that can be taken together; the least offer is the best.

    loss: how much less is left, of ONE; left: what its chips have before; ranks: of the devices by name.
    """

    loss: int
    left: int
    ranks: tuple[int, ...]
    places: tuple[int, ...]


NO_OFFER: Final = Offer(0, 0, (), ())


class State(NamedTuple):
    """A chip, and what is left of it."""

    chip: Chip
    remains: Remains
    rest: Rest


class Partitioned:
    """Tries sets of partitions by what they leave whole; then the fullest chip, then by name."""

    def __init__(self, demand: Demand = EVEN) -> None:
        self._demand = demand
        self._chips: Memo[int, tuple[Board, tuple[Chip, ...]]] = Memo(BOARDS)
        self._remains: Memo[Pattern, Remains] = Memo(PATTERNS)

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether parts of chips are among *mask*: whole ones alone are better told apart by their links."""
        if situation.asks[at].is_admin:
            return False
        return any(mask & mask_of(chip.cuts) & ~chip.wholes for chip in self._chips_of(situation.board))

    def wholes(self, situation: Situation, mask: int) -> int:
        """Return those of *mask* that are whole: no one has any part of them."""
        free = mask_of(place for place in places_of(mask) if not situation.usages[place].is_held)
        for chip, _, rest in self._states(situation):
            is_touched = rest.left != chip.pattern.whole
            free &= ~(mask_of(chip.cuts) if is_touched else mask_of(chip.cuts) & ~chip.wholes)
        return free

    def sets(self, situation: Situation, at: At, mask: int, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the sets of *size* places out of *mask* that can be had together, the best first or nearly so."""
        states = [] if situation.asks[at].is_admin else self._states(situation)
        ranks = _ranks(situation.board)
        cut = mask & mask_of(place for state in states for place in state.chip.cuts if _draws_now(situation, place))
        menus = [_menu(state, cut, size, ranks) for state in states]
        menus.append(_of_loose(sorted((ranks[place], place) for place in places_of(mask & ~cut)), size))
        return _once(_ordered(menus, size))

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what taking *places* does to what is left of their chips."""
        if situation.asks[at].is_admin:
            return Appraisal(0)
        parts = []
        for state in self._states(situation):
            taken = [place for place in places if place in state.chip.cuts and draws(situation, place)]
            if taken:
                parts.append(_part(state, taken))
        return Appraisal(sum(part.value for part in parts), tuple(parts))

    def _states(self, situation: Situation) -> list[State]:
        chips = self._chips_of(situation.board)
        ledgers = ledgers_of(situation, {chip.pool for chip in chips})
        return [
            State(chip, self._remains_of(chip.pattern), rest_of(chip, situation, ledgers[chip.pool])) for chip in chips
        ]

    def _chips_of(self, board: Board) -> tuple[Chip, ...]:
        known = self._chips.get(id(board))
        if known is None or known[0] is not board:
            known = self._chips[id(board)] = (board, chips_of(board))
        return known[1]

    def _remains_of(self, pattern: Pattern) -> Remains:
        known = self._remains.get(pattern)
        if known is None:
            known = self._remains[pattern] = Remains(pattern, self._demand)
        return known


class Menu(NamedTuple):
    """What one chip offers: its best sets by their size, and all its devices that can be had."""

    sizes: tuple[tuple[Offer, ...], ...]
    singles: tuple[Offer, ...]


def _ranks(board: Board) -> dict[int, int]:
    ordered = sorted(range(len(board.candidates)), key=lambda place: board.candidates[place].key)
    return {place: rank for rank, place in enumerate(ordered)}


def _draws_now(situation: Situation, place: int) -> bool:
    return draws(situation, place, (other for _, other in situation.given))


def _menu(state: State, mask: int, size: int, ranks: dict[int, int]) -> Menu:
    members: list[list[int]] = [[] for _ in state.chip.pattern.cuts]
    for place in sorted((place for place in state.chip.cuts if mask >> place & 1), key=ranks.__getitem__):
        members[state.chip.cuts[place]].append(place)
    among = tuple(min(size, len(places)) for places in members)
    left = share_of(state.rest.left, state.chip.pattern.whole)
    found = state.remains.options(state.rest, among, min(size, sum(among)))
    sizes = tuple(
        tuple(sorted(_offer(option.change, left, _first(option.cuts, members), ranks) for option in options))
        for options in found
    )
    singles = (
        _offer(change, left, (place,), ranks)
        for change, cuts in (found[1] if len(found) > 1 else ())
        for place in members[cuts[0]]
    )
    return Menu(sizes, tuple(singles))


def _of_loose(ranked: Sequence[tuple[int, int]], size: int) -> Menu:
    """Offer devices that draw nothing, in the order of their names."""
    singles = tuple(Offer(0, 0, (rank,), (place,)) for rank, place in ranked)
    first = [tuple(zip(*ranked[:number], strict=True)) for number in range(1, min(size, len(ranked)) + 1)]
    return Menu(((NO_OFFER,), *((Offer(0, 0, ranks, tuple(sorted(places))),) for ranks, places in first)), singles)


def _first(cuts: Sequence[int], members: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Take the first devices of each cut."""
    return tuple(sorted(place for cut in set(cuts) for place in members[cut][: cuts.count(cut)]))


def _offer(change: int, left: int, places: tuple[int, ...], ranks: dict[int, int]) -> Offer:
    return Offer(-change, left if places else 0, tuple(sorted(ranks[place] for place in places)), places)


def _ordered(menus: Sequence[Menu], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the best sets, then those within one chip, which a rule may demand, then all others."""
    yield from (offer.places for offer in _best(menus, size))
    within = (offer for menu in menus for offer in (menu.sizes[size] if size < len(menu.sizes) else ()))
    yield from (offer.places for offer in sorted(within))
    singles = sorted(offer for menu in menus for offer in menu.singles)
    for chosen in combinations(singles, size):
        yield tuple(sorted(offer.places[0] for offer in chosen))


def _best(menus: Sequence[Menu], size: int) -> list[Offer]:
    """Divide *size* among chips: the best first, of each size as many as are carried."""
    best: list[list[Offer]] = [[NO_OFFER], *([] for _ in range(size))]
    for menu in menus:
        best = [
            nsmallest(
                CARRIED,
                (
                    _both(one, other)
                    for number, offers in enumerate(menu.sizes[: total + 1])
                    for one in best[total - number]
                    for other in offers
                ),
            )
            for total in range(size + 1)
        ]
    return best[size]


def _both(one: Offer, other: Offer) -> Offer:
    if not one.places or not other.places:
        return one if one.places else other
    return Offer(
        one.loss + other.loss,
        one.left + other.left,
        tuple(sorted(one.ranks + other.ranks)),
        tuple(sorted(one.places + other.places)),
    )


def _once(every: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    seen: set[tuple[int, ...]] = set()
    for places in every:
        if places not in seen:
            seen.add(places)
            yield places


def _part(state: State, taken: Sequence[int]) -> Part:
    """Say what is left of the profiles that lose by it."""
    rest = state.rest
    for place in taken:
        rest = state.remains.after(rest, state.chip.cuts[place]) or rest
    change = state.remains.value(rest) - state.remains.value(state.rest)
    counted = (
        (profile, state.remains.placements(rest, profile), state.remains.placements(state.rest, profile))
        for profile in state.chip.pattern.profiles
    )
    lost = [(f"{after} of {before}", profile) for profile, after, before in counted if after < before]
    listed = ", ".join(
        f"{kept}{' of ' if index else ' placements of '}{name}" for index, (kept, name) in enumerate(lost)
    )
    text = f"kept whole on {state.chip.name}: {listed or 'all that was'}"
    return Part("partitions", KEEPING * change // 1000, text)
