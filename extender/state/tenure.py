"""Who leads, as far as one replica can know, and what it does about it. One writer, no clock.

All times are of one clock of this replica that only goes forward. A time that is written in a Lease is for people: what
counts is how long a record was seen unchanged, and each write names the version that it replaces.
"""

from enum import Enum, auto
from typing import Final, NamedTuple

from extender.model.frozen import dataclass

NEVER: Final = float("-inf")
NOT_LEADING: Final = "not leading"
# So many conflicts about one and the same record: whoever says so means something else.
STUCK: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """How long things last.

    lease_s: a record that was not renewed for so long may be replaced; trust_s: how long a renewal is relied upon, well
    below it, so that clocks need not run alike; renew_s: how often the Lease is looked at, or renewed; linger_s: what
    an earlier leader has sent may land for so long after it has ceased to lead.
    """

    lease_s: float = 15.0
    trust_s: float = 10.0
    renew_s: float = 2.0
    linger_s: float = 90.0


class Record(NamedTuple):
    """A Lease as it was read. Nobody holds it where *holder* is empty: then nothing of the last one is on its way.

    transitions: how often it was taken; once where the holder has created it, who knows of nobody before then;
    written: the time in it, which is that of no other write of its holder, and counts for nothing else.
    """

    version: str
    holder: str
    lease_s: float = 0.0
    transitions: int = 1
    written: str = ""


class Wish(Enum):
    """What this replica is to strive for."""

    LEAD = auto()
    KEEP = auto()  # not to contend, and to go on where it leads
    YIELD = auto()  # to cease, as soon as nothing of ours is on its way


class Act(Enum):
    """What is to be done at the API server."""

    LOOK = auto()
    TAKE = auto()
    RENEW = auto()
    RELEASE = auto()
    WAIT = auto()


class Step(NamedTuple):
    """What is to be done next; nothing before *at*."""

    act: Act
    at: float = NEVER


