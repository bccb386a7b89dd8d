"""What keeps pods from being placed is freed: once they were refused too often, or have waited for too long."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.conditions import Readiness, have_failed, is_waited_for, standing_of
from extender.scheduling.needs import Needs, had_by, made_for, needs_of
from extender.scheduling.remedy import freed, unusable
from extender.service.carrier import Carrier
from extender.service.turns import Turns
from extender.state.belief import Belief
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# How long a pod is left alone at most, where what is in its way could not be freed.
PATIENCE_S: Final = 60.0
# Claims in the versions in which they stood in a pod's way.
Held = frozenset[tuple[Uid, str]]


class Vain(NamedTuple):
    """What stood in a pod's way and could not be freed, when that is tried again, and how long after this again."""

    held: Held
    at: float
    again_s: float


@dataclass(slots=True)
class Freeing:
    """Counts refusals: who has had *attempts* of them has his claims freed. *wall* is the time of day.

    What the API server refuses to have freed, as by a policy of admission, it may refuse for good, and each try wakes
    the pod: these are tried more and more seldom until something about the claims changes.

    tick_s: how often time is an attempt, too; *is_unseen*: of a pod that the watch is about to show.
    """

    belief: Belief
    carrier: Carrier
    turns: Turns
    attempts: int
    tick_s: float
    wall: Callable[[], float]
    is_unseen: Callable[[Uid], bool]
    refusals: Counter[Uid]
    # Claims that stood in a pod's way until they were freed.
    cleared: dict[Uid, Held] = field(default_factory=dict)
    # Whether others go for a pod on a node, who are there still; and whether it could go elsewhere without some claims.
    are_going: Callable[[Uid, NodeName, Callable[[Uid, NodeName], bool]], bool] = lambda _pod, _node, _is_on: False
    is_of_use: Callable[[Needs, Sequence[ResourceClaim]], bool] = lambda _needs, _claims: True
    _counted: float = 0.0
    _leaving: dict[Uid, str] = field(default_factory=dict)
    _vain: dict[Uid, Vain] = field(default_factory=dict)
    # Pods with devices that were being made ready when last they were looked at.
    _unready: set[Uid] = field(default_factory=set)

    def rejected(self, pod: Pod, *, is_at_once: bool) -> None:
        """Count that *pod* was refused; *is_at_once*: no other attempt can end better before its claims are freed."""
        if is_at_once:
            self.refusals[pod.uid] = self.attempts
            self.cleared[pod.uid] = frozenset()
            self._unready.discard(pod.uid)
        elif unusable(pod, self.belief, self.wall()):
            is_first = self._has_become_ready(pod) or self._has_others_go(pod)
            self.refusals[pod.uid] = 0 if is_first else max(self.refusals[pod.uid], 0) + 1

    def forget(self) -> None:
        """Forget everything: another has led since."""
        for known in (self.refusals, self.cleared, self._leaving, self._vain, self._unready):
            known.clear()

    def part(self) -> None:
        """Have the pods that wait give up what is being deleted at once; one version of a claim is reason once."""
        known, self._leaving, claims = self._leaving, {}, self.belief.cluster.claims
        for pod in filter(None, map(self.belief.pods.with_uid, claims.keepers())):
            for claim in claims.kept_by(pod):
                self._leaving[claim.uid] = claim.resource_version
                if known.get(claim.uid) != claim.resource_version:
                    self.refusals[pod.uid] = self.attempts

    async def round(self, now: Callable[[], float]) -> None:
        """Free the claims that have kept a pod from being placed too often, or for too long."""
        if now() - self._counted >= self.tick_s:
            # A pod that waits is not asked about again until something happens: time is an attempt too.
            self._counted = now()
            self.refusals.update(tuple(self.refusals))
            for pod in filter(None, map(self.belief.pods.with_uid, tuple(self.refusals))):
                if self._has_become_ready(pod) or self._has_others_go(pod):
                    self.refusals[pod.uid] = min(self.refusals[pod.uid], 0)
            self._vain = {uid: vain for uid, vain in self._vain.items() if uid in self.refusals}
            self._unready &= self.refusals.keys()
        due = [uid for uid, count in self.refusals.items() if count >= self.attempts]
        await self.turns.each([uid for uid in due if not self._rests(uid, now())], partial(self._free_of, now))

    def _rests(self, uid: Uid, now: float) -> bool:
        """Tell whether a pod is left alone, for what is in its way is as it was when that could not be freed."""
        vain, claims = self._vain.get(uid), self.belief.cluster.claims
        if vain is None or vain.at <= now:
            return False
        return all((claim := claims.with_uid(uid)) and claim.resource_version == version for uid, version in vain.held)

    async def _free_of(self, now: Callable[[], float], uid: Uid) -> bool | None:
        await asyncio.sleep(0)  # whether a pod is to stay takes a survey: between two of them the scheduler is answered
        if self.is_unseen(uid):
            return None
        pod = self.belief.pods.with_uid(uid)
        # While another is freed the scheduler may ask about this one: what was offered is left alone.
        if pod is None or uid not in self.refusals:
            self.refusals.pop(uid, None)
            return None
        if self._has_become_ready(pod) or self._is_to_stay(pod):
            self.refusals[uid] = 0
            return None
        held = self._held(pod)
        is_free = await self._freed(pod, held, now)
        is_left = self.refusals.pop(uid, None) is not None
        if is_left and not is_free and self._is_hindered(pod):
            self.refusals[uid] = self.attempts - 1
            if is_free is False and held:
                self._leave(uid, held, now())
        return False if is_free is None else is_free or None

    def _has_others_go(self, pod: Pod) -> bool:
        """Tell whether others, who are there still, go for *pod* on the node that it is nominated for.

        It may be waiting for nothing else to be bound there with what it has.
        """
        node = pod.nominated_node
        if node is None or not self.are_going(pod.uid, node, self.belief.loads.is_on):
            return False
        return not have_failed(had_by(pod, self.belief), self.wall(), self.belief.ready_within_s)

    def _has_become_ready(self, pod: Pod) -> bool:
        """Tell whether what *pod* has is ready since it was looked at last.

        Refusals of before do not count: the scheduler has not asked with what is so now, and others may go for it yet.
        """
        had, was_unready = had_by(pod, self.belief), pod.uid in self._unready
        readiness = standing_of(had, self.wall(), self.belief.ready_within_s).readiness
        (self._unready.add if readiness is Readiness.WAITING else self._unready.discard)(pod.uid)
        return was_unready and readiness is Readiness.READY and bool(had)

    def _is_to_stay(self, pod: Pod) -> bool:
        """Tell whether all that is in the way of *pod* is being made ready, and there is nothing for it elsewhere.

        It would be given the same again, and others might be evicted for that once more.
        """
        needs, found = needs_of(pod, self.belief), unusable(pod, self.belief, self.wall())
        if not isinstance(needs, Needs) or not found or any(claim not in needs.allocated for claim in found):
            return False
        now, within_s = self.wall(), self.belief.ready_within_s
        is_waiting = all(is_waited_for((claim,), now, within_s) for claim in found)
        return is_waiting and not self.is_of_use(needs, found)

    def _held(self, pod: Pod) -> Held:
        return frozenset((claim.uid, claim.resource_version) for claim in unusable(pod, self.belief, self.wall()))

    async def _freed(self, pod: Pod, held: Held, now: Callable[[], float]) -> bool | None:
        is_free = await self.carrier.carry(freed(pod, self.belief, self.wall()), now() + self.tick_s)
        if is_free:
            LOG.info("claims freed that could not be used", extra={keys.POD: str(pod.key)})
            # Unless it was offered nodes meanwhile.
            self.cleared |= {pod.uid: held} if pod.uid in self.refusals else {}
        return is_free

    def _leave(self, uid: Uid, held: Held, now: float) -> None:
        """Leave a pod alone, twice as long as before where the same is in its way."""
        before = self._vain.get(uid)
        again_s = min(2 * before.again_s, PATIENCE_S) if before and before.held == held else self.tick_s
        self._vain[uid] = Vain(held, now + again_s, again_s)

    def _is_hindered(self, pod: Pod) -> bool:
        """Tell whether claims keep *pod* away, or one is held that may: a hold can end with nothing written."""
        return bool(unusable(pod, self.belief, self.wall())) or any(made_for(pod, self.belief))
