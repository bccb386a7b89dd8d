"""Carries out the steps of bindings and remedies at the API server."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from dataclasses import field
from math import inf
from typing import TypeVar
from uuid import uuid4

from extender.allocation.extended import Hidden
from extender.kube import objects
from extender.kube.answer import Json
from extender.kube.outcome import RequestOutcome, Succeeded
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
from extender.service.claim_turn import ClaimTurn, Queues
from extender.service.feed import Feed
from extender.service.refusals import Refusals

R = TypeVar("R")
Work = Generator[Step, Outcome, R]

# Steps that go forward: past the deadline they are not taken any more, while what undoes and finds out still is.
FORWARD = (AddFinalizer, WriteAllocation, Reserve, CreateClaim, MapExtended, BindPod)
# Steps of whose refusal people would not hear.
UNDOING = (Release, DeleteClaim, TouchClaim, TouchPod)
# Steps that are not answered with what they were about.
VOID = (BindPod, DeleteClaim)
NO_TIME = "there was no time left"
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
    refusals: Refusals = field(default_factory=Refusals)
    queues: Queues = field(default_factory=Queues)

    async def carry(self, work: Work[R], deadline: float, undone_by: float = -inf) -> R:
        """Take the steps of *work* until it ends; none forward after *deadline*.

        Where the API server is busy what undoes waits as it says, as long as it can be *undone_by* then.
        """
        # Work that is dropped in the middle tells the ledger so at once, not when it is collected as garbage.
        with closing(work), closing(ClaimTurn(self.queues)) as turn:
            try:
                step = next(work)
                while True:
                    step = work.send(await self._in_turn(step, turn, deadline, max(deadline, undone_by)))
            except StopIteration as end:
                result: R = end.value
                return result

    async def _in_turn(self, step: Step, turn: ClaimTurn, deadline: float, undone_by: float) -> Outcome:
        if isinstance(step, Reserve):
            if not await turn.take(step.claim.key, deadline - self.now()):
                return Refused(Refusal.UNSENT, NO_TIME)
        elif not isinstance(step, ReadClaim | Pause):
            # What has to be found out before the next attempt is part of the turn.
            turn.close()
        return await self._outcome(step, deadline, undone_by)

    async def _outcome(self, step: Step, deadline: float, undone_by: float) -> Outcome:
        left = deadline - self.now()
        match step:
            case Pause(seconds, before):
                until = deadline if isinstance(before, FORWARD) else undone_by
                return await self._paused(seconds, until - self.now())
            case AwaitShown():
                return await self._shown(step, left)
        if left <= 0 and isinstance(step, FORWARD):
            return Refused(Refusal.UNSENT, NO_TIME)
        outcome = self._told(await self._sent(step), step)
        if isinstance(step, UNDOING):
            self.refusals.note(step, outcome)
        return outcome

    async def _paused(self, seconds: float, left: float) -> Outcome:
        if left <= 0:
            return Refused(Refusal.UNSENT, NO_TIME)
        await asyncio.sleep(min(seconds, left))
        return Done()

    async def _shown(self, step: AwaitShown, left: float) -> Outcome:
        began, left = self.now(), min(SHOWN_WITHIN_S, max(left, 0))
        is_shown = await self._shown_within(step, min(BEHIND_S, left))
        if not is_shown and left > BEHIND_S:
            self.watches.end(CLAIMS, began, BEHIND)
            is_shown = await self._shown_within(step, left - BEHIND_S)
        return Done() if is_shown else Unknown("the watch did not show it in time")

    async def _shown_within(self, step: AwaitShown, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.feed.shown(step.claim, step.version)
        except TimeoutError:
            return False
        return True

    def _sent(self, step: Step) -> Awaitable[RequestOutcome]:  # noqa: PLR0911, C901 - a table of steps
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

    def _told(self, outcome: RequestOutcome, step: Step) -> Outcome:
        if not isinstance(outcome, Succeeded):
            return outcome
        return Done() if isinstance(step, VOID) else self._done(outcome.object)

    def _done(self, read: Json) -> Outcome:
        match read.get("kind"):
            case "Pod":
                noun = self.recent.read(Pod, read, lambda: parse_pod(read))
            case "ResourceClaim":
                noun = self.recent.read(ResourceClaim, read, lambda: parse_claim(read, self.writes.claims().version))
            case kind:
                return Unknown(f"success, but what came back is of kind {kind}")
        return Done(noun) if isinstance(noun, Pod | ResourceClaim) else Unknown(f"what came back is unreadable: {noun}")
