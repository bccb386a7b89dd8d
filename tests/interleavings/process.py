"""The extender, put together as in ``service.assembly`` but for HTTP: its line, its watches and its clock are ours."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from extender.allocation.features import Features
from extender.config.settings import Settings
from extender.kube.freshness import Freshness
from extender.kube.recent import Recent
from extender.kube.resource import BOUND, CLAIMS, RESOURCES, Served
from extender.kube.told import Told
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.binding import Binder
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Planner
from extender.scheduling.ranking import Answer, Policy
from extender.scheduling.record import Decisions
from extender.scheduling.suitable import Suitable
from extender.scheduling.waking import Waker
from extender.service.ahead import Ahead
from extender.service.answers import Answers
from extender.service.attention import Attention, Habits
from extender.service.binds import Binds
from extender.service.carrier import Carrier
from extender.service.feed import Feed
from extender.service.health import Health
from extender.service.intrusion import Intrusion
from extender.service.journal import Journal
from extender.service.lapses import Lapses
from extender.service.notices import Notices
from extender.service.offers import Offers
from extender.service.sending import Sending
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from extender.telemetry.metrics import Metrics
from tests.interleavings.loop import Loop
from tests.interleavings.server import Desk, Line
from tests.interleavings.watching import Watching

if TYPE_CHECKING:
    from extender.kube.api import Api

SETTINGS: Final = Settings()
METRICS: Final = Metrics()


@dataclass(slots=True)
class Process:
    """One life of the extender."""

    loop: Loop
    line: Line
    belief: Belief
    answers: Answers
    attention: Attention
    health: Health
    watches: dict[str, Watching]
    works: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def begin(self) -> None:
        """List everything, and look after pods."""
        for watch in self.watches.values():
            watch.read()
        run = self.attention.run(self.health.begin, lambda: self.health.freshness.has_vital)
        self.tasks.append(self.loop.create_task(run, name="attention"))
        self.tasks += [self.loop.create_task(work(), name="nominating") for work in self.works]

    def retire(self) -> None:
        """Let what is under way end, and begin nothing any more: another is to take over."""
        for task in self.tasks:
            task.cancel()

    def die(self, others: Callable[[], set[asyncio.Task[Any]]]) -> None:
        """End at once. What was sent may land yet."""
        self.line.is_dead = True
        for task in asyncio.all_tasks(self.loop) - others():
            task.cancel()
        self.loop.settle()


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

    def evicting(self, pod: Uid) -> None:
        if self.lapses:
            self.lapses.evicting(pod)


def process_of(loop: Loop, desk: Desk, leads: Callable[[], bool], *, answer: Answer, nominates: bool) -> Process:
    """Put a process together; it knows nothing."""
    line, store = Line(desk), desk.api.store
    followed = [resource for resource in RESOURCES if nominates or resource is not BOUND]
    domain = Domain(taint=SETTINGS.ownership.owner_taint, writer=writer_of(SETTINGS.schedulers))
    belief, freshness = Belief(SETTINGS.schedulers, Features(), domain=domain), Freshness(followed)
    numbers = count()
    chooser = Chooser(belief, lambda: f"share-{next(numbers)}")
    planner = Planner(belief, chooser, Policy(answer))
    writes = Writes(cast("Api", line), lambda: Served(CLAIMS, "v1"), SETTINGS.api.timeout_seconds)
    stirred: list[Attention | Nominating] = []
    recent, nominating = Recent(), Nominating()

    def stir() -> None:
        for item in stirred:
            item.stir()

    def show(what: object) -> None:
        nominating.show(what)

    feed = Feed(belief, freshness, stir, show)
    carrier = Carrier(writes, feed, loop.time, recent)
    notices = Notices(writes, "model", 20, is_enabled=False)
    journal = Journal(belief, notices, METRICS, loop.time, Decisions(1000))
    intrusion = Intrusion(belief, METRICS, notices, lambda: True, loop.time)
    habits = Habits(SETTINGS.holds.offer_seconds, SETTINGS.holds.rechecks)
    attention = Attention(belief, Waker(belief, planner), writes, carrier, METRICS, habits, loop.time, loop.time)
    health = Health(freshness, SETTINGS.watch.max_age_seconds, loop.time)
    if nominates:
        nominating = _nominating(planner, writes, loop.time, lambda: health.begun.is_set() and leads(), recent)
    stirred += [attention, nominating]

    offers, ended = Offers(), (journal.ended, attention.ended)
    binds = Binds(Binder(belief, chooser, loop.time, offers.has), carrier, SETTINGS.api.bind_seconds, ended)
    parts = belief, planner, chooser, binds, journal, attention, offers
    answers = Answers(*parts, health.hindering, loop.time, asked=nominating.asked, evicting=nominating.evicting)
    attention.wakes.victims = answers.evictions.victims

    def take(told: Told) -> None:
        intrusion.before(told)
        feed.take(told)
        intrusion.after(told)

    kinds = {kind.plural: kind for kind in desk.api.kinds.values()}
    complain = desk.complaints.append
    watches = {
        item.name: Watching(store, kinds[item.served_as or item.name], item, recent, take, loop.time, complain)
        for item in followed
    }
    return Process(loop, line, belief, answers, attention, health, watches, nominating.works)


def _nominating(
    planner: Planner, writes: Writes, now: Callable[[], float], leads: Callable[[], bool], recent: Recent
) -> Nominating:
    """Nominate every pod ahead."""
    belief, sending = planner.belief, Sending("always", is_known=True)
    ahead = Ahead(belief, planner, Suitable(belief.loads), writes, METRICS, now, leads, sending, recent)
    return Nominating(ahead, Lapses(belief, writes, METRICS, now, leads))
