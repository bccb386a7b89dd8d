"""Claims of several requests that are tied by what devices have in common, or by turns; and who publishes that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, Kind
from extender.demo.apiserver.server import ApiServer
from tests.interleavings.law import DRIVER, Device
from tests.interleavings.policies import ANNOTATION, NUMA, PEERS

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
# What those ask for that name a policy, which has sets on one NUMA node alone, or sets that are linked.
ON_ONE: Final[dict[str, Json]] = {
    "numa-2": _claim(_exactly("a", 2)),
    "numa-3": _claim(_exactly("a", 3)),
    "numa-2-1": _claim(_exactly("a", 2), _exactly("b")),
    "numa-apart": ASKED["apart"],
    "numa-turns": ASKED["turns"],
    "shared-numa": _claim(_exactly("a", 2)),
}
LINKED: Final[dict[str, Json]] = {
    "linked-2": _claim(_exactly("a", 2)),
    "linked-3": _claim(_exactly("a", 3)),
    "linked-duo": ASKED["duo"],
    "linked-turns": ASKED["turns-alike"],
}
# What asks for the same as those, and goes by whatever policy others go by.
FREE: Final[dict[str, Json]] = {"free-2": ON_ONE["numa-2"], "free-3": ON_ONE["numa-3"]}
STRICT_WANTS: Final = (
    ("free-2",), ("free-2",), ("free-3",), ("free-2", "numa-2"),
    ("numa-2",), ("numa-2",), ("numa-3",), ("numa-2", "one"), ("numa-2", "numa-2"), ("numa-2-1",), ("numa-apart",),
    ("numa-turns",), ("numa-turns", "duo"), ("shared-numa",), ("shared-numa", "one"), ("extended",), ("two",),
    ("three",),
)  # fmt: skip
LINKED_WANTS: Final = (
    ("linked-2",), ("linked-2",), ("linked-3",), ("linked-2", "one"), ("linked-duo",), ("linked-turns",),
    ("linked-2", "numa-2"), ("linked-duo", "extended"),
)  # fmt: skip
WANTS: Final = (
    ("duo",), ("duo",), ("pair",), ("pair", "one"), ("apart",), ("apart", "duo"), ("crossed",), ("loose",), ("single",),
    ("single", "single"), ("turns",), ("turns", "turns"), ("tied-turns",), ("tied-turns", "single"), ("turns-apart",),
    ("turns-alike",), ("turns-alike", "apart"), ("shared-pair",), ("shared-pair", "duo"), ("shared-turns",),
    ("extended", "duo"), ("one",), ("two",),
)  # fmt: skip


def annotations(name: str) -> dict[str, str]:
    """Return what stands on the claims of the template *name*."""
    return {ANNOTATION: "one-numa" if name in ON_ONE else "linked"} if name in ON_ONE or name in LINKED else {}


@dataclass(slots=True)
class Ties:
    """What devices say of themselves. *said*: those that say something else than when all is well; None for nothing.

    *policies*: which of those are named that must be kept; devices say what these are about then.
    """

    api: ApiServer
    random: Random
    policies: tuple[str, ...] = ()
    said: dict[Device, tuple[str, int] | None] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Json]:
        """What each template asks for."""
        strict = ON_ONE | FREE if "one-numa" in self.policies else {}
        return ASKED | strict | (LINKED if "linked" in self.policies else {})

    @property
    def common(self) -> dict[str, Json]:
        """What each shared claim asks for."""
        return COMMON | ({"shared-numa": ON_ONE["shared-numa"]} if "one-numa" in self.policies else {})

    @property
    def wants(self) -> Sequence[tuple[str, ...]]:
        """What pods ask for."""
        beside = (
            (STRICT_WANTS if "one-numa" in self.policies else ()),
            (LINKED_WANTS if "linked" in self.policies else ()),
        )
        return WANTS + beside[0] + beside[1]

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
        pool, listed = spec["pool"]["name"], spec.get("devices") or ()
        groups, slots = GROUPS[pool], SLOTS[pool]
        said = {
            device["name"]: self.said.get(
                (spec["driver"], pool, device["name"]), (groups[number % len(groups)], slots[number % len(slots)])
            )
            for number, device in enumerate(listed)
        }
        devices = [self._saying(device, said) for device in listed]
        return {**spec, "devices": devices} if devices else spec

    def _saying(self, device: Json, said: dict[str, tuple[str, int] | None]) -> Json:
        known, own = device.get("attributes") or {}, said[device["name"]]
        others: Json = {name: value for name, value in known.items() if name not in ("group", SLOT, NUMA, PEERS)}
        if own is None:
            return {**device, "attributes": others}
        # One is named without the domain of its driver, one with it.
        told: Json = {"group": {"string": own[0]}, SLOT: {"int": own[1]}}
        if self.policies:
            linked = [name for name, other in said.items() if other and other[1] == own[1] and name != device["name"]]
            told |= {NUMA: {"int": "xy".index(own[0])}} | ({PEERS: {"strings": linked}} if linked else {})
        return {**device, "attributes": {**others, **told}}

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
