"""What policies do not have at all, whoever chooses: forbidden devices, and sets that are not as they must be."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.eligibility import Eligible
from extender.allocation.preference import Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.aliases import Member
from extender.topology.atlas import Machine
from extender.topology.choice import Chooser
from extender.topology.machine import Group
from extender.topology.policy import Policy, Wish
from extender.topology.shape import mask_of, places_of
from extender.topology.traits import is_forbidden

# Sets that are passed over because a policy does not have them; then only sets of one NUMA node are asked for.
PATIENCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What *policies* have, by claim. Strict ones judge the devices of each ask by themselves."""

    policies: Sequence[Policy]
    machine_on: Callable[[Board], Machine]
    chooser: Callable[[Group, At], Chooser]

    def narrowed(self, situation: Situation) -> Situation:
        """Leave out what no ask may have; who takes all has nothing where a part of that is not to be had."""
        if not any(policy.is_strict for policy in self.policies):
            return situation
        forbidden = [_forbidden(situation.board, policy) for policy in self.policies]
        left = {at: self._left(situation, at, forbidden[at.claim]) for at in situation.eligible}
        return replace(situation, eligible=left)

    def has(self, board: Board, at: At, places: Collection[int]) -> bool:
        """Tell whether the policy of an ask has these devices together."""
        policy = self.policies[at.claim]
        if not policy.is_firm or len(places) < 2:
            return True
        machine = self.machine_on(board)
        if policy.numa is Wish.STRICT and len(_zones(machine, places)) > 1:
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

    def zoned(self, board: Board, at: At, mask: int) -> list[int]:
        """Part *mask* by NUMA nodes where an ask must stay on one; devices of which none is known go alone."""
        if self.policies[at.claim].numa is not Wish.STRICT:
            return [mask]
        machine, found = self.machine_on(board), dict[object, int]()
        for place in places_of(mask):
            (zone,) = _zones(machine, (place,))
            found[zone] = found.get(zone, 0) | 1 << place
        return list(found.values())

    def _left(self, situation: Situation, at: At, forbidden: int) -> Eligible:
        found, ask = situation.eligible[at], situation.asks[at]
        is_whole = not mask_of(found.every) & forbidden and self.has(situation.board, at, found.every)
        if ask.takes_all and not is_whole:
            return replace(found, free=0, every=())
        return replace(found, free=found.free & ~forbidden)

    def _is_linked(self, machine: Machine, at: At, places: Collection[int]) -> bool:
        group = next((group for group in machine if set(places) <= set(group.indices)), None)
        return group is not None and self.chooser(group, at).make.is_linked(group.mask(places))


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
        patience = PATIENCE
        for places in self._preference.sets(situation, at, mask, size, picks):
            is_fit = self._limits.has(situation.board, at, places)
            if is_fit:
                yield places
            patience -= not is_fit
            if not patience:
                break
        else:
            return
        for zone in self._limits.zoned(situation.board, at, mask):
            if zone.bit_count() >= size and zone != mask:
                among = self._preference.sets(situation, at, zone, size, picks)
                yield from (places for places in among if self._limits.has(situation.board, at, places))


def _zones(machine: Machine, places: Collection[int]) -> set[object]:
    """Return the NUMA nodes of devices; one without a known one is on a node of its own."""
    wanted, found = set(places), set[object]()
    for group in machine:
        for index, place in zip(group.indices, group.links.places, strict=True):
            if index in wanted:
                found.add((place.first_numa,) if place.first_numa is not None else index)
    return found


def _forbidden(board: Board, policy: Policy) -> int:
    """Return the mask of the candidates that *policy* forbids."""
    if not policy.forbid:
        return 0
    members = (Member(candidate.key, candidate.device) for candidate in board.candidates)
    return mask_of(place for place, member in enumerate(members) if is_forbidden(policy, member))
