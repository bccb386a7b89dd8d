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
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.kube.freshness import Freshness
from extender.kube.outcome import Succeeded, is_answered
from extender.kube.resource import CLAIMS
from extender.kube.writes import Writes
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.remedy import lacks_claims, unnamed
from extender.service.turns import Turns
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
WOKEN: Final = "dra-extender.x-k8s.io/woken"
# How often pods are looked for, and so many at a time, between which the scheduler is answered.
LOOK_S: Final = 1.0
PIECE: Final = 500
# How long the controller has of itself; from one touch to the next twice as long as before, up to a limit.
REMADE_WITHIN_S: Final = 3.0
PATIENCE_S: Final = 60.0
# Whoever deletes thousands of claims at once has the other pods wait no longer for that; and of a namespace where one
# takes longer to be touched, others go before.
TOUCHED_AT_ONCE: Final = 50
TOUCHED_WITHIN_S: Final = 1.0


class Lack(NamedTuple):
    """Since when a pod has lacked something, when it is to be touched, and how long after that again."""

    since: float
    at: float
    again_s: float


@dataclass(slots=True)
class Remaking:
    """Looks at all pods that wait, beside the rounds of attention: where touching hangs nobody else is held up.

    *freshness* tells whether claims are known as they were when a pod was in some version, or at a time: as long as
    they are not, a claim may be there, and it is the watch that stands still. Without it they are.
    """

    belief: Belief
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    freshness: Freshness | None = None
    _looked: float = float("-inf")
    _lacking: dict[Uid, Lack] = field(default_factory=dict)
    _turns: Turns = field(init=False)
    _touched: int = 0

    def __post_init__(self) -> None:
        self._turns = Turns(self.belief, self.now, TOUCHED_WITHIN_S)

    async def run(self, over: asyncio.Event) -> None:
        """Look until it is *over*; what is under way then comes to its end."""
        while not over.is_set():
            try:
                await self.round()
            except Exception:
                # Whatever went wrong, there is more to look at.
                LOG.exception("a round of looking after pods failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), LOOK_S)

    async def round(self) -> None:
        """Mend the pods whose claims have been gone, or not named, for long enough."""
        self._looked, self._touched = self.now(), 0
        self._turns.begin()
        lacking = {pod.uid: pod for pod in await self._found()}
        first = Lack(self._looked, self._looked + REMADE_WITHIN_S, 2 * REMADE_WITHIN_S)
        self._lacking = {uid: self._lacking.get(uid, first) for uid in lacking}
        due = sorted((lack.at, uid) for uid, lack in self._lacking.items() if self._is_due(lacking[uid], lack))
        until = self.now() + LOOK_S  # however long it took to find them: as where the scheduler asks all the time
        await self._turns.each((uid for _, uid in due), lambda uid: self._mend(lacking[uid], until))

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

    async def _mend(self, pod: Pod, until: float) -> bool | None:
        """Touch *pod*; tell whether there was an answer, None where nothing is asked: enough was in this round."""
        if self._touched == TOUCHED_AT_ONCE or self.now() > until:
            return None
        self._touched += 1
        since, _, again_s = self._lacking[pod.uid]
        self._lacking[pod.uid] = Lack(since, self._looked + again_s, min(2 * again_s, PATIENCE_S))
        if lacks_claims(pod, self.belief):
            way, outcome = "claims gone", await self.writes.annotate_pod(pod, WOKEN, f"{self._looked:.3f}")
        elif names := unnamed(pod, self.belief):
            way, outcome = "claims unnamed", await self.writes.name_claims(pod, names)
        else:  # they have come while others were mended
            return None
        self.metrics.wake(way, "done" if isinstance(outcome, Succeeded) else "failed")
        return is_answered(outcome)
