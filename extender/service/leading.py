"""The election: our Lease taken, renewed and given up, and the scheduler's watched, by what the tenure says."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from extender.config.settings import Settings
from extender.kube.api import Api
from extender.kube.fence import Fence
from extender.kube.leases import Lease, Leases, is_conflict
from extender.kube.outcome import Unknown
from extender.kube.pace import Pace, since_boot
from extender.model.names import ObjectKey
from extender.service.alone import Alone
from extender.state.tenure import NOT_LEADING, Act, LeaseTimes, Record, Step, Tenure, Wish, host_of, wish_of
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# Wishes change between two looks at the Lease; so often it is seen whether they have.
LOOK_S: Final = 0.2


@dataclass(slots=True)
class Leading:
    """One of several replicas in the election.

    scheduler: the Lease of the scheduler beside us, if we are tied to it; is_able: we know the cluster; is_idle: we
    have nothing to finish; fence: tells whether what we have sent can still arrive.
    """

    tenure: Tenure
    leases: Leases
    lease: ObjectKey
    scheduler: ObjectKey | None
    is_able: Callable[[], bool]
    is_idle: Callable[[], bool] = lambda: True
    fence: Fence = field(default_factory=Fence)
    now: Callable[[], float] = since_boot
    pace: Pace = field(default_factory=Pace)
    is_ending: bool = False
    served: int = 0  # the term in which the scheduler is answered: all is listed anew and mended
    # Leases that were not read, or not written (True), last time, and why.
    _unreached: dict[tuple[ObjectKey, bool], str] = field(default_factory=dict)
    _known: Lease = field(default_factory=Lease)
    _scheduler: str | None = None
    # The scheduler's Lease as it was read, and since when it is so.
    _beside: Record | None = None
    _beside_since: float | None = None
    _is_abandoned: bool = False

    @property
    def host(self) -> str:
        """What all processes of our host have in common in their identities."""
        return host_of(self.tenure.me)

    @property
    def wish(self) -> Wish:
        """Whether we want the Lease now: by who leads the scheduler, and by whether we know the cluster."""
        scheduler = self._scheduler if self.scheduler else self.tenure.me
        return wish_of(scheduler, self.host, is_able=self.is_able(), is_ending=self.is_ending)

    def why_not(self) -> str:
        """Say why nothing may be written; nothing where it may."""
        return self.tenure.why_not(self.now())

    @property
    def is_alone(self) -> bool:
        """Whether whoever led before us sends nothing any more."""
        return self.tenure.is_alone(self.now())

    @property
    def is_hindered(self) -> bool:
        """Whether nothing keeps us from writing but what was sent before us."""
        return self.is_alone and not self.tenure.is_clear(self.now())

    def cleared(self) -> None:
        """Write from now on: what was sent before us cannot land any more."""
        self.tenure.cleared(self.now())

    def why_not_move(self) -> str:
        """Say why nothing may be moved on; nothing where it may."""
        return "" if self.is_alone else self.why_not()

    def hindrance(self) -> str:
        """Say why the scheduler is not answered; nothing where it is."""
        why_not = self.why_not()
        if why_not:
            return why_not
        if self.wish is Wish.YIELD:
            return f"{NOT_LEADING}: about to hand over"
        return "" if self.served == self.tenure.term else f"{NOT_LEADING}: about to take over"

    def leads(self) -> bool:
        """Tell whether the scheduler is answered."""
        return not self.hindrance()

    def judges(self) -> bool:
        """Tell whether allocations that are not ours are another allocator's: others' are while another leads."""
        return self.leads()

    def obstacle(self) -> str:
        """Say what keeps us from ever leading."""
        named = ", ".join(sorted({str(lease) for lease, _is_write in self._unreached}))
        if named:
            why = "; ".join(sorted(set(self._unreached.values())))
            return f"Leases cannot be read or written: {named}: {why}"
        return f"nobody renews the scheduler's Lease {self.scheduler}" if self._is_abandoned else ""

    async def run(self) -> None:
        """Take part in the election, and watch the scheduler's Lease, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._elect(), name="election")
            group.create_task(self._watch(), name="scheduler's Lease")

    async def end(self, patience_s: float) -> None:
        """Give the Lease up, if that can be done in time: without, whoever is next has to wait for it to run out."""
        self.is_ending = True
        until = self.now() + patience_s
        while self.tenure.is_held and self.now() < until:
            await self.pace.sleep(LOOK_S)

    async def _elect(self) -> None:
        while True:
            is_idle = self.is_idle() and self.fence.is_idle
            step = self.tenure.next(self.now(), self.wish, is_idle=is_idle, is_quiet=self.fence.is_quiet)
            if step.act is Act.WAIT:
                await self.pace.sleep(max(0.0, min(step.at - self.now(), LOOK_S)))
            else:
                await self._do(step)

    async def _do(self, step: Step) -> None:
        asked, before = self.now(), self.tenure.record
        if step.act is Act.LOOK:
            found = await self.leases.read(self.lease)
        else:
            holder = "" if step.act is Act.RELEASE else self.tenure.me
            found = await self.leases.hold(self.lease, self._known, holder, self.tenure.times.lease_s)
        if not isinstance(found, Lease):
            if step.act in (Act.TAKE, Act.RENEW) and (isinstance(found, Unknown) or is_conflict(found)):
                # In a conflict, too: a connection that ends has some requests sent twice.
                self.tenure.unheard(self.leases.written, asked)
            self._fail(step, str(found), is_lost=is_conflict(found))
            return
        self._known = found
        self._reached(self.lease, is_written=step.act is not Act.LOOK or found.record != before)
        if step.act is Act.LOOK or found.record is None:
            self.tenure.looked(found.record, self.now())
        else:
            self.tenure.wrote(found.record, asked, self.now())
        holder = _holder_of(found.record)
        if holder != _holder_of(before):
            LOG.info("the Lease has another holder", extra={keys.HOLDER: holder})

    def _fail(self, step: Step, why: str, *, is_lost: bool) -> None:
        self.tenure.failed(self.now(), is_conflict=is_lost)
        if (not is_lost or self.tenure.is_stuck) and self._is_news(self.lease, why, is_write=step.act is not Act.LOOK):
            LOG.warning("the Lease was not reached", extra={keys.REASON: step.act.name.lower(), keys.ERROR: why})

    def _reached(self, lease: ObjectKey, *, is_written: bool) -> None:
        """Note that a Lease is read; and written, by us or somebody: not all that is read can be written."""
        was_hindered = bool(self._unreached)
        for is_write in (False, is_written):
            self._unreached.pop((lease, is_write), None)
        if was_hindered and not self._unreached:
            LOG.info("the Leases are reached again")

    def _is_news(self, lease: ObjectKey, why: str, *, is_write: bool) -> bool:
        """Note why a Lease was not reached; it is tried again every second, and told when it is for another reason."""
        is_news = self._unreached.get((lease, is_write)) != why
        self._unreached[lease, is_write] = why
        return is_news

    async def _watch(self) -> None:
        """Keep in mind who holds the scheduler's Lease. One that cannot be read is as it was."""
        while self.scheduler:
            found = await self.leases.read(self.scheduler)
            if isinstance(found, Lease):
                self._reached(self.scheduler, is_written=False)
                self._seen_beside(found.record)
            elif self._is_news(self.scheduler, str(found), is_write=False):
                LOG.warning("the scheduler's Lease was not read", extra={keys.ERROR: str(found)})
            await self.pace.sleep(self.tenure.times.renew_s)

    def _seen_beside(self, record: Record | None) -> None:
        """Take over the scheduler's Lease; tell where nobody renews it, as where no scheduler elects by it."""
        holder, now = _holder_of(record), self.now()
        if holder != self._scheduler:
            LOG.info("the scheduler's Lease has another holder", extra={keys.HOLDER: holder})
        self._scheduler = holder
        if record != self._beside or self._beside_since is None:
            self._beside, self._beside_since = record, now
        lasts_s = max(self.tenure.times.lease_s, record.lease_s if record else 0.0)
        was_abandoned, self._is_abandoned = self._is_abandoned, now - self._beside_since > lasts_s
        if self._is_abandoned and not was_abandoned:
            LOG.warning("nobody renews the scheduler's Lease", extra={keys.HOLDER: holder})
        elif was_abandoned and not self._is_abandoned:
            LOG.info("the scheduler's Lease is renewed", extra={keys.HOLDER: holder})


