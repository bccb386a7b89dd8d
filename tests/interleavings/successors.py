"""One process of the extender after another: the next begins when nothing of the last one can land any more."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.interleavings.loop import Clock
from tests.interleavings.manner import Manner
from tests.interleavings.process import Process, Sole, process_of
from tests.interleavings.server import LATE_S, Desk, Request

# How often a new process has listed everything before anything else happens.
PROMPT = 0.7
# How long a process that is to be replaced may go on with the bindings under way.
LONGEST_BIND_S = 20.0
# How long nobody answers after a process has ended: until nothing can land any more that it has sent.
TAKEOVER_S = LATE_S + 1
# How often a process ends at once, beside the weights of what else happens.
CRASHES = 0.3

Acts = dict[str, tuple[float, Callable[[], object]]]


@dataclass(slots=True)
class Successors:
    """At most one process at a time."""

    clock: Clock
    desk: Desk
    random: Random
    manner: Manner
    takeover_s: float = TAKEOVER_S
    crashes: float = CRASHES
    process: Process | None = None
    back_at: float = 0.0

    def begin(self) -> None:
        """Begin a new life of the extender, which knows nothing."""
        # Whoever is restarted may have been configured anew.
        self.process = process_of(self.clock.loop(), self.desk, Sole(), self.manner.drawn(self.random))
        self.process.begin()
        if self.random.random() < PROMPT:
            self.process.catch_up()
        self.clock.settle()

    def end(self) -> None:
        """Let nothing go on after the play."""
        if self.process:
            self.process.die()

    def asked(self) -> Process | None:
        """Return whom the scheduler asks."""
        return self.process if self.process and self.process.leading.leads() else None

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
        leader, is_due = self.asked(), self.clock.moment >= self.back_at
        if leader:
            leader.refresh()
        elif self.process is None and is_due:
            self.begin()
        elif self.process and is_due:
            self.crash()

    def relax(self) -> None:
        """Have nothing go wrong from now on."""

    def change(self) -> None:
        """Have other things go wrong from now on."""

    def lies(self, _request: Request) -> bool:
        """Tell whether nothing becomes of a request now."""
        return False

    def crash(self) -> bool:
        """End the extender; another begins when nothing can land any more that this one has sent."""
        if self.process is None:
            return False
        self.process.die()
        self.process = None
        self.back_at = self.clock.moment + self.takeover_s
        return True

    def hand_over(self) -> bool:
        """Ask the extender nothing any more, and end it when what it was asked must have come to an end."""
        process = self.asked()
        if process is None or not isinstance(process.leading, Sole):
            return False
        process.leading.is_asked = False
        process.retire()
        self.back_at = self.clock.moment + LONGEST_BIND_S
        return True

    def acts(self) -> Acts:
        return {"crash": (self.crashes, self.crash), "hand over": (0.2, self.hand_over)}
