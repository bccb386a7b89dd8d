"""Drawn questions: small clusters and a pod's claims, as a line of ``dra-extender allocate``, from a seed alone.

Each question takes a few themes, and in these goes to the edges; about half of the nodes fit.
"""

from tests.allocation.drawing import GATES, GPU, Draw, Json
from tests.allocation.drawn_claims import claims, classes
from tests.allocation.drawn_devices import TAINTS
from tests.allocation.drawn_slices import pools

# How often each theme is part of a question whatever it is about.
THEMES = {
    "admin": 0.08,
    "all": 0.08,
    "alternatives": 0.25,
    "binding": 0.08,
    "broken": 0.02,
    "capacity": 0.15,
    "constraints": 0.2,
    "counters": 0.15,
    "derived": 0.08,
    "edges": 0.05,
    "flaws": 0.15,
    "gates": 0.06,
    "groups": 0.3,
    "lists": 0.1,
    "many": 0.03,
    "operations": 0.06,
    "per device": 0.2,
    "rash": 0.06,
    "shared": 0.2,
    "strange": 0.05,
    "taints": 0.12,
    "used": 0.25,
}
# Themes that have something to do with each other: each question is about one row.
SUBJECTS = (
    ("admin",),
    ("admin", "used"),
    ("admin", "used", "shared", "counters"),
    ("admin", "all", "used"),
    ("all", "alternatives", "used"),
    ("all", "capacity", "shared", "used"),
    ("all", "many"),
    ("all", "many", "alternatives"),
    ("alternatives", "constraints"),
    ("alternatives", "strange"),
    ("capacity", "shared", "edges"),
    ("constraints", "edges"),
    ("counters", "edges", "used"),
    ("binding", "counters", "taints"),
    ("binding", "gates"),
    ("capacity", "gates"),
    ("capacity", "shared", "used"),
    ("capacity", "shared", "alternatives"),
    ("constraints", "lists"),
    ("constraints", "lists", "gates"),
    ("constraints", "derived"),
    ("counters", "groups"),
    ("counters", "groups", "used"),
    ("counters", "per device", "used"),
    ("counters", "shared", "used"),
    ("flaws", "all"),
    ("flaws", "per device"),
    ("operations", "gates"),
    ("operations", "used"),
    ("rash", "used"),
    ("taints", "gates"),
    ("taints", "all"),
    ("taints", "alternatives"),
)
# Where what is allocated already can be used.
TERMS: tuple[Json, ...] = (
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
)
# What a theme needs, and what is passed over in silence where it is off.
QUIET_GATES = (
    ("binding", "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus"),
    ("capacity", "DRAFractionalCapacityRange"),
    ("groups", "DRADeviceCompatibilityGroups"),
    ("lists", "DRAListTypeAttributes"),
    ("operations", "DRAOptionalNodeOperations"),
    ("per device", "DRAPartitionableDevices"),
    ("taints", "DRADeviceTaintRules"),
    ("taints", "DRADeviceTaints"),
)


def question(seed: object) -> Json:
    """Draw one question; the same seed gives the same one."""
    draw = Draw(seed)
    themes = frozenset(name for name, probability in THEMES.items() if draw.chance(probability))
    themes |= set(draw.pick(SUBJECTS))
    if draw.chance(0.5) or "many" in themes:
        # One node with few pools, and all that is asked for competes for them.
        themes |= {"dense"}
    count = 1 if "dense" in themes else draw.pick((1, 2, 2, 3))
    nodes = [_node(draw, f"node-{number + 1}", themes) for number in range(count)]
    slices = pools(draw, nodes, themes)
    drawn: Json = {
        "name": f"drawn {seed}",
        "nodes": nodes,
        "classes": classes(draw, themes),
        "slices": slices,
        "claims": claims(draw, themes),
    }
    if "taints" in themes:
        drawn["taintRules"] = [_rule(draw, number, slices) for number in range(draw.pick((0, 1, 2)))]
    if "used" in themes:
        drawn |= _usage(draw, slices, themes)
        _allocate_one(draw, drawn)
    if "gates" in themes:
        drawn["features"] = [gate for gate in GATES if gate not in _off(draw, themes)]
    return drawn


def _off(draw: Draw, themes: frozenset[str]) -> list[str]:
    """Choose gates to be off, most of them such that the question goes on without what they are for."""
    off = [gate for theme, gate in QUIET_GATES if theme in themes and draw.chance(0.4)]
    return off if off and draw.chance(0.7) else off + draw.sample(GATES, draw.pick((1, 1, 2)))


