"""The parts of the service, and how they hang together."""

import time
from dataclasses import replace
from functools import cached_property, partial
from typing import Final
from uuid import uuid4

from extender.config.settings import Settings
from extender.kube.api import Api
from extender.kube.fence import Fence
from extender.kube.follow import Rhythm, follow
from extender.kube.freshness import Freshness
from extender.kube.pace import Pace, since_boot
from extender.kube.resource import BOUND, CLAIMS, PODS, RESOURCES, of_others
from extender.kube.versions import Versions
from extender.kube.writes import Writes
from extender.scheduling.binding import Binder
from extender.scheduling.drift import Auditor
from extender.scheduling.record import Decisions
from extender.scheduling.suitable import Suitable
from extender.scheduling.waking import Waker
from extender.service.accession import Accession
from extender.service.advising import Advising
from extender.service.afterwards import in_turns
from extender.service.ahead import Ahead
from extender.service.alone import Alone, Solitude
from extender.service.answers import Answers
from extender.service.attention import Attention
from extender.service.auditing import Auditing
from extender.service.binds import Binds
from extender.service.carrier import Carrier
from extender.service.catching_up import CatchingUp, left_of
from extender.service.clearing import Clearing
from extender.service.feed import Feed
from extender.service.follows import Follows
from extender.service.gauges import Gauges
from extender.service.habits import Habits
from extender.service.health import Health
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
from extender.service.offered import OfferedNodes
from extender.service.placement_file import PlacementFile
from extender.service.reign import Reign
from extender.service.sending import Sending
from extender.service.sink import Sink, Work
from extender.service.warming import Warming
from extender.telemetry.metrics import Metrics
from extender.web.server import Application, Options, Server

QUIET_S: Final = 75.0


