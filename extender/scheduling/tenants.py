"""Pods that share devices: what each takes of them, and what places are worth for it."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

import numpy as np

from extender.allocation.capacity import Unusable, draw
from extender.allocation.fit import Fitter
from extender.allocation.question import RESULTS, Ask, At, Question
from extender.allocation.situation import Situation
from extender.allocation.snapshot import Snapshot
from extender.model.device import Device
from extender.model.footprint import CPU
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.commons import MEMORY, MIB, Commons
from extender.topology.appraisal import Part
from extender.topology.fragmentation import Flags, Integers
from extender.topology.holdings import NOBODY, Holdings
from extender.topology.memo import Memo
from extender.topology.policy import Placing, Policy
from extender.topology.portions import WHOLE, spared, taken_of, valued
from extender.topology.quality import ONE
from extender.topology.shared import Beside, Criteria, told
from extender.topology.sharing import NOWHERE
from extender.topology.typical import PodAsk

# Pods and claims that are remembered, and asks of which it is known what they take.
PODS: Final = 1 << 14
ASKS: Final = 1 << 10
# Below all that places are worth: where an ask does not seem to fit, though its devices do.
LEAST: Final = -2 * ONE - 1
NO_NEEDS: Final = Beside()


class Shares(NamedTuple):
    """What an ask takes of which models. *is_whole*: of each model all devices will do, or none.

    *is_named*: by amounts that it names.
    """

    asks: tuple[PodAsk, ...] = ()
    is_whole: bool = False
    is_named: bool = False

    def beside(self, needed: Beside) -> tuple[PodAsk, ...]:
        return tuple(ask._replace(cpu=needed.cpu, memory=needed.memory) for ask in self.asks)

    def valued(self, ask: PodAsk, gains: Integers) -> Integers:
        """Return what gains of *ask*, one of these, are worth."""
        return valued(gains, is_all=ask.amount == WHOLE and not self.is_named)


NO_SHARES: Final = Shares()


def needed_by(pod: Pod) -> Beside:
    """Return what a pod takes of its node beside its devices."""
    amounts = dict(pod.terms.amounts)
    return Beside(amounts.get(CPU, 0), -(-amounts.get(MEMORY, 0) // MIB))


class Tenants:
    """What is known of pods that share the devices of *commons*. One writer."""

    def __init__(self, commons: Commons) -> None:
        self.commons = commons
        # The claims of each pod.
        self._met: Memo[Uid, tuple[Uid, ...]] = Memo(PODS)
        self._needed: Memo[Uid, Beside] = Memo(PODS)
        # Of what each question found usable last, which nobody else need have any more.
        self._shares: Memo[tuple[int, At], tuple[ReferenceType[Flags], Holdings, Shares]] = Memo(ASKS)

    def shares(self, fitter: Fitter, at: At, snapshot: Snapshot) -> Shares:
        """Return what an ask takes; nothing where other devices will do too, it does not choose, or nobody has so many.

        What cannot be had is not typical either; and sums of no more than RESULTS devices stay within 64 bits.
        """
        self.commons.look(snapshot)
        ask, holdings = fitter.question.asks[at], self.commons.holdings
        features = fitter.question.features
        if (
            not len(holdings.node)
            or ask.takes_all
            or ask.is_admin
            or not 0 < ask.count <= RESULTS
            or not features.consumable_capacity
        ):
            return NO_SHARES
        usable = fitter.matches_in(snapshot).of[at].usable
        known = self._shares.get((id(fitter), at))
        if known is None or known[0]() is not usable or known[1] is not holdings:
            found = self._found(ask, usable, is_fractional=features.fractional_capacity_range)
            known = self._shares[id(fitter), at] = ref(usable), holdings, found
        return known[2]

    def meet(self, pod: Pod, question: Question, fitter: Fitter, snapshot: Snapshot) -> Beside:
        """Count what a pod asks for, once; of alternatives the first. Return what it needs beside its devices."""
        needed = needed_by(pod)
        for part in question.claims:
            self._needed[part.claim.uid] = needed
        if pod.uid not in self._met:
            self._met[pod.uid] = tuple(part.claim.uid for part in question.claims)
            for at in fitter.question.asks:
                if not at.ask:
                    self.commons.meet(self.shares(fitter, at, snapshot).beside(needed))
        return needed

    def forget(self, pod: Uid) -> None:
        """Forget what a pod needs that waits no longer. What was counted stays so."""
        for claim in self._met.pop(pod, ()):
            self._needed.pop(claim, None)

    def criteria_of(self, policies: Sequence[Policy]) -> Callable[[Situation, At], Criteria]:
        """Return who tells what counts for an ask of a pod that was met."""

        def criteria(situation: Situation, at: At) -> Criteria:
            needed = self._needed.get(situation.question.claims[at.claim].claim.uid, NO_NEEDS)
            free = self.commons.free_on(situation.board.node.name)
            return Criteria(self.commons.placer.measure, free, needed, policies[at.claim].placing)

        return criteria

    def values(self, shares: Shares, needed: Beside, placing: Placing) -> Integers:
        """Return what the best devices of each node are worth, LEAST where there are none: int64[nodes]."""
        commons = self.commons
        found = np.full(commons.holdings.nodes, LEAST)
        for ask in shares.beside(needed):
            gains = commons.placer.gains(ask)
            fits = gains != NOWHERE
            if placing is Placing.PROTECT:
                worth = shares.valued(ask, np.where(fits, gains, 0))
            else:
                free, whole = (rows.free.sum(axis=1) for rows in (commons.placer.fleet.rows, commons.whole))
                worth = spared(free, whole, ask.total, placing)
            found = np.maximum(found, commons.best_of(np.where(fits, worth, LEAST), LEAST))
        return found

    def beside_devices(self, pod: Pod, snapshot: Snapshot) -> Integers | None:
        """Return what each node is worth to a pod without devices, most where none are shared; None if nowhere."""
        self.commons.look(snapshot)
        if not len(self.commons.holdings.node):
            return None
        gains = self.commons.placer.gains(PodAsk(*needed_by(pod)))
        worth = np.where(gains == NOWHERE, LEAST, gains)
        found = np.zeros(self.commons.holdings.nodes, np.int64)
        np.minimum.at(found, self.commons.holdings.node, worth)
        return found

    def outline(
        self, shares: Shares, needed: Beside, placing: Placing, snapshot: Snapshot, node: int
    ) -> tuple[Part, ...]:
        """Say what speaks for the best devices of a node, and against them."""
        commons, found = self.commons, list[Part]()
        for ask, row in product(shares.beside(needed), commons.holdings.rows_of(np.array([node])).tolist()):
            spot = commons.placer.spot(ask, row)
            if spot is None:
                continue
            left = commons.placer.fleet.rows.free[row]
            taken = [(int(left[place]), int(commons.holdings.devices[row, place])) for place in spot.devices]
            named = [(some, str(snapshot.inventory.key(device).device)) for some, device in taken]
            free, whole = left.sum(keepdims=True), commons.whole.free[row].sum(keepdims=True)
            if placing is Placing.PROTECT:
                worth = shares.valued(ask, np.array([spot.gain]))
            else:
                worth = spared(free, whole, ask.total, placing)
            found.append(Part("shares", int(worth[0]), told(ask, named, spot.gain, placing)))
        return (max(found, key=lambda part: part.value),) if found else ()

    def _found(self, ask: Ask, usable: Flags, *, is_fractional: bool) -> Shares:
        """Work out what is taken of each model; nothing unless all that is usable is shared."""
        holdings, devices = self.commons.holdings, self.commons.catalogue.devices
        numbers = holdings.model_of[usable]
        if not len(numbers) or (numbers == NOBODY).any():
            return NO_SHARES
        every = np.bincount(holdings.model_of[holdings.model_of != NOBODY], minlength=len(devices))
        mine = np.bincount(numbers, minlength=len(devices))
        models: dict[int, int] = {}
        for number in np.flatnonzero(mine).tolist():
            amount = _amount(ask, devices[number], is_fractional=is_fractional)
            if amount is not None:
                models[amount] = models.get(amount, 0) | 1 << number
        is_whole = bool((mine[mine > 0] == every[mine > 0]).all())
        asks = tuple(PodAsk(0, 0, amount, ask.count, bits) for amount, bits in sorted(models.items()))
        return Shares(asks, is_whole, bool(ask.capacity))


def _amount(ask: Ask, device: Device, *, is_fractional: bool) -> int | None:
    """Return what *ask* takes of a device; None where nobody can tell."""
    try:
        drawn = draw(dict(ask.capacity), device.capacity, fractional=is_fractional)
    except Unusable:
        return None
    return taken_of(device, drawn) if drawn else None
