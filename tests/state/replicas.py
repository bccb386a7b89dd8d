"""Replicas that contend for a Lease in a bad world: clocks that differ, pauses, crashes, answers lost or late.

Times are true times unless they are called local. The world decides by chance what becomes of each request; what it
does to replicas is given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple

from extender.state.tenure import Act, LeaseTimes, Record, Step, Tenure, Wish, wish_of

PATIENCE_S = 5.0  # local: how long an answer about the Lease is waited for
WRITE_PATIENCE_S = 10.0  # local: how long a write may take to leave
SERVER_S = 60.0  # how long the API server may work at a request
TICK_S = 0.5


class Misfortune(NamedTuple):
    """What happens to a replica: a pause of so many seconds, or, where there are none, a crash and a new process."""

    at: float
    whom: int
    seconds: float = 0.0


class Write(NamedTuple):
    """A write that was permitted. What was sent until *cleared_at* changes nothing, whenever it lands."""

    by: str
    sent: float
    lands: float
    cleared_at: float

    def is_met_by(self, other: "Write") -> bool:
        """Tell whether *other*, of another process that wrote before, does not keep out of the way of this one."""
        return other.lands > self.sent and other.sent >= self.cleared_at


@dataclass
class Replica:
    """One process, its clock and its Tenure."""

    host: str
    rate: float
    offset: float
    tenure: Tenure
    paused_until: float = 0.0
    is_dead: bool = False
    is_yielding: bool = False
    quiet_at: float = 0.0

    def local(self, at: float) -> float:
        return self.offset + self.rate * at


@dataclass
class World:
    """The API server, the network and the time. *schedulers*: whose scheduler leads from when on.

    knows_pods: replicas know that a process before in their place has ended; clears: they need not wait for what was
    sent before, once they alone send.
    """

    times: LeaseTimes
    chance: Random
    calm_from: float
    schedulers: Sequence[tuple[float, int]]
    knows_pods: bool = False
    clears: bool = False
    replicas: list[Replica] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    record: Record | None = None
    now: float = 0.0
    # When somebody has last seen to it that what was sent before changes nothing.
    cleared_at: float = float("-inf")
    _queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)

    def start(self, rates: Sequence[float]) -> None:
        for index, rate in enumerate(rates):
            self.replicas.append(self._process(index, rate))

    def _process(self, index: int, rate: float) -> Replica:
        host = f"pod-{index}"
        before = f"{host}_pod" if self.knows_pods else ""
        made = Tenure(f"{before or host}{'.' if before else '_'}{next(self._numbers)}", self.times, before)
        replica = Replica(host, rate, self.chance.uniform(-1e6, 1e6), made)
        self.at(self.now + self.chance.uniform(0, 3), lambda: self._elect(replica))
        self.at(self.now + self.chance.uniform(0, 1), lambda: self._write(replica))
        return replica

    def at(self, when: float, what: Callable[[], None]) -> None:
        heappush(self._queue, (when, next(self._numbers), what))

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, what = heappop(self._queue)
            what()
        self.now = until

    def strike(self, misfortune: Misfortune) -> None:
        """Pause a replica, or kill its process and start another in its place."""
        replica = self.replicas[misfortune.whom % len(self.replicas)]
        if misfortune.seconds:
            replica.paused_until = max(replica.paused_until, self.now + misfortune.seconds)
            return
        replica.is_dead = True
        index = self.replicas.index(replica)
        self.replicas[index] = self._process(index, replica.rate)

    def delete(self) -> None:
        self.record = None

    def annotate(self) -> None:
        """Have somebody put something else on the Lease."""
        if self.record is not None:
            self.record = self.record._replace(version=str(next(self._numbers)))

    @property
    def serving(self) -> list[str]:
        return [item.host for item in self.replicas if not item.tenure.why_not(item.local(self.now))]

    def _when_awake(self, replica: Replica, what: Callable[[], None]) -> None:
        """Do something in a process: later where it is paused, never where it is dead."""
        if replica.is_dead:
            return
        if replica.paused_until > self.now:
            self.at(replica.paused_until, lambda: self._when_awake(replica, what))
        else:
            what()

    def _elect(self, replica: Replica) -> None:
        self._when_awake(replica, lambda: self._step(replica))

    def _step(self, replica: Replica) -> None:
        scheduler = next(f"pod-{whose}_x" for since, whose in reversed(self.schedulers) if since <= self.now)
        wish = wish_of(scheduler, replica.host, is_able=True, is_ending=False)
        replica.is_yielding = wish is Wish.YIELD
        is_quiet = replica.quiet_at <= self.now
        step = replica.tenure.next(replica.local(self.now), wish, is_idle=True, is_quiet=is_quiet)
        if step.act is Act.WAIT:
            pause = (step.at - replica.local(self.now)) / replica.rate
            self.at(self.now + min(TICK_S, max(pause, 0.01)), lambda: self._elect(replica))
            return
        self._send(replica, step)

    def _send(self, replica: Replica, step: Step) -> None:
        """Send a request about the Lease: it may be lost, land late, and be answered late or not at all."""
        asked, is_over = replica.local(self.now), [False]
        base, written = replica.tenure.record, f"at {next(self._numbers)}"
        is_calm = self.now >= self.calm_from

        def settle(react: Callable[[], None]) -> None:
            if not is_over[0]:
                is_over[0] = True
                react()
                self._step(replica)

        def land() -> None:
            answer = self._answer(replica.tenure.me, step.act, base, written)
            back = 0.05 if is_calm else self._delay(6)
            if is_calm or self.chance.random() > 0.1:
                heard = lambda: self._hear(replica, step.act, answer, asked)  # noqa: E731 - short-lived
                self.at(self.now + back, lambda: self._when_awake(replica, lambda: settle(heard)))

        if is_calm or self.chance.random() > 0.1:
            self.at(self.now + (0.05 if is_calm else self._delay(SERVER_S)), land)

        def lost() -> None:
            if step.act in (Act.TAKE, Act.RENEW):
                replica.tenure.unheard(written, asked)
            replica.tenure.failed(replica.local(self.now))

        gives_up = self.now + PATIENCE_S / replica.rate
        self.at(gives_up, lambda: self._when_awake(replica, lambda: settle(lost)))

    def _delay(self, most: float) -> float:
        return self.chance.choice((0.01, 0.1, 1.0, self.chance.uniform(0, most)))

    def _answer(self, me: str, act: Act, base: Record | None, written: str) -> Record | str | None:
        """Do at the API server what is asked: "" stands for a conflict."""
        if act is Act.LOOK:
            return self.record
        if (self.record and self.record.version) != (base and base.version):
            return ""
        holder = "" if act is Act.RELEASE else me
        transitions = (self.record.transitions if self.record else 0) + (act is Act.TAKE)
        self.record = Record(str(next(self._numbers)), holder, self.times.lease_s, transitions, written)
        return self.record

    def _hear(self, replica: Replica, act: Act, answer: Record | str | None, asked: float) -> None:
        now = replica.local(self.now)
        if isinstance(answer, str):
            replica.tenure.failed(now, is_conflict=True)
        elif act is Act.LOOK:
            replica.tenure.looked(answer, now)
        elif answer is not None:
            replica.tenure.wrote(answer, asked, now)

    def _write(self, replica: Replica) -> None:
        """Write something now and then, where that is permitted; who is about to yield begins nothing."""

        def work() -> None:
            self._clear(replica)
            if not replica.is_yielding and not replica.tenure.why_not(replica.local(self.now)):
                slow = WRITE_PATIENCE_S / replica.rate + SERVER_S
                lands = self.now + self.chance.choice((0.01, 1.0, slow))
                self.writes.append(Write(replica.tenure.me, self.now, lands, self.cleared_at))
                replica.quiet_at = max(replica.quiet_at, lands)
            self.at(self.now + self.chance.uniform(0.2, 2), lambda: self._write(replica))

        self._when_awake(replica, work)

    def overlaps(self) -> list[tuple[Write, Write]]:
        """Return each write that lands after another process was permitted to write."""
        found: list[tuple[Write, Write]] = []
        open_yet: list[Write] = []
        for write in sorted(self.writes, key=lambda item: item.sent):
            open_yet = [other for other in open_yet if other.lands > write.sent]
            found += [(other, write) for other in open_yet if other.by != write.by and write.is_met_by(other)]
            open_yet.append(write)
        return found

    def _clear(self, replica: Replica) -> None:
        """Have *replica* write from now on if it alone sends anything; what was sent before it keeps from landing."""
        now = replica.local(self.now)
        if self.clears and replica.tenure.is_alone(now) and not replica.tenure.is_clear(now):
            replica.tenure.cleared(now)
            self.cleared_at = self.now
