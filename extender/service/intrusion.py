"""What others allocate of what is ours: pools closed, and told by metric, log and event with the way out."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from extender.kube.told import Told
from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, ObjectKey, Uid
from extender.model.node import Pod
from extender.service.notices import Alarm, Notices
from extender.state.belief import Belief
from extender.state.foreign import BORNE, Foreign
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# The reason of the event, by which people look for it.
REASON: Final = "ForeignAllocation"
UNKNOWN: Final = "not known"
# Devices that an event names.
SHOWN: Final = 4
# What stays closed is offered to be told again so often; how often it is told, and after what is news, others know.
EVERY_S: Final = 20.0
# Claims of which somebody is told again.
MOST_AGAIN: Final = 1000


@dataclass(slots=True)
class Intrusion:
    """Looks at every claim that is told of. *wall* is the time of the day; *judges*: only then allocations are ours."""

    belief: Belief
    metrics: Metrics
    notices: Notices
    judges: Callable[[], bool]
    wall: Callable[[], float]
    _found: tuple[Foreign, ...] = ()
    _closing: dict[Uid, ObjectKey] = field(default_factory=dict)  # claims that were told of
    _is_due: asyncio.Event = field(default_factory=asyncio.Event)

    def before(self, told: Told) -> None:
        """Look at what comes, before belief has taken it over."""
        # While another replica leads, allocations are its own.
        self._found = self.belief.foreign_in(told) if isinstance(told, Changed | Listed) and self.judges() else ()

    def after(self, _told: Told) -> None:
        """Close what is to be closed, and tell; nobody asks between this and the change itself."""
        found, self._found = self._found, ()
        self.belief.sealing.close(found)
        if self.belief.sealing.is_due:
            self._is_due.set()
        for item in found:
            self._tell(item)
        self._tell_opened()

    async def run(self) -> None:
        """Close and open for ever what was not done at once, and tell again of what stays closed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._seal(), name="sealing")
            tasks.create_task(self._remind(), name="reminding")

    async def remind(self) -> None:
        """Tell once more of what is closed: events are lost, and forgotten."""
        foreign = self.belief.ownership.foreign
        for uid in tuple(islice(foreign, MOST_AGAIN)):
            if uid in foreign and self.judges():
                # Those that use it now, as far as anybody knows.
                claim = self.belief.cluster.claims.with_uid(uid) or foreign[uid].claim
                self._raise(replace(foreign[uid], claim=claim), is_news=False)
            await asyncio.sleep(0)

    async def _remind(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.remind()

    async def _seal(self) -> None:
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            while self.belief.sealing.is_due:
                self.belief.sealing.go_on()
                await asyncio.sleep(0)

    def _tell(self, found: Foreign) -> None:
        for label in self._labels(*found.devices):
            self.metrics.foreign(label)
        fields = {
            keys.CLAIM: str(found.claim.key),
            keys.DEVICES: ", ".join("/".join(device) for device in found.devices),
            keys.WRITER: ", ".join(found.writers) or UNKNOWN,
            keys.CLOSED: _closed(found),
            keys.WAY_OUT: way_out(found),
        }
        LOG.error("another allocator has allocated devices of ours", extra=fields)
        self._closing[found.claim.uid] = found.claim.key
        self._raise(found, is_news=True)
        self._contested(found.claim)

    def _tell_opened(self) -> None:
        """Tell of each claim that closes nothing any more: who has tried a way out sees that it was one."""
        foreign = self.belief.ownership.foreign
        if len(self._closing) > len(foreign):
            for uid in [each for each in self._closing if each not in foreign]:
                fields = {keys.CLAIM: str(self._closing.pop(uid))}
                LOG.info("what a foreign allocation closed is open again", extra=fields)

    def _raise(self, found: Foreign, *, is_news: bool) -> None:
        """Have people told who look at the claim, or at a pod that uses it."""
        text, claim = text_of(found), found.claim
        users = (user for user in claim.reserved_for if user.resource == "pods")
        pods = (Pod(key=ObjectKey(claim.key.namespace, user.name), uid=user.uid) for user in users)
        subjects: list[Pod | ResourceClaim] = [claim, *pods]
        for subject in subjects:
            self.notices.raise_alarm(Alarm(subject=subject, reason=REASON, text=text, at=self.wall()), is_news=is_news)

    def _contested(self, claim: ResourceClaim) -> None:
        """Tell of a device that an earlier claim holds: two have it now."""
        device = self.belief.contested(claim)
        if device is not None:
            for label in self._labels(device):
                self.metrics.foreign_conflict(label)
            fields = {keys.CLAIM: str(claim.key), keys.DRIVER: device.driver}
            LOG.error("another allocator has given a device that is held", extra=fields)

    def _labels(self, *devices: DeviceKey) -> Iterable[str]:
        return self.belief.ownership.counted_as(devices, self.belief.cluster.snapshot.inventory)


def text_of(found: Foreign) -> str:
    """Say for people what has happened, what follows, and what to do."""
    devices = ", ".join("/".join(device) for device in found.devices[:SHOWN])
    more = f" and {len(found.devices) - SHOWN} more" if len(found.devices) > SHOWN else ""
    writer = ", ".join(found.writers) or UNKNOWN
    name = str(found.claim.key)
    return (
        f"claim {name}: {devices}{more} allocated by somebody else (writer: {writer}); closed: {_closed(found)}. "
        f"{way_out(found)}"
    )


def way_out(found: Foreign) -> str:
    """Say what opens again what is closed."""
    namespace, name = found.claim.key
    accept = f"kubectl annotate resourceclaim -n {namespace} {name} {BORNE}={found.claim.uid}"
    return f"To open: end its pods and delete the claim, or bear with it: {accept}"


def _closed(found: Foreign) -> str:
    """Name what is closed, whole drivers first."""
    drivers = sorted(found.untainted)
    pools = sorted(f"{pool.driver}/{pool.pool}" for pool in found.pools if pool.driver not in found.untainted)
    whole = [f"all pools of {driver}, which had no owner taint" for driver in drivers]
    return "; ".join([*whole, *([f"pool {', '.join(pools)}"] if pools else [])])
