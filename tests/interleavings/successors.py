"""One process of the extender after another: the next begins while something of the last one may land yet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.interleavings.loop import Clock
from tests.interleavings.manner import Manner
from tests.interleavings.outlived import LIES, SUCCESSION_S, go_well, outlive
from tests.interleavings.process import Process, Sole, process_of
from tests.interleavings.server import LATE_S, Desk, Line, Request

# How often a new process has listed everything before anything else happens.
PROMPT = 0.7
# How long a process that is to be replaced may go on with the bindings under way.
LONGEST_BIND_S = 20.0
# How long nobody answers after a process has ended.
RESTARTS_S = (0.0, 0.1, 1.0, 3.0)
# For how long what was sent before may land, as far as the next process knows.
LINGER_S = LATE_S + 1
# How many of those that have sent nothing, which may be on its way still, are left alone.
SPARED = 0.8

Acts = dict[str, tuple[float, Callable[[], object]]]


@dataclass(slots=True)
class Successors:
    """At most one process at a time."""

    clock: Clock
    desk: Desk
    random: Random
    manner: Manner
    process: Process | None = None
    sole: Sole = field(default_factory=Sole)
    back_at: float = 0.0
    # Whether what was sent before the process began is known to change nothing any more.
    is_alone: bool = False

    def begin(self) -> None:
        """Begin a new life of the extender, which knows nothing."""
        self.desk.is_gone, self.desk.forbidden = self.is_gone, self.trespass
        # Whoever is restarted may have been configured anew.
        loop = self.clock.loop()
        self.sole = Sole(LINGER_S, loop.time)
        self.process = process_of(loop, self.desk, self.sole, self.manner.drawn(self.random))
        self.process.begin()
        self.clock.settle()
        if self.random.random() < PROMPT:
            self.process.catch_up()
        self.clock.settle()

    def end(self) -> None:
        """Let nothing go on after the play."""
        if self.process:
            self.process.die()

    def asked(self) -> Process | None:
        """Return whom the scheduler asks."""
        return self.process if self.process and self.sole.leads() else None

    leader = asked

    def living(self) -> list[Process]:
        """Return the processes that run."""
        return [self.process] if self.process else []

    told = living

    def idle_s(self) -> float | None:
        """Tell how long nothing can happen but that time passes."""
        return None if self.process else max(0.0, self.back_at - self.clock.moment)

    def aged(self) -> None:
        """Do what is due now that time has passed."""
        is_due, process = self.clock.moment >= self.back_at, self.process
        if process is None:
            if is_due:
                self.begin()
        elif self.sole.is_asked:
            process.refresh()
            self._outlive(process)
        elif is_due:
            self._end()

    def _outlive(self, process: Process) -> None:
        """Have what others have sent arrive once that is to change nothing."""
        if not self.is_alone and not self.sole.why_not():
            self.is_alone = True
            self.desk.happened["cleared"] += self.sole.has_cleared
            if not self.sole.has_cleared:
                # What was sent before has lain for so long that it never arrives.
                self.desk.asleep.clear()
            outlive(self.desk, (process.line,), self.random)
            self.desk.asleep.clear()

    def relax(self) -> None:
        """Have nothing go wrong from now on."""

    def change(self) -> None:
        """Have other things go wrong from now on."""

    def lies(self, request: Request) -> bool:
        """Tell whether nothing becomes of *request* now: so that it may arrive once another process writes."""
        return not request.is_outlived and self.is_gone(request.sender) and self.random.random() < LIES

    def is_gone(self, line: Line) -> bool:
        return self.process is None or line is not self.process.line

    def trespass(self, request: Request, is_done: bool) -> str:  # noqa: FBT001 - how it went
        """Say that *request* is a write of one that may not write yet, or of one before who does."""
        if not request.is_write:
            return ""
        if self.is_gone(request.sender):
            return "another writes" if self.is_alone and is_done and request.gives_devices else ""
        return self.sole.why_not()

    def crash(self) -> bool:
        """End the extender, mostly in the middle of a write; another begins soon."""
        is_spared = not self._sent() and self.random.random() < SPARED
        if self.process is None or is_spared:
            return False
        self._end()
        return True

    def ambush(self) -> bool:
        """End the extender in the middle of a write, and have another one follow before that arrives."""
        if not self._sent():
            return False
        self._end()
        self.begin()
        for _ in range(SUCCESSION_S):
            go_well(self, 1.0)
            if self.is_alone:
                break
        return True

    def _sent(self) -> list[Request]:
        """Return the writes whose outcome is waited for."""
        return [each for each in self.desk.open if each.is_write and each.is_awaited and not self.is_gone(each.sender)]

    def _end(self) -> None:
        if self.process:
            self.process.die()
        self.process, self.is_alone = None, False
        self.back_at = self.clock.moment + self.random.choice(RESTARTS_S)

    def hand_over(self) -> bool:
        """Ask the extender nothing any more, and end it when what it was asked must have come to an end."""
        process = self.asked()
        if process is None:
            return False
        self.sole.is_asked = False
        process.retire()
        self.back_at = self.clock.moment + LONGEST_BIND_S
        return True

    def acts(self) -> Acts:
        return {"crash": (1.0, self.crash), "ambush": (1.0, self.ambush), "hand over": (0.2, self.hand_over)}
