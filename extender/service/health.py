"""What keeps us from answering."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from extender.kube.freshness import Freshness


@dataclass(slots=True)
class Health:
    """Ready: everything was listed once, what was half written has been looked after, and the view is not too old."""

    freshness: Freshness
    max_age_s: float
    now: Callable[[], float]
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Remember that what was half written has been looked after."""
        self.begun.set()

    def is_alive(self) -> bool:
        """Tell whether a restart would not help: a process that answers this is alive."""
        return True

    def missing(self) -> Sequence[str]:
        """Say what is missing until we can answer."""
        unsynced = self.freshness.unsynced()
        if unsynced:
            return [f"{name} not listed yet" for name in unsynced]
        if not self.begun.is_set():
            return ["what was half written is still being looked after"]
        ages = self.freshness.ages(self.now())
        # Without its age: kube-scheduler writes this into conditions, and a text that changes is news each time.
        return [f"the view of {name} is too old" for name, age in ages.items() if age > self.max_age_s]
