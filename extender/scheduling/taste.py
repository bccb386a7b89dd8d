"""What is preferred where there is a choice: by which policy, among which devices, and how good a choice is."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.fit import Fitter
from extender.allocation.preference import Tightest
from extender.allocation.question import Ask, At, Question
from extender.allocation.situation import Situation
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Manner, Solution
from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.scheduling.commons import Commons
from extender.scheduling.tenants import NO_NEEDS, Tenants
from extender.state.loads import Loads
from extender.topology.aliases import Member
from extender.topology.appraisal import Appraisal, Basis, Part
from extender.topology.atlas import Atlas
from extender.topology.choice import Chooser
from extender.topology.choosers import Choosers
from extender.topology.demand import Demand
from extender.topology.document import Document
from extender.topology.frames import Framed
from extender.topology.linked import Linked, Wired
from extender.topology.machine import Group
from extender.topology.memo import Memo
from extender.topology.partitioned import Partitioned
from extender.topology.policies import NotAllowed
from extender.topology.policy import STEP, Policy
from extender.topology.ratings import APART, NONE, Ratings, Values
from extender.topology.residual import Mix
from extender.topology.shape import mask_of, places_of
from extender.topology.shared import Beside, Shared
from extender.topology.traits import is_forbidden
from extender.topology.words import parts_of

__all__ = ["APART", "NONE", "Forbidden", "Taste", "Values"]
# Asks whose ratings are remembered.
ASKS: Final = 256
FOUND: Final = 1 << 15


class Forbidden(ValueError):  # noqa: N818 - an answer to the pod, not a failure of ours
    """A claim names a policy that it may not use; the message tells which it may."""


class Taste:
    """Prefers devices by their links, as *document* says. *mix_of* tells what will be asked for of a class.

    One writer.
    """

    def __init__(
        self, document: Document, mix_of: Callable[[str, Demand], Mix], commons: Commons | None = None
    ) -> None:
        self.document, self._mix_of = document, mix_of
        self._tenants = Tenants(commons or Commons(Loads()))
        self._tenants.commons.use(document.configuration)
        self.atlas, self._choosers = Atlas(document.configuration, document.policies.attributes), Choosers()
        self._partitioned = Partitioned()
        self._ratings: Memo[tuple[int, At, Policy, Mix], tuple[Fitter, Ratings]] = Memo(ASKS)
        # What searches found, by policies, machine and state; states are of one question.
        self.found: Memo[tuple[int, tuple[Policy, ...], int, bytes, Hashable], tuple[object, int]] = Memo(FOUND)

    def policies(self, claims: Sequence[ResourceClaim]) -> tuple[Policy, ...]:
        """Return the policy of each claim; raise Forbidden."""
        found = tuple(map(self.document.policies.policy_for, claims))
        for policy in found:
            if isinstance(policy, NotAllowed):
                raise Forbidden(policy.text)
        return tuple(policy for policy in found if isinstance(policy, Policy))

    def mix(self, ask: Ask) -> Mix:
        """Return what will be asked for of the devices that *ask* is for."""
        return self._mix_of(ask.class_name, self.document.demand)

    def chooser(self, group: Group, policy: Policy, ask: Ask) -> Chooser:
        return self._choosers.of(group, policy, self.mix(ask))

    def manner(self, manner: Manner, policies: Sequence[Policy]) -> Manner:
        """Search like *manner*, but prefer what is wanted here."""

        def wiring(board: Board, at: At, ask: Ask) -> Sequence[Wired]:
            machine, policy = self.atlas.on(board), policies[at.claim]
            return [Wired(self.chooser(group, policy, ask), group.indices) for group in machine]

        strict = [claim for claim, policy in enumerate(policies) if policy.is_strict]
        linked = Linked(wiring, Tightest(), strict, self._partitioned.wholes)

        def allowed(situation: Situation, at: At, mask: int) -> int:
            return mask & ~_forbidden(situation, policies[at.claim])

        framed = Framed(self._partitioned, self._shared(policies), linked, allowed)
        return replace(manner, preference=framed, is_strict=bool(strict))

    def meet(self, pod: Pod, question: Question, fitter: Fitter, snapshot: Snapshot) -> Beside:
        """Count what *pod* asks for, the first time; return what it needs beside its devices."""
        return self._tenants.meet(pod, question, fitter, snapshot)

    def beside_devices(self, pod: Pod, snapshot: Snapshot) -> Values | None:
        """Value nodes for a pod that needs no devices, by what it leaves to those who share them: int64[nodes]."""
        return self._tenants.beside_devices(pod, snapshot)

    def values(
        self, fitter: Fitter, policies: Sequence[Policy], snapshot: Snapshot, needed: Beside = NO_NEEDS
    ) -> Values:
        """Estimate what each node has for a question, int64[nodes]: each ask by itself, as if there were no other.

        Where *is_exact* says so it is what the node's best devices are worth; elsewhere it is about that, or more.
        """
        total = np.zeros(len(snapshot.layout.nodes), np.int64)
        for claim, part in enumerate(fitter.question.claims):
            for slot, wanted in enumerate(part.slots):
                ats = [At(claim, slot, index) for index in range(len(wanted.asks))]
                values = self._slot(fitter, ats, policies[claim], snapshot, needed)
                total = np.where((total == NONE) | (values == NONE), NONE, total + values)
        return total

    def is_exact(self, fitter: Fitter, snapshot: Snapshot, policies: Sequence[Policy]) -> bool:
        """Tell whether estimates are exact: one ask for devices of the node, whole or shared, bound by nothing."""
        question = fitter.question
        if len(question.asks) != 1 or snapshot.reach.view.any():
            return False
        (at,) = question.asks
        if question.covered[at]:
            return False
        is_unbound = self._tenants.shares(fitter, at, snapshot).is_whole and not policies[at.claim].is_strict
        return is_unbound or is_rated(fitter, at, snapshot)

    def beside(self, fitter: Fitter, snapshot: Snapshot, node: int, needed: Beside) -> Hashable:
        """Return what the worth of a node's devices depends on beside them; None where it does on nothing."""
        if not any(self._tenants.shares(fitter, at, snapshot).asks for at in fitter.question.asks):
            return None
        measure = self._tenants.commons.placer.measure
        return needed, self._tenants.commons.free_on(snapshot.layout.nodes[node]), measure

    def _shared(self, policies: Sequence[Policy]) -> Shared:
        return Shared(self._tenants.commons.catalogue, self._tenants.scene_of(policies))

    def _slot(self, fitter: Fitter, ats: Sequence[At], policy: Policy, snapshot: Snapshot, needed: Beside) -> Values:
        """Value the first alternative that can be had."""
        found = np.full(len(snapshot.layout.nodes), NONE)
        for at in ats:
            values = self._ask(fitter, at, policy, snapshot, needed)
            found = np.where(found == NONE, np.where(values == NONE, NONE, values - at.ask * STEP), found)
        return found

    def _ask(self, fitter: Fitter, at: At, policy: Policy, snapshot: Snapshot, needed: Beside) -> Values:
        shares = self._tenants.shares(fitter, at, snapshot)
        if shares.asks:
            return self._tenants.values(shares, needed, policy.placing)
        if not is_rated(fitter, at, snapshot):
            return np.zeros(len(snapshot.layout.nodes), np.int64)
        return self.ratings(fitter, at, policy).of(snapshot, fitter.offers_in(snapshot).of[at].usable)

    def ratings(self, fitter: Fitter, at: At, policy: Policy) -> Ratings:
        """Return what is known of the ratings of an ask."""
        ask = fitter.question.asks[at]
        key = id(fitter), at, policy, self.mix(ask)
        known = self._ratings.get(key)
        if known is None or known[0] is not fitter:
            choosing = partial(self._choosers.of, policy=policy, mix=key[-1])
            fresh = Ratings(self.atlas, choosing, ask.count, NONE if policy.is_strict else APART)
            known = self._ratings[key] = fitter, fresh
        return known[1]

    def outline(
        self, fitter: Fitter, policies: Sequence[Policy], snapshot: Snapshot, node: int, needed: Beside = NO_NEEDS
    ) -> tuple[Part, ...]:
        """Say what speaks for the best set of *node*, where that is known without a search."""
        if not self.is_exact(fitter, snapshot, policies):
            return ()
        (at,) = fitter.question.asks
        shares = self._tenants.shares(fitter, at, snapshot)
        if shares.asks:
            return self._tenants.outline(shares, needed, policies[at.claim].placing, snapshot, node)
        ratings = self.ratings(fitter, at, policies[at.claim])
        best = ratings.best(snapshot, fitter.offers_in(snapshot).of[at].usable, node)
        if best is None:
            return ()
        group, free, choice = best
        chooser = self.chooser(group, policies[at.claim], fitter.question.asks[at])
        return parts_of(group, chooser, free, choice.mask)

    def accepts(self, solution: Solution, policies: Sequence[Policy]) -> bool:
        """Tell whether no device is forbidden: a request for all devices takes them without asking anybody."""
        forbidden = [_forbidden(solution.situation, policy) for policy in policies]
        return not any(forbidden[pick.at.claim] >> pick.place & 1 for pick in solution.picks)

    def appraise(self, solution: Solution, policies: Sequence[Policy], *, tells: bool = True) -> Appraisal:
        """Say how good the devices of *solution* are, and why if that is to be told."""
        situation, total = solution.situation, 0
        frames = Framed(self._partitioned, self._shared(policies), Tightest())
        parts, given = list[Part](), tuple[tuple[At, int], ...]()
        asked = _by_ask(solution.picks)
        for at, places in asked:
            seen, ask = replace(situation, given=given), situation.asks[at]
            framed = None if ask.takes_all or ask.is_admin else frames.value(seen, at, places)
            found = framed or self._appraised(seen, at, places, policies[at.claim], tells=tells)
            total += found.value - at.ask * STEP
            parts += _labelled(situation.asks[at].name if len(asked) > 1 else "", found.parts)
            given += tuple((at, place) for place in places)
        return Appraisal(total, tuple(parts), self._basis(policies, situation.asks.values()))

    def _appraised(
        self, situation: Situation, at: At, places: Sequence[int], policy: Policy, *, tells: bool
    ) -> Appraisal:
        """Appraise what one ask is given."""
        ask = situation.asks[at]
        if ask.takes_all or ask.is_admin:
            return Appraisal(0)
        group = next((group for group in self.atlas.on(situation.board) if set(places) <= set(group.indices)), None)
        if group is None:
            return Appraisal(APART)
        chooser, chosen = self.chooser(group, policy, ask), _mask(group, places)
        whole = self._partitioned.wholes(situation, mask_of(group.indices))
        free = chosen | _mask(group, places_of(whole))
        parts = parts_of(group, chooser, free, chosen) if tells else ()
        return Appraisal(sum(chooser.terms(free, chosen)), parts)

    def _basis(self, policies: Sequence[Policy], asks: Iterable[Ask]) -> Basis:
        """Say by which policies, and for which sizes that are expected."""
        mixes = {ask.class_name: self.mix(ask) for ask in asks}
        sizes = (
            f"expected of {name}: {', '.join(f'{size} x {weight}' for size, weight in mix.weights)}"
            for name, mix in sorted(mixes.items())
        )
        return Basis(tuple(dict.fromkeys(policy.name for policy in policies)), tuple(sizes))


