"""The only replica: it leads as soon as nothing can land any more that a process before it has sent."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from extender.kube.pace import since_boot
from extender.service.accession import Accession
from extender.service.attention import Attention
from extender.service.health import Health

EVER: Final = float("-inf")
STARTING: Final = "what was written before this start may still arrive"


class Alone:
    """The only replica, which contends with nobody. *linger_s*: for how long what was sent before may still land."""

    is_ending = False

    def __init__(self, linger_s: float = 0.0, now: Callable[[], float] = since_boot) -> None:
        self._now = now
        self._clear_at = now() + linger_s

    @property
    def is_hindered(self) -> bool:
        """Whether nothing keeps us from writing but what was sent before us."""
        return self._now() < self._clear_at

    def cleared(self) -> None:
        """Write from now on: what was sent before us cannot land any more."""
        self._clear_at = EVER

    def why_not(self) -> str:
        """Say why nothing may be written; nothing where it may."""
        return STARTING if self.is_hindered else ""

    def why_not_move(self) -> str:
        """Say why nothing may be moved on; nothing where it may."""
        return ""

    def hindrance(self) -> str:
        """Say who else answers the scheduler: nobody. That we have not begun to is told elsewhere."""
        return ""

    def leads(self) -> bool:
        """Tell whether the scheduler may be answered."""
        return not self.is_hindered

    def judges(self) -> bool:
        """Tell whether allocations that are not ours are another allocator's: there is no other replica."""
        return True

    def obstacle(self) -> str:
        """Say what keeps us from leading."""
        return self.why_not()

    async def end(self, _patience_s: float) -> None:
        """Give up nothing."""


@dataclass(slots=True)
class Solitude:
    """What the only replica does first: no process before it sends anything any more. *is_able*: we know the cluster.

    What can be moved on was listed since it began, and need not be listed anew before.
    """

    accession: Accession
    attention: Attention
    health: Health
    is_able: Callable[[], bool]

    async def run(self) -> None:
        """Look after pods for ever, once what was sent before is out of the way."""
        await self.accession.pace.until(self.is_able)
        since = await self.accession.unhindered(EVER)
        await self.attention.run(self.health.begin, partial(self.accession.freshness.is_listed_since, since))
