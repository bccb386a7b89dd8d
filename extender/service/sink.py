"""What following tells, and the scheduler asks, passed on to whoever is to know."""

from asyncio import Task
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from extender.kube.told import Told
from extender.model.change import Noun
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.service.ahead import Ahead
from extender.service.attention import Attention
from extender.service.catching_up import CatchingUp
from extender.service.feed import Feed
from extender.service.history import History
from extender.service.intrusion import Intrusion
from extender.service.journal import Journal
from extender.service.keeping import Keeping
from extender.service.lapses import Lapses
from extender.service.observer import Observer
from extender.service.warming import Warming

Work = dict[str, Coroutine[Any, Any, object]]


class Sink:
    """Passes on what following tells. Whom it tells is known before anything is told, and later than it is made."""

    feed: Feed
    journal: Journal
    observer: Observer
    intrusion: Intrusion
    attention: Attention
    warming: Warming
    keeping: Keeping
    catching_up: CatchingUp
    ahead: Ahead | None = None
    lapses: Lapses | None = None

    def __init__(self, history: History) -> None:
        self.history = history

    def __call__(self, told: Told) -> None:
        self.history.note(told)
        self.observer.note(told)
        self.intrusion.before(told)
        self.feed.take(told)
        self.intrusion.after(told)
        self.journal.shown(told)

    def asked(self, pod: Pod, names: Sequence[str]) -> None:
        """Pass on about which pod the scheduler asks."""
        if self.ahead is not None:
            self.ahead.asked(pod, names)

    def answered(self, pod: Pod, node: NodeName) -> None:
        """Pass on for which pod it was told of which node."""
        if self.ahead is not None:
            self.ahead.answered(pod, node)

    def hurry(self, pod: Pod) -> Collection[Task[None]] | None:
        """Pass on that it is about to; return what is written for others where that is too early."""
        return self.ahead.hurry(pod) if self.ahead is not None else None

    def evicting(self, pod: Uid) -> None:
        """Pass on that others may be evicted for a pod."""
        if self.lapses is not None:
            self.lapses.evicting(pod)

    def unasked(self, pod: Uid) -> None:
        """Pass on that the scheduler did not ask about a pod that was woken."""
        if self.lapses is not None:
            self.lapses.unasked(pod)

    def work(self) -> Work:
        """Return what those do unasked who are told."""
        doing = {
            "nominations ahead": self.ahead,
            "nominations taken back": self.lapses,
            "owner taint": self.keeping,
            "warming": self.warming,
            "closing": self.intrusion,
        }
        return {name: one.run() for name, one in doing.items() if one is not None}

    def stir(self) -> None:
        for each in (self.catching_up, self.attention, self.ahead, self.keeping):
            if each is not None:
                each.stir()

    def show(self, what: Noun | Problem) -> None:
        if isinstance(what, Footprint):
            self.catching_up.stir()
        if isinstance(what, Pod) and self.ahead is not None:
            self.ahead.shown(what)
        if isinstance(what, ResourceClaim):
            if self.ahead is not None:
                self.ahead.made(what)
            self.warming.shown(what)
