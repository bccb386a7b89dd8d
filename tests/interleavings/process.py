"""The extender, put together as in ``service.parts`` but for HTTP: its line, its watches and its clock are ours."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from extender.allocation.features import Features
from extender.config.settings import Settings
from extender.kube.fence import Fence
from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.kube.recent import Recent
from extender.kube.resource import BOUND, CLAIMS, PODS, RESOURCES, Resource, Served, of_others
from extender.kube.told import Told
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.binding import Binder
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Planner
from extender.scheduling.ranking import AnswerPolicy
from extender.scheduling.record import Decisions
from extender.scheduling.suitable import Suitable
from extender.scheduling.taste import Taste
from extender.scheduling.waking import Waker
from extender.service.accession import Accession
from extender.service.ahead import Ahead
from extender.service.alone import Alone, Solitude
from extender.service.answers import Answers
from extender.service.attention import Attention
from extender.service.binds import Binds
from extender.service.carrier import Carrier
from extender.service.catching_up import CatchingUp
from extender.service.clearing import Clearing
from extender.service.feed import Feed
from extender.service.follows import Follows
from extender.service.habits import Habits
from extender.service.health import Health
from extender.service.intrusion import Intrusion
from extender.service.journal import Journal
from extender.service.lapses import Lapses
from extender.service.leading import Leading
from extender.service.notices import Notices
from extender.service.offered import OfferedNodes
from extender.service.reign import Reign
from extender.service.sending import Sending
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from extender.telemetry.metrics import Metrics
from tests.interleavings.loop import Loop
from tests.interleavings.manner import Manner, Preferred
from tests.interleavings.server import LATE_S, Desk, Line
from tests.interleavings.watching import Watching

if TYPE_CHECKING:
    from extender.kube.api import Api

SETTINGS: Final = Settings()
METRICS: Final = Metrics()
# How long the API server works at a write, whose connection may have been cut at once.
SERVER_S: Final = LATE_S
# What is waited for in short steps takes a little longer: time passes faster so.
STEP_S: Final = 0.5


class Sole(Alone):
    """The only one at a time; *is_asked* until another is to take over.

    has_cleared: it has not waited for what was sent before, but seen to it that this changes nothing.
    """

    is_asked = True
    has_cleared = False

    def leads(self) -> bool:
        return self.is_asked and super().leads()

    def cleared(self) -> None:
        super().cleared()
        self.has_cleared = True


@dataclass(slots=True)
class Process:
    """One life of the extender."""

    loop: Loop
    line: Line
    belief: Belief
    answers: Answers
    attention: Attention
    leading: Sole | Leading
    watches: dict[str, Watching]
    follows: Follows
    # Has something else preferred from now on: what another placement document says.
    prefer: Callable[[Preferred], None]
    works: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def begin(self) -> None:
        """List everything, and look after pods."""
        self.loop.create_task(self.follows.run(), name="follows")
        self.tasks += [self.loop.create_task(work(), name=str(work)) for work in self.works]

    def catch_up(self) -> None:
        """Have everything told that has happened."""
        for watch in self.watches.values():
            watch.step()
            while watch.is_behind:
                watch.step()

    def told(self, resources: Iterable[str]) -> dict[str, int]:
        """Return up to which revision each of *resources* has been told."""
        return {name: self.watches[name].position for name in resources}

    def refresh(self) -> None:
        """Have nobody believe that a watch is old that has nothing to tell."""
        # A watch may be late, but a view as old as that would not be answered from.
        for watch in self.watches.values():
            if not watch.is_behind:
                watch.step()

    def retire(self) -> None:
        """Let what is under way end, and begin nothing any more: another is to take over."""
        for task in self.tasks:
            task.cancel()

    def die(self) -> None:
        """End at once. What was sent may land yet."""
        self.line.is_dead = True
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()


class Nominating:
    """What is done about pods before they are asked about; nothing where nobody is nominated ahead."""

    def __init__(self, ahead: Ahead | None = None, lapses: Lapses | None = None) -> None:
        self.ahead, self.lapses = ahead, lapses

    @property
    def works(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        return [part.run for part in (self.ahead, self.lapses) if part]

    def stir(self) -> None:
        if self.ahead:
            self.ahead.stir()

    def show(self, what: object) -> None:
        if self.ahead and isinstance(what, Pod):
            self.ahead.shown(what)
        if self.ahead and isinstance(what, ResourceClaim):
            self.ahead.made(what)

    def asked(self, pod: Pod, names: Sequence[str]) -> None:
        if self.ahead:
            self.ahead.asked(pod, names)

    def answered(self, pod: Pod, node: NodeName) -> None:
        if self.ahead:
            self.ahead.answered(pod, node)

    def evicting(self, pod: Uid) -> None:
        if self.lapses:
            self.lapses.evicting(pod)

    def unasked(self, pod: Uid) -> None:
        if self.lapses:
            self.lapses.unasked(pod)


def process_of(loop: Loop, desk: Desk, leading: Sole | Leading, manner: Manner) -> Process:
    """Put a process together; it knows nothing."""
    line, now = Line(desk), loop.time
    followed = [resource for resource in RESOURCES if manner.nominates or resource is not BOUND]
    domain = Domain(taint=SETTINGS.ownership.owner_taint, writer=writer_of(SETTINGS.schedulers))
    belief, freshness = Belief(SETTINGS.schedulers, Features(), domain=domain), Freshness(followed)
    numbers = count()
    chooser = Chooser(belief, lambda: f"share-{next(numbers)}")
    planner, commons = Planner(belief, chooser, AnswerPolicy(manner.answer)), Commons(belief.loads)

    def prefer(preferred: Preferred) -> None:
        document = preferred.document
        chooser.taste = None if document is None else Taste(document, belief.learning.mix_for, commons)
        line.preferred.append(preferred.written)

    prefer(manner.preferred)
    fence = Fence(leading.why_not, now, SERVER_S)
    writes = Writes(cast("Api", line), lambda: Served(CLAIMS, "v1"), SETTINGS.api.timeout_seconds, fence)
    stirred: list[Attention | Nominating] = []
    recent, nominating = Recent(), Nominating()

    def stir() -> None:
        for item in stirred:
            item.stir()

    def show(what: object) -> None:
        nominating.show(what)

    feed = Feed(belief, freshness, stir, show)
    carrier = Carrier(writes, feed, now, recent)
    notices = Notices(writes, "model", 20, is_enabled=False)
    journal = Journal(belief, notices, METRICS, now, Decisions(1000))
    intrusion = Intrusion(belief, METRICS, notices, leading.judges, now)
    habits = Habits(SETTINGS.holds.offer_seconds, SETTINGS.holds.wait_seconds, SETTINGS.holds.rechecks)
    waker = Waker(belief, planner, shown_until=lambda: freshness.seen_at(PODS))
    attention = Attention(belief, waker, writes, carrier, METRICS, habits, now, now)
    health = Health(freshness, SETTINGS.watch.max_age_seconds, now)
    if manner.nominates:
        nominating = _nominating(planner, writes, now, lambda: health.begun.is_set() and leading.leads(), recent)
    stirred += [attention, nominating]

    offered, ended = OfferedNodes(), (journal.ended, attention.waits.ended, planner.trips.ended)
    binds = Binds(Binder(belief, chooser, now, offered.has), carrier, SETTINGS.api.bind_seconds, ended)
    parts = belief, planner, chooser, binds, journal, attention, offered, CatchingUp(belief, now)
    told = nominating.asked, nominating.answered, nominating.evicting
    answers = Answers(*parts, health.hindering, now, leading.hindrance, *told)
    attention.heed(answers.evictions)
    attention.expiry.is_offered, attention.expiry.unasked = offered.has, nominating.unasked

    def take(told: Told) -> None:
        intrusion.before(told)
        feed.take(told)
        intrusion.after(told)

    watch = partial(Watching, recent=recent, tell=take, moment=now, complain=desk.complaints.append)
    brief = partial(of_others, SETTINGS.schedulers)
    watches = _watches(desk, followed, partial(watch, recall=belief.recalled, glance=brief))
    follows = _follows(watches)
    works = [*_works(leading, follows, attention, health, lambda: binds.is_idle), *nominating.works]
    return Process(loop, line, belief, answers, attention, leading, watches, follows, prefer, works)


def _watches(desk: Desk, followed: Sequence[Resource], watch: Callable[..., Watching]) -> dict[str, Watching]:
    kinds = {kind.plural: kind for kind in desk.api.kinds.values()}
    return {item.name: watch(desk.api.store, kinds[item.served_as or item.name], item) for item in followed}


def _follows(watches: dict[str, Watching]) -> Follows:
    async def follow(resource: Resource) -> None:
        with watches[resource.name].following():
            await asyncio.Event().wait()

    for watch in watches.values():
        watch.is_on = False
    return Follows(follow, [watch.resource for watch in watches.values()])


def _works(
    leading: Sole | Leading,
    follows: Follows,
    attention: Attention,
    health: Health,
    is_idle: Callable[[], bool],
) -> list[Callable[[], Coroutine[Any, Any, None]]]:
    """Return what is done all the time, by the only one or by one of several: as they are put together there."""
    pace = Pace(health.now, lambda seconds: asyncio.sleep(max(seconds, STEP_S)))
    moving = replace(attention.writes, fence=Fence(leading.why_not_move, health.now, SERVER_S))
    clearing = Clearing(attention.belief, moving, health.freshness, pace)
    accession = Accession(leading, follows, clearing, health.freshness, pace)
    if isinstance(leading, Sole):
        return [Solitude(accession, attention, health, lambda: health.freshness.has_vital).run]
    reign = Reign(leading, accession, attention, health, METRICS)
    leading.is_able = lambda: health.freshness.has_vital
    leading.is_idle, leading.fence = lambda: is_idle() and not reign.is_busy, attention.writes.fence
    leading.now, leading.pace = health.now, pace
    return [leading.run, reign.run]


def _nominating(
    planner: Planner, writes: Writes, now: Callable[[], float], leads: Callable[[], bool], recent: Recent
) -> Nominating:
    """Nominate every pod ahead."""
    belief, sending = planner.belief, Sending("always", is_known=True)
    ahead = Ahead(belief, planner, Suitable(belief.loads), writes, METRICS, now, leads, sending, recent)
    return Nominating(ahead, Lapses(belief, writes, METRICS, now, leads))
