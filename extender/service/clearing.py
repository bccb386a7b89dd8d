"""What was sent before us is kept from landing: all that it could change is moved on to another version."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from extender.kube.api import CONNECTIONS
from extender.kube.freshness import Freshness
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.kube.pace import Pace
from extender.kube.resource import CLAIMS, PODS, Resource
from extender.kube.stream import is_older
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.model.parse import parse_pod
from extender.scheduling.exposed import exposed
from extender.scheduling.steps import Later, Refusal, is_refused
from extender.state.belief import Belief
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# Others need connections, too: the watches, and questions how far these are.
AT_ONCE: Final = CONNECTIONS // 2
AGAIN_S: Final = 0.5
# So many errors about one object are told.
ERRORS: Final = 5


@dataclass(slots=True)
class _Work:
    """What is left to be moved on, up to which versions that has brought it, and what could not be moved.

    bound: pods that turned out to have a node. The watch of those that wait tells that they are gone, and no touch of
    ours after that.
    """

    todo: Iterator[ResourceClaim | Pod]
    mark: str = field(default_factory=lambda: str(uuid4()))
    reached: dict[Resource, str] = field(default_factory=dict)
    bound: set[Uid] = field(default_factory=set)
    failed: str = ""
    count: int = 0
    errors: Counter[Uid] = field(default_factory=Counter)
    is_told: bool = False

    def moved(self, item: ResourceClaim | Pod, to: Succeeded) -> None:
        """Take note of what is to be shown of *item*."""
        found = parse_pod(to.object) if isinstance(item, Pod) else None
        if isinstance(found, Pod) and found.node_name:
            self.bound.add(found.uid)
            return
        resource = CLAIMS if isinstance(item, ResourceClaim) else PODS
        if is_older(self.reached.setdefault(resource, to.resource_version), to.resource_version):
            self.reached[resource] = to.resource_version

    def heard(self, item: ResourceClaim | Pod, outcome: Unknown) -> None:
        """Tell of the first that is answered with errors again and again, as where a webhook is down."""
        self.errors[item.uid] += outcome.is_answered
        if not self.is_told and self.errors[item.uid] == ERRORS:
            self.is_told = True
            _tell(f"{item.key}: {outcome}")


@dataclass(slots=True)
class Clearing:
    """Moves objects on by *writes* that may leave as soon as nobody before us sends anything any more."""

    belief: Belief
    writes: Writes
    freshness: Freshness
    pace: Pace

    async def done(self) -> bool:
        """Move all on that is listed, and return when the watches show it; tell whether that could be done."""
        work = _Work(iter(tuple(exposed(self.belief))))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._move_on(work))
        if work.failed:
            _tell(work.failed)
            return False
        await self.pace.until(lambda: self._is_shown(work))
        LOG.info("what was sent before us cannot land any more", extra={keys.COUNT: work.count})
        return True

    def _is_shown(self, work: _Work) -> bool:
        is_past = (self.freshness.is_past(each, work.reached[each], float("inf")) for each in work.reached)
        return all(is_past) and all(self.belief.pods.with_uid(uid) is None for uid in work.bound)

    async def _move_on(self, work: _Work) -> None:
        for item in work.todo:
            while not work.failed and not await self._is_moved(item, work):
                pass
            if work.failed:
                return
            work.count += 1

    async def _is_moved(self, item: ResourceClaim | Pod, work: _Work) -> bool:
        """Touch *item*; where nothing was decided wait a little."""
        outcome = await self._touched(item, work.mark)
        if isinstance(outcome, Succeeded):
            work.moved(item, outcome)
            return True
        if is_refused(outcome, Refusal.NOT_FOUND):
            return True
        # A conflict proves nothing: it may be said by whoever judges requests. Another object of that name has it, too.
        if is_refused(outcome, Refusal.CONFLICT) and self._is_over(item):
            return True
        if isinstance(outcome, Refused) and outcome.kind not in (Refusal.UNSENT, Refusal.CONFLICT):
            work.failed = f"{item.key}: {outcome}"
        if isinstance(outcome, Unknown):
            work.heard(item, outcome)
        await self.pace.sleep(outcome.seconds if isinstance(outcome, Later) else AGAIN_S)
        return False

    def _is_over(self, item: ResourceClaim | Pod) -> bool:
        """Tell whether the watch has shown that *item* is gone, or waits no longer: nothing can be done to it then."""
        if isinstance(item, ResourceClaim):
            return self.belief.cluster.claims.with_uid(item.uid) is None
        return self.belief.pods.with_uid(item.uid) is None and not self.belief.unread.has(item.key)

    async def _touched(self, item: ResourceClaim | Pod, mark: str) -> RequestOutcome:
        if isinstance(item, ResourceClaim):
            return await self.writes.touch_claim(item, mark)
        return await self.writes.touch_pod(item, mark)


def _tell(what: str) -> None:
    LOG.warning("what was sent before us has to be waited for", extra={keys.ERROR: what})
