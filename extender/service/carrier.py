"""Carries out the steps of bindings and remedies at the API server."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from dataclasses import field
from typing import TypeVar
from uuid import uuid4

from extender.allocation.extended import Hidden
from extender.kube import objects
from extender.kube import outcome as kube
from extender.kube.answer import Json
from extender.kube.recent import Recent
from extender.kube.resource import CLAIMS
from extender.kube.watches import Watches
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.node import Pod
from extender.model.parse import parse_claim, parse_pod
from extender.scheduling.steps import (
    AddFinalizer,
    AwaitShown,
    BindPod,
    CreateClaim,
    DeleteClaim,
    Done,
    Later,
    MapExtended,
    Outcome,
    Pause,
    ReadClaim,
    ReadPod,
    Refusal,
    Refused,
    Release,
    Reserve,
    Step,
    TouchClaim,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.service.feed import Feed

R = TypeVar("R")
Work = Generator[Step, Outcome, R]

# Steps that go forward: past the deadline they are not taken any more, while what undoes and finds out still is.
FORWARD = (AddFinalizer, WriteAllocation, Reserve, CreateClaim, MapExtended, BindPod)
# What the watch may take to show what the API server has said already.
SHOWN_WITHIN_S = 10.0
# Where it takes longer than this, another watch is opened: it may lead to an API server that is less far behind.
BEHIND_S = 5.0
BEHIND = f"it does not show what the API server has answered {BEHIND_S:g} s ago"


@dataclass(frozen=True, slots=True)
class Carrier:
    """Drives work that is written as steps. *now* is a clock that only goes forward, that of *watches*, too.

    *recent* is theirs as well.
    """

    writes: Writes
    feed: Feed
    now: Callable[[], float]
    recent: Recent = field(default_factory=Recent)
    watches: Watches = field(default_factory=Watches)

    async def carry(self, work: Work[R], deadline: float) -> R:
        """Take the steps of *work* until it ends; none forward after *deadline*."""
        # Work that is dropped in the middle tells the ledger so at once, not when it is collected as garbage.
        with closing(work):
            try:
                step = next(work)
                while True:
                    step = work.send(await self._outcome(step, deadline))
            except StopIteration as end:
                result: R = end.value
                return result

    async def _outcome(self, step: Step, deadline: float) -> Outcome:
        left = deadline - self.now()
        if left <= 0 and isinstance(step, FORWARD):
            return Refused(Refusal.UNSENT, "there was no time left")
        if isinstance(step, Pause):
            await asyncio.sleep(min(step.seconds, max(left, 0)))
            return Done()
        if isinstance(step, AwaitShown):
            return await self._shown(step, left)
        return self._told(await self._sent(step))

    async def _shown(self, step: AwaitShown, left: float) -> Outcome:
        late = asyncio.get_running_loop().call_later(BEHIND_S, self.watches.end, CLAIMS, self.now(), BEHIND)
        try:
            async with asyncio.timeout(min(SHOWN_WITHIN_S, max(left, 0))):
                await self.feed.shown(step.claim, step.version)
        except TimeoutError:
            return Unknown("the watch did not show it in time")
        finally:
            late.cancel()
        return Done()

    def _sent(self, step: Step) -> Awaitable[kube.Outcome]:  # noqa: PLR0911, C901 - a table of steps
        writes = self.writes
        match step:
            case ReadClaim(key):
                return writes.read_claim(key)
            case ReadPod(key):
                return writes.read_pod(key)
            case AddFinalizer(claim):
                return writes.add_finalizer(claim)
            case WriteAllocation(claim, allocation, consumer):
                return writes.write_allocation(claim, allocation, consumer)
            case Reserve(claim, consumer):
                return writes.reserve_shared(claim, consumer)
            case Release(claim, pod, deallocate):
                return writes.release(claim, pod, deallocate=deallocate)
            case TouchClaim(claim):
                return writes.touch_claim(claim, str(uuid4()))
            case TouchPod(pod):
                return writes.touch_pod(pod, str(uuid4()))
            case CreateClaim(pod, hidden):
                return writes.create_claim(pod.key.namespace, self._hidden(pod, hidden))
            case MapExtended(pod, claim, hidden):
                return writes.map_extended(pod, claim, hidden.mappings if hidden else ())
            case DeleteClaim(claim):
                return writes.delete_claim(claim.key, claim.uid, claim.resource_version)
            case BindPod(pod, node):
                return writes.bind_pod(pod, node)
        raise AssertionError(step)

    def _hidden(self, pod: Pod, hidden: Hidden) -> Json:
        requests = [slot.exactly for slot in hidden.spec.requests if slot.exactly]
        return objects.extended_claim(pod, self.writes.claims().version, requests)

    def _told(self, outcome: kube.Outcome) -> Outcome:
        match outcome:
            case kube.Done(read):
                return self._done(read)
            case kube.Refused(kind=kind, message=message):
                return Refused(kind, message)
            case Later():
                return outcome
            case kube.Unknown(why):
                return Unknown(why)

    def _done(self, read: Json) -> Outcome:
        if read.get("kind") not in ("Pod", "ResourceClaim"):
            return Done()
        if read["kind"] == "Pod":
            noun = self.recent.read(Pod, read, lambda: parse_pod(read))
        else:
            noun = self.recent.read(ResourceClaim, read, lambda: parse_claim(read, self.writes.claims().version))
        return Done(noun) if isinstance(noun, Pod | ResourceClaim) else Unknown(f"what came back is unreadable: {noun}")
