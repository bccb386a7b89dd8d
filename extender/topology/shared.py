"""The order of devices of which shares are asked for, as the search of one node takes it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import Turn, most_constrained_first
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.model.device import Device
from extender.model.names import DeviceKey
from extender.topology.appraisal import Appraisal, Part
from extender.topology.fragmentation import Integers, Measure, Rows
from extender.topology.policy import Placing
from extender.topology.portions import WHOLE, Catalogue, left_of, spared, taken_of, valued
from extender.topology.typical import PodAsk, Typical

# What a node has, where nothing is known of it: enough for everybody.
PLENTY: Final = 1 << 40
# Stretches of which it is asked what can go along with them.
NEAR: Final = 16
# Devices of which it is asked for each.
ORDERED: Final = 64
# Says what can go along with some places, of ONE.
Along = Callable[[Sequence[int]], int]


class Beside(NamedTuple):
    """CPU in thousandths and memory in MiB: what a pod needs beside its devices, or what is free beside them."""

    cpu: int = 0
    memory: int = 0


class Criteria(NamedTuple):
    """What counts for a choice. free: on the node; needed: by the pod."""

    measure: Measure
    free: Beside = Beside(PLENTY, PLENTY)
    needed: Beside = Beside()
    placing: Placing = Placing.PROTECT


class Family(NamedTuple):
    """The shared devices of one model on a node. places: with the least left first; left: of each, in thousandths."""

    model: int
    places: tuple[int, ...]
    left: tuple[int, ...]
    taken: int


class Stretch(NamedTuple):
    """Devices next to one another in the order of what they have left; the least stretch is the best.

    loss: by what is preferred; left: of all of them before.
    """

    loss: int
    left: int
    rank: tuple[DeviceKey, ...]
    places: tuple[int, ...]


class Shared:
    """Tries devices by how little their share costs those who ask next; then the tightest, then by name.

    *catalogue* numbers models as the measures of *criteria_of* do. Devices that only one can have come last: they are
    worth more to who needs all of one.
    """

    def __init__(
        self, catalogue: Catalogue, criteria_of: Callable[[Situation, At], Criteria], along: Along | None = None
    ) -> None:
        self._catalogue, self._criteria_of, self._along = catalogue, criteria_of, along

    def beside(self, along: Along) -> "Shared":
        """Return the same where it counts, too, what can go *along* with devices."""
        return Shared(self._catalogue, self._criteria_of, along)

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether shares of devices are among *mask*."""
        return not situation.asks[at].is_admin and any(
            situation.board.candidates[place].device.capacity for place in places_of(mask & situation.shareable)
        )

    def spared(self, situation: Situation, at: At, mask: int) -> int:
        """Return *mask* without what others could share, of which all would be taken by who names no amount."""
        ask, drawn = situation.asks[at], situation.eligible[at].draws
        if ask.capacity or ask.is_admin:
            return mask
        shared = (place for place in places_of(mask & situation.shareable) if place in drawn)
        device = {place: situation.board.candidates[place].device for place in shared}
        return mask & ~mask_of(place for place, one in device.items() if taken_of(one, drawn[place]) == WHOLE)

    def order(self, situation: Situation) -> Sequence[Turn]:
        return most_constrained_first(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield all sets of *size* places out of *mask*, the best first or nearly so."""
        if not size:
            yield ()
            return
        situation = replace(situation, given=tuple(picks))
        families = [_among(family, mask) for family in self._families(situation, at)]
        if self._along and size > 1:
            families = [(_near_each_other(family, count, self._along), count) for family, count in families]
        criteria = self._criteria(situation, at)
        seen, stretches = set(), sorted(_stretches(situation, criteria, families, size))
        if self._along and len(stretches) > 1:
            stretches[:NEAR] = _along_first(stretches[:NEAR], criteria.placing, self._along)
        for stretch in stretches:
            seen.add(tuple(sorted(stretch.places)))
            yield tuple(sorted(stretch.places))
        singles = sorted(_stretches(situation, criteria, families, 1)) if size > 1 or not seen else []
        ordered = [place for stretch in singles for place in stretch.places] or [place for (place,) in seen]
        rest = [place for place in places_of(mask) if place not in ordered]
        rest.sort(key=lambda place: situation.board.candidates[place].key)
        for chosen in combinations([*ordered, *rest], size):
            if tuple(sorted(chosen)) not in seen:
                yield tuple(sorted(chosen))

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what shares of *places* cost, and what they leave."""
        criteria, taken = self._criteria(situation, at), list[tuple[Family, int]]()
        for family in self._families(situation, at):
            chosen = [place for place in places if place in family.places]
            taken += [(_first(family, chosen), len(chosen))] if chosen else []
        if criteria.placing is Placing.PROTECT or not taken:
            is_named = bool(situation.asks[at].capacity)
            parts = [_part(situation, criteria, *one, is_named=is_named) for one in taken]
        else:
            parts = [_spare(situation, criteria.placing, taken, places)]
        return Appraisal(sum(part.value for part in parts), tuple(parts))

    def _criteria(self, situation: Situation, at: At) -> Criteria:
        known, models = self._criteria_of(situation, at), self._catalogue.on(situation.board)
        if max(models.values(), default=0) < known.measure.models:
            return known
        return Criteria(expecting_whole(models), placing=known.placing)

    def _families(self, situation: Situation, at: At) -> list[Family]:
        """Part the shared devices of a node by model, after what was given in this attempt."""
        drawn, members = situation.eligible[at].draws, dict[int, list[int]]()
        models = self._catalogue.on(situation.board) if not situation.asks[at].is_admin else {}
        for place, model in models.items():
            members.setdefault(model, []).append(place)
        found = []
        for model, places in members.items():
            left = {place: _left(situation, place) for place in places}
            places.sort(key=lambda place: (left[place], situation.board.candidates[place].key))
            taken = [
                taken_of(situation.board.candidates[place].device, drawn[place]) for place in places if place in drawn
            ]
            found.append(
                Family(model, tuple(places), tuple(left[place] for place in places), max(taken, default=WHOLE))
            )
        return found


def _left(situation: Situation, place: int) -> int:
    draws = (
        {name: amount.nanos for name, amount in situation.eligible[at].draws[place].amounts}
        for at, other in situation.given
        if other == place and not situation.asks[at].is_admin
    )
    return left_of(situation.board.candidates[place].device, situation.usages[place], draws)


def _among(family: Family, mask: int) -> tuple[Family, int]:
    """Put those of *mask* first, and count them."""
    chosen = [place for place in family.places if mask >> place & 1]
    return _first(family, chosen), len(chosen)


def _near_each_other(family: Family, count: int, along: Along) -> Family:
    """Put those of the first *count* that have the same left in the order of what can go along with each."""
    known = {place: along((place,)) for place in family.places[:count]} if count <= ORDERED else {}
    left = dict(zip(family.places, family.left, strict=True))
    return _first(family, sorted(family.places[:count], key=lambda place: (left[place], -known.get(place, 0))))


def _first(family: Family, chosen: Sequence[int]) -> Family:
    left = dict(zip(family.places, family.left, strict=True))
    places = (*chosen, *(place for place in family.places if place not in chosen))
    return family._replace(places=places, left=tuple(left[place] for place in places))


def _stretches(
    situation: Situation, criteria: Criteria, families: Sequence[tuple[Family, int]], size: int
) -> Iterator[Stretch]:
    """Yield devices that are next to one another in the order of what they have left."""
    for family, count in families:
        if count < size:
            continue
        gains = _gains(criteria, family, size)
        for first in range(count - size + 1):
            places, left = family.places[first : first + size], sum(family.left[first : first + size])
            loss = {Placing.PACK: left, Placing.SPREAD: -left}.get(criteria.placing, -int(gains[first]))
            rank = tuple(situation.board.candidates[place].key for place in places)
            yield Stretch(loss, left, rank, places)


def _along_first(stretches: Sequence[Stretch], placing: Placing, along: Along) -> list[Stretch]:
    """Sort by what goes along, too, as far as that is worth it; where nodes are packed or spread it comes second."""
    if placing is not Placing.PROTECT:
        return sorted(stretches, key=lambda one: (one.loss, -along(one.places), one))
    worth = valued(-np.array([one.loss for one in stretches]), is_all=False).tolist()
    return [
        one for _, one in sorted((-value - along(one.places), one) for value, one in zip(worth, stretches, strict=True))
    ]


def _gains(criteria: Criteria, family: Family, size: int) -> Integers:
    """Return the gain at each place of a family: int64[places]."""
    rows = Rows(*(np.array([column], np.int64) for column in (*criteria.free, family.left, family.model)))
    ask = PodAsk(*criteria.needed, family.taken, size)
    change = criteria.measure.after(rows, ask) - criteria.measure.worth(rows)[:, None]
    gains: Integers = criteria.measure.gain(change, ask)[0]
    return gains


def _part(situation: Situation, criteria: Criteria, family: Family, size: int, *, is_named: bool) -> Part:
    """Appraise what is taken of the first devices of a family."""
    ask, gain = PodAsk(*criteria.needed, family.taken, size), _gains(criteria, family, size)[:1]
    worth = valued(gain, is_all=family.taken == WHOLE and not is_named)
    named = [(left, name) for _, left, name in _named(situation, family, size)]
    return Part("shares", int(worth[0]), told(ask, named, int(gain[0]), criteria.placing))


def _spare(situation: Situation, placing: Placing, taken: Sequence[tuple[Family, int]], places: Sequence[int]) -> Part:
    """Say how much is taken of all that is free of these models, and of whole devices where some are taken beside."""
    board = situation.board
    whole = [place for place in places if not board.shareable >> place & 1]
    drivers = {board.candidates[place].key.driver for place in whole}
    others = [
        place
        for place, candidate in enumerate(board.candidates)
        if place in whole or (candidate.key.driver in drivers and _is_plain(candidate.device))
    ]
    given = {place for _, place in situation.given}
    unheld = [place for place in others if situation.unheld >> place & 1 and place not in given]
    left = [one for family, _ in taken for one in family.left] + [WHOLE] * len(unheld)
    named = [one for family, size in taken for one in _named(situation, family, size)]
    named += [(WHOLE, WHOLE, str(board.candidates[place].key.device)) for place in whole]
    every = len(others) + sum(len(family.places) for family, _ in taken)
    worth = spared(np.array([sum(left)]), np.array([WHOLE * every]), sum(amount for amount, *_ in named), placing)
    return Part("shares", int(worth[0]), f"{placing}: {takes(named)}")


def _is_plain(device: Device) -> bool:
    """Tell whether nobody could have a part of a device, and it is none."""
    return not (device.traits.allow_multiple_allocations or device.traits.consumes_counters)


def _named(situation: Situation, family: Family, size: int) -> list[tuple[int, int, str]]:
    """Name the first devices of a family, with what is taken of each and what it has left."""
    names = (str(situation.board.candidates[place].key.device) for place in family.places[:size])
    return [(family.taken, left, name) for left, name in zip(family.left[:size], names, strict=True)]


def takes(named: Iterable[tuple[int, int, str]]) -> str:
    """Say what is taken of what devices have left, in thousandths."""
    return "takes " + ", ".join(f"{amount} of {left} free thousandths of {name}" for amount, left, name in named)


def told(ask: PodAsk, named: Sequence[tuple[int, str]], gain: int, placing: Placing) -> str:
    """Say what is taken of devices, given what they have left, and what typical pods lose by it."""
    said = takes((ask.amount, left, name) for left, name in named)
    if placing is not Placing.PROTECT:
        return f"{placing}: {said}"
    fall = ask.total - gain
    change = f"falls by {fall}" if fall > 0 else f"grows by {-fall}" if fall else "stays"
    return f"{said}; what typical pods can still use {change}"


def expecting_whole(models: dict[int, int]) -> Measure:
    """Expect pods that need a whole device of each model of a node."""
    numbers = np.array(sorted(set(models.values())), np.int64)
    plenty, free = np.full(len(numbers), PLENTY), np.full((len(numbers), 1), WHOLE)
    expected = {PodAsk(0, 0, WHOLE, 1, 1 << number): 1 for number in numbers.tolist()}
    return Measure(Typical.of(expected), Rows(plenty, plenty, free, numbers))