def devices_of(slices: list[Json]) -> list[tuple[str, str, Json]]:
    """Return driver, pool and device of everything that is published."""
    return [
        (entry["spec"]["driver"], entry["spec"]["pool"]["name"], drawn)
        for entry in slices
        for drawn in entry["spec"].get("devices", ())
    ]


def _node(draw: Draw, name: str, themes: frozenset[str]) -> Json:
    labels = {"zone": draw.pick("aab"), "rank": draw.pick(("1", "2", "many"))}
    if draw.chance(0.2):
        labels["spare"] = ""
    node: Json = {"metadata": {"name": name, "labels": labels}}
    if "operations" in themes and draw.chance(0.7):
        node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    return node


def _rule(draw: Draw, number: int, slices: list[Json]) -> Json:
    driver, pool, drawn = draw.pick(devices_of(slices) or [(GPU, "node-1", {"name": "d0"})])
    everything = {"driver": driver, "pool": pool, "device": drawn["name"]}
    spec: Json = {"taint": dict(draw.pick(TAINTS))}
    if draw.chance(0.85):
        spec["deviceSelector"] = {key: everything[key] for key in draw.some(sorted(everything), 0.7)}
    return {"metadata": {"name": f"rule-{number}"}, "spec": spec}


def _usage(draw: Draw, slices: list[Json], themes: frozenset[str]) -> Json:
    """Let others hold some devices, in all the ways in which a question can say so."""
    usage: Json = {"usedDevices": [], "usedShares": [], "usedCapacity": [], "allocated": []}
    crowd = draw.pick((0.1, 0.1, 0.2, 0.4))
    for driver, pool, drawn in devices_of(slices):
        if not draw.chance(crowd):
            continue
        key = {"driver": driver, "pool": pool, "device": drawn["name"]}
        shared = drawn.get("allowMultipleAllocations", False)
        # Now and then a device has changed since it was given away.
        if draw.chance(0.05):
            shared = not shared
        _hold(draw, usage, key, _consumed(draw, drawn) if shared else None)
    if draw.chance(0.1):
        _hold(draw, usage, {"driver": GPU, "pool": "node-1", "device": "withdrawn"}, None)
    if "operations" in themes:
        for holder in draw.some(usage["allocated"], 0.5):
            holder["status"]["allocation"]["devices"]["results"][0]["skipNodeOperations"] = ["*"]
    return {name: entries for name, entries in usage.items() if entries}


def _hold(draw: Draw, usage: Json, key: Json, consumed: Json | None) -> None:
    share = f"00000000-0000-0000-0000-{draw.between(0, 999999):012d}"
    if draw.chance(0.6):
        result: Json = {"request": "r", **key}
        if draw.chance(0.1):
            result["adminAccess"] = True
        if consumed is not None and draw.chance(0.5 if "adminAccess" in result else 1):
            result |= {"shareID": share} | ({"consumedCapacity": consumed} if consumed else {})
        usage["allocated"].append(_holder(f"holder-{len(usage['allocated'])}", [result]))
    elif consumed is None:
        usage["usedDevices"].append(key)
    else:
        usage["usedShares"].append({"id": "/".join((key["driver"], key["pool"], key["device"], share))})
        if consumed:
            usage["usedCapacity"].append({**key, "consumed": consumed})


def _consumed(draw: Draw, drawn: Json) -> Json:
    names = sorted(drawn.get("capacity", {}))
    if draw.chance(0.1):
        # The device may have had other capacities then, or none.
        names = draw.some([*names, "withdrawn"], 0.5)
    return {name: draw.pick(("0", "1", "1", "2", "500m")) for name in names}


def _holder(name: str, results: list[Json]) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def _allocate_one(draw: Draw, drawn: Json) -> None:
    """Let one claim of the pod have its allocation already, perhaps one that is good on some nodes only."""
    held = drawn.get("allocated")
    if not held or not draw.chance(0.3):
        return
    allocation = dict(held.pop()["status"]["allocation"])
    if draw.chance(0.5):
        allocation["nodeSelector"] = {"nodeSelectorTerms": draw.sample(TERMS, draw.between(1, 2))}
    draw.pick(drawn["claims"])["status"] = {"allocation": allocation}