def _holder_of(record: Record | None) -> str:
    """Name who holds a Lease; empty where nobody does, or there is none."""
    return record.holder if record else ""


def leading_of(settings: Settings, api: Api, is_able: Callable[[], bool]) -> Alone | Leading:
    """Return one of several replicas, or the only one."""
    told, limits = settings.leading, settings.api
    linger_s = limits.bind_seconds + limits.timeout_seconds + told.server_seconds
    if settings.ownership.mode == "advisor":
        # It writes nothing that another could write too.
        return Alone()
    if not told.enabled:
        return Alone(linger_s)
    times = LeaseTimes(
        lease_s=told.lease_seconds, trust_s=told.trust_seconds, renew_s=told.renew_seconds, linger_s=linger_s
    )
    me, before = _names(told.host or socket.gethostname(), told.pod)
    # So does kube-scheduler for its own Lease: where answers take longer, neither leads.
    leases = Leases(api, min(limits.timeout_seconds, times.trust_s / 2), time.time)
    scheduler = ObjectKey(told.namespace, told.scheduler_lease) if told.scheduler_lease else None
    return Leading(Tenure(me, times, before), leases, ObjectKey(told.namespace, told.lease), scheduler, is_able)


def _names(host: str, pod: str) -> tuple[str, str]:
    """Return how a process calls itself, and what all of its pod have in common where that is known.

    Each is somebody else: what an earlier one of the same pod has sent may arrive still. But that one has ended: a
    kubelet starts the next one then, and where it was mistaken, the next cannot listen, and so does not contend.
    """
    before = f"{host}_{pod}" if pod else ""
    return (f"{before}.{uuid4()}" if pod else f"{host}_{uuid4()}"), before
