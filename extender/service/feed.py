"""From following to belief. Whoever waits for a claim to be shown is told here."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from extender.kube.freshness import Freshness
from extender.kube.resource import CLAIMS
from extender.kube.told import Seen, Told
from extender.model.change import Changed, Gone, Listed, Noun, kind_of
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import Uid
from extender.model.problem import Problem
from extender.state.belief import Belief, version

CHANGES = (Changed, Gone, Listed)


@dataclass(slots=True)
class _Waiter:
    """Who waits for a claim in a version; *is_known*: it was there, so that without it it is gone."""

    since: int
    is_known: bool
    shown: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    """Applies what following tells, one thing at a time.

    *show* is told of each object that comes or changes, *stir* that something has changed.
    """

    def __init__(
        self, belief: Belief, freshness: Freshness, stir: Callable[[], None], show: Callable[[Noun | Problem], None]
    ) -> None:
        self.freshness = freshness
        self._belief = belief
        self._stir = stir
        self._tell = show
        self._waiting: dict[Uid, list[_Waiter]] = {}

    def take(self, told: Told) -> None:
        """Take over what following tells."""
        self.freshness.note(told)
        if isinstance(told, Seen) and told.resource is CLAIMS:
            self._show_all()
        if not isinstance(told, CHANGES):
            return
        self._belief.apply(told)
        if isinstance(told, Changed):
            self._tell(told.what)
        if kind_of(told) == Footprint.__name__:
            return  # nobody else waits for what bound pods take, and they change all the time
        if isinstance(told, Changed):
            if isinstance(told.what, ResourceClaim):
                self._show(told.what.uid)
        elif told.kind is ResourceClaim:
            self._show_all()
        self._stir()

    async def shown(self, claim: Uid, since: int) -> None:
        """Return once *claim* was shown in version *since* or later, or is gone."""
        if self._is_shown(claim, since) and claim not in self._waiting:
            return
        waiter = _Waiter(since, is_known=False)
        self._waiting.setdefault(claim, []).append(waiter)
        self._show(claim)
        try:
            await waiter.shown.wait()
        finally:
            self._waiting[claim].remove(waiter)
            if not self._waiting[claim]:
                del self._waiting[claim]

    def _is_shown(self, claim: Uid, since: int) -> bool:
        known = self._belief.cluster.claims.with_uid(claim)
        return known is not None and version(known) >= since

    def _show_all(self) -> None:
        for uid in tuple(self._waiting):
            self._show(uid)

    def _show(self, claim: Uid) -> None:
        """Tell who waits for *claim*. One that was never shown is not gone before its version must have been."""
        is_there, told = self._belief.cluster.claims.with_uid(claim) is not None, self.freshness.version(CLAIMS)
        for waiter in self._waiting.get(claim, ()):
            waiter.is_known = waiter.is_known or is_there
            is_past = told.isdecimal() and int(told) >= waiter.since
            is_gone = not is_there and (waiter.is_known or is_past)
            if is_gone or self._is_shown(claim, waiter.since):
                waiter.shown.set()