def _by_ask(picks: Sequence[Pick]) -> list[tuple[At, list[int]]]:
    found: dict[At, list[int]] = {}
    for pick in picks:
        found.setdefault(pick.at, []).append(pick.place)
    return sorted(found.items())


def _labelled(request: str, parts: Iterable[Part]) -> Iterable[Part]:
    """Put the name of a request before what is said of its devices, where there are several."""
    return (part._replace(text=f"{request}: {part.text}") if request and part.text else part for part in parts)


def _mask(group: Group, places: Iterable[int]) -> int:
    """Return the mask of *places* among the devices of *group*."""
    given = set(places)
    return mask_of(place for place, index in enumerate(group.indices) if index in given)


def _forbidden(situation: Situation, policy: Policy) -> int:
    """Return the mask of the candidates that *policy* forbids."""
    if not policy.forbid:
        return 0
    members = (Member(candidate.key, candidate.device) for candidate in situation.board.candidates)
    return mask_of(place for place, member in enumerate(members) if is_forbidden(policy, member))


def is_rated(fitter: Fitter, at: At, snapshot: Snapshot) -> bool:
    """Tell whether an ask is for whole devices that are chosen."""
    ask, offers = fitter.question.asks[at], fitter.offers_in(snapshot)
    is_chosen = not (ask.takes_all or ask.is_admin or ask.count <= 0)
    return is_chosen and not (offers.of[at].usable & offers.special).any()
