"""The cluster inspected once, before anything is answered or written: whether what is configured is safe on it."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from extender.config.settings import Settings
from extender.kube.api import Api
from extender.kube.freshness import Freshness
from extender.kube.resource import CLAIMS, RULES
from extender.kube.rights import has_rule_with, is_denied, minor_of
from extender.kube.versions import Versions
from extender.scheduling.safety import Found, Intent, rights_of, unsafe
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)


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
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reasons: tuple[str, ...] = ()

    def allows(self) -> bool:
        """Tell whether the cluster is as it has to be, and known."""
        return self.ended.is_set() and not self.reasons and self.freshness.has_vital

    async def run(self) -> None:
        """Inspect, and stay."""
        self.reasons = tuple(unsafe(self._intent(), await self._found()))
        for reason in self.reasons:
            LOG.critical("starting is refused", extra={keys.REASON: reason})
        self.ended.set()
        await asyncio.Event().wait()

    async def passed(self) -> None:
        """Return when the cluster was found to be safe; raise Unsafe where it is not."""
        await self.ended.wait()
        if self.reasons:
            raise Unsafe(self.reasons)

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
        claims, rules = await self.versions.find(CLAIMS), await self.versions.find(RULES)
        minor = await minor_of(self.api)
        asked = rights_of(minor) if told.mode == "owner" else ()
        denied = [right for right in asked if await is_denied(self.api, right)]
        has_rule = rules is not None and bool(told.owner_taint) and not told.drivers
        return Found(
            serves_claims=claims is not None,
            serves_rules=rules is not None,
            has_owner_rule=rules is not None and has_rule and await has_rule_with(self.api, rules, told.owner_taint),
            minor=minor,
            denied=tuple(denied),
        )
