"""In which order sets of devices are tried for an ask, and in which order asks choose, where that is free."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, Protocol

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.allocation.question import At
from extender.allocation.situation import Situation

# Sets put together that are not accepted: they cost time but no step, and what follows has all sets.
PATIENCE = 64
# Sets that are put in order by how many devices have to be made ready; so many are gathered without a pause.
ORDERED = 256
GATHERED = 50
# Those are fewer where so much is paid for sets that are passed over between them: something is to be tried before all
# is spent on that.
PAID = 16
# In place of a set of devices: many were passed over, and the search is to pay for that.
NO_SET: tuple[int, ...] = ()
# So many of them are paid for like a set that is tried.
PASSED = 10


class _Rest(tuple[int, ...]):
    """A set of none that is told apart from others by identity."""

    __slots__ = ()


# Likewise: much was worked out that counts as no step, and the search may pause.
REST = _Rest()


class Turn(NamedTuple):
    """One slot of the question: indices of its claim and itself."""

    claim: int
    slot: int


class Preference(Protocol):
    """Orders sets of candidates, best first. Leaving a set out means that it will not be tried.

    NO_SET and REST are none: whoever looks at sets passes them on.
    """

    def order(self, situation: Situation) -> Sequence[Turn]:
        """Return every slot of the question once, whichever claim it is of, in the order in which they choose."""
        ...

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask* for an ask; *picks*: what was given before, which changes later."""
        ...


