"""Drawn pools: slices, generations, counters, and what can be wrong with them."""

from tests.allocation.drawing import DRIVERS, Draw, Json
from tests.allocation.drawn_devices import consume, device

FLAWS = (
    *("stale", "stale", "incomplete", "excess", "superseded", "duplicate", "nowhere"),
    *("unknown set", "unknown counter", "twice"),
)
# What no validation lets in: no selector that says this can be part of an allocation, or be understood.
WRONG_SELECTORS: tuple[Json, ...] = (
    {"nodeSelectorTerms": []},
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}] * 2},
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}]},
    {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]}]},
)


def pools(draw: Draw, nodes: list[Json], themes: frozenset[str]) -> list[Json]:
    """Draw the slices of some pools, in any order."""
    names = [node["metadata"]["name"] for node in nodes]
    slices: list[Json] = []
    # Drivers name pools after nodes, both of them: a pool's name alone says nothing.
    keys = [(driver, name) for driver in DRIVERS for name in (*names, draw.pick(("fabric", "a-rack/fabric")))]
    if "dense" in themes:
        keys = draw.sample([key for key in keys if key[0] == DRIVERS[0]], 1 if "many" in themes else draw.between(1, 2))
    for driver, name in [key for key in keys if "dense" in themes or draw.chance(0.75)]:
        flaw = draw.pick(FLAWS) if "flaws" in themes and draw.chance(0.25) else None
        slices += _pool(draw, (driver, name), names, _pool_themes(draw, themes), flaw)
    for number, entry in enumerate(draw.shuffled(slices)):
        entry["metadata"] = {"name": f"slice-{number}"}
    return draw.shuffled(slices)


def _pool_themes(draw: Draw, themes: frozenset[str]) -> frozenset[str]:
    """Keep most themes of the cluster: its pools differ."""
    return frozenset(draw.some(sorted(themes), 0.95 if "dense" in themes else 0.75))


def _pool(draw: Draw, key: tuple[str, str], names: list[str], themes: frozenset[str], flaw: str | None) -> list[Json]:
    driver, name = key
    generation = draw.between(1, 3)
    sets = _counter_sets(draw) if "counters" in themes else []
    reach = _reach(draw, name, names, themes)
    slices: list[Json] = []
    remaining = [f"d{number}" for number in draw.shuffled(range(_size(draw, themes)))]
    while remaining or not slices:
        # An empty slice now and then.
        count = draw.between(0 if draw.chance(0.1) else 1, 12 if "many" in themes else 3)
        devices = [_device(draw, name, names, (themes, reach), sets) for name in remaining[:count]]
        remaining = remaining[count:]
        slices.append(_slice_of(draw, names, reach, themes) | {"devices": devices})
    slices += _counter_slices(draw, sets, names, reach)
    count = len(slices) + _damage(draw, slices, flaw)
    pool = {"name": name, "generation": generation, "resourceSliceCount": count}
    specs = [{"driver": driver, "pool": pool} | body for body in slices]
    return [{"spec": spec} for spec in specs + _other_generation(draw, specs, names, flaw)]


def _size(draw: Draw, themes: frozenset[str]) -> int:
    """Draw how many devices a pool has: in most few, in some about as many as a claim may have results."""
    if "many" in themes:
        return draw.pick((10, 16, 31, 32, 32, 33))
    return draw.pick((3, 4, 5) if "dense" in themes else (1, 2, 3, 4, 4, 5))


def _reach(draw: Draw, name: str, names: list[str], themes: frozenset[str]) -> str:
    if name in names and draw.chance(0.85):
        return name
    if "per device" in themes and draw.chance(0.6):
        return "per device"
    return draw.pick(("all", "selector", "selector", "mixed"))


def _slice_of(draw: Draw, names: list[str], reach: str, themes: frozenset[str]) -> Json:
    body = _selection(draw, names, reach)
    if "operations" in themes and draw.chance(0.4):
        body["skipNodeOperations"] = [draw.pick(("*", "NodePrepareResources"))]
    return body


def _selection(draw: Draw, names: list[str], reach: str) -> Json:
    match reach:
        case "per device":
            return {"perDeviceNodeSelection": True}
        case "all":
            return {"allNodes": True}
        case "selector":
            return {"nodeSelector": draw.pick(WRONG_SELECTORS) if draw.chance(0.01) else _selector(draw, names)}
        case "mixed":
            return _selection(draw, names, draw.pick(("all", "selector", draw.pick(names))))
    return {"nodeName": reach}


