"""The owner taint kept in place: put on each driver of ours by a rule, and put back when somebody takes it away."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.allocation.inventory import Inventory
from extender.kube.outcome import Done, Outcome, Refused
from extender.kube.resource import RULES, Served
from extender.kube.versions import Versions
from extender.kube.writes import Writes
from extender.model.taint import DeviceTaintRule
from extender.scheduling.steps import Later, Refusal
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# Rules are looked at so often where nothing changes, and not more often where much does.
TICK_S: Final = 5.0
REST_S: Final = 0.05
# How long the watch may take to show what was written before it is written again.
SHOWN_WITHIN_S: Final = 5.0
WAY_OUT: Final = "docs/ownership.md says what can be done"


@dataclass(slots=True)
class Keeping:
    """Writes rules while *may_write* says so: we lead, and know which rules there are."""

    belief: Belief
    versions: Versions
    writes: Writes
    metrics: Metrics
    may_write: Callable[[], bool]
    _kept: set[str] = field(default_factory=set)
    _trouble: str = ""
    _known: tuple[Inventory, tuple[DeviceTaintRule, ...], tuple[str, ...]] | None = None
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def stir(self) -> None:
        """Have the rules looked at: something has changed."""
        self._stirred.set()

    async def run(self) -> None:
        """Keep for ever."""
        while True:
            await self._stirring(TICK_S)
            if self.may_write():
                await self.round()
            await asyncio.sleep(REST_S)

    async def round(self) -> None:
        """Put the taint on every driver that is without; return when the watch shows it, or does not."""
        missing = self._missing()
        if not missing:
            self._trouble = ""
            return
        served = await self.versions.find(RULES)
        if served is None:
            self._complain(missing, "the API server does not serve devicetaintrules")
            return
        for driver in missing:
            await self._put(served, driver)
        try:
            async with asyncio.timeout(SHOWN_WITHIN_S):
                while self._missing():
                    await self._stirring(TICK_S)
        except TimeoutError:
            return

    def _missing(self) -> tuple[str, ...]:
        """Name the drivers without the taint; where neither slices nor rules have changed they are the same."""
        ownership, inventory = self.belief.ownership, self.belief.cluster.snapshot.inventory
        rules = tuple(ownership.rules.values())
        if self._known is not None and self._known[0] is inventory and self._known[1] == rules:
            return self._known[2]
        missing = ownership.unkept(inventory)
        self._known = inventory, rules, missing
        self._kept |= {rule.selector.driver for rule in rules if rule.selector and rule.selector.driver}
        return missing

    async def _put(self, served: Served, driver: str) -> None:
        key, is_back = self.belief.ownership.domain.taint, driver in self._kept
        outcome = await self.writes.create_taint(served, driver, key)
        if isinstance(outcome, Refused) and outcome.kind is Refusal.EXISTS:
            is_back = True
            outcome = await self.writes.restore_taint(served, driver, key)
        if not isinstance(outcome, Done):
            self.metrics.owner_taint("failed")
            self._complain((driver,), _why(outcome))
            return
        self.metrics.owner_taint("put back" if is_back else "put")
        if is_back:
            LOG.warning("the owner taint was taken away, and is put back", extra={keys.DRIVER: driver})
        else:
            LOG.info("the owner taint is put in place", extra={keys.DRIVER: driver})

    def _complain(self, drivers: tuple[str, ...], why: str) -> None:
        """Say once that others can allocate what is ours."""
        if why != self._trouble:
            self._trouble = why
            fields = {keys.DRIVER: ", ".join(drivers), keys.ERROR: why, keys.WAY_OUT: WAY_OUT}
            LOG.error("the owner taint cannot be kept: others can allocate our devices", extra=fields)

    async def _stirring(self, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s):
                await self._stirred.wait()
        except TimeoutError:
            pass
        self._stirred.clear()


def _why(outcome: Outcome) -> str:
    if isinstance(outcome, Refused | Later):
        return outcome.message
    return str(outcome)
