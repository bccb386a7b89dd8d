"""All that we hold for true: the cluster, the pods that wait, what the others take, and what was promised.

One change at a time. Taking over what the watch shows and ending the holds that it speaks about is one step: nobody
sees a device free in between.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from extender.allocation.extended import Classes, served_by_classes
from extender.allocation.features import Features
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Manner
from extender.model.change import Change, Changed, Gone, Listed, Noun, kind_of, relisted
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import DeviceKey, ObjectKey, PoolKey, Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.state.cluster import OF_PODS, Cluster, key_of_noun
from extender.state.contest import contested, draws_counters, overdrafts
from extender.state.domain import Domain, writer_of
from extender.state.foreign import Foreign, is_borne, is_ours
from extender.state.ledger import UNMADE, ClaimHold, Event, Ledger, Phase
from extender.state.loads import Loads
from extender.state.ownership import Ownership
from extender.state.pods import Pods
from extender.state.questions import Questions
from extender.state.recalling import recalled
from extender.state.sealing import Sealing
from extender.state.seniority import Seniority
from extender.state.unread import Unread
from extender.topology.learning import Learning

# How long a driver may take to make a device ready, counted from the allocation: as in kube-scheduler.
READY_WITHIN_S: Final = 600.0


class Belief:
    """What we know, for some schedulers. *domain* says what is ours."""

    def __init__(
        self, schedulers: tuple[str, ...], features: Features, manner: Manner = BEST, domain: Domain | None = None
    ) -> None:
        self.cluster = Cluster(sharing=features.consumable_capacity)
        self.pods = Pods(schedulers)
        self.unread = Unread()
        self.loads = Loads()
        self.ledger = Ledger()
        self.questions = Questions(features, manner)
        self.learning = Learning()
        self.seniority = Seniority()
        self.ready_within_s = READY_WITHIN_S
        # Told of each pod that waits no longer, for it is bound or gone: nothing about it need be remembered.
        self.parting: list[Callable[[Uid], None]] = []
        self._worked_on: set[Uid] = set()
        self.ownership = Ownership(domain or Domain(writer=writer_of(schedulers)))
        self.sealing = Sealing(self.cluster, self.ownership)
        # Whether claims were listed, and are served.
        self.knows_claims = self._has_listed_pods = False
        self._served = (self.cluster.snapshot.classes, served_by_classes(()))

    def served_by_classes(self) -> Classes:
        """Return the extended resources that device classes stand behind now."""
        classes = self.cluster.snapshot.classes
        if self._served[0] is not classes:
            self._served = classes, served_by_classes(classes.values())
        return self._served[1]

    def seen_by(self, pod: Uid | None = None) -> Snapshot:
        """Return the cluster with all that was promised taken, but for what was merely offered to *pod*."""
        return self.ledger.overlay(self.cluster.snapshot, without=pod)

    def contested(self, claim: ResourceClaim) -> DeviceKey | None:
        """Name a device of *claim* that an earlier claim holds, or that does not suffice for both."""
        mine, inventory = self.seniority.of(claim.key), self.cluster.snapshot.inventory
        has_sufficed, is_drawing = self.seniority.has_sufficed(claim.key), draws_counters(mine, inventory)
        if has_sufficed and not is_drawing and not any(use.consumed for use in mine.values()):
            # Whoever came before has no more by now than when there was enough.
            return None
        # A pool may have thousands of claims: all of them matter only where something is drawn from what they share.
        before = self.seniority.before(claim.key, None if is_drawing else mine)
        found = contested(mine, before, inventory, has_sufficed=has_sufficed) if before else None
        if found is None and mine and all(map(inventory.rows_of, mine)):
            self.seniority.suffices(claim.key)
        return found

    def overdrafts(self, pool: PoolKey) -> Iterator[tuple[ObjectKey, DeviceKey | None]]:
        """Go through the claims that hold devices of *pool*; name one of each that does not suffice for it, too."""
        return overdrafts(self.seniority.holders(pool), pool, self.cluster.snapshot.inventory)

    def apply(self, change: Change) -> None:
        """Take *change* over."""
        self.loads.apply(change)
        about = kind_of(change)
        if about in OF_PODS:
            self.unread.apply(change)
        if about == Footprint.__name__:
            return
        match change:
            case Changed(Pod() as pod):
                self._part(self.pods.put(pod))
            case Gone(kind, key) if kind is Pod:
                self._part(self.pods.drop(key))
            case Listed(kind, items) if kind is Pod:
                self._list_pods(items)
            case Changed(Problem() as problem) if problem.kind == Pod.__name__:
                self._part(self.pods.drop(problem.key))
            case Listed(kind) if kind is ResourceClaim:
                self._list_claims(change)
            case _:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        before = self._known(change)
        self._take_over(change)
        if before is not None and self.cluster.claims.with_uid(before.uid) is None:
            self.ledger.tell_claim(before.uid, Event.OUTDATED)
        match change:
            case Changed(ResourceClaim() as claim):
                self._open({item.uid for item in (before, claim) if item})
                if before is None or before.uid != claim.uid:
                    self.learning.saw(claim)
                self._place(claim)
                self._conclude(claim)
            case Gone(kind, key) if kind is ResourceClaim:
                self._open({before.uid} if before else set())
                self.seniority.drop(key)

    def _take_over(self, change: Change) -> None:
        self.questions.move_on(self.cluster.apply(self.ownership.told(change)))

    def _list_claims(self, listed: Listed) -> None:
        """Take a list of claims over: of tens of thousands few are others than before."""
        known = self.cluster.claims
        news, gone = relisted(known, listed.items, key_of_noun)
        claims = [item for item in news if isinstance(item, ResourceClaim)]
        unknown = {claim.uid for claim in claims if known.with_uid(claim.uid) is None}
        self._take_over(listed)
        # Of claims that are not served nobody knows whether they are over.
        self._open(set(self.ownership.foreign) if listed.is_served else set())
        self.knows_claims = listed.is_served
        for key in gone:
            self.seniority.drop(key)
        for claim in sorted(claims, key=self._place_of):
            if claim.uid in unknown:
                self.learning.saw(claim)
            self._place(claim)
        self._conclude_all()

    def foreign_in(self, change: Change) -> tuple[Foreign, ...]:
        """Find the allocations by others that *change*, which is yet to be taken over, shows for the first time.

        What the first list shows was there before anybody listened.
        """
        match change:
            case Changed(ResourceClaim() as claim):
                shown: Sequence[Noun | Problem] = (claim,)
            case Listed(kind, items) if kind is ResourceClaim and self.knows_claims:
                shown, _ = relisted(self.cluster.claims, items, key_of_noun)
            case _:
                return ()
        inventory, claims = self.cluster.snapshot.inventory, [item for item in shown if isinstance(item, ResourceClaim)]
        return tuple(self.ownership.judged(claim, inventory) for claim in claims if self._is_foreign(claim))

    def recalled(self, item: Noun | Problem) -> Noun | Problem:
        """Return what is known in place of *item* where that says the same in the same words, and else *item*."""
        return recalled(item, self.cluster, self.loads, self.ownership)

    def _is_foreign(self, claim: ResourceClaim) -> bool:
        if not self.ownership.domain.devices_in(claim) or is_borne(claim):
            return False
        known = self.cluster.claims.with_uid(claim.uid)
        if known is not None and known.allocation == claim.allocation and not is_borne(known):
            return False
        hold = self.ledger.hold_of(claim.uid)
        return not is_ours(claim, hold, lambda uid: self.pods.with_uid(uid) is not None, self.ownership.domain)

    def _open(self, claims: set[Uid]) -> None:
        """Open what was closed because of those of *claims* that no longer hold what they did, or are to be borne."""
        self.sealing.open(claims, self.cluster.claims.with_uid)

    @contextmanager
    def alone_with(self, pod: Uid) -> Iterator[bool]:
        """Say whether nobody else works on what *pod* has, and keep all others away from it meanwhile.

        What one work has just written looks to another like something left behind.
        """
        is_alone = pod not in self._worked_on
        self._worked_on.add(pod)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._worked_on.discard(pod)

    def made(self, unmade: Uid, claim: ResourceClaim) -> None:
        """Remember that *claim* is what did not exist yet; the watch may be behind, or have shown it already."""
        is_seen = self.cluster.claims.with_uid(claim.uid) is not None
        self.ledger.rename(unmade, claim.uid, None if is_seen else claim.key)

    def accepted(self, pod: Uid, claim: ResourceClaim) -> None:
        """Remember that *claim* is what the write for *pod* led to, unless the watch has told that it is over already.

        What is shown of it from before says nothing. That it is shown no more does: a list may have come in between.
        """
        self.ledger.tell(pod, Event.ACCEPTED, claim.uid)
        known = self.cluster.claims.with_uid(claim.uid)
        if known is None or version(known) >= version(claim):
            self._conclude_hold(self.ledger.hold_of(claim.uid))

    def unanswered(self, claim: Uid) -> None:
        """Remember that nobody knows whether the write for *claim* arrived, unless the watch has told already."""
        # No allocation can have been written to a claim that does not exist, as far as anybody knew its name.
        is_unmade = claim.startswith(UNMADE)
        self.ledger.tell_claim(claim, Event.REFUSED if is_unmade else Event.UNANSWERED)
        self._conclude_hold(self.ledger.hold_of(claim))

    def _list_pods(self, items: tuple[Noun | Problem, ...]) -> None:
        pods = [item for item in items if isinstance(item, Pod)]
        for uid in self.pods.keep_only(pod.key for pod in pods):
            self._part(uid)
        for pod in pods:
            self._part(self.pods.put(pod))
        if not self._has_listed_pods:
            # Who waits is known from now on: all claims shown so far are placed as if they were listed now.
            self._has_listed_pods, self.seniority = True, Seniority()
            for claim in sorted(self.cluster.claims, key=self._place_of):
                self._place(claim)

    def _place(self, claim: ResourceClaim) -> None:
        self.seniority.put(claim, self.cluster.holds_of(claim.key))

    def _place_of(self, claim: ResourceClaim) -> tuple[bool, int]:
        """Order claims that were there before us: nobody tells which came first; the versions come closest.

        Whatever changes a claim moves its version, so that may be wrong. What we wrote and no bound pod has comes last
        therefore: nothing is lost but an attempt where it is given up.
        """
        is_waiting = all(self.pods.with_uid(user.uid) is not None for user in claim.reserved_for)
        return is_waiting and self.ownership.domain.writer in claim.writers, version(claim)

    def _part(self, pod: Uid | None) -> None:
        """Free what was only offered to a pod that waits no longer."""
        if pod is not None:
            self.ledger.tell(pod, Event.POD_GONE)
            for tell in self.parting:
                tell(pod)

    def _known(self, change: Change) -> ResourceClaim | None:
        """Return the claim that *change* may end, as it is known."""
        match change:
            case Changed(ResourceClaim(key=key)):
                return self.cluster.claims.get(key)
            case Gone(kind, key) if kind is ResourceClaim:
                return self.cluster.claims.get(key)
        return None

    def _conclude(self, claim: ResourceClaim) -> None:
        """End the hold on *claim* where what is shown of it tells how the write went."""
        self.ledger.saw(claim.uid)
        hold = self.ledger.hold_of(claim.uid)
        if hold is None:
            return
        # What the watch shows may be older than what the write is based on, and says nothing of it then.
        is_newer = version(claim) > hold.version
        if claim.allocation is not None and (is_newer or hold.phase is Phase.OFFERED or not hold.version):
            self.ledger.tell_claim(claim.uid, Event.SHOWN)
        elif claim.allocation is None and is_newer and hold.phase is not Phase.OFFERED:
            self.ledger.tell_claim(claim.uid, Event.OUTDATED)

    def _conclude_all(self) -> None:
        for promise in tuple(self.ledger):
            for hold in promise.claims:
                self._conclude_hold(hold)

    def _conclude_hold(self, hold: ClaimHold | None) -> None:
        """Do the same for a claim of which nothing was told just now. One never shown may come yet."""
        claim = self.cluster.claims.with_uid(hold.claim) if hold else None
        if claim is not None:
            self._conclude(claim)
        elif hold is not None and hold.is_of_shown_claim:
            self.ledger.tell_claim(hold.claim, Event.OUTDATED)


def version(what: ResourceClaim | Pod) -> int:
    """Return the version of a claim or pod as the number that it is; 0 where it is none."""
    return int(what.resource_version) if what.resource_version.isdecimal() else 0
