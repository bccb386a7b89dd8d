"""Which pods to wake, now that something has changed: those that fit, and no more than what is free serves.

Whoever is woken is promised its devices first, so that the next in line is measured by what is left.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from extender.allocation.grid import Flags
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.planner import Offer, Planner, Rejection, Trouble
from extender.scheduling.rest import Rest
from extender.state.belief import Belief

# Pods woken in one round: the others have their turn in the next.
MOST = 64
# Pods planned in one round: ten thousand may wait that all ask something else, and nobody is to wait for them.
LOOKS = 256
# Pods that are passed over in one go, because another asked the same in vain: there may be ten thousand of them.
PASSED = 64
# Pods at rest that are planned in one round: what is news to them may be had by one that was never woken, too.
RESTING = 16
# The time between two rounds grows with the pods that wait: looking at all of them takes a part of it, not all.
SPACING_S = 1e-4
# Where nothing is new but that some pods have rested, it is so many times as long: of a thousand some always have.
CALM = 10
# In place of the plan of a pod that cannot be looked at.
FAILED = object()


class Wake(NamedTuple):
    """A pod that fits, and the node that it is to try first; none where devices are free and room is not."""

    pod: Pod
    node: NodeName | None


class Chance(NamedTuple):
    """What is planned of a pod that is to be tried, although as far as we know there is no room for it."""


@dataclass(slots=True)
class Waker:
    """The pods that were rejected. One writer.

    patience_s: how long a woken pod has to be bound before others are woken in its place, and it again; twice as long
    each time, but for nodes that it was never sent to. Where nothing changes, a pod that was rejected is looked at
    again after the same time.
    slow: when waking a pod of a namespace last took too long, or had no answer: these come last. refused: told of each
    pod that was looked at and fits nowhere still. apart: has a pod that cannot be looked at keep no other from it.
    """

    belief: Belief
    planner: Planner
    patience_s: float = 15.0
    slow: dict[str, float] = field(default_factory=dict)
    refused: Callable[[Pod], None] = lambda _pod: None
    apart: Callable[[ObjectKey], AbstractContextManager[object]] = nullcontext
    # Up to when all pods that there were have been shown.
    shown_until: Callable[[], float] = lambda: inf
    _waiting: dict[Uid, Rest | None] = field(default_factory=dict)
    _seen: object = None
    _sight: object = None
    _looked: set[Uid] = field(default_factory=set)
    # Pods that were not shown yet when something was new, or that something is kept for: they are looked at once shown.
    _missed: set[Uid] = field(default_factory=set)
    _unwoken: Uid | None = None
    _is_stale: bool = False
    _next: float = 0.0
    _last: float = -inf

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, pod: Uid) -> bool:
        return pod in self._waiting

    def put(self, pod: Uid) -> None:
        """Remember that *pod* was rejected. One that was woken and is back has had its turn."""
        rest = self._waiting.setdefault(pod, None)
        if rest is None:
            self._next = 0.0
        elif rest.is_unasked:
            self._waiting[pod] = Rest(rest.since, 1)

    def kept(self, pod: Uid, node: NodeName, now: float) -> None:
        """Have *pod* woken next, however often it was before: something on *node* is its, where it was not sent yet."""
        if pod in self._waiting and node not in self.planner.trips.of(pod).sent:
            self._waiting[pod] = Rest(now)
            self._missed.add(pod)

    def drop(self, pod: Uid) -> None:
        """Forget a pod that was offered nodes, is bound or gone."""
        self._waiting.pop(pod, None)
        self._missed.discard(pod)

    def unasked(self, pod: Uid, now: float) -> None:
        """Take note that the scheduler did not ask about a pod that was woken: it will be a while before it does."""
        if pod in self._waiting:
            self._waiting[pod] = Rest(now, self._wakes(pod), is_unasked=True)

    def unwoken(self, pod: Uid) -> None:
        """Take note that the wake that was just chosen was not heard of: it does not count."""
        self._unwoken = pod

    def round(self, now: float, most: int = MOST) -> Iterator[Wake | None]:
        """Choose whom to wake, by priority and then by age. A question that fits nowhere is not asked again.

        After each pod that was looked at others may do something, and after some that were passed over: what comes is
        one to wake, or None.
        """
        is_news, is_due = self._turn(now)
        if not is_due:
            return
        hopeless, passed, looks = set[object](), 0, LOOKS
        self._last, self._next = now, now + self.patience_s
        for pod in self._in_line(now, is_news=is_news):
            if not (most and looks):
                # Those that fit are woken at once; who only costs time has the next turn a little later.
                self._seen = object() if most else None
                return
            plan = self._look(pod, hopeless, now)
            if plan is None:
                passed += 1
                if passed % PASSED == 0:
                    yield None
                continue
            looks, most = looks - 1, most - isinstance(plan, Offer | Chance)
            if not (yield from self._wake(pod, plan, now)):
                return
        self._end()

    def _turn(self, now: float) -> tuple[bool, bool]:
        """Tell whether anything is new, and whether anybody is looked at."""
        spacing_s = SPACING_S * len(self._waiting)
        if self._seen is not None and now < self._last + spacing_s:
            return False, False
        is_news = self._seen is not self.belief.seen_by()
        is_rested = now >= max(self._next, self._last + CALM * spacing_s)
        return is_news, is_news or is_rested or any(map(self.belief.pods.with_uid, self._missed))

    def _look(self, pod: Pod, hopeless: set[object], now: float) -> object:
        """Plan *pod*; None where another asked the same in vain."""
        if self._notice():
            hopeless.clear()
        # Even one that cannot be planned has had its turn.
        self._looked.add(pod.uid)
        plan: object = FAILED
        with self.apart(pod.key):
            plan = self._plan(pod, hopeless, now)
        self._sight = self.belief.seen_by()
        if isinstance(plan, Rejection | Unplaceable | Chance):
            self.refused(pod)
        return plan

    def _wake(self, pod: Pod, plan: object, now: float) -> Generator[Wake | None, None, bool]:
        """Have *pod* woken where it fits; tell whether the round goes on."""
        before = self._waiting.get(pod.uid)
        if isinstance(plan, Offer):
            self._waiting[pod.uid] = Rest(now, self._wakes(pod.uid) + 1)
        node = plan.placement.node if isinstance(plan, Offer) else None
        yield Wake(pod, node) if isinstance(plan, Offer | Chance) else None
        if self._unwoken != pod.uid:
            return True
        self.planner.possible.untried()
        # Whoever is left has the next turn, and this one another after that.
        self._seen, self._unwoken, self._is_stale = None, None, True
        self._waiting |= {pod.uid: before} if pod.uid in self._waiting else {}
        return False

    def _notice(self) -> bool:
        """See whether somebody else has changed something since the last look; who was looked at before is again."""
        is_other = bool(self._looked) and self._sight is not self.belief.seen_by()
        self._is_stale = self._is_stale or is_other
        return is_other

    def _end(self) -> None:
        """Everybody was looked at: go on when something is new."""
        is_stale = self._notice() or self._is_stale
        self._seen, self._is_stale = object() if is_stale else self.belief.seen_by(), False
        self._looked.clear()

    def _wakes(self, pod: Uid) -> int:
        rest = self._waiting.get(pod)
        return rest.wakes if rest else 0

    def _plan(self, pod: Pod, hopeless: set[object], now: float) -> object:
        needs = needs_of(pod, self.belief)
        if isinstance(needs, Unplaceable):
            return needs
        hidden = needs.hidden(needs.extended).spec if needs.extended else None
        # What resources are called decides which nodes serve them by devices; some pods can go to these alone.
        where = needs.extended, bool(needs.mapped)
        question = needs.asked, hidden, where
        # Nor does what others ask in vain say anything of who is promised it already.
        is_alone, in_detail = not (needs.allocated or self.belief.ledger.of_pod(pod.uid)), (question, pod.terms)
        if is_alone and (question in hopeless or in_detail in hopeless):
            return None
        possible, is_at_rest = self.planner.possible.nodes(needs), self._is_at_rest(pod.uid, now)
        # Who is at rest is sent only where it never was: that it cannot go there says nothing of others.
        unseen = self._unseen(pod.uid) if is_at_rest else None
        suitable = possible if unseen is None else unseen if possible is None else unseen & possible
        plan = self.planner.plan(pod, None, now, is_answer=False, suitable=suitable)
        goes_on = isinstance(plan, Trouble) and plan.goes_on
        # What is not found out yet is gone on with in the next round, whether or not anything is new.
        self._is_stale = self._is_stale or goes_on
        is_late = goes_on or (isinstance(plan, Trouble) and self.belief.questions.late())
        if is_alone and not is_at_rest and (isinstance(plan, Rejection) or is_late):
            is_nowhere = is_late or possible is None or (isinstance(plan, Rejection) and plan.is_hopeless)
            hopeless.add(question if is_nowhere else in_detail)
        is_chance = not is_at_rest and isinstance(plan, Rejection) and self._is_chance(needs, plan, in_detail)
        return Chance() if is_chance else plan

    def _is_chance(self, needs: Needs, plan: Rejection, asked: object) -> bool:
        """Tell whether *plan* has found devices where there was none for a pod that asks so, but no room.

        Nothing is promised to it there: the scheduler may never ask. Where it does, others may have to go for the pod.
        """
        pod = needs.pod
        if plan.fitting is None or pod.nominated_node:
            return False
        key = pod.uid if needs.allocated else (asked, pod.priority)
        return self.planner.possible.is_news(key, needs, plan.fitting)

    def _in_line(self, now: float, *, is_news: bool) -> Iterator[Pod]:
        """Yield the pods whose turn it is: with news all, of those at rest a few; without it those that are rested."""
        waiting = [pod for uid in tuple(self._waiting) if (pod := self._known(uid, now)) is not None]
        if is_news:
            self._missed = self._waiting.keys() - {pod.uid for pod in waiting}
        spare = RESTING
        for known in sorted(waiting, key=lambda pod: (self._is_at_rest(pod.uid, now), self._place(pod))):
            # Since the last of them was looked at, this one may have been bound or offered nodes.
            pod = self.belief.pods.with_uid(known.uid)
            if pod is None or pod.uid in self._looked or pod.uid not in self._waiting:
                continue
            is_new = is_news or pod.uid in self._missed
            self._missed.discard(pod.uid)
            rest = self._rest(pod.uid)
            until = now + self.patience_s if rest is None else rest.until(self.patience_s)
            has_turn = until <= now or (is_new and not (rest and rest.wakes))
            is_over = is_new and not has_turn and spare > 0 and self._is_over(pod.uid, rest, now)
            spare -= is_over
            if has_turn or is_over:
                # Who is rested competes until it is woken again: what it waits for may come a moment later.
                self._waiting[pod.uid] = rest if rest and rest.wakes else Rest(now)
                self._next = min(self._next, until) if until > now else self._next
                yield pod
            else:
                self._waiting[pod.uid] = rest or Rest(now)
                self._next = min(self._next, until)

    def _place(self, pod: Pod) -> tuple[float, int, str, ObjectKey]:
        return self.slow.get(pod.key.namespace, -inf), -pod.priority, pod.created, pod.key

    def _rest(self, pod: Uid) -> Rest | None:
        """Say since when a pod rests. That it was sent to a node when it was rejected is a wake as well."""
        rest, at = self._waiting[pod], self.planner.trips.steered_at(pod)
        if at is None or (rest and rest.since >= at):
            return rest
        return Rest(at, max(1, rest.wakes if rest else 0))

    def _is_over(self, pod: Uid, rest: Rest | None, now: float) -> bool:
        """Tell whether the last wake of *pod* has come to nothing: it may be sent where it never was."""
        is_past = rest is not None and not rest.is_unasked and now >= rest.since + self.patience_s
        return is_past and self.belief.ledger.of_pod(pod) is None

    def _is_at_rest(self, pod: Uid, now: float) -> bool:
        """Tell whether *pod* was woken in vain of late: others come first, or such would have all that is free."""
        rest = self._rest(pod)
        return rest is not None and bool(rest.wakes) and rest.until(self.patience_s) > now

    def _unseen(self, pod: Uid) -> Flags:
        """Tell which nodes *pod* was never sent to: bool[nodes]."""
        layout = self.belief.cluster.snapshot.layout
        flags = np.ones(len(layout.nodes), np.bool_)
        flags[layout.numbers(self.planner.trips.of(pod).vain)] = False
        return flags

    def _known(self, uid: Uid, now: float) -> Pod | None:
        """Find a pod; the scheduler may know it before the watch shows it, but not for long where the watch goes on."""
        pod, rest = self.belief.pods.with_uid(uid), self._waiting[uid]
        if pod is not None and not pod.is_deleting:
            return pod
        if pod is not None or (rest and min(now, self.shown_until()) - rest.since >= self.patience_s):
            self.drop(uid)
        else:
            self._waiting[uid] = rest or Rest(now)
        return None