def _selector(draw: Draw, names: list[str]) -> Json:
    expressions = draw.pick(
        (
            [{"key": "zone", "operator": "In", "values": ["a"]}],
            [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            [
                {"key": "zone", "operator": "In", "values": ["b", "a"]},
                {"key": "rank", "operator": "Gt", "values": ["1"]},
            ],
            [{"key": "zone", "operator": "NotIn", "values": ["b"]}],
            [{"key": "spare", "operator": "DoesNotExist"}],
            [{"key": "zone", "operator": "Exists"}, {"key": "rank", "operator": "Lt", "values": ["2"]}],
            [{"key": "spare", "operator": "NotIn", "values": ["a"]}],
            [],
        )
    )
    term: Json = {"matchExpressions": expressions} if expressions else {}
    if not expressions or draw.chance(0.15):
        operator = "NotIn" if draw.chance(0.3) else "In"
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [draw.pick(names)]}]
    return {"nodeSelectorTerms": [term]}


def _device(draw: Draw, name: str, names: list[str], kind: tuple[frozenset[str], str], sets: list[Json]) -> Json:
    themes, reach = kind
    drawn = device(draw, name, themes)
    if reach == "per device":
        # One in ten says nothing, and so is nowhere.
        drawn |= {} if draw.chance(0.1) else _selection(draw, names, "mixed")
    if sets and draw.chance(0.85):
        consume(draw, drawn, sets, themes)
    return drawn


def _counter_sets(draw: Draw) -> list[Json]:
    return [
        {
            "name": f"set-{index}",
            "counters": {
                name: {"value": draw.pick(("1", "2", "3", "4", "4", "2500m"))}
                for name in draw.some(("slots", "units"), 0.7) or ["slots"]
            },
        }
        for index in range(draw.between(1, 2))
    ]


def _counter_slices(draw: Draw, sets: list[Json], names: list[str], reach: str) -> list[Json]:
    """Draw one or two slices with the sets; their own node selection may exclude nodes with the pool's devices."""
    if not sets:
        return []
    parts = [sets[:1], sets[1:]] if len(sets) > 1 and draw.chance(0.5) else [sets]
    where = draw.pick(("all", "mixed")) if reach == "per device" or draw.chance(0.3) else reach
    return [_selection(draw, names, where) | {"sharedCounters": part} for part in parts]


def _damage(draw: Draw, slices: list[Json], flaw: str | None) -> int:
    """Do the flaw to the slices of a pool; return by how much their declared count is off."""
    devices = [drawn for body in slices for drawn in body.get("devices", [])]
    counted = [entry for drawn in devices for entry in drawn.get("consumesCounters", [])]
    sets = [entry for body in slices for entry in body.get("sharedCounters", [])]
    match flaw:
        case "incomplete":
            return 1
        case "superseded":
            # Half of the time the old generation is no longer whole.
            return draw.between(0, 1)
        case "excess":
            return -1 if len(slices) > 1 else 0
        case "duplicate" if len(devices) > 1:
            devices[-1]["name"] = devices[0]["name"]
        case "unknown set" if counted:
            draw.pick(counted)["counterSet"] = "nowhere"
        case "unknown counter" if counted:
            draw.pick(counted)["counters"]["nothing"] = {"value": "1"}
        case "nowhere":
            for kind in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"):
                slices[-1].pop(kind, None)
        case "twice" if len(sets) > 1:
            sets[1]["name"] = sets[0]["name"]
    return 0


def _other_generation(draw: Draw, specs: list[Json], names: list[str], flaw: str | None) -> list[Json]:
    """Copy a slice of the pool into an older or a newer generation; the copy may be for another node."""
    if flaw not in ("stale", "superseded"):
        return []
    copy = dict(draw.pick(specs))
    step = -1 if flaw == "stale" else 1
    copy["pool"] = copy["pool"] | {"generation": copy["pool"]["generation"] + step}
    if draw.chance(0.4):
        copy["pool"]["resourceSliceCount"] = 1
    if "nodeName" in copy and draw.chance(0.7):
        copy["nodeName"] = draw.pick(names)
    copy["devices"] = [dict(drawn) for drawn in copy.get("devices", [])]
    return [copy]
