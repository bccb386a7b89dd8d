"""What policies do not have at all, whoever chooses: forbidden devices, and sets that are not as they must be."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.eligibility import Eligible
from extender.allocation.masks import mask_of, places_of, within
from extender.allocation.preference import NO_SET, PASSED, Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.model.frozen import dataclass
from extender.topology.aliases import Member
from extender.topology.atlas import Machine
from extender.topology.choice import Ranker
from extender.topology.machine import Group
from extender.topology.memo import Memo
from extender.topology.policy import Policy, Wish
from extender.topology.traits import is_forbidden

# Sets that are passed over because a policy does not have them; then only sets of one NUMA node are asked for.
PATIENCE: Final = 1000
# Machines of which it is remembered what is where: searches of several nodes may take turns.
MACHINES: Final = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What *policies* have, by claim. Strict ones judge the devices of each ask by themselves."""

    policies: Sequence[Policy]
    machine_on: Callable[[Board], Machine]
    ranker: Callable[[Group, At], Ranker]
    _zones: Memo[int, tuple[Machine, Mapping[int, object]]] = field(default_factory=lambda: Memo(MACHINES))

    def narrowed(self, situation: Situation) -> Situation:
        """Leave out what no ask may have; who takes all has nothing where a part of that is not to be had."""
        if not any(policy.is_strict for policy in self.policies):
            return situation
        forbidden = [_forbidden(situation.board, policy) for policy in self.policies]
        left = {at: self._left(situation, at, forbidden[at.claim]) for at in situation.eligible}
        return replace(situation, eligible=left)

    @property
    def binds(self) -> bool:
        """Whether a rule can be made of anything that is demanded."""
        return any(policy.numa is Wish.STRICT for policy in self.policies)

    def bound(self, situation: Situation) -> Situation:
        """Make a rule of it that the devices of an ask must be of one NUMA node."""
        zone_of = self._zone_of(self.machine_on(situation.board))
        zones = [zone_of.get(place) for place in range(len(situation.board.candidates))]
        several = (at for at, ask in situation.asks.items() if ask.count > 1 and not ask.takes_all)
        keys = {at: zones for at in several if self.is_zoned(at)}
        return situation.bound(keys) if keys else situation

    def has(self, board: Board, at: At, places: Collection[int]) -> bool:
        """Tell whether the policy of an ask has these devices together."""
        policy = self.policies[at.claim]
        if not policy.is_firm or len(places) < 2:
            return True
        machine = self.machine_on(board)
        if policy.numa is Wish.STRICT:
            zone_of = self._zone_of(machine)
            if len({zone_of[place] for place in places if place in zone_of}) > 1:
                return False
        return policy.links is not Wish.STRICT or self._is_linked(machine, at, places)

    def accepts(self, situation: Situation, picks: Iterable[Pick]) -> bool:
        """Tell whether the policies have all that was picked."""
        given: dict[At, list[int]] = {}
        for pick in picks:
            given.setdefault(pick.at, []).append(pick.place)
        return all(
            self.has(situation.board, at, places)
            and not mask_of(places) & _forbidden(situation.board, self.policies[at.claim])
            for at, places in given.items()
        )

    def is_zoned(self, at: At) -> bool:
        """Tell whether the devices of an ask must be of one NUMA node."""
        return self.policies[at.claim].numa is Wish.STRICT

    def zoned(self, board: Board, mask: int) -> list[int]:
        """Part *mask* by NUMA nodes; devices of which none is known go alone, what is of no machine goes with any."""
        known, found, others = self._zone_of(self.machine_on(board)), dict[object, int](), 0
        for place in places_of(mask):
            if place in known:
                found[known[place]] = found.get(known[place], 0) | 1 << place
            else:
                others |= 1 << place
        return [zone | others for zone in found.values()]

    def _zone_of(self, machine: Machine) -> Mapping[int, object]:
        """Return the NUMA node of each device that is known; one without a known one is on a node of its own."""
        known = self._zones.get(id(machine))
        if known is None or known[0] is not machine:
            zones = {
                index: (place.first_numa,) if place.first_numa is not None else index
                for group in machine
                for index, place in zip(group.indices, group.links.places, strict=True)
            }
            known = self._zones[id(machine)] = machine, zones
        return known[1]

    def _left(self, situation: Situation, at: At, forbidden: int) -> Eligible:
        found, ask = situation.eligible[at], situation.asks[at]
        is_whole = not mask_of(found.every) & forbidden and self.has(situation.board, at, found.every)
        if ask.takes_all and not is_whole:
            return replace(found, free=0, every=())
        return replace(found, free=found.free & ~forbidden)

    def _is_linked(self, machine: Machine, at: At, places: Collection[int]) -> bool:
        group = next((group for group in machine if set(places) <= set(group.indices)), None)
        return group is not None and self.ranker(group, at).make.is_linked(within(group.indices, mask_of(places)))


class Limited:
    """Tries what is preferred as far as policies have it."""

    def __init__(self, preference: Preference, limits: Limits) -> None:
        self._preference, self._limits = preference, limits

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._preference.order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        board, is_zoned = situation.board, self._limits.is_zoned(at)
        every = self._preference.sets(situation, at, mask, size, picks)
        is_over = yield from self._had(board, at, every, PATIENCE if is_zoned else None)
        for zone in () if is_over else self._limits.zoned(board, mask):
            if zone.bit_count() >= size:
                yield from self._had(board, at, self._preference.sets(situation, at, zone, size, picks))

    def _had(
        self, board: Board, at: At, sets: Iterable[tuple[int, ...]], most: int | None = None
    ) -> Generator[tuple[int, ...], None, bool]:
        """Yield what the policy of an ask has; stop where *most* were passed over, and tell whether that was all."""
        passed = 0
        for places in sets:
            if self._limits.has(board, at, places):
                yield places
                continue
            passed += 1
            if passed % PASSED == 0:
                yield NO_SET
            if passed == most:
                return False
        return True


def _forbidden(board: Board, policy: Policy) -> int:
    """Return the mask of the candidates that *policy* forbids."""
    if not policy.forbid:
        return 0
    members = (Member(candidate.key, candidate.device) for candidate in board.candidates)
    return mask_of(place for place, member in enumerate(members) if is_forbidden(policy, member))