class Service:
    """The service. Each part is put together out of others when it is first asked for, so that nobody keeps an order.

    Nearly all are there once this is made. Who looks after pods on our behalf, and when, ``work`` says.
    """

    now = staticmethod(time.monotonic)

    def __init__(self, settings: Settings, api: Api, lease_api: Api, options: Options, metrics: Metrics) -> None:
        self.settings, self.options, self.metrics = settings, options, metrics
        self.api, self.lease_api = api, lease_api
        self.is_owner = settings.ownership.mode == "owner"
        self.pace, self.history, self.offered = Pace(), History(), OfferedNodes()
        self.sink = Sink(self.history)
        self.minds = minds_of(settings)
        self.belief, self.planner = self.minds.belief, self.minds.planner
        self.followed = [each for each in RESOURCES if each is not BOUND or settings.placement.bound_pods]
        self._join()

    async def ready(self) -> None:
        """Return once everything was listed and what was half written has been looked after, or we could lead.

        Raise Unsafe where we must not start.
        """
        await self.inspection.passed()
        await self.health.begun.wait()

    def work(self) -> Work:
        """Return what goes on unasked, to be asked for once; nothing waits for the API server before it begins."""
        unasked: Work = {
            "follows": self.follows.run(),
            "events": self.notices.run(),
            "placement document": self.placement_file.run(self.pace),
            "auditing": self.auditing.run(self._may_audit),
            "inspection": self.inspection.run(),
        }
        unasked |= self.sink.work()
        return unasked | {"counting": self.gauges.device_counts.run()} | self._beginning()

    def _beginning(self) -> Work:
        """Return what comes before the scheduler is answered: an advisor has nothing to look after."""
        if not self.is_owner:
            return {"beginning": self.health.begin_when(self.inspection.allows, self.pace)}
        accession = Accession(self.leading, self.follows, self._clearing(), self.freshness)
        if isinstance(self.leading, Alone):
            solitude = Solitude(accession, self.attention, self.health, self.inspection.allows)
            return {"attention": solitude.run()}
        reign = Reign(self.leading, accession, self.attention, self.health, self.metrics)
        self.leading.fence, self.leading.is_idle = self.fence, lambda: self.binds.is_idle and not reign.is_busy
        return {"election": self.leading.run(), "reign": reign.run()}

    def _join(self) -> None:
        """Tell of each other those that know each other, who cannot both be made first."""
        self.minds.take(self.placement_file.document)
        self.metrics.watch(self.gauges)
        self.belief.parting += (self.notices.forget, self.offered.forget)
        self.attention.heed(self.answers.evictions)
        self.attention.expiry.is_offered, self.attention.expiry.unasked = self.offered.has, self.sink.unasked
        self._join_sink()

    def _join_sink(self) -> None:
        """Have what follows tell, and what the scheduler asks, passed on to whoever is to know."""
        sink = self.sink
        sink.feed, sink.observer, sink.intrusion = self.carrier.feed, Observer(self.metrics), self._intrusion()
        sink.keeping, sink.attention, sink.journal = self.keeping, self.attention, self.journal
        sink.catching_up, sink.warming = self.catching_up, Warming(self.belief)
        if self.is_owner and self.settings.waking.nominate:
            sink.lapses = self._lapses()
            sink.ahead = self._ahead() if self.settings.waking.nominate_ahead != "never" else None

    # What is read and written.

    @cached_property
    def freshness(self) -> Freshness:
        """How old what is known is."""
        return Freshness(self.followed)

    @cached_property
    def versions(self) -> Versions:
        """What the API server serves."""
        return Versions(self.api, self.pace, self.sink)

    @cached_property
    def rhythm(self) -> Rhythm:
        """How resources are followed. Where nothing happens nothing is heard: asked in time, no view grows too old."""
        quiet_s = min(QUIET_S, self.settings.watch.max_age_seconds / 3)
        glance = partial(of_others, self.settings.schedulers)
        return Rhythm(pace=self.pace, quiet_s=quiet_s, recall=self.belief.recalled, glance=glance)

    @cached_property
    def follows(self) -> Follows:
        """What lists and watches everything."""
        return Follows(partial(follow, self.api, self.versions, sink=self.sink, rhythm=self.rhythm), self.followed)

    @cached_property
    def inspection(self) -> Inspection:
        """Whether the cluster is as it has to be."""
        return Inspection(self.settings, self.api, self.versions, self.freshness, self.pace)

    @cached_property
    def leading(self) -> Alone | Leading:
        """The election among replicas, or what stands for it where there is only one."""
        return leading_of(self.settings, self.lease_api, self.inspection.allows)

    @cached_property
    def fence(self) -> Fence:
        """What keeps back writes that must not leave now, and knows whether one can still arrive."""
        server_s = self.settings.leading.server_seconds
        return Fence(lambda: self.history.why_not() or self.leading.why_not(), since_boot, server_s)

    @cached_property
    def writes(self) -> Writes:
        """Writes to the API server, each of which passes the fence."""
        return Writes(self.api, lambda: self.versions.known(CLAIMS), self.settings.api.timeout_seconds, self.fence)

    @cached_property
    def carrier(self) -> Carrier:
        """What carries out the steps of a binding at the API server."""
        feed = Feed(self.belief, self.freshness, self.sink.stir, self.sink.show)
        return Carrier(self.writes, feed, self.now, self.rhythm.recent, self.rhythm.watches)

    def _clearing(self) -> Clearing:
        """Return what touches before anything else is written: nobody waits for what it has sent."""
        fence = Fence(lambda: self.history.why_not() or self.leading.why_not_move(), since_boot)
        return Clearing(self.belief, replace(self.writes, fence=fence), self.freshness, Pace())

    # What is answered, and what people are told.

    @cached_property
    def placement_file(self) -> PlacementFile:
        """The placement document, read again when its file changes."""
        return PlacementFile(self.settings.placement.file, self.metrics, self.minds.take)

    @cached_property
    def notices(self) -> Notices:
        """Events, posted a few at a time."""
        told = self.settings.events
        return Notices(self.writes, uuid4().hex[:8], told.per_second, told.enabled, self.metrics.event)

    @cached_property
    def journal(self) -> Journal:
        """The last decisions, and what people are told of them."""
        told = (self.notices, self.metrics, time.time)
        return Journal(self.belief, *told, Decisions(self.settings.decisions.keep), in_turns())

    @cached_property
    def health(self) -> Health:
        """What keeps us from answering."""
        max_age_s, obstacle, worry = self.settings.watch.max_age_seconds, self.leading.obstacle, self.keeping.warning
        return Health(self.freshness, max_age_s, self.now, obstacle, worry, self.history)

    @cached_property
    def binds(self) -> Binds:
        """The bindings under way, no more than one for each pod."""
        ignored = self.settings.allocation.ignored_resources
        binder = Binder(self.belief, self.minds.chooser, time.time, self.offered.has, ignored)
        ended = (self.journal.ended, self.attention.waits.ended, self.planner.trips.ended)
        return Binds(binder, self.carrier, left_of(self.settings.api.bind_seconds), ended)

    @cached_property
    def catching_up(self) -> CatchingUp:
        """Who waits for what the scheduler has heard of before us."""
        return CatchingUp(self.belief, self.now, self.sink.hurry)

    @cached_property
    def answers(self) -> Answers:
        """The answers of an owner to the scheduler's verbs."""
        deciding = (self.belief, self.planner, self.minds.chooser, self.binds, self.journal, self.attention)
        hindering = (self.health.hindering, self.now, self.leading.hindrance)
        told = (self.sink.asked, self.sink.answered, self.sink.evicting)
        return Answers(*deciding, self.offered, self.catching_up, *hindering, *told, self.journal.afterwards)

    @cached_property
    def server(self) -> Server:
        """What answers over HTTP."""
        hindering, metrics, known = self.health.hindering, self.metrics, self.belief.pods.seen
        verbs = self.answers if self.is_owner else Advising(self.minds.advisor, self.journal, hindering)
        application = Application(verbs, self.journal, self.health, metrics, known, self.answers.hindrance)
        return Server(application, self.options)

    # What is looked after.

    @cached_property
    def waker(self) -> Waker:
        """The pods that were rejected, and which of them are to be woken."""
        return Waker(self.belief, self.planner, shown_until=partial(self.freshness.seen_at, PODS))

    @cached_property
    def gauges(self) -> Gauges:
        """What metrics tell of the present, counted at every scrape."""
        return Gauges(self.belief, self.freshness, self.waker, self.now, self.minds.taste, self.leading.leads)

    @cached_property
    def attention(self) -> Attention:
        """What is done unasked: pods woken, steered and freed."""
        holds, waking = self.settings.holds, self.settings.waking
        habits = Habits(holds.offer_seconds, holds.wait_seconds, holds.rechecks, waking.nominate, waking.per_second)
        acting = (self.belief, self.waker, self.writes, self.carrier, self.metrics)
        return Attention(*acting, habits, self.now, time.time, self.freshness)

    @cached_property
    def keeping(self) -> Keeping:
        """What keeps the owner taint on the drivers that are ours."""
        is_wanted, knowing = self.settings.ownership.keeps_taint, (self.belief, self.versions, self.writes)
        return Keeping(*knowing, self.metrics, self._reigns, self.now, is_wanted=is_wanted)

    @cached_property
    def auditing(self) -> Auditing:
        """What compares all that is known, and tells where it contradicts itself."""
        knowing, writes = (Auditor(self.belief), self.metrics, self.notices), self.writes if self.is_owner else None
        return Auditing(*knowing, self.now, time.time, writes, self.freshness)

    def _intrusion(self) -> Intrusion:
        return Intrusion(self.belief, self.metrics, self.notices, self._judges, time.time)

    def _lapses(self) -> Lapses:
        return Lapses(self.belief, self.writes, self.metrics, self.now, self._may_send)

    def _ahead(self) -> Ahead:
        sending = Sending(self.settings.waking.nominate_ahead, self.inspection.minor)
        mind = (self.belief, self.planner, Suitable(self.belief.loads))
        return Ahead(*mind, self.writes, self.metrics, self.now, self._may_send, sending, self.rhythm.recent)

    def _judges(self) -> bool:
        """Tell whether allocations that are not ours are somebody's who must not."""
        return self.is_owner and self.leading.judges()

    def _reigns(self) -> bool:
        """Tell whether the cluster is as it has to be, and ours to look after."""
        return self.inspection.allows() and self.leading.leads()

    def _may_send(self) -> bool:
        """Tell whether pods may be promised anything unasked: not before what was half written was looked after."""
        return self.health.begun.is_set() and self.leading.leads()

    def _may_audit(self) -> bool:
        """Tell whether what is compared is known, and is ours: where a watch stands still all looks wrong."""
        oldest = self.now() - self.settings.watch.max_age_seconds
        return self.freshness.has_vital and not self.freshness.outdated(oldest) and self.leading.leads()
