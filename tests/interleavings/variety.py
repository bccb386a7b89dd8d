"""Devices that are not simply had: shares, partitions, and such as have to be made ready; and who looks after them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, NODE, Kind
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import Key, key_of
from extender.state.foreign import BORNE
from tests.interleavings.law import Device
from tests.interleavings.stock import FAILED, MEMORY, READY, STRANGE, reports, results

Json = dict[str, Any]
DRIVER: Final = "gpu.example.com"
# What each partition of the chip draws of its memory.
CHIP: Final = 4
PARTITIONS: Final = (4, 2, 2, 1, 1)
# How much memory each shared device has.
WHOLE: Final = 4
# How often devices cannot be made ready, in a storm.
FAILS: Final = (0.1, 0.5, 0.9)


def varied(node: str, generation: int) -> list[Json]:
    """Write the slices of a node: devices that have to be made ready, a chip with partitions, shared devices."""
    match node:
        case "n1":
            return [_slice(node, generation, devices=_prepared(4, plain=1))]
        case "n2":
            return [_slice(node, generation, devices=_prepared(3))]
        case "n3":
            counters = [{"name": "chip", "counters": {MEMORY: {"value": str(CHIP)}}}]
            parts = [{"name": f"d{index}", "consumesCounters": _draws(part)} for index, part in enumerate(PARTITIONS)]
            whole = _slice(node, generation, "counters", 2, sharedCounters=counters)
            return [_slice(node, generation, slices=2, devices=parts), whole]
        case "n4":
            shared = {"allowMultipleAllocations": True, "capacity": {MEMORY: {"value": str(WHOLE)}}}
            return [_slice(node, generation, devices=[{"name": f"d{index}", **shared} for index in range(2)])]
    raise AssertionError(node)


def _prepared(number: int, plain: int = 0) -> list[Json]:
    """Write devices that have to be made ready, after some *plain* ones."""
    waits = {"bindingConditions": [READY], "bindingFailureConditions": [FAILED], "bindsToNode": True}
    return [{"name": f"d{index}", **(waits if index >= plain else {})} for index in range(number)]


def _draws(part: int) -> list[Json]:
    return [{"counterSet": "chip", "counters": {MEMORY: {"value": str(part)}}}]


def _slice(node: str, generation: int, name: str = "gpus", slices: int = 1, **published: Any) -> Json:
    pool = {"name": node, "generation": generation, "resourceSliceCount": slices}
    return {
        "metadata": {"name": f"{node}-{name}"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **published},
    }


def left_over(item: Json, name: str, amount: int) -> Json:
    """Write what is left over of *item* and its generation, of which other slices are gone: it says *amount* of all."""
    pool, published = item["spec"]["pool"], _saying(item["spec"], amount)
    more = {**pool, "resourceSliceCount": pool["resourceSliceCount"] + 1}
    return {"metadata": {"name": name}, "spec": {**published, "pool": more}}


def _saying(item: Any, amount: int) -> Any:
    """Return *item* with *amount* wherever it says how much memory there is, or is drawn."""
    if isinstance(item, dict):
        said = {"value": str(amount)}
        return {name: said if name == MEMORY else _saying(value, amount) for name, value in item.items()}
    return [_saying(each, amount) for each in item] if isinstance(item, list) else item


@dataclass(slots=True)
class Variety:
    """What happens to such devices, to their nodes, and to claims that say what nobody can read."""

    api: ApiServer
    random: Random
    fails: float = FAILS[0]
    # Nodes that are gone for a while, with all that is published of them.
    gone: list[tuple[Kind, Json]] = field(default_factory=list)

    def _kind(self, plural: str) -> Kind:
        return self.api.kinds[DRA, "v1", plural]

    def change(self) -> None:
        """Have drivers fail more often from now on, or less."""
        self.fails = self.random.choice(FAILS)

    def report(self, *, is_well: bool = False) -> bool:
        """Have a driver say of a device that it is ready, or cannot be; if all *is_well*, of all that they are."""
        waiting = [
            (claim, device) for claim in self.api.store.all(self._kind("resourceclaims")) for device in _silent(claim)
        ]
        for claim, device in waiting if is_well else [self.random.choice(waiting)] if waiting else []:
            word = FAILED if not is_well and self.random.random() < self.fails else READY
            self._write(claim, partial(_reported, device=device, word=word))
        return bool(waiting)

    def garble(self) -> bool:
        """Write into a claim what nobody can read, or nobody can make sense of; or put that right."""
        claims = self.api.store.all(self._kind("resourceclaims"))
        strange = [claim for claim in claims if _is_garbled(claim)]
        if strange:
            self._write(self.random.choice(strange), _mended)
        elif claims:
            self._write(self.random.choice(claims), _garbled)
        return bool(claims)

    def mend(self) -> None:
        """Put right all that nobody can read."""
        for claim in self.api.store.all(self._kind("resourceclaims")):
            if _is_garbled(claim):
                self._write(claim, _mended)

    def bear(self) -> bool:
        """Say of a claim that is not ours that it is to be borne."""
        claims = [claim for claim in self.api.store.all(self._kind("resourceclaims")) if results(claim)]
        for claim in self.random.sample(claims, min(1, len(claims))):
            mark = {BORNE: claim["metadata"]["uid"]}
            self.api.registry.update(self._kind("resourceclaims"), key_of(claim), "", partial(_annotated, mark=mark))
        return bool(claims)

    def remove(self) -> bool:
        """Take a node away, with all that is published of it or without; or bring back what is gone.

        What is left over of an older generation goes first and comes last: alone it would count.
        """
        if self.gone:
            self.restore()
            return True
        node = self.random.choice(self.api.store.all(NODE))
        slices = self._kind("resourceslices")
        published = [
            (slices, item)
            for item in sorted(self.api.store.all(slices), key=_generation)
            if item["spec"]["nodeName"] == node["metadata"]["name"]
        ]
        chosen = self.random.choice(([(NODE, node)], published, [(NODE, node), *published]))
        for kind, item in chosen:
            self.api.registry.delete(kind, key_of(item), {})
        self.gone = chosen
        return True

    def restore(self) -> None:
        """Bring back what is gone."""
        for kind, item in reversed(self.gone):
            name = {"metadata": {"name": item["metadata"]["name"]}}
            kept: Json = {field: item[field] for field in ("spec", "status") if field in item}
            self.api.registry.create(kind, "", {**name, **kept})
        self.gone = []

    def is_awaited(self) -> bool:
        """Tell whether anybody waits for a driver: it may take too long."""
        return any(_silent(claim) for claim in self.api.store.all(self._kind("resourceclaims")))

    def silent(self) -> dict[str, Json]:
        """Return what is allocated of which drivers have not said all, by the names of the claims."""
        claims = self.api.store.each(self._kind("resourceclaims"))
        return {claim["metadata"]["name"]: claim["status"]["allocation"] for claim in claims if _silent(claim)}

    def _write(self, claim: Json, change: Callable[[Json], Json]) -> None:
        key: Key = key_of(claim)
        self.api.registry.update(self._kind("resourceclaims"), key, "status", change, manager="driver")


def _generation(item: Json) -> int:
    number: int = item["spec"]["pool"]["generation"]
    return number


def _silent(claim: Json) -> list[Device]:
    """Return the devices of *claim* of which the driver has said nothing yet."""
    if _is_garbled(claim):
        return []
    said = dict(reports(claim))
    waited = (
        (item["driver"], item["pool"], item["device"]) for item in results(claim) if item.get("bindingConditions")
    )
    return [device for device in waited if device not in said]


def _reported(claim: Json, device: Device, word: str) -> Json:
    driver, pool, name = device
    condition = {"type": word, "status": "True", "reason": "Told", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    entry = {"driver": driver, "pool": pool, "device": name, "conditions": [condition]}
    status = claim["status"]
    return {**claim, "status": {**status, "devices": [*(status.get("devices") or ()), entry]}}


def _is_garbled(claim: Json) -> bool:
    return isinstance(claim["status"].get("devices"), dict)


def _garbled(claim: Json) -> Json:
    """Say what drivers say in words that nobody knows."""
    status = claim["status"]
    return {**claim, "status": {**status, "devices": {STRANGE: status.get("devices") or []}}}


def _mended(claim: Json) -> Json:
    status = claim["status"]
    return {**claim, "status": {**status, "devices": status["devices"][STRANGE]}}


def _annotated(item: Json, mark: Json) -> Json:
    annotations = {**(item["metadata"].get("annotations") or {}), **mark}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}
