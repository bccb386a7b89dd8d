"""The pools that one node sees, read off the JSON of the slices: the checker's own account of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from extender.model.names import NodeName
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement, matches
from extender.model.quantity import quantity_of

Json = dict[str, Any]
Key = tuple[str, str]


class Published(NamedTuple):
    """A device, with the spec of the slice that it stands in, and whether the node can reach it."""

    driver: str
    pool: str
    device: Json
    spec: Json
    is_reachable: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device["name"]


@dataclass
class SeenPool:
    """One pool. *devices* are those of the slices that the node sees, *everything* those of the whole pool."""

    state: Literal["usable", "incomplete", "invalid"]
    devices: list[Published] = field(default_factory=list)
    everything: list[Published] = field(default_factory=list)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)


def pools_of(slices: list[Json], node: Json, gates: frozenset[str]) -> dict[Key, SeenPool]:
    """Return the pools that *node* sees. One that a newer generation is about to replace is not among them."""
    specs = [entry["spec"] for entry in slices]
    relevant = [spec for spec in specs if _is_readable(spec, gates) and _is_relevant(spec, node, gates)]
    pools = {}
    for key in {_key(spec) for spec in relevant}:
        pool = _pool(key, [spec for spec in relevant if _key(spec) == key], specs, node, gates)
        if pool is not None:
            pools[key] = pool
    return pools


def reaches(body: Json, node: Json) -> bool:
    """Tell whether nodeName, allNodes or nodeSelector of a slice or a device mean *node*."""
    if body.get("nodeName"):
        return bool(body["nodeName"] == node["metadata"]["name"])
    if body.get("allNodes"):
        return True
    return body.get("nodeSelector") is not None and selects(body["nodeSelector"], node)


def selects(selector: Json, node: Json) -> bool:
    """Tell whether a node selector accepts *node*."""
    terms = tuple(
        NodeSelectorTerm(
            expressions=_requirements(term.get("matchExpressions")), fields=_requirements(term.get("matchFields"))
        )
        for term in selector.get("nodeSelectorTerms") or ()
    )
    metadata = node["metadata"]
    return matches(NodeSelector(terms), NodeName(metadata["name"]), metadata.get("labels") or {})


def _requirements(entries: Iterable[Json] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=entry["key"], operator=entry["operator"], values=tuple(entry.get("values") or ()))
        for entry in entries or ()
    )


def _key(spec: Json) -> Key:
    return spec["driver"], spec["pool"]["name"]


def _is_readable(spec: Json, gates: frozenset[str]) -> bool:
    return "DRADeviceCompatibilityGroups" in gates or not any(
        consumption.get("compatibilityGroups")
        for device in spec.get("devices") or ()
        for consumption in device.get("consumesCounters") or ()
    )


def _is_relevant(spec: Json, node: Json, gates: frozenset[str]) -> bool:
    per_device = spec.get("perDeviceNodeSelection") is not None
    if "DRAPartitionableDevices" not in gates and (per_device or spec.get("sharedCounters")):
        return False
    if not per_device:
        return reaches(spec, node)
    return any(reaches(device, node) for device in spec.get("devices") or ())


def _pool(key: Key, relevant: list[Json], specs: list[Json], node: Json, gates: frozenset[str]) -> SeenPool | None:
    generation = max(spec["pool"].get("generation", 0) for spec in relevant)
    here = [spec for spec in relevant if spec["pool"].get("generation", 0) == generation]
    wanted = here[0]["pool"]["resourceSliceCount"]
    pool = here
    if len(here) != wanted:
        anywhere = [spec for spec in specs if _key(spec) == key]
        if any(spec["pool"].get("generation", 0) > generation for spec in anywhere):
            return None
        pool = [spec for spec in anywhere if spec["pool"].get("generation", 0) == generation]
        pool = [spec for spec in pool if _is_readable(spec, gates)]
    if len(pool) != wanted:
        return SeenPool("incomplete")
    return _validated(key, here, pool, node, gates)


def _validated(key: Key, here: list[Json], pool: list[Json], node: Json, gates: frozenset[str]) -> SeenPool:
    partitions = "DRAPartitionableDevices" in gates
    seen = SeenPool("usable")
    for spec in pool:
        for device in spec.get("devices") or ():
            per_device = spec.get("perDeviceNodeSelection")
            published = Published(*key, device, spec, not per_device or reaches(device, node))
            seen.everything.append(published)
            if any(spec is other for other in here):
                seen.devices.append(published)
    names = [published.device["name"] for published in seen.devices]
    sets = [entry for spec in pool for entry in spec.get("sharedCounters") or ()] if partitions else []
    set_names = [entry["name"] for entry in sets]
    seen.counters = {
        (entry["name"], name): quantity_of(counter["value"]).nanos
        for entry in sets
        for name, counter in entry["counters"].items()
    }
    repeated = len(names) != len(set(names)) or len(set_names) != len(set(set_names))
    if repeated or (partitions and not all(_is_declared(device, set_names, seen) for device in seen.everything)):
        return SeenPool("invalid")
    return seen


def _is_declared(published: Published, set_names: list[str], pool: SeenPool) -> bool:
    return all(
        consumption["counterSet"] in set_names
        and all((consumption["counterSet"], name) in pool.counters for name in consumption["counters"])
        for consumption in published.device.get("consumesCounters") or ()
    )
