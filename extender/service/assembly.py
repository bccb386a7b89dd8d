"""The service, put together from its settings."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple
from uuid import uuid4

from extender import VERSION
from extender.allocation.cel import compile_selector
from extender.config.settings import Settings
from extender.kube.access import Credentials
from extender.kube.api import CONNECTIONS, Api
from extender.kube.fence import Fence
from extender.kube.follow import Rhythm, follow
from extender.kube.freshness import Freshness
from extender.kube.listing import Recall
from extender.kube.pace import Pace, since_boot
from extender.kube.resource import BOUND, CLAIMS, PODS, RESOURCES
from extender.kube.versions import Versions
from extender.kube.writes import Writes
from extender.model.frozen import dataclass
from extender.scheduling.binding import Binder
from extender.scheduling.choosing import Chooser
from extender.scheduling.drift import Auditor
from extender.scheduling.planner import Planner
from extender.scheduling.record import Decisions
from extender.scheduling.suitable import Suitable
from extender.scheduling.waking import Waker
from extender.service.accession import Accession
from extender.service.advising import Advising
from extender.service.ahead import Ahead
from extender.service.alone import Alone, Solitude
from extender.service.answers import Answers
from extender.service.attention import Attention
from extender.service.auditing import Auditing
from extender.service.binds import Binds
from extender.service.carrier import Carrier
from extender.service.clearing import Clearing
from extender.service.feed import Feed
from extender.service.follows import Follows
from extender.service.gauges import Gauges
from extender.service.habits import Habits
from extender.service.health import Health
from extender.service.hearing import Hearing, left_of
from extender.service.history import History
from extender.service.inspection import Inspection
from extender.service.intrusion import Intrusion
from extender.service.journal import Journal
from extender.service.keeping import Keeping
from extender.service.lapses import Lapses
from extender.service.leading import Leading, leading_of
from extender.service.minds import minds_of
from extender.service.notices import Notices
from extender.service.observer import Observer
from extender.service.offers import Offers
from extender.service.placing import PlacementFile
from extender.service.reign import Reign
from extender.service.seats import SEATS
from extender.service.sending import Sending
from extender.service.sink import Sink, Work
from extender.service.warming import Warming
from extender.state.belief import Belief
from extender.state.domain import writer_of
from extender.telemetry.metrics import Metrics
from extender.web.server import Application, Options, Server

LOG: Final = logging.getLogger(__name__)
QUIET_S: Final = 75.0
LEASE_CONNECTIONS: Final = 4
LOOK_S: Final = 0.1
# How long we stay to give up the Lease: whoever is next need not wait for it then.
FAREWELL_S: Final = 8.0


class Apis(NamedTuple):
    """The API server, and once more for Leases."""

    api: Api
    leases: Api

    async def close(self) -> None:
        """Close both."""
        await self.leases.close()
        await self.api.close()


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    answers: Answers
    attention: Attention
    belief: Belief
    health: Health
    journal: Journal
    server: Server
    leading: Alone | Leading
    inspection: Inspection

    async def ready(self) -> None:
        """Return once everything was listed and what was half written has been looked after, or we could lead.

        Raise Unsafe where we must not start.
        """
        await self.inspection.passed()
        await self.health.begun.wait()


@asynccontextmanager
async def running(settings: Settings, credentials: Credentials, options: Options) -> AsyncIterator[Service]:
    """Run the service until the end of the block."""
    compile_selector("true")  # reads the grammar, which takes too long to be done for the first pod
    metrics = Metrics(VERSION)
    agent = writer_of(settings.schedulers)
    # Bindings leave as many to all else: watches that go on, questions how far these are, nominations.
    api = Api(credentials, CONNECTIONS + SEATS, metrics.api, agent)
    # Many writes at a time must not keep the Lease from being renewed.
    lease_api = Api(credentials, LEASE_CONNECTIONS, metrics.api, agent)
    apis = Apis(api, lease_api)
    service, work = _assembled(settings, apis, options, metrics)
    try:
        # Before anything else: of two processes in one pod the second ends here, and never contends (leading.pod).
        await service.server.start()
    except OSError:
        for part in work.values():
            part.close()
        await apis.close()
        raise
    tasks = [asyncio.create_task(part, name=name) for name, part in work.items()]
    for task in tasks:
        task.add_done_callback(service.health.lost)
    try:
        yield service
    finally:
        await _ended(service)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await apis.close()


async def _ended(service: Service) -> None:
    """Finish what is under way, and say so in the Lease."""
    service.leading.is_ending = True
    await service.server.stop()
    await service.answers.binds.stop()
    await service.leading.end(FAREWELL_S)


def _assembled(settings: Settings, apis: Apis, options: Options, metrics: Metrics) -> tuple[Service, Work]:
    """Build everything; nothing waits for the API server before it runs."""
    api, followed = apis.api, [each for each in RESOURCES if each is not BOUND or settings.placement.bound_pods]
    now, pace, freshness, sink = time.monotonic, Pace(), Freshness(followed), Sink(history := History())
    belief, chooser, planner, advisor, *_ = minds = minds_of(settings)
    placing = PlacementFile(settings.placement.file, metrics, minds.take)
    minds.take(placing.document)
    versions, rhythm = Versions(api, pace, sink), _rhythm(settings, pace, belief.recalled)
    inspection = Inspection(settings, api, versions, freshness, pace)
    leading = leading_of(settings, apis.leases, inspection.allows)
    fence = Fence(lambda: history.why_not() or leading.why_not(), since_boot, settings.leading.server_seconds)
    writes = Writes(api, lambda: versions.known(CLAIMS), settings.api.timeout_seconds, fence)
    carrier = Carrier(writes, Feed(belief, freshness, sink.stir, sink.show), now, rhythm.recent, rhythm.watches)
    notices = Notices(writes, uuid4().hex[:8], settings.events.per_second, settings.events.enabled, metrics.event)
    journal = Journal(belief, notices, metrics, time.time, Decisions(settings.decisions.keep))
    waker, reigns = _waker(belief, planner, freshness), lambda: inspection.allows() and leading.leads()
    metrics.watch(gauges := Gauges(belief, freshness, waker, now, minds.taste, leading.leads))
    attention = Attention(belief, waker, writes, carrier, metrics, _habits(settings), now, time.time, freshness)
    sink.feed, sink.observer, is_owner = carrier.feed, Observer(metrics), settings.ownership.mode == "owner"
    sink.intrusion = Intrusion(belief, metrics, notices, lambda: is_owner and leading.judges(), time.time)
    sink.keeping = Keeping(belief, versions, writes, metrics, reigns, now, is_wanted=settings.ownership.keeps_taint)
    sink.attention, sink.journal, sink.warming = attention, journal, Warming(belief)
    sink.hearing = Hearing(belief, now, sink.hurry)
    health = Health(freshness, settings.watch.max_age_seconds, now, leading.obstacle, sink.keeping.warning, history)
    if is_owner and settings.waking.nominate and settings.waking.nominate_ahead != "never":
        sending, may = Sending(settings.waking.nominate_ahead, versions.minor), partial(_may_send, health, leading)
        mind, sink.lapses = (belief, planner, Suitable(belief.loads)), Lapses(belief, writes, metrics, now, may)
        sink.ahead = Ahead(*mind, writes, metrics, now, may, sending, rhythm.recent)
    offers, ended = Offers(), (journal.ended, attention.ended, planner.trips.ended)
    belief.parting += (notices.forget, offers.forget)
    binds = Binds(_binder(settings, belief, chooser, offers), carrier, left_of(settings.api.bind_seconds), ended)
    parts = belief, planner, chooser, binds, journal, attention, offers, sink.hearing
    answers = Answers(*parts, health.hindering, now, leading.hindrance, sink.asked, sink.evicting)
    attention.wakes.victims, attention.expiry.is_offered = answers.evictions.victims, offers.has
    verbs = answers if is_owner else Advising(advisor, journal, health.hindering)
    server = Server(Application(verbs, journal, health, metrics, belief.pods.seen, answers.hindrance), options)
    follows = Follows(lambda resource: follow(api, versions, resource, sink, rhythm), followed)
    work: Work = {"follows": follows.run(), "events": notices.run(), "placement document": placing.run(pace)}
    auditing = Auditing(Auditor(belief), metrics, notices, now, time.time, writes if is_owner else None, freshness)
    work |= {"auditing": auditing.run(partial(_may_audit, health, leading)), "inspection": inspection.run()}
    work |= sink.work(keeps_taint=settings.ownership.has_taint) | {"counting": gauges.counting.run()}
    service = Service(answers, attention, belief, health, journal, server, leading, inspection)
    if not is_owner:
        return service, work | {"beginning": _begun(health, inspection.allows, pace)}
    accession = Accession(leading, follows, _clearing(attention, leading, history, freshness), freshness)
    if isinstance(leading, Alone):
        return service, work | {"attention": Solitude(accession, attention, health, inspection.allows).run()}
    reign = Reign(leading, accession, attention, health, metrics)
    leading.fence, leading.is_idle = fence, lambda: binds.is_idle and not reign.is_busy
    return service, work | {"election": leading.run(), "reign": reign.run()}


def _waker(belief: Belief, planner: Planner, freshness: Freshness) -> Waker:
    return Waker(belief, planner, shown_until=partial(freshness.seen_at, PODS))


def _binder(settings: Settings, belief: Belief, chooser: Chooser, offers: Offers) -> Binder:
    return Binder(belief, chooser, time.time, offers.has, settings.allocation.ignored_resources)


def _clearing(attention: Attention, leading: Alone | Leading, history: History, freshness: Freshness) -> Clearing:
    """Return what touches before anything else is written: nobody waits for what it has sent."""
    fence = Fence(lambda: history.why_not() or leading.why_not_move(), since_boot)
    return Clearing(attention.belief, replace(attention.writes, fence=fence), freshness, Pace())


def _may_send(health: Health, leading: Alone | Leading) -> bool:
    """Tell whether pods may be promised anything unasked: not before what was half written has been looked after."""
    return health.begun.is_set() and leading.leads()


def _may_audit(health: Health, leading: Alone | Leading) -> bool:
    """Tell whether what is compared is known, and is ours to look after: where a watch stands still all looks wrong."""
    freshness = health.freshness
    return freshness.has_vital and not freshness.outdated(health.now() - health.max_age_s) and leading.leads()


def _rhythm(settings: Settings, pace: Pace, recall: Recall) -> Rhythm:
    # Where nothing happens nothing is heard: asked about in time, a quiet view does not grow too old.
    return Rhythm(pace=pace, quiet_s=min(QUIET_S, settings.watch.max_age_seconds / 3), recall=recall)


async def _begun(health: Health, is_able: Callable[[], bool], pace: Pace) -> None:
    """Begin as soon as everything is known: an advisor has nothing to look after."""
    while not is_able():
        await pace.sleep(LOOK_S)
    health.begin()
    await asyncio.Event().wait()


def _habits(settings: Settings) -> Habits:
    holds, waking = settings.holds, settings.waking
    return Habits(holds.offer_seconds, holds.wait_seconds, holds.rechecks, waking.nominate, waking.per_second)