class Tenure:
    """The Lease as one replica knows it. *term* differs from one time of leading to the next.

    before: how those call themselves, but for what tells one from the next, that have ended before we began; empty for
    nobody.
    """

    def __init__(self, me: str, times: LeaseTimes, before: str = "") -> None:
        self.me, self.times, self.before = me, times, before
        self.term = 0
        self.record: Record | None = None
        self._is_known = False
        self._must_look = True
        self._since = NEVER  # when the record was first seen as it is
        self._due = NEVER
        self._trusted_until = NEVER
        self._clear_at: float | None = None
        self._conflicts = 0  # since the record changed
        # By the time in them, when writes were sent that may have landed unheard.
        self._unheard: dict[str, float] = {}

    @property
    def is_held(self) -> bool:
        """Whether the Lease was ours when it was last seen: that alone allows nothing."""
        return self.record is not None and self.record.holder == self.me

    def is_clear(self, now: float) -> bool:
        """Tell whether nothing can land any more that an earlier leader has sent."""
        return self._clear_at is not None and now >= self._clear_at

    def is_alone(self, now: float) -> bool:
        """Tell whether we alone send anything: whoever led before has ceased to, though what was sent may yet land."""
        is_last = self._clear_at is not None and now >= self._clear_at - self.times.linger_s
        return self.is_held and now < self._trusted_until and is_last

    def cleared(self, now: float) -> None:
        """Take note that nothing can land any more that an earlier leader has sent, who is to have ceased to lead."""
        if self.is_alone(now) and not self.is_clear(now):
            self._clear_at = now

    def why_not(self, now: float) -> str:
        """Say why nothing may be written; nothing where it may."""
        if self.is_held and now < self._trusted_until:
            return "" if self.is_clear(now) else f"{NOT_LEADING}: what an earlier leader wrote may still arrive"
        if self.is_held:
            return f"{NOT_LEADING}: the Lease was not renewed in time"
        holder = self.record.holder if self.record else ""
        return f"{NOT_LEADING}: {host_of(holder)} leads" if holder else f"{NOT_LEADING}: nobody leads yet"

    def next(self, now: float, wish: Wish, *, is_idle: bool, is_quiet: bool) -> Step:
        """Return what is to be done. *is_idle*: nothing is under way; *is_quiet*: nothing sent can still arrive."""
        is_candidate = wish is Wish.LEAD and not self.is_held and not self._must_look
        if is_candidate and now >= self._free_at():
            self._clear_at = self._cleared_at(now)
            return Step(Act.TAKE)
        if wish is Wish.YIELD and is_idle and self._may_release(now):
            # From here on nothing is written, whatever becomes of the release.
            self._trusted_until = NEVER
            self._unheard.clear()
            # What may still arrive is kept away by whoever is next, once the Lease has run out: that is sooner.
            return Step(Act.RELEASE) if is_quiet else Step(Act.WAIT, now + self.times.renew_s)
        if now < self._due:
            return Step(Act.WAIT, min(self._due, self._free_at()) if is_candidate else self._due)
        if self._must_look or not self.is_held:
            return Step(Act.LOOK)
        return Step(Act.RENEW)

    def looked(self, record: Record | None, now: float) -> None:
        """Take over what was read, None where there is no Lease."""
        if not self._is_known or record != self.record:
            self._since, self._conflicts = now, 0
        self.record, self._is_known, self._must_look = record, True, False
        self._due = now if self.is_held else now + self.times.renew_s
        if record is None or not self.is_held:
            self._trusted_until, self._clear_at = NEVER, None
            return
        self._clear(now)
        asked = self._unheard.get(record.written)
        if asked is not None:
            self._renewed(asked, now)

    def wrote(self, record: Record, asked: float, now: float) -> None:
        """Take over what came of a write that was sent at *asked*."""
        if self.record is not None and record.version == self.record.version:
            # It changed nothing, so to others the record is as old as before.
            self.failed(now)
            return
        self.record, self._since, self._must_look = record, now, False
        self._conflicts = 0
        if self.is_held:
            self._clear(now)
        self._renewed(asked, now)

    def unheard(self, written: str, asked: float) -> None:
        """Note a write that was sent at *asked*, with *written* in it, of which nobody heard that it has landed.

        Where it has, whoever else wants the Lease has seen it change since then, as if we had heard: versions tell
        nothing of that, others may have put something else on the Lease.
        """
        lasting = {each: at for each, at in self._unheard.items() if asked < at + self.times.trust_s}
        self._unheard = {**lasting, written: asked}

    @property
    def is_stuck(self) -> bool:
        """Whether there are conflicts though nobody else writes: then no other replica was faster."""
        return self._conflicts >= STUCK

    def failed(self, now: float, *, is_conflict: bool = False) -> None:
        """Note that a request did not succeed, as far as anybody knows; in a conflict the record is another by now."""
        self._must_look = self._must_look or is_conflict or not self.is_held or bool(self._unheard)
        self._conflicts += is_conflict
        self._due = now if is_conflict and not self.is_stuck else now + self.times.renew_s / 2

    def _renewed(self, asked: float, now: float) -> None:
        """Count on what was sent at *asked*, and is the last that has landed."""
        self._unheard.clear()
        self._due = asked + self.times.renew_s
        if self.is_held:
            self.term += now >= self._trusted_until
            self._trusted_until = asked + self.times.trust_s

    def _may_release(self, now: float) -> bool:
        """Tell whether the Lease is ours to give up: at once, and where that fails, whenever it is due again."""
        is_time = now < self._trusted_until or now >= self._due
        return self.is_held and not self._must_look and self.is_clear(now) and is_time

    def _free_at(self) -> float:
        """Tell from when on the record may be replaced."""
        if self.record is None or not self.record.holder or self._has_ended(self.record):
            return self._since
        return self._since + max(self.times.lease_s, self.record.lease_s)

    def _has_ended(self, record: Record) -> bool:
        """Tell whether whoever holds *record* sends nothing any more, nor whoever led before: what was sent may land.

        Who has created it may have died before whoever led until then had to cease.
        """
        is_replaced = record.transitions > 1
        return is_replaced and bool(self.before) and record.holder.rpartition(".")[0] == self.before

    def _cleared_at(self, now: float) -> float | None:
        """Tell from when on nothing can arrive any more that an earlier leader has sent; None where that is not known.

        A write that replaces a version proves that nobody led since that was read. One that creates proves nothing:
        somebody may have led, and the Lease been deleted, at any time until then.
        """
        if self.record is None:
            return None
        return self._free_at() + self.times.linger_s if self.record.holder else now

    def _clear(self, now: float) -> None:
        """Wait in full for whoever may have led until *now*, where that is not known better."""
        if self._clear_at is None:
            self._clear_at = now + self.times.lease_s + self.times.linger_s


def host_of(identity: str) -> str:
    """Return whose identity that is, without what tells one process there from the next."""
    return identity.rpartition("_")[0] or identity


def wish_of(scheduler: str | None, host: str, *, is_able: bool, is_ending: bool) -> Wish:
    """Return what to strive for: the scheduler that calls us has to lead as well.

    scheduler: who holds the scheduler's Lease, empty for nobody, None where it is not known; is_able: the cluster is
    known to us; is_ending: we are about to end.
    """
    if is_ending or (scheduler and host_of(scheduler) != host):
        return Wish.YIELD
    return Wish.LEAD if scheduler and is_able else Wish.KEEP
