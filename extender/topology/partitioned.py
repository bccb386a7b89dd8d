"""The order of sets by what they leave of the chips that they are cut out of, as the search of one node takes it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.preference import Turn, most_constrained_first
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal, Part
from extender.topology.chips import Chip, chips_of, draws, ledgers_of, rest_of
from extender.topology.memo import Memo
from extender.topology.offers import NO_OFFER, Menu, Offer, carried, menu_of_loose, ordered
from extender.topology.partitions import EVEN, KEPT, Demand, Pattern, Remains, Rest, share_of
from extender.topology.policy import KEEPING
from extender.topology.shape import mask_of, places_of

# Boards and patterns that are remembered.
BOARDS: Final = 1 << 14
PATTERNS: Final = 1 << 8
# What it costs those who want whole devices that a device is one no more, where that is known.
Opening = Callable[[Situation, int], int]


def nothing(situation: Situation, whole: int) -> int:
    """Say that nobody misses a whole device."""
    del situation, whole
    return 0


class State(NamedTuple):
    """A chip, and what is left of it."""

    chip: Chip
    remains: Remains
    rest: Rest


class Partitioned:
    """Tries sets of partitions by what they leave whole; then the fullest chip, the one least missed, then by name."""

    def __init__(self, demand: Demand = EVEN, opening: Opening = nothing) -> None:
        self._demand = demand
        self._opening = opening
        self._chips: Memo[str, tuple[Board, tuple[Chip, ...]]] = Memo(BOARDS)
        self._remains: Memo[Pattern, Remains] = Memo(PATTERNS)

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether parts of chips are among *mask*: whole ones alone are better told apart by their links."""
        if situation.asks[at].is_admin:
            return False
        return any(mask & _parts(chip) for chip in self._chips_of(situation.board))

    def profile(self, board: Board, place: int) -> str | None:
        """Return the profile of a candidate, by which demand counts it; None where it draws from no counters."""
        chips = (chip for chip in self._chips_of(board) if place in chip.cuts)
        return next((chip.pattern.cuts[chip.cuts[place]].profile for chip in chips), None)

    def wholes(self, situation: Situation, mask: int) -> int:
        """Return those of *mask* that are whole: no one has any part of them."""
        unheld = mask_of(place for place in places_of(mask) if not situation.usages[place].is_held)
        parts = sum(_parts(chip) for chip in self._chips_of(situation.board))
        return self.possible(situation, unheld & ~parts)

    def possible(self, situation: Situation, mask: int) -> int:
        """Return *mask* without that for which counters do not suffice any more."""
        for chip, _, rest in self._states(situation):
            drained = (place for place, cut in chip.cuts.items() if not rest.cuts[cut] and _draws_now(situation, place))
            mask &= ~mask_of(drained)
        return mask

    def order(self, situation: Situation) -> Sequence[Turn]:
        return most_constrained_first(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the sets of *size* places out of *mask* that can be had together, the best first or nearly so."""
        situation = replace(situation, given=tuple(picks))
        states = [] if situation.asks[at].is_admin else self._states(situation)
        ranks = _ranks(situation.board)
        cut = mask & mask_of(place for state in states for place in state.chip.cuts if _draws_now(situation, place))
        menus = [_menu(state, self._touched(situation, state), cut, size, ranks) for state in states]
        menus.append(menu_of_loose(sorted((ranks[place], place) for place in places_of(mask & ~cut)), size))
        return ordered(menus, size)

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what taking *places* does to what is left of their chips."""
        if situation.asks[at].is_admin:
            return Appraisal(0)
        parts = []
        for state in self._states(situation):
            taken = [place for place in places if place in state.chip.cuts and _draws_now(situation, place)]
            if taken:
                parts.append(_part(state, taken))
        return Appraisal(sum(part.value for part in parts), tuple(parts))

    def _touched(self, situation: Situation, state: State) -> Offer:
        """Return what every offer of a chip has to begin with."""
        left = share_of(state.rest.left, state.chip.pattern.whole)
        is_untouched = state.chip.wholes and state.rest == state.chip.pattern.untouched
        whole = (state.chip.wholes & -state.chip.wholes).bit_length() - 1
        return NO_OFFER._replace(left=left, opening=self._opening(situation, whole) if is_untouched else 0)

    def _states(self, situation: Situation) -> list[State]:
        chips = self._chips_of(situation.board)
        ledgers = ledgers_of(situation, {chip.pool for chip in chips})
        return [
            State(chip, self._remains_of(chip.pattern), rest_of(chip, situation, ledgers[chip.pool])) for chip in chips
        ]

    def _chips_of(self, board: Board) -> tuple[Chip, ...]:
        known = self._chips.get(board.node.name)
        if known is None or known[0] is not board:
            known = self._chips[board.node.name] = (board, chips_of(board))
        return known[1]

    def _remains_of(self, pattern: Pattern) -> Remains:
        known = self._remains.get(pattern)
        if known is None:
            known = self._remains[pattern] = Remains(pattern, self._demand)
        return known


def _ranks(board: Board) -> dict[int, int]:
    by_name = sorted(range(len(board.candidates)), key=lambda place: board.candidates[place].key)
    return {place: rank for rank, place in enumerate(by_name)}


def _parts(chip: Chip) -> int:
    return mask_of(chip.cuts) & ~chip.wholes


def _draws_now(situation: Situation, place: int) -> bool:
    return draws(situation, place, (other for _, other in situation.given))


def _menu(state: State, touched: Offer, mask: int, size: int, ranks: dict[int, int]) -> Menu:
    """Return what one chip offers; every offer of it begins with *touched*."""
    members: list[list[int]] = [[] for _ in state.chip.pattern.cuts]
    for place in sorted((place for place in state.chip.cuts if mask >> place & 1), key=ranks.__getitem__):
        members[state.chip.cuts[place]].append(place)

    def offer(change: int, places: tuple[int, ...]) -> Offer:
        return touched._replace(loss=-change, ranks=tuple(sorted(ranks[place] for place in places)), places=places)

    among = tuple(min(size, len(places)) for places in members)
    found = state.remains.options(state.rest, among, min(size, sum(among)))
    sizes = (
        tuple(sorted(offer(change, _first(cuts, members)) for change, cuts in options[: _kept(number, size)]))
        for number, options in enumerate(found[1:], start=1)
    )
    singles = found[1] if len(found) > 1 else ()
    return Menu(
        ((NO_OFFER,), *sizes), tuple(offer(change, (place,)) for change, cuts in singles for place in members[cuts[0]])
    )


def _kept(number: int, size: int) -> int:
    """Of what is only a part of the answer, the best are enough: no better answer is made of others."""
    return KEPT if number == size else carried(size)


def _first(cuts: Sequence[int], members: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Take the first devices of each cut."""
    return tuple(sorted(place for cut in set(cuts) for place in members[cut][: cuts.count(cut)]))


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
