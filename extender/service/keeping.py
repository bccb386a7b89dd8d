"""The owner taint kept in place: put on each driver that is named as ours, and put back when somebody takes it away."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.allocation.inventory import Inventory
from extender.kube.outcome import Refused, RequestOutcome, Succeeded
from extender.kube.pace import stirred
from extender.kube.resource import RULES, Served
from extender.kube.versions import Versions
from extender.kube.writes import Writes
from extender.model.taint import DeviceTaintRule
from extender.scheduling.steps import Later, Refusal, is_refused
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# Rules are looked at so often where nothing changes, and not more often where much does.
TICK_S: Final = 5.0
REST_S: Final = 0.05
# How long the watch may take to show what was written before it is written again.
SHOWN_WITHIN_S: Final = 5.0
# What is refused is tried again after so long, after each refusal twice as long, up to a limit.
FIRST_S: Final = 5.0
LAST_S: Final = 300.0
WAY_OUT: Final = "docs/ownership.md says what can be done"
# What somebody takes away as soon as it is there is put back at once so often, and then as what is refused.
AT_ONCE: Final = 3
NOT_SERVED: Final = "the API server does not serve devicetaintrules"
NOT_SHOWN: Final = "its rule is written, and keeps nobody away as it is shown: look at what else it says"
UNDONE: Final = "its rule is taken away as soon as it is written"
NOT_KEPT: Final = "ownership.keepTaint is false, and nobody else has put it there"
STRAY: Final = "not ours: delete the rule, own the driver (ownership.drivers), or another extender does"
OUTDATED: Final = "another key than ownership.ownerTaint: delete the rule, or another extender gives its devices"
NOT_NAMED: Final = "ownership.drivers names none, so it is put on none"


class Pause(NamedTuple):
    """A driver whose rule was refused is left alone *until*, and after the next refusal for *next_s*."""

    until: float
    next_s: float


@dataclass(slots=True)
class Keeping:
    """Writes rules while *may_write* says so: we lead, and know which rules there are. *now* only goes forward.

    Where *is_wanted* is false it is for others to write them, and only what is missing is told.
    Where no drivers are named none is tainted: whoever installs us must not take other people's drivers from them.
    An advisor has no taint to keep, and only tells of rules that an owner has left.
    """

    belief: Belief
    versions: Versions
    writes: Writes
    metrics: Metrics
    may_write: Callable[[], bool]
    now: Callable[[], float]
    is_wanted: bool = True
    _kept: set[str] = field(default_factory=set)
    _trouble: tuple[str, tuple[str, ...]] = ("", ())
    _barring: tuple[str, ...] = ()
    _strays: tuple[tuple[str, str], ...] = ()
    _outdated: tuple[tuple[str, str], ...] = ()
    _known: tuple[Mapping[str, DeviceTaintRule], Inventory, tuple[str, ...]] | None = None
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _pauses: dict[str, Pause] = field(default_factory=dict)
    _undone: Counter[str] = field(default_factory=Counter)

    def stir(self) -> None:
        """Have the rules looked at: something has changed."""
        self._stirred.set()

    def warning(self) -> str:
        """Say what is not as it should be about the taint; nothing where all is, or another replica leads."""
        (why, drivers), rules = self._trouble, ", ".join(self._barring)
        missing = f"no owner taint on {', '.join(drivers)}: {why}; others can allocate these devices" if why else ""
        barring = f"the owner taint is on all of a shared driver: others get nothing of it: {rules}" if rules else ""
        vain = [f"rule {rule} keeps everybody from {driver}, which is {STRAY}" for rule, driver in self._strays]
        vain += [f"rule {rule} keeps everybody from {driver} by {OUTDATED}" for rule, driver in self._outdated]
        return "; ".join(filter(None, (missing, barring, *vain))) if self.may_write() else ""

    async def run(self) -> None:
        """Look at the rules, every few seconds and when something has changed, for ever."""
        while True:
            await stirred(self._stirred, TICK_S)
            if self.may_write():
                await self.round()
            await asyncio.sleep(REST_S)

    async def round(self) -> None:
        """Put the taint on every driver of ours that is without; return when the watch shows it, or does not."""
        self._look_at_shared()
        self._look_at_strays()
        self._look_at_outdated()
        if not self.belief.ownership.domain.taint:
            return
        missing, named = self._missing(), self.belief.ownership.domain.drivers
        # What somebody else has tainted meanwhile is no trouble any more.
        self._pauses = {driver: pause for driver, pause in self._pauses.items() if driver in missing}
        self._undone = Counter({driver: count for driver, count in self._undone.items() if driver in missing})
        left = tuple(driver for driver in self._trouble[1] if driver in missing)
        self._trouble = (self._trouble[0] if left else "", left)
        if not missing:
            return
        if not self.is_wanted:
            self._complain(missing, NOT_KEPT)
        elif not named:
            self._complain(missing, NOT_NAMED)
        elif due := [driver for driver in missing if driver not in self._pauses or self._is_due(driver)]:
            await self._put_on(due)

    def _look_at_shared(self) -> None:
        """Say once which rules keep others from what is theirs, as ours of before: it is not for us to delete rules."""
        before, self._barring = self._barring, self.belief.ownership.barring()
        if set(self._barring) - set(before):
            fields = {keys.RULES: ", ".join(self._barring), keys.WAY_OUT: WAY_OUT}
            LOG.warning("the owner taint is on all of a shared driver: others get nothing of it", extra=fields)

    def _look_at_strays(self) -> None:
        """Say once which rules keep everybody from what is not ours: nobody may be left to give it."""
        found = self.belief.ownership.strays(self.belief.cluster.snapshot.inventory)
        before, self._strays = self._strays, found
        if set(found) - set(before):
            fields = _fields(found)
            LOG.warning("the owner taint is on all of a driver that is not ours: nobody may get it", extra=fields)

    def _look_at_outdated(self) -> None:
        """Say once which rules of an earlier key keep us, too, from what is ours; what we are to write is not told."""
        found, domain = self.belief.ownership.outdated(self.belief.cluster.snapshot), self.belief.ownership.domain
        unwritten = self._missing() if self.is_wanted and domain.taint and domain.drivers else ()
        found = tuple(each for each in found if each[1] not in unwritten)
        before, self._outdated = self._outdated, found
        if set(found) - set(before):
            fields = _fields(found)
            LOG.warning("an earlier owner taint is on all of a driver of ours: nobody may get it", extra=fields)

    def _is_due(self, driver: str) -> bool:
        return self.now() >= self._pauses[driver].until

    async def _put_on(self, drivers: list[str]) -> None:
        served = await self.versions.find(RULES)
        if served is None:
            self._complain(tuple(drivers), NOT_SERVED)
            return
        lost = self.belief.ownership.lost.copy()
        failed = {driver: outcome for driver in drivers if (outcome := await self._put(served, driver))}
        if failed:
            self._complain(tuple(sorted(self._pauses.keys() | failed.keys())), _why(next(iter(failed.values()))))
        if written := set(drivers) - failed.keys():
            await self._show(written, lost)

    async def _show(self, written: set[str], lost: Counter[str]) -> None:
        """Wait until the watch has shown each rule, be it gone again: *lost* counts what was lost before."""
        try:
            async with asyncio.timeout(SHOWN_WITHIN_S):
                while self._unseen(written, lost):
                    await stirred(self._stirred, TICK_S)
        except TimeoutError:
            self._unshown(self._unseen(written, lost), NOT_SHOWN)
        undone = (written & set(self._missing())) - self._unseen(written, lost)
        self._undone.update(undone)
        # It is put back at once a few times only: somebody else may mean it.
        self._unshown({driver for driver in undone if self._undone[driver] > AT_ONCE}, UNDONE)

    def _unseen(self, written: set[str], lost: Counter[str]) -> set[str]:
        now = self.belief.ownership.lost
        return {driver for driver in written & set(self._missing()) if now[driver] == lost[driver]}

    def _unshown(self, drivers: set[str], why: str) -> None:
        """Write rules more and more rarely that say more than we write, are not shown, or are undone each time."""
        for driver in drivers:
            self._rest(driver, grows=True)
        if drivers:
            self._complain(tuple(sorted(drivers.union(self._trouble[1]))), self._trouble[0] or why)

    def _missing(self) -> tuple[str, ...]:
        """Name the drivers without the taint; where neither slices nor rules have changed they are the same."""
        ownership, inventory = self.belief.ownership, self.belief.cluster.snapshot.inventory
        if self._known is not None and self._known[0] is ownership.rules and self._known[1] is inventory:
            return self._known[2]
        missing = ownership.unkept(inventory)
        self._known = ownership.rules, inventory, missing
        rules = ownership.rules.values()
        self._kept |= {rule.selector.driver for rule in rules if rule.selector and rule.selector.driver}
        return missing

    async def _put(self, served: Served, driver: str) -> RequestOutcome | None:
        """Write a rule; return what came of it where that is not what it should be."""
        key, is_back = self.belief.ownership.domain.taint, driver in self._kept
        outcome = await self.writes.create_taint(served, driver, key)
        if is_refused(outcome, Refusal.EXISTS):
            is_back = True
            outcome = await self.writes.restore_taint(served, driver, key)
        if not isinstance(outcome, Succeeded):
            self.metrics.owner_taint("failed")
            self._pause(driver, outcome)
            return outcome
        self._kept.add(driver)
        self.metrics.owner_taint("put back" if is_back else "put")
        if is_back:
            LOG.warning("the owner taint was taken away, and is put back", extra={keys.DRIVER: driver})
        else:
            LOG.info("the owner taint is put in place", extra={keys.DRIVER: driver})
        return None

    def _pause(self, driver: str, outcome: RequestOutcome) -> None:
        """Leave *driver* alone for a while, and ever longer where time alone is not likely to help."""
        self._rest(driver, grows=isinstance(outcome, Refused) and outcome.kind is not Refusal.UNSENT)

    def _rest(self, driver: str, *, grows: bool) -> None:
        known = self._pauses.get(driver, Pause(0.0, FIRST_S))
        pause_s = known.next_s if grows else FIRST_S
        self._pauses[driver] = Pause(self.now() + pause_s, min(2 * pause_s, LAST_S))

    def _complain(self, drivers: tuple[str, ...], why: str) -> None:
        """Say once that others can allocate what is ours; who leads no longer says nothing."""
        if not self.may_write():
            return
        is_known = why == self._trouble[0]
        self._trouble = why, drivers
        if not is_known:
            fields = {keys.DRIVER: ", ".join(drivers), keys.ERROR: why, keys.WAY_OUT: WAY_OUT}
            LOG.error("the owner taint cannot be kept: others can allocate our devices", extra=fields)


def _fields(found: tuple[tuple[str, str], ...]) -> dict[str, str]:
    rules, drivers = zip(*found, strict=True)
    return {keys.RULES: ", ".join(rules), keys.DRIVER: ", ".join(sorted({*drivers})), keys.WAY_OUT: WAY_OUT}


def _why(outcome: RequestOutcome) -> str:
    if isinstance(outcome, Refused | Later):
        return outcome.message
    return str(outcome)
