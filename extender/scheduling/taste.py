"""What is preferred where there is a choice: by which policy, on which nodes, and by what was expected."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import count
from typing import Final
from weakref import WeakKeyDictionary, ref

import numpy as np

from extender.allocation.fit import Fitter
from extender.allocation.grid import Flags
from extender.allocation.question import RESULTS, At, Question
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Solution
from extender.allocation.verdict import Fit
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.begun import Begun
from extender.scheduling.commons import Commons
from extender.scheduling.editions import Editions
from extender.scheduling.precedent import Case, Cases, Precedent, Vain, precedent_of
from extender.scheduling.preferring import Memory, Preferring, basis_of
from extender.scheduling.special import Special, least_last, room, sharing_of
from extender.scheduling.tenants import Tenants
from extender.state.loads import Loads
from extender.topology.appraisal import Appraisal, Basis, Part
from extender.topology.atlas import Atlas
from extender.topology.demand import Demand
from extender.topology.document import Document
from extender.topology.memo import Memo
from extender.topology.policies import NotAllowed
from extender.topology.policy import Placing, Policy, Wish, spoiling
from extender.topology.ratings import APART, NONE, PARTS, Gradings, Ratings, Spared, Uncut, Values, first_of, summed
from extender.topology.residual import Mix
from extender.topology.shared import Beside, Shared
from extender.topology.words import parts_of

# Ratings of one question, by ask, policy and mix.
RATINGS: Final = 64
# Asks of which something else is remembered.
ASKS: Final = 256
FOUND: Final = 1 << 15
ADVISED: Final = 1 << 14
# Of what ratings are: how they are made, of which ask and those like it, of how many, by which policy and mix.
Rated = tuple[type[Ratings], At, int, Policy, Mix]


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
        self.memory = Memory(Atlas(document.configuration, document.policies.attributes))
        # They go with their question, or with the cluster that it saw last.
        self._ratings: WeakKeyDictionary[object, Memo[Rated, Ratings]] = WeakKeyDictionary()
        self._special = Special()
        # Of the last cluster that each question was asked about, which nobody else need have any more.
        self._sharing: Memo[int, tuple[Callable[[], object], Callable[[], object], Flags | None]] = Memo(ASKS)
        self._bases: Memo[Hashable, int] = Memo(ASKS)
        self._numbers = count()
        # What was found, or what is said where nothing was.
        self.precedents: Cases[Precedent | Vain] = Cases()
        self._outlines: Cases[tuple[Part, ...]] = Cases()
        self.editions = Editions()
        # What searches found, by policies and mixes, machine, state, what is beside the devices, and edition of what is
        # shared.
        self.found: Cases[Appraisal] = Cases(FOUND)
        # What advisors found likewise, by first fit: machines are numbered by each taste for itself.
        self.advised: Cases[Appraisal] = Cases(ADVISED)
        # Searches that took too long for one turn, by their states as well.
        self.begun = Begun()
        # What was found of the nodes that were looked at closely last.
        self.looked_at: dict[int, Appraisal] = {}

    @property
    def atlas(self) -> Atlas:
        return self.memory.atlas

    def policies(self, claims: Sequence[ResourceClaim]) -> tuple[Policy, ...]:
        """Return the policy of each claim; raise Forbidden."""
        found = tuple(map(self.document.policies.policy_for, claims))
        for policy in found:
            if isinstance(policy, NotAllowed):
                raise Forbidden(policy.text)
        return tuple(policy for policy in found if isinstance(policy, Policy))

    def preferring(self, question: Question, policies: Sequence[Policy]) -> Preferring:
        """Return what is preferred for *question*."""
        shared = Shared(self._tenants.commons.catalogue, self._tenants.criteria_of(policies))
        return Preferring(self.memory, shared, question, policies, self._mixes(question))

    def meet(self, pod: Pod, question: Question, fitter: Fitter, snapshot: Snapshot) -> Beside:
        """Count what *pod* asks for, the first time; return what it needs beside its devices."""
        return self._tenants.meet(pod, question, fitter, snapshot)

    def sharing(self, fitter: Fitter, snapshot: Snapshot) -> Flags | None:
        """Tell which nodes have devices that could be given in shares, bool[nodes]; None where none has."""
        question = fitter.question
        if not question.features.consumable_capacity:
            return None
        matches = fitter.matches_in(snapshot)
        if not any(match.is_special for match in matches.of.values()):
            return None
        known = self._sharing.get(id(fitter))
        if known is None or known[0]() is not matches or known[1]() is not snapshot.layout:
            found = sharing_of(question, matches, snapshot)
            known = self._sharing[id(fitter)] = ref(matches), ref(snapshot.layout), found
        return known[2]

    def forget(self, pod: Uid) -> None:
        """Forget what a pod needs that waits no longer."""
        self._tenants.forget(pod)

    def beside(self, fitter: Fitter, snapshot: Snapshot, node: int, needed: Beside) -> Hashable:
        """Return what the worth of a node's devices depends on beside them; None where it does on nothing."""
        sharing = self.sharing(fitter, snapshot)
        if sharing is None or not sharing[node]:
            return None
        commons = self._tenants.commons
        commons.look(snapshot)
        return needed, commons.free_on(snapshot.layout.nodes[node]), commons.placer.measure

    def case(self, fitter: Fitter, policies: Sequence[Policy], snapshot: Snapshot, node: int) -> Case | None:
        """Name all that decides what a question is given on *node*; None where that is more than can be told here."""
        told = fitter.state_of(snapshot, node)
        # Whatever is not known of the question is not worked out for this: it may take all devices.
        if told is None or ((sharing := self.sharing(fitter, snapshot)) is not None and sharing[node]):
            return None
        number = self.number(fitter.question, policies)
        return Case(told[0], (number, int(self.atlas.numbers(snapshot)[node]), told[1]))

    def remember(self, case: Case | None, solution: Solution, appraisal: Appraisal, snapshot: Snapshot) -> None:
        """Remember for others in the same *case* what a search has found."""
        precedent = precedent_of(solution, appraisal, snapshot) if case else None
        if case and precedent:
            self.precedents.put(case, precedent)

    def number(self, question: Question, policies: Sequence[Policy]) -> int:
        """Return a number for all that decides what a search finds, beside the node and what is free there."""
        basis = basis_of(policies, self._mixes(question))
        number = self._bases.get(basis)
        if number is None:
            number = self._bases[basis] = next(self._numbers)
        return number

    def basis(self, question: Question, policies: Sequence[Policy]) -> Basis:
        """Say by which policies, and for which sizes that are expected."""
        expected = (
            f"expected of {name}: {', '.join(f'{size} x {weight}' for size, weight in mix.weights)}"
            for name, mix in sorted(self._mixes(question).items())
        )
        return Basis(tuple(dict.fromkeys(policy.name for policy in policies)), tuple(expected))

    def beside_devices(self, pod: Pod, snapshot: Snapshot) -> Values | None:
        """Value nodes for a pod that needs no devices, by what it leaves to those who share them: int64[nodes]."""
        return self._tenants.beside_devices(pod, snapshot)

    def values(self, fitter: Fitter, policies: Sequence[Policy], fit: Fit, needed: Beside) -> Values:
        """Estimate what each node has for a question, int64[nodes]: each ask by itself, as if there were no other.

        Where *is_exact* says so it is what the node's best devices are worth; elsewhere it is about that, or more.
        """
        total: Values | None = None
        snapshot, chosen = fit.snapshot, fit.chosen()
        for claim, part in enumerate(fitter.question.claims):
            for slot, wanted in enumerate(part.slots):
                ats = [At(claim, slot, index) for index in range(len(wanted.asks))]
                values = self.asks(fitter, ats, policies[claim], snapshot, needed)
                found = first_of(values, chosen[claim, slot]) if len(ats) > 1 else values[0]
                # Another request may take the devices of the first, and what is taken then may be ready.
                last = least_last(fitter, ats, snapshot)
                if last is not None:
                    found = np.where(found == NONE, NONE, found - last)
                total = found if total is None else summed(total, found)
        return np.zeros(len(fit.verdicts), np.int64) if total is None else total

    def is_exact(self, fitter: Fitter, snapshot: Snapshot, policies: Sequence[Policy]) -> bool:
        """Tell whether estimates are exact: one ask for devices, bound by nothing, on nodes with nothing else."""
        question = fitter.question
        is_wider = snapshot.reach.is_any and snapshot.reach.view.any()
        if len(question.asks) != 1 or is_wider or self.atlas.is_mixed(snapshot):
            return False
        if fitter.matches_in(snapshot).has_last:
            return False
        (at,) = question.asks
        if question.covered[at]:
            return False
        policy = policies[at.claim]
        is_alike = not (policy.is_strict or policy.is_graded)
        if self._tenants.shares(fitter, at, snapshot).is_whole and is_alike:
            return True
        # No rating knows whether all of a device is needed.
        is_known = is_rated(fitter, at, snapshot) and not question.asks[at].capacity
        return is_known and not self.ratings(fitter, at, policy).is_open

    def outline(
        self, fitter: Fitter, policies: Sequence[Policy], snapshot: Snapshot, node: int, needed: Beside
    ) -> tuple[Part, ...] | None:
        """Say what speaks for the best set of *node*; None where that is not known without a search."""
        if not self.is_exact(fitter, snapshot, policies):
            return None
        (at,) = fitter.question.asks
        shares = self._tenants.shares(fitter, at, snapshot)
        if shares.asks:
            return self._tenants.outline(shares, needed, policies[at.claim].placing, snapshot, node)
        case = self.case(fitter, policies, snapshot, node)
        known = self._outlines.of(case) if case else None
        if known is not None:
            return known
        ratings = self.ratings(fitter, at, policies[at.claim])
        best = ratings.best(snapshot, fitter.matches_in(snapshot).of[at].usable, node)
        found: tuple[Part, ...] = ()
        if best is not None:
            group, free, choice = best
            found = parts_of(group, ratings.ranker_of(group), free, choice.mask)
        if case:
            self._outlines.put(case, found)
        return found

    def ratings(self, fitter: Fitter, at: At, policy: Policy, made: type[Ratings] = Ratings) -> Ratings:
        """Return what is known of the ratings of an ask."""
        ask = fitter.question.asks[at]
        known = self._ratings.get(fitter.span)
        if known is None:
            known = self._ratings[fitter.span] = Memo(RATINGS)
        key = made, fitter.question.alike[at], ask.count, policy, self._mix(ask.class_name)
        ratings = known.get(key)
        if ratings is None:
            ranker_of = partial(self.memory.rankers.of, policy=policy, mix=key[-1])
            # Devices of several kinds are not linked, but may well be on one NUMA node.
            lacking = NONE if policy.links is Wish.STRICT else APART
            ratings = known[key] = made(self.atlas, ranker_of, ask.count, lacking)
        return ratings

    def asks(
        self, fitter: Fitter, ats: Sequence[At], policy: Policy, snapshot: Snapshot, needed: Beside
    ) -> list[Values]:
        """Value each of *ats*, alternatives for one request, by itself: int64[nodes]."""
        return [self._ask(fitter, at, policy, snapshot, needed) for at in ats]

    def _ask(self, fitter: Fitter, at: At, policy: Policy, snapshot: Snapshot, needed: Beside) -> Values:
        ask = fitter.question.asks[at]
        if is_chosen(fitter, at) and ask.count > RESULTS:
            # Nobody can have so many, and nothing is worked out for them.
            return np.full(len(snapshot.layout.nodes), NONE)
        shares = self._tenants.shares(fitter, at, snapshot)
        if shares.asks:
            return self._tenants.values(shares, needed, policy.placing) + self._graded(fitter, at, policy, snapshot)
        if not is_chosen(fitter, at):
            return np.zeros(len(snapshot.layout.nodes), np.int64)
        is_known = is_rated(fitter, at, snapshot)
        made = Ratings if is_known else Uncut if ask.capacity else Spared
        values = self.ratings(fitter, at, policy, made).of(snapshot, fitter.matches_in(snapshot).of[at].usable)
        # Ratings know what stands on a node; what is attached by network may do beside it.
        if snapshot.reach.is_any:
            values = np.where((snapshot.reach.view != 0) & (values == NONE), APART, values)
        # Of partitions and shares they know nothing, and those of some nodes must not hide what others have.
        if is_known:
            return values
        left = room(fitter, at, snapshot) if policy.placing is Placing.SPREAD else 0
        worth = left + self._graded(fitter, at, policy, snapshot)
        lost = spoiling(self._special.spoilt(fitter, at, snapshot)) if ask.capacity else 0
        return np.where(values == PARTS, worth, np.where(values == NONE, NONE, values + lost))

    def _graded(self, fitter: Fitter, at: At, policy: Policy, snapshot: Snapshot) -> Values | int:
        """Say what is preferred and avoided of partitions and shares at least, int64[nodes], or nothing."""
        if not policy.is_graded:
            return 0
        return self.ratings(fitter, at, policy, Gradings).of(snapshot, fitter.matches_in(snapshot).of[at].usable)

    def _mix(self, class_name: str) -> Mix:
        return self._mix_of(class_name, self.document.demand)

    def _mixes(self, question: Question) -> dict[str, Mix]:
        return {ask.class_name: self._mix(ask.class_name) for ask in question.asks.values()}


def is_rated(fitter: Fitter, at: At, snapshot: Snapshot) -> bool:
    """Tell whether an ask is for whole devices that are chosen."""
    return is_chosen(fitter, at) and not fitter.matches_in(snapshot).of[at].is_special


def is_chosen(fitter: Fitter, at: At) -> bool:
    ask = fitter.question.asks[at]
    return not (ask.takes_all or ask.is_admin or ask.count <= 0)
