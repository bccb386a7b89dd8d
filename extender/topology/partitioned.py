"""The order of sets by what they leave of the chips that they are cut out of, as the search of one node takes it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import Turn, most_constrained_first
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal, Part
from extender.topology.chips import Chip, balances_of, chips_of, draws, rest_of
from extender.topology.memo import Memo
from extender.topology.menus import NOTHING, Menu, Taking, carried, menu_of_loose, ordered
from extender.topology.partitions import KEPT, Pattern, Remains, Rest, share_of
from extender.topology.policy import KEEPING, Placing
from extender.topology.portions import WHOLE, spared
from extender.topology.quality import ONE
from extender.topology.shared import NEAR, Along

# Boards and patterns that are remembered.
BOARDS: Final = 1 << 14
PATTERNS: Final = 1 << 8
# More than all that is left of some chips may change by: which chips are taken comes first where a node is packed.
CHIPS: Final = 1000 * ONE
PlacingOf = Callable[[At], Placing]


def protecting(at: At) -> Placing:
    """Say that sets are to be left whole."""
    del at
    return Placing.PROTECT


class Known(NamedTuple):
    """What was worked out of boards and patterns."""

    chips: Memo[str, tuple[Board, tuple[Chip, ...]]]
    remains: Memo[Pattern, Remains]


class Stock(NamedTuple):
    """A chip, and what is left of it."""

    chip: Chip
    remains: Remains
    rest: Rest


class Partitioned:
    """Tries sets of partitions by what they leave whole; then the fullest chip, then by name.

    Where *placing_of* says so the fullest or the emptiest chips come first.
    """

    def __init__(
        self, placing_of: PlacingOf = protecting, known: Known | None = None, along: Along | None = None
    ) -> None:
        self._placing_of, self._along = placing_of, along
        self._known = known or Known(Memo(BOARDS), Memo(PATTERNS))

    def placed(self, placing_of: PlacingOf) -> "Partitioned":
        """Return the same for other policies, which shares all that is remembered."""
        return Partitioned(placing_of, self._known)

    def beside(self, along: Along) -> "Partitioned":
        """Return the same where it counts, too, what can go *along* with devices."""
        return Partitioned(self._placing_of, self._known, along)

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether parts of chips are among *mask*: whole ones alone are better told apart by their links."""
        if situation.asks[at].is_admin:
            return False
        return any(mask & _parts(chip) for chip in self._chips_of(situation.board))

    def wholes(self, situation: Situation) -> int:
        """Return the mask of the devices that are whole: no one has any part of them."""
        parts = sum(_parts(chip) for chip in self._chips_of(situation.board))
        return self.possible(situation, situation.unheld & ~parts)

    def divisible(self, board: Board) -> int:
        """Return the mask of the whole devices that could be given in parts instead."""
        return sum(chip.wholes for chip in self._chips_of(board) if _parts(chip))

    def possible(self, situation: Situation, mask: int) -> int:
        """Return *mask* without that for which counters do not suffice any more."""
        for chip, _, rest in self._stocks(situation):
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
        stocks = [] if situation.asks[at].is_admin else self._stocks(situation)
        ranks = _ranks(situation.board)
        cut = mask & mask_of(place for stock in stocks for place in stock.chip.cuts if _draws_now(situation, place))
        placing = self._placing_of(at)
        menus = [_menu(stock, _touched(stock, placing), cut, size, ranks) for stock in stocks]
        menus.append(menu_of_loose(sorted((ranks[place], place) for place in places_of(mask & ~cut)), size))
        sets = ordered(menus, size)
        if self._along is None:
            return sets
        # Those that are worth the same stay in their order.
        valued = [(self._rank(stocks, placing, cut, places), places) for places in islice(sets, NEAR)]
        return chain((places for _, places in sorted(valued, key=itemgetter(0))), sets)

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what taking *places* does to what is left of their chips."""
        if situation.asks[at].is_admin:
            return Appraisal(0)
        placing, stocks, taken = self._placing_of(at), self._stocks(situation), list[tuple[Stock, list[int]]]()
        for stock in stocks:
            mine = [place for place in places if place in stock.chip.cuts and _draws_now(situation, place)]
            taken += [(stock, mine)] if mine else []
        if placing is Placing.PROTECT or not taken:
            parts = [_part(stock, mine) for stock, mine in taken]
        else:
            parts = [_spare(situation.board, stocks, taken, placing)]
        return Appraisal(sum(part.value for part in parts), tuple(parts))

    def _rank(self, stocks: Sequence[Stock], placing: Placing, cut: int, places: Sequence[int]) -> tuple[int, ...]:
        """Rank *places*, those of *cut* out of chips, where it counts what goes along: the least comes first."""
        drawn = [place for place in places if cut >> place & 1]
        taken = [(stock, mine) for stock in stocks if (mine := [one for one in drawn if one in stock.chip.cuts])]
        along = self._along(places) if self._along else 0
        kept = sum(_after(stock, mine)[1] for stock, mine in taken)
        if placing is Placing.PROTECT:
            return (-kept - along,)
        return sum(_touched(stock, placing).loss for stock, _ in taken), -kept, -along

    def _stocks(self, situation: Situation) -> list[Stock]:
        chips = self._chips_of(situation.board)
        balances = balances_of(situation, {chip.pool for chip in chips})
        return [
            Stock(chip, self._remains_of(chip.pattern), rest_of(chip, situation, balances[chip.pool])) for chip in chips
        ]

    def _chips_of(self, board: Board) -> tuple[Chip, ...]:
        known = self._known.chips.get(board.node.name)
        if known is None or known[0] is not board:
            known = self._known.chips[board.node.name] = (board, chips_of(board))
        return known[1]

    def _remains_of(self, pattern: Pattern) -> Remains:
        known = self._known.remains.get(pattern)
        if known is None:
            known = self._known.remains[pattern] = Remains(pattern)
        return known


def _ranks(board: Board) -> dict[int, int]:
    by_name = sorted(range(len(board.candidates)), key=lambda place: board.candidates[place].key)
    return {place: rank for rank, place in enumerate(by_name)}


def _parts(chip: Chip) -> int:
    return mask_of(chip.cuts) & ~chip.wholes


def _draws_now(situation: Situation, place: int) -> bool:
    return draws(situation, place, (other for _, other in situation.given))


def _touched(stock: Stock, placing: Placing) -> Taking:
    """Return what every taking of a chip has to begin with."""
    left = _left(stock)
    loss = {Placing.PACK: left * CHIPS, Placing.SPREAD: -left * CHIPS}.get(placing, 0)
    return NOTHING._replace(loss=loss, left=left)


def _menu(stock: Stock, touched: Taking, mask: int, size: int, ranks: dict[int, int]) -> Menu:
    """Return what one chip offers; every taking of it begins with *touched*."""
    members: list[list[int]] = [[] for _ in stock.chip.pattern.cuts]
    for place in sorted((place for place in stock.chip.cuts if mask >> place & 1), key=ranks.__getitem__):
        members[stock.chip.cuts[place]].append(place)

    def taking(change: int, places: tuple[int, ...]) -> Taking:
        named = tuple(sorted(ranks[place] for place in places))
        return touched._replace(loss=touched.loss - change, ranks=named, places=places)

    among = tuple(min(size, len(places)) for places in members)
    found = stock.remains.options(stock.rest, among, min(size, sum(among)))
    sizes = (
        tuple(sorted(taking(change, _first(cuts, members)) for change, cuts in options[: _kept(number, size)]))
        for number, options in enumerate(found[1:], start=1)
    )
    singles = found[1] if len(found) > 1 else ()
    return Menu(
        ((NOTHING,), *sizes), tuple(taking(change, (place,)) for change, cuts in singles for place in members[cuts[0]])
    )


def _kept(number: int, size: int) -> int:
    """Of what is only a part of the answer, the best are enough: no better answer is made of others."""
    return KEPT if number == size else carried(size)


def _first(cuts: Sequence[int], members: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Take the first devices of each cut."""
    return tuple(sorted(place for cut in set(cuts) for place in members[cut][: cuts.count(cut)]))


