"""How long a pod that was woken in vain is left alone."""

from typing import Final, NamedTuple

# How often the time between two wakes of a pod is doubled.
DOUBLINGS: Final = 4


class Rest(NamedTuple):
    """Since when a pod is left alone, and how often it was woken in vain.

    *is_unasked*: kube-scheduler did not try it for that. What keeps it is for its own plugins to see the end of.
    """

    since: float
    wakes: int = 0
    is_unasked: bool = False

    def until(self, patience_s: float) -> float:
        """Say until when: *patience_s* after the first wake, and twice as long each time."""
        doubled = DOUBLINGS if self.is_unasked else min(max(self.wakes - 1, 0), DOUBLINGS)
        return self.since + patience_s * (1 << doubled)
