"""Claims of several requests that are tied by what devices have in common, or by turns; and who publishes that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, Kind
from extender.demo.apiserver.server import ApiServer
from tests.interleavings.law import DRIVER, Device

Json = dict[str, Any]
Act = tuple[float, Callable[[], object]]
GROUP: Final = f"{DRIVER}/group"
SLOT: Final = f"{DRIVER}/slot"
# What the devices of each node say when all is well, by number, again from the first where there are more.
GROUPS: Final = {"n1": "xxyy", "n2": "xyx", "n3": "xx", "n4": "xy"}
SLOTS: Final = {"n1": (0, 1, 0, 1), "n2": (0, 1, 1), "n3": (0, 0), "n4": (0, 1)}
# How often a device that says something else than it did says nothing.
SILENT: Final = 0.2


def _exactly(name: str, count: int = 1, **beside: Any) -> Json:
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **beside},
    }


def _turns(name: str, **counts: int) -> Json:
    listed = [{"name": each, "deviceClassName": "gpu", "count": count} for each, count in counts.items()]
    return {"name": name, "firstAvailable": listed}


def _match(*names: str) -> Json:
    return {"matchAttribute": GROUP, **({"requests": list(names)} if names else {})}


def _distinct(*names: str) -> Json:
    return {"distinctAttribute": SLOT, **({"requests": list(names)} if names else {})}


def _claim(*requests: Json, constraints: Sequence[Json] = ()) -> Json:
    return {"devices": {"requests": list(requests), **({"constraints": list(constraints)} if constraints else {})}}


ASKED: Final[dict[str, Json]] = {
    "duo": _claim(_exactly("a", 2), constraints=[_match()]),
    "pair": _claim(_exactly("a"), _exactly("b"), constraints=[_match("a", "b")]),
    "apart": _claim(_exactly("a", 2), constraints=[_distinct()]),
    "crossed": _claim(_exactly("a"), _exactly("b"), constraints=[_match(), _distinct("b", "a")]),
    # What is tied is not all that is asked for.
    "loose": _claim(_exactly("a", 2), _exactly("b"), constraints=[_match("a")]),
    "single": _claim(_exactly("a"), constraints=[_match()]),
    "turns": _claim(_turns("a", big=3, small=1)),
    # Only one of the alternatives is tied.
    "tied-turns": _claim(_turns("a", big=2, small=1), _exactly("b"), constraints=[_match("a/big", "b")]),
    "turns-apart": _claim(_turns("a", big=2, small=1), _turns("b", big=2, small=1), constraints=[_distinct("a", "b")]),
    "turns-alike": _claim(_turns("a", big=3, small=2), constraints=[_match("a")]),
}
COMMON: Final[dict[str, Json]] = {"shared-pair": ASKED["pair"], "shared-turns": ASKED["tied-turns"]}
WANTS: Final = (
    ("duo",), ("duo",), ("pair",), ("pair", "one"), ("apart",), ("apart", "duo"), ("crossed",), ("loose",), ("single",),
    ("single", "single"), ("turns",), ("turns", "turns"), ("tied-turns",), ("tied-turns", "single"), ("turns-apart",),
    ("turns-alike",), ("turns-alike", "apart"), ("shared-pair",), ("shared-pair", "duo"), ("shared-turns",),
    ("extended", "duo"), ("one",), ("two",),
)  # fmt: skip


@dataclass(slots=True)
class Ties:
    """What devices say of themselves. *said*: those that say something else than when all is well; None for nothing."""

    api: ApiServer
    random: Random
    said: dict[Device, tuple[str, int] | None] = field(default_factory=dict)

    def acts(self) -> dict[str, Act]:
        return {"regroup": (40, self.regroup)}

    def regroup(self) -> bool:
        """Have a driver say of a device that it belongs elsewhere, or nowhere."""
        devices = sorted(self._devices())
        if devices:
            device = self.random.choice(devices)
            is_silent = self.random.random() < SILENT
            self.said[device] = None if is_silent else (self.random.choice("xy"), self.random.randrange(2))
            self._publish(device[1])
        return bool(devices)

    def decrees(self) -> list[Callable[[], object]]:
        """Return what there is to be done until all is as in the beginning."""
        found: list[Callable[[], object]] = [
            partial(self._settle, pool) for pool in sorted({pool for _, pool, _ in self.said})
        ]
        self.random.shuffle(found)
        return found

    def told(self, slices: Sequence[Json]) -> list[Json]:
        """Return *slices* with what each device says."""
        return [{**item, "spec": self._specified(item["spec"])} for item in slices]

    def _settle(self, pool: str) -> None:
        self.said = {device: said for device, said in self.said.items() if device[1] != pool}
        self._publish(pool)

    def _specified(self, spec: Json) -> Json:
        pool = spec["pool"]["name"]
        devices = [
            self._saying(device, number, (spec["driver"], pool, device["name"]))
            for number, device in enumerate(spec.get("devices") or ())
        ]
        return {**spec, "devices": devices} if devices else spec

    def _saying(self, device: Json, number: int, key: Device) -> Json:
        groups, slots = GROUPS[key[1]], SLOTS[key[1]]
        said = self.said.get(key, (groups[number % len(groups)], slots[number % len(slots)]))
        others = {
            name: value for name, value in (device.get("attributes") or {}).items() if name not in ("group", SLOT)
        }
        # One is named without the domain of its driver, one with it.
        own = {"group": {"string": said[0]}, SLOT: {"int": said[1]}} if said else {}
        return {**device, "attributes": {**others, **own}}

    def _devices(self) -> Iterator[Device]:
        for item in self.api.store.all(self._kind()):
            spec = item["spec"]
            for device in spec.get("devices") or ():
                yield spec["driver"], spec["pool"]["name"], device["name"]

    def _publish(self, pool: str) -> None:
        kind = self._kind()
        for item in self.api.store.all(kind):
            if item["spec"]["pool"]["name"] == pool:
                spec = self._specified(item["spec"])
                self.api.registry.update(kind, ("", item["metadata"]["name"]), "", partial(_with_spec, spec=spec))

    def _kind(self) -> Kind:
        return self.api.kinds[DRA, "v1", "resourceslices"]


def _with_spec(item: Json, spec: Json) -> Json:
    return {**item, "spec": spec}
