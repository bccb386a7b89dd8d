"""Pods that the controller which makes claims from templates has left without some of them, or without their names.

It remembers the claims that it has made. One that is deleted it may take for one that is there, says nothing, and does
not look again before something about the pod changes. Up to 1.36 it even does so until it has made a hundred others.
So pods whose claims are gone are touched.

Up to 1.36 it also applies only those names to the status of a pod that it has just found missing, by which the API
server takes back the others: where it learns of two claims of one pod at different moments, it goes on like that for
ever, hundreds of times a second, and nobody ever sees both. (https://github.com/kubernetes/kubernetes/issues/138407)
So where all claims are there and some are not named, they are named by us, too: what two have applied, one alone does
not take back.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.kube.freshness import Freshness
from extender.kube.outcome import Done, is_answered
from extender.kube.resource import CLAIMS
from extender.kube.writes import Writes
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.remedy import lacks_claims, unnamed
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

WOKEN: Final = "dra-extender.x-k8s.io/woken"
# How often pods are looked for, and so many at a time, between which the scheduler is answered.
LOOK_S: Final = 1.0
PIECE: Final = 500
# How long the controller has of itself; from one touch to the next twice as long as before, up to a limit.
REMADE_WITHIN_S: Final = 3.0
PATIENCE_S: Final = 60.0
# Whoever deletes thousands of claims at once has the other pods wait no longer for that.
TOUCHED_AT_ONCE: Final = 50


class Lack(NamedTuple):
    """Since when a pod has lacked something, when it is to be touched, and how long after that again."""

    since: float
    at: float
    again_s: float


@dataclass(slots=True)
class Remaking:
    """Looks at all pods that wait.

    *freshness* tells whether claims are known as they were when a pod was in some version, or at a time: as long as
    they are not, a claim may be there, and it is the watch that stands still. Without it they are.
    """

    belief: Belief
    writes: Writes
    metrics: Metrics
    freshness: Freshness | None = None
    _looked: float = float("-inf")
    _lacking: dict[Uid, Lack] = field(default_factory=dict)

    async def round(self, now: Callable[[], float]) -> None:
        """Mend the pods whose claims have been gone, or not named, for long enough."""
        if now() - self._looked < LOOK_S:
            return
        self._looked = now()
        lacking = {pod.uid: pod for pod in await self._found()}
        first = Lack(self._looked, self._looked + REMADE_WITHIN_S, 2 * REMADE_WITHIN_S)
        self._lacking = {uid: self._lacking.get(uid, first) for uid in lacking}
        due = sorted((lack.at, uid) for uid, lack in self._lacking.items() if self._is_due(lacking[uid], lack))
        for _, uid in due[:TOUCHED_AT_ONCE]:
            # An API server that does not answer is not asked for each pod: others wait for the end of this round.
            if not await self._mend(lacking[uid]):
                return

    def _is_due(self, pod: Pod, lack: Lack) -> bool:
        is_known = self.freshness is None or self.freshness.is_past(CLAIMS, pod.resource_version, lack.since)
        return is_known and lack.at <= self._looked

    async def _found(self) -> list[Pod]:
        found, pods = [], tuple(self.belief.pods)
        for begin in range(0, len(pods), PIECE):
            piece = pods[begin : begin + PIECE]
            found += [pod for pod in piece if lacks_claims(pod, self.belief) or unnamed(pod, self.belief)]
            await asyncio.sleep(0)
        return found

    async def _mend(self, pod: Pod) -> bool:
        since, _, again_s = self._lacking[pod.uid]
        self._lacking[pod.uid] = Lack(since, self._looked + again_s, min(2 * again_s, PATIENCE_S))
        if lacks_claims(pod, self.belief):
            way, outcome = "claims gone", await self.writes.annotate_pod(pod, WOKEN, f"{self._looked:.3f}")
        elif names := unnamed(pod, self.belief):
            way, outcome = "claims unnamed", await self.writes.name_claims(pod, names)
        else:  # they have come while others were mended
            return True
        self.metrics.wake(way, "done" if isinstance(outcome, Done) else "failed")
        return is_answered(outcome)
