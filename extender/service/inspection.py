"""The cluster inspected once, before anything is answered or written: whether what is configured is safe on it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from extender.config.settings import Settings
from extender.kube.api import Api
from extender.kube.freshness import Freshness
from extender.kube.pace import Backoff, Pace
from extender.kube.resource import CLAIMS, RULES
from extender.kube.rights import has_rule_with, is_denied, minor_of
from extender.kube.setback import Remedy, Setback
from extender.kube.versions import Versions
from extender.scheduling.rights import Need, Right, further_needs, rights_of
from extender.scheduling.safety import Found, Intent, unsafe
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")


class Unsafe(Exception):  # noqa: N818 - says what is refused, and is caught by that name
    """The service must not start; *reasons* say why."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(slots=True)
class Inspection:
    """Asks the API server, for as long as it takes. *ended*: it has; *reasons*: why we must not start."""

    settings: Settings
    api: Api
    versions: Versions
    freshness: Freshness
    pace: Pace
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reasons: tuple[str, ...] = ()
    _minor: int | None = None

    def allows(self) -> bool:
        """Tell whether the cluster is as it has to be, and known."""
        return self.ended.is_set() and not self.reasons and self.freshness.has_vital

    async def run(self) -> None:
        """Inspect, and stay."""
        found = await self._found()
        self.reasons, self._minor = tuple(unsafe(self._intent(), found)), found.minor
        for need in await self._lacking(found.minor):
            reason = f"{need.right}: {need.without}; grant it (scheduler-config/base/rbac/extender.yaml)"
            LOG.warning("a right is missing", extra={keys.REASON: reason})
        for reason in self.reasons:
            LOG.critical("starting is refused", extra={keys.REASON: reason})
        self.ended.set()
        await asyncio.Event().wait()

    async def passed(self) -> None:
        """Return when the cluster was found to be safe; raise Unsafe where it is not."""
        await self.ended.wait()
        if self.reasons:
            raise Unsafe(self.reasons)

    async def minor(self) -> int | None:
        """Return the API server's minor version, once it was asked; None where it does not tell."""
        await self.ended.wait()
        return self._minor

    def _intent(self) -> Intent:
        told = self.settings.ownership
        return Intent(
            is_owner=told.mode == "owner",
            keeps_taint=told.keeps_taint,
            names_drivers=bool(told.drivers),
            accepts=told.accept_unpartitioned,
        )

    async def _found(self) -> Found:
        told = self.settings.ownership
        claims = await self.versions.find(CLAIMS)
        minor = await self._answered(partial(minor_of, self.api), None)
        asked = rights_of(minor) if told.mode == "owner" else ()
        denied = [right for right in asked if await self._is_denied(right)]
        has_rule = bool(told.owner_taint) and not told.drivers and await self._answered(self._has_rule, otherwise=False)
        return Found(
            serves_claims=claims is not None,
            serves_rules=await self.versions.find(RULES) is not None,
            has_owner_rule=has_rule,
            minor=minor,
            denied=tuple(denied),
        )

    async def _lacking(self, minor: int | None) -> list[Need]:
        """Name what will not happen for want of a right, as where a newer extender has an older role."""
        needs = further_needs(minor) if self.settings.ownership.mode == "owner" else ()
        return [need for need in needs if await self._is_denied(need.right)]

    async def _is_denied(self, right: Right) -> bool:
        return await self._answered(partial(is_denied, self.api, right), otherwise=False)

    async def _has_rule(self) -> bool | Setback:
        """Tell whether a rule has the owner taint. That we may not read them does not mean that there is none."""
        rules = await self.versions.find(RULES)
        found = rules is not None and await has_rule_with(self.api, rules, self.settings.ownership.owner_taint)
        if not isinstance(found, Setback):
            return found
        if found.remedy is Remedy.REDISCOVER:
            self.versions.forget(RULES)
        return replace(found, is_lasting=False)

    async def _answered(self, ask: Callable[[], Awaitable[T | Setback]], otherwise: T) -> T:
        """Ask until there is an answer; where there never would be one it is *otherwise*."""
        backoff, told = Backoff(self.pace), ""
        while isinstance(found := await ask(), Setback):
            if found.is_lasting:
                return otherwise
            if found.why != told:
                LOG.warning("the cluster is not inspected yet", extra={keys.PROBLEM: found.why})
            told = found.why
            await backoff.wait(found.pause_s)
        return found
