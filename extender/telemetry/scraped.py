"""What is asked at every scrape and kept nowhere."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class DeviceCount(NamedTuple):
    """The devices of a driver that a class selects. One device may be in several classes.

    *blocked* are held by nobody, but counters that they share with others do not suffice for them any more.
    """

    driver: str
    device_class: str
    free: int
    used: int
    blocked: int


class Present(Protocol):
    """What can be told of the present."""

    def devices(self) -> Iterable[DeviceCount]:
        """Count devices: free, used and blocked."""

    def holds(self) -> Mapping[str, int]:
        """Count claims with promised devices, by the phase of the promise."""

    def ages(self) -> Mapping[str, float]:
        """Tell how old the view of each resource is, in seconds."""

    def unreadable(self) -> Mapping[str, int]:
        """Count objects that cannot be read, by kind."""

    def waiting(self) -> int:
        """Count the pods that were rejected and are still waiting."""

    def links(self) -> Mapping[tuple[str, str], int]:
        """Count nodes by driver and by how the links of its devices there are known."""

    def foreign(self) -> Mapping[str, int]:
        """Count the claims by driver because of which pools are closed."""

    def untainted(self) -> Mapping[str, int]:
        """Tell for each driver of ours whether the owner taint is missing."""

    def incomplete(self) -> Mapping[str, int]:
        """Count the pools of which slices are missing, by driver of ours."""

    def is_leading(self) -> bool:
        """Tell whether this replica answers the scheduler."""


class PresentCollector(Collector):
    """Turns the present into gauges, as soon as it is known. *heard* is told of the drivers before these are shown."""

    def __init__(self, prefix: str, heard: Callable[[Iterable[str]], None]) -> None:
        self._prefix, self._heard = prefix, heard
        self.present: Present | None = None

    def describe(self) -> Iterator[Metric]:
        """Tell the names without asking."""
        yield from self._gauges().values()

    def collect(self) -> Iterator[Metric]:
        gauges, present = self._gauges(), self.present
        if present is None:
            return
        foreign = present.foreign()
        self._heard(foreign)
        for count in present.devices():
            gauges["devices"].add_metric((count.driver, count.device_class, "free"), count.free)
            gauges["devices"].add_metric((count.driver, count.device_class, "used"), count.used)
            gauges["devices"].add_metric((count.driver, count.device_class, "blocked"), count.blocked)
        for name, values in (
            ("holds", present.holds()),
            ("watch_age_seconds", present.ages()),
            ("unreadable_objects", present.unreadable()),
            ("foreign_allocations", foreign),
            ("owner_taint_missing", present.untainted()),
            ("incomplete_pools", present.incomplete()),
        ):
            for label, value in values.items():
                gauges[name].add_metric((label,), value)
        for labels, nodes in present.links().items():
            gauges["nodes_by_links"].add_metric(labels, nodes)
        gauges["waiting_pods"].add_metric((), present.waiting())
        gauges["leading"].add_metric((), present.is_leading())
        yield from gauges.values()

    def _gauges(self) -> dict[str, GaugeMetricFamily]:
        return {
            name: GaugeMetricFamily(f"{self._prefix}_{name}", says, labels=labels)
            for name, says, labels in (
                ("devices", "Devices by driver and class; one device may be in several classes.",
                 ("driver", "device_class", "state")),
                ("holds", "Claims with promised devices, by the phase of the promise.", ("phase",)),
                ("watch_age_seconds", "Age of the view of a resource.", ("resource",)),
                ("unreadable_objects", "Objects that cannot be read.", ("kind",)),
                ("foreign_allocations", "Claims allocated by others, because of which pools of the driver are closed.",
                 ("driver",)),
                ("owner_taint_missing", "1 where nothing keeps other allocators from a driver of ours.", ("driver",)),
                ("incomplete_pools", "Pools of which nothing is given as long as slices of theirs are missing.",
                 ("driver",)),
                ("nodes_by_links", "Nodes with several devices of a driver, by how their links are known.",
                 ("driver", "links")),
                ("waiting_pods", "Pods that were rejected and still wait.", ()),
                ("leading", "1 where this replica answers the scheduler, otherwise 0.", ()),
            )
        }  # fmt: skip