class Tightest:
    """Fills pools that are nearly full first, and leaves whole ones whole."""

    def order(self, situation: Situation) -> Sequence[Turn]:
        return most_constrained_first(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield all sets, those out of the fullest pools first."""
        del at, picks
        candidates = situation.board.candidates
        free: dict[int, int] = {}
        for place, usage in enumerate(situation.usages):
            free[candidates[place].pool] = free.get(candidates[place].pool, 0) + (not usage.is_held)
        yield from combinations(sorted(places_of(mask), key=lambda place: (free[candidates[place].pool], place)), size)


class ReadyFirst:
    """Has devices that are ready before those that a driver makes so once they are given, however good these are.

    Those for which the pod would be evicted in time come last as well.

    *accepts*: what is put together of both is offered as far as that has it.
    """

    def __init__(
        self, preference: Preference, accepts: Callable[[Situation, tuple[Pick, ...]], bool] | None = None
    ) -> None:
        self._preference, self._accepts = preference, accepts

    def order(self, situation: Situation) -> Sequence[Turn]:
        """Let who would be evicted for some devices choose before who competes for the others, and has more left."""
        known, found = dict[Turn, _Room](), list[Turn]()
        for turn in self._preference.order(situation):
            room = known[turn] = _room(situation, turn)
            later = (index for index, other in enumerate(found) if room.is_before(known[other]))
            found.insert(next(later, len(found)), turn)
        return found

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the sets of what is ready, or with all of that where it does not suffice, before all.

        Of all, those come first that have few devices to be made ready.
        """
        unready = (mask & situation.board.unready) | situation.evicting(at, mask)
        every = iter(self._preference.sets(situation, at, mask, size, picks))
        if unready not in (0, mask) and size:
            yield from self._ready_first(situation, at, (mask & ~unready, unready), size, picks)
            first = yield from gathered(every, ORDERED, PAID)
            yield from sorted(first, key=lambda places: (mask_of(places) & unready).bit_count())
        yield from every

    def _ready_first(
        self, situation: Situation, at: At, parts: tuple[int, int], size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        ready, others = parts
        if ready.bit_count() >= size:
            yield from self._preference.sets(situation, at, ready, size, picks)
            return
        known = places_of(ready)
        given = (*picks, *(Pick(at, place) for place in known))
        patience = PATIENCE
        for places in self._preference.sets(situation, at, others, size - len(known), given):
            if not places:
                yield places
                continue
            chosen = tuple(sorted((*known, *places)))
            if self._accepts is None or self._accepts(situation, tuple(Pick(at, place) for place in chosen)):
                yield chosen
            elif not (patience := patience - 1):
                return


class _Room(NamedTuple):
    """What a slot may choose and keep, a mask; how many more that are than it needs; and whether it may lose others."""

    kept: int
    spare: int
    may_lose: bool

    def is_before(self, other: "_Room") -> bool:
        is_tighter = (self.spare, other.may_lose) < (other.spare, self.may_lose)
        return self.may_lose and bool(self.kept & other.kept) and is_tighter


def _room(situation: Situation, turn: Turn) -> _Room:
    kept, spare, may_lose = 0, 0, False
    for at in situation.question.slots[turn]:
        free = 0 if situation.asks[at].takes_all else situation.eligible[at].free
        fatal = situation.evicting(at, free)
        may_lose |= bool(fatal)
        kept |= free & ~fatal
        spare = max(spare, (free & ~fatal).bit_count() - situation.asks[at].count)
    return _Room(kept, spare, may_lose)


class AsAsked:
    """Keeps slots, and the devices of a set, in their order: what may only come first comes first as it was asked."""

    def __init__(self, preference: Preference) -> None:
        self._preference = preference

    def order(self, situation: Situation) -> Sequence[Turn]:
        return in_order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield what is preferred."""
        for places in self._preference.sets(situation, at, mask, size, picks):
            yield tuple(sorted(places)) if places else places


def fitting(sets: Iterable[tuple[int, ...]], is_fit: Callable[[tuple[int, ...]], bool]) -> Iterator[tuple[int, ...]]:
    """Yield the *sets* that are fit; what is passed over is paid for."""
    passed = 0
    for places in sets:
        if not places or is_fit(places):
            yield places
            continue
        passed += 1
        if passed % PASSED == 0:
            yield NO_SET


def gathered(
    sets: Iterator[tuple[int, ...]], most: int, afford: int | None = None
) -> Generator[tuple[int, ...], None, list[tuple[int, ...]]]:
    """Return the first *sets*, *most* of them, to be put in order; what is none of them is passed on.

    No more are looked for where the search has had to pay for more than it can *afford* since the first.
    """
    found, paid = list[tuple[int, ...]](), 0
    while len(found) < most and paid != afford and (places := next(sets, None)) is not None:
        if places:
            found.append(places)
        elif found and places is not REST:
            paid += 1
        if not places or len(found) % GATHERED == 0:
            yield places and REST
    return found


def in_order(situation: Situation) -> list[Turn]:
    """Return the slots as they are asked."""
    return [Turn(*place) for place in situation.question.slots]


def turns_of(situation: Situation, preference: Preference | None) -> Sequence[Turn]:
    """Return the slots in turn: as they are asked, or, where the order is free, as is preferred.

    With admin access it is never free: who comes later may not have what an administrator only looks at. Neither is it
    with lists that are not understood.
    """
    if preference is None:
        return in_order(situation)
    if not isinstance(preference, AsAsked) and any(ask.is_admin for ask in situation.asks.values()):
        return most_constrained_first(situation)
    return preference.order(situation)


def most_constrained_first(situation: Situation) -> list[Turn]:
    """Order claim by claim, in each those first that have least room; as asked where an administrator only looks."""
    return [turn for claim in range(len(situation.question.claims)) for turn in _within(situation, claim)]


def _within(situation: Situation, claim: int) -> list[Turn]:
    slots = situation.slots(claim)
    turns = [Turn(claim, slot) for slot in range(len(slots))]
    if any(ask.is_admin for slot in slots for ask in slot.asks):
        return turns
    return sorted(turns, key=lambda turn: (slack(situation, turn), turn))


def slack(situation: Situation, turn: Turn) -> int:
    """Count the candidates beyond those that a slot needs, for the ask that leaves it most room."""
    places = situation.question.slots[turn]
    return max(situation.eligible[at].free.bit_count() - situation.asks[at].count for at in places)
