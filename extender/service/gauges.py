"""What metrics tell of the present, asked at every scrape."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from extender.allocation.pools import incomplete
from extender.kube.freshness import Freshness
from extender.model.node import Pod
from extender.scheduling.taste import Taste
from extender.scheduling.waking import Waker
from extender.service.device_counts import DeviceCounts
from extender.state.belief import Belief
from extender.state.ledger import Phase
from extender.telemetry.scraped import DeviceCount
from extender.topology.atlas import Machine
from extender.topology.machine import Group

# How links are known, from the best to the worst. People count by these words: they stay as they are.
LINKS: Final = ("known", "levels", "contested")


@dataclass(slots=True)
class Gauges:
    """Counts belief. What takes long, the devices that a class selects, is counted beside."""

    belief: Belief
    freshness: Freshness
    waker: Waker
    now: Callable[[], float]
    taste: Callable[[], Taste | None] = lambda: None
    leads: Callable[[], bool] = lambda: True
    device_counts: DeviceCounts = field(init=False)

    def __post_init__(self) -> None:
        self.device_counts = DeviceCounts(self.belief, self.now)

    def devices(self) -> Iterable[DeviceCount]:
        """Count devices by driver and class: used, free, and free in vain for what the others of their pool draw."""
        return self.device_counts.counts()

    def holds(self) -> Mapping[str, int]:
        """Count claims with promised devices, by the phase of the promise; one without any is none the less told.

        What was offered by who does not lead any more holds nothing, and nobody ends it before he leads again.
        """
        counted = Counter(hold.phase for promise in self.belief.ledger for hold in promise.claims)
        if not self.leads():
            del counted[Phase.OFFERED]
        return {phase.name.lower(): counted[phase] for phase in Phase}

    def ages(self) -> Mapping[str, float]:
        """Tell how old the view of each resource is."""
        return self.freshness.ages(self.now())

    def unreadable(self) -> Mapping[str, int]:
        """Count objects that cannot be read, by kind."""
        counted = Counter(problem.kind for problem in self.belief.cluster.problems)
        return counted + Counter({Pod.__name__: len(self.belief.unread)})

    def waiting(self) -> int:
        """Count the pods that were rejected and still wait; who does not lead hears no more of those that it knew."""
        return len(self.waker) if self.leads() else 0

    def links(self) -> Mapping[tuple[str, str], int]:
        """Count nodes by driver and by how the links of its devices are known: each once, by the worst of them."""
        taste, snapshot = self.taste(), self.belief.cluster.snapshot
        counted: Counter[tuple[str, str]] = Counter()
        if taste is not None:
            numbers, nodes = np.unique(taste.atlas.numbers(snapshot), return_counts=True)
            for number, count in zip(numbers.tolist(), nodes.tolist(), strict=True):
                for driver, links in _by_driver(taste.atlas.machines[number]).items():
                    counted[driver, links] += count
        return counted

    def foreign(self) -> Mapping[str, int]:
        """Count the claims by driver because of which pools are closed; a driver without any is none the less told.

        Who does not lead closes nothing: what he closed before is open for the one who does.
        """
        ownership, inventory = self.belief.ownership, self.belief.cluster.snapshot.inventory
        found = ownership.foreign.values() if self.leads() else ()
        counted = Counter(label for item in found for label in ownership.counted_as(item.devices, inventory))
        return {driver: counted[driver] for driver in {key.driver for key in inventory.keys} | counted.keys()}

    def untainted(self) -> Mapping[str, int]:
        """Tell for each driver of ours whether the owner taint is missing; nothing where there is none."""
        ownership, inventory = self.belief.ownership, self.belief.cluster.snapshot.inventory
        if not ownership.domain.taint:
            return {}
        missing = ownership.unkept(inventory)
        return {driver: int(driver in missing) for driver in ownership.ours_alone(inventory)}

    def incomplete(self) -> Mapping[str, int]:
        """Count the pools of which slices are missing, by driver of ours; one without any is none the less told."""
        inventory, domain = self.belief.cluster.snapshot.inventory, self.belief.ownership.domain
        counted = Counter(key.driver for key in incomplete(inventory, self.belief.questions.features))
        return {driver: counted[driver] for driver in filter(domain.has_driver, {key.driver for key in inventory.keys})}

    def is_leading(self) -> bool:
        """Tell whether this replica answers the scheduler."""
        return self.leads()


def _by_driver(machine: Machine) -> Mapping[str, str]:
    """Tell for each driver how the links of its devices are known, where it has several of a kind: the worst of all."""
    told: dict[str, str] = {}
    for group in machine:
        if len(group.members) > 1:
            driver = group.members[0].key.driver
            told[driver] = max(told.get(driver, LINKS[0]), _known(group), key=LINKS.index)
    return told


def _known(group: Group) -> str:
    if group.links.complaints:
        return "contested"
    return "known" if group.links.is_known else "levels"