def _left(stock: Stock) -> int:
    return share_of(stock.rest.left, stock.chip.pattern.whole)


def _spare(board: Board, stocks: Sequence[Stock], taken: Sequence[tuple[Stock, list[int]]], placing: Placing) -> Part:
    """Say how much is taken of all that is free on chips of the same drivers."""
    drivers = {_driver(board, stock) for stock, _ in taken}
    left = [_left(stock) for stock in stocks if _driver(board, stock) in drivers]
    free, untouched = sum(left), WHOLE * len(left)
    total = 0
    for stock, places in taken:
        cuts, whole = stock.chip.pattern.cuts, stock.chip.pattern.whole
        total += sum(share_of(cuts[stock.chip.cuts[place]].draws, whole) for place in places)
    worth = int(spared(np.array([free]), np.array([untouched]), total, placing)[0])
    return Part("partitions", worth, f"{placing}: takes {total} of {free} free thousandths of chips")


def _driver(board: Board, stock: Stock) -> str:
    return board.candidates[min(stock.chip.cuts)].key.driver


def _after(stock: Stock, taken: Sequence[int]) -> tuple[Rest, int]:
    """Return what is left of a chip, and what that is worth beside what there was."""
    rest = stock.rest
    for place in taken:
        rest = stock.remains.after(rest, stock.chip.cuts[place]) or rest
    return rest, KEEPING * (stock.remains.value(rest) - stock.remains.value(stock.rest)) // 1000


def _part(stock: Stock, taken: Sequence[int]) -> Part:
    """Say what is left of the profiles that lose by it."""
    rest, worth = _after(stock, taken)
    counted = (
        (profile, stock.remains.placements(rest, profile), stock.remains.placements(stock.rest, profile))
        for profile in stock.chip.pattern.profiles
    )
    lost = [(f"{after} of {before}", profile) for profile, after, before in counted if after < before]
    listed = ", ".join(
        f"{kept}{' of ' if index else ' placements of '}{name}" for index, (kept, name) in enumerate(lost)
    )
    text = f"kept whole on {stock.chip.name}: {listed or 'all that was'}"
    return Part("partitions", worth, text)
