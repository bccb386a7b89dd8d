"""What administrators decree: taint rules, taints of drivers, device classes; all of it comes, changes and vanishes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, Kind
from extender.demo.apiserver.server import ApiServer
from tests.interleavings.law import DRIVER, OWNED, TEXTS, Device

Json = dict[str, Any]
Act = tuple[float, Callable[[], object]]
RULES: Final = ("r0", "r1", "r2")
# The owner's taint keeps others away, and not us.
KEYS: Final = ("sick", "worn", OWNED)
VALUES: Final = ("", "much")
# One that says None bars nobody.
EFFECTS: Final = ("NoSchedule", "NoSchedule", "NoExecute", "NoExecute", "None")
# What classes are there, the first of which stands behind the extended resource when all is well; and how each selects.
CLASSES: Final = ("gpu", "picked")
RESOURCE: Final = "example.com/gpu"
SOUND: Final = next(iter(TEXTS))
# Templates of claims that tolerate something, only look, or are of another class: how each differs from others.
STOIC: Final = [{"operator": "Exists"}]
HARDY: Final = [{"key": "sick", "operator": "Equal", "effect": "NoSchedule"}, {"key": "worn", "operator": "Exists"}]
ASKED: Final[dict[str, Json]] = {
    "look": {"adminAccess": True},
    "look-2": {"adminAccess": True, "count": 2, "tolerations": STOIC},
    "stoic": {"tolerations": STOIC},
    "hardy": {"count": 2, "tolerations": HARDY},
    "picked": {"deviceClassName": "picked"},
    "picked-2": {"deviceClassName": "picked", "count": 2, "tolerations": HARDY},
    "all": {"allocationMode": "All", "deviceClassName": "picked"},
    "look-all": {"allocationMode": "All", "adminAccess": True, "tolerations": HARDY},
    "chosen": {"selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'b'"}}]},
    "either": {
        "firstAvailable": [
            {"name": "first", "deviceClassName": "picked"},
            {"name": "second", "deviceClassName": "gpu", "tolerations": HARDY},
        ]
    },
}
# Claims that pods have in common.
COMMON: Final[dict[str, Json]] = {"shared-look": {"adminAccess": True}, "shared-picked": {"deviceClassName": "picked"}}
WANTS: Final = (
    ("one",), ("two",), ("extended",), ("extended", "look"), ("look",), ("look-2",), ("look", "one"), ("one", "look"),
    ("stoic",), ("hardy",), ("hardy", "one"), ("picked",), ("picked-2",), ("picked", "stoic"), ("picked", "extended"),
    ("chosen",), ("either",), ("either", "chosen"),
    ("all",), ("look-all",), ("look-all", "one"),
    ("shared-a",), ("shared-b", "look"), ("shared-look",), ("shared-look", "two"), ("shared-picked",), ("three",),
)  # fmt: skip
# How often all that was decreed is taken back before a calm.
MILD: Final = 0.3
# Of the classes that change, how many are gone for a while.
ABOLISHED: Final = 0.4
# How many rules choose by classes and attributes.
OLD: Final = 0.3
# How often a change has another class stand behind the extended resource.
MOVES: Final = 0.3


@dataclass(slots=True)
class Regime:
    """What is decreed at the moment. *marks*: the taints that drivers publish with their devices."""

    api: ApiServer
    random: Random
    marks: dict[Device, Json] = field(default_factory=dict)
    edition: int = 0
    # Which class stands behind the extended resource.
    behind: str = CLASSES[0]

    def acts(self) -> dict[str, Act]:
        return {"rule": (16, self.rule), "mark": (6, self.mark), "class": (6, self.change), "repeal": (2, self.repeal)}

    def furnish(self) -> None:
        """Put up the classes."""
        for name in CLASSES:
            self._establish(name, (SOUND,))

    def rule(self) -> None:
        """Put a taint rule up, change it, or take it away."""
        kind, key = self._kind("devicetaintrules"), ("", self.random.choice(RULES))
        spec = {"deviceSelector": self._chosen(), "taint": self._taint()}
        known = self.api.store.get(kind, key)
        if known is None:
            self.api.registry.create(kind, "", {"metadata": {"name": key[1]}, "spec": spec})
        elif self.random.random() < 0.3:
            self.api.registry.update(kind, key, "", partial(_specified, spec=spec))
        else:
            self.api.registry.delete(kind, key, {})

    def mark(self) -> bool:
        """Have a driver taint one of its devices, or take that back."""
        devices = list(self._devices())
        if devices:
            device = self.random.choice(devices)
            self.marks = {other: taint for other, taint in self.marks.items() if other != device} | (
                {device: self._taint()} if device not in self.marks else {}
            )
            self._publish(device[1])
        return bool(devices)

    def change(self) -> None:
        """Have a class select something else, or configure otherwise; have it vanish, or come back."""
        kind, name = self._kind("deviceclasses"), self.random.choice(CLASSES)
        is_there, self.edition = self.api.store.get(kind, ("", name)) is not None, self.edition + 1
        if is_there and self.random.random() < ABOLISHED:
            self.api.registry.delete(kind, ("", name), {})
        else:
            if self.random.random() < MOVES:
                self._move(self.random.choice((*CLASSES, "")))
            others = self.random.sample(tuple(TEXTS), self.random.choice((0, 0, 1, 1, 2)))
            self._establish(name, (SOUND, *others))

    def _move(self, name: str) -> None:
        """Have another class stand behind the extended resource, or none: never two at once."""
        kind, before, self.behind = self._kind("deviceclasses"), self.behind, name
        for each in dict.fromkeys((before, name)):
            if self.api.store.get(kind, ("", each)):
                self.api.registry.update(kind, ("", each), "", partial(_specified, spec=self._spec_of(kind, each)))

    def _spec_of(self, kind: Kind, name: str) -> Json:
        """Return what the class *name* says, but for what it stands behind, which may have changed."""
        spec = self.api.registry.get(kind, ("", name))["spec"]
        kept = {field: value for field, value in spec.items() if field != "extendedResourceName"}
        return kept | ({"extendedResourceName": RESOURCE} if name == self.behind else {})

    def repeal(self) -> None:
        """Take back all that was decreed."""
        for act in self.decrees():
            act()

    def decrees(self) -> list[Callable[[], object]]:
        """Return what there is to be done to take all back, one thing after another, in any order."""
        rules, classes = self._kind("devicetaintrules"), self._kind("deviceclasses")
        found: list[Callable[[], object]] = [
            *(
                partial(self.api.registry.delete, rules, ("", name), {})
                for name in RULES
                if self.api.store.get(rules, ("", name))
            ),
            *(partial(self._unmark, pool) for pool in sorted({pool for _, pool, _ in self.marks})),
            *(partial(self._establish, name, (SOUND,)) for name in CLASSES if self._is_spoilt(classes, name)),
            *([partial(self._move, CLASSES[0])] if self.behind != CLASSES[0] else []),
        ]
        self.random.shuffle(found)
        return found

    def _unmark(self, pool: str) -> None:
        self.marks = {device: taint for device, taint in self.marks.items() if device[1] != pool}
        self._publish(pool)

    def marked(self, slices: Sequence[Json]) -> list[Json]:
        """Return *slices* with what regimes are about: each device is of a model, and some are tainted."""
        return [{**item, "spec": self._specified(item["spec"])} for item in slices]

    def _specified(self, spec: Json) -> Json:
        devices = [
            self._told(device, number, (spec["driver"], spec["pool"]["name"], device["name"]))
            for number, device in enumerate(spec.get("devices") or ())
        ]
        return {**spec, "devices": devices} if devices else spec

    def _told(self, device: Json, number: int, key: Device) -> Json:
        told = {name: value for name, value in device.items() if name != "taints"}
        told["attributes"] = {**(device.get("attributes") or {}), "model": {"string": "ab"[number % 2]}}
        return {**told, "taints": [self.marks[key]]} if key in self.marks else told

    def _devices(self) -> Iterator[Device]:
        for item in self.api.store.all(self._kind("resourceslices")):
            spec = item["spec"]
            for device in spec.get("devices") or ():
                yield spec["driver"], spec["pool"]["name"], device["name"]

    def _publish(self, pool: str) -> None:
        """Publish the devices of *pool* with other taints than before."""
        kind = self._kind("resourceslices")
        for item in self.api.store.all(kind):
            if item["spec"]["pool"]["name"] == pool:
                key, spec = ("", item["metadata"]["name"]), self._specified(item["spec"])
                self.api.registry.update(kind, key, "", partial(_specified, spec=spec))

    def _establish(self, name: str, texts: Sequence[str]) -> None:
        """Put up the class *name*, or have it say something else."""
        kind, key = self._kind("deviceclasses"), ("", name)
        opaque = {"driver": DRIVER, "parameters": {"edition": self.edition}}
        selectors = [{"cel": {"expression": text}} for text in texts]
        spec: Json = {"selectors": selectors, "config": [{"opaque": opaque}]}
        spec |= {"extendedResourceName": RESOURCE} if name == self.behind else {}
        if self.api.store.get(kind, key) is None:
            self.api.registry.create(kind, "", {"metadata": {"name": name}, "spec": spec})
        else:
            self.api.registry.update(kind, key, "", partial(_specified, spec=spec))

    def _is_spoilt(self, kind: Kind, name: str) -> bool:
        known = self.api.store.get(kind, ("", name))
        return known is None or [item["cel"]["expression"] for item in known["spec"]["selectors"]] != [SOUND]

    def _chosen(self) -> Json | None:
        """Choose devices for a rule: all, those of a pool, one by its name, or none; or by class and attributes.

        The latter is what rules of Kubernetes 1.33 and 1.34 could say.
        """
        devices = list(self._devices())
        if not devices:
            return {}
        _, pool, device = self.random.choice(devices)
        named = {"driver": DRIVER, "pool": pool, "device": device}
        fields = self.random.choice(((), ("pool",), ("driver", "pool"), ("device",), ("pool", "device"), tuple(named)))
        chosen: Json = {name: named[name] for name in fields}
        if self.random.random() < OLD:
            text = {"cel": {"expression": self.random.choice(tuple(TEXTS))}}
            chosen |= self.random.choice(({"deviceClassName": self.random.choice(CLASSES)}, {"selectors": [text]}))
        return None if self.random.random() < 0.1 else chosen

    def _taint(self) -> Json:
        value = self.random.choice(VALUES)
        taint = {"key": self.random.choice(KEYS), "effect": self.random.choice(EFFECTS)}
        return {**taint, "value": value} if value else taint

    def _kind(self, plural: str) -> Kind:
        return self.api.kinds[DRA, "v1", plural]


def _specified(item: Json, spec: Json) -> Json:
    return {**item, "spec": spec}
