"""The extender, put together as in ``service.assembly`` but for HTTP: its line, its watches and its clock are ours."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from extender.allocation.features import Features
from extender.config.settings import Settings
from extender.kube.freshness import Freshness
from extender.kube.resource import BOUND, CLAIMS, RESOURCES, Served
from extender.kube.told import Told
from extender.kube.writes import Writes
from extender.scheduling.binding import Binder, Order, Result
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Planner
from extender.scheduling.ranking import Answer, Policy
from extender.scheduling.record import Decisions
from extender.scheduling.waking import Waker
from extender.service.answers import Answers
from extender.service.attention import Attention, Habits
from extender.service.binds import Binds
from extender.service.carrier import Carrier
from extender.service.feed import Feed
from extender.service.health import Health
from extender.service.intrusion import Intrusion
from extender.service.journal import Journal
from extender.service.notices import Notices
from extender.service.offers import Offers
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from extender.telemetry.metrics import Metrics
from tests.interleavings.loop import Loop
from tests.interleavings.server import Desk, Line
from tests.interleavings.watching import Watching

if TYPE_CHECKING:
    from extender.kube.api import Api

FOLLOWED: Final = tuple(resource for resource in RESOURCES if resource is not BOUND)
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
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def begin(self) -> None:
        """List everything, and look after pods."""
        for watch in self.watches.values():
            watch.read()
        run = self.attention.run(self.health.begin, lambda: self.health.freshness.has_vital)
        self.tasks.append(self.loop.create_task(run, name="attention"))

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


def process_of(loop: Loop, desk: Desk) -> Process:
    """Put a process together; it knows nothing."""
    line, store = Line(desk), desk.api.store
    domain = Domain(taint=SETTINGS.ownership.owner_taint, writer=writer_of(SETTINGS.schedulers))
    belief, freshness = Belief(SETTINGS.schedulers, Features(), domain=domain), Freshness(FOLLOWED)
    numbers = count()
    chooser = Chooser(belief, lambda: f"share-{next(numbers)}")
    policy = Policy(Answer(SETTINGS.answer.policy), SETTINGS.answer.shortlist)
    planner = Planner(belief, chooser, policy)
    writes = Writes(cast("Api", line), lambda: Served(CLAIMS, "v1"), SETTINGS.api.timeout_seconds)
    stirred: list[Attention] = []

    def stir() -> None:
        for item in stirred:
            item.stir()

    feed = Feed(belief, freshness, stir, lambda _what: None)
    carrier = Carrier(writes, feed, loop.time)
    notices = Notices(writes, "model", 20, is_enabled=False)
    journal = Journal(belief, notices, METRICS, loop.time, Decisions(1000))
    intrusion = Intrusion(belief, METRICS, notices, lambda: True, loop.time)
    habits = Habits(SETTINGS.holds.offer_seconds, SETTINGS.holds.rechecks)
    attention = Attention(belief, Waker(belief, planner), writes, carrier, METRICS, habits, loop.time, loop.time)
    stirred.append(attention)
    health = Health(freshness, SETTINGS.watch.max_age_seconds, loop.time)

    def ended(order: Order, result: Result) -> None:
        journal.ended(order, result)
        attention.ended(order, result)

    offers = Offers()
    binds = Binds(Binder(belief, chooser, loop.time, offers.has), carrier, SETTINGS.api.bind_seconds, ended)
    answers = Answers(belief, planner, chooser, binds, journal, attention, offers, health.hindering, loop.time)

    def take(told: Told) -> None:
        intrusion.before(told)
        feed.take(told)
        intrusion.after(told)

    kinds = {kind.plural: kind for kind in desk.api.kinds.values()}
    watches = {item.name: Watching(store, kinds[item.name], item, take, loop.time) for item in FOLLOWED}
    return Process(loop, line, belief, answers, attention, health, watches)
