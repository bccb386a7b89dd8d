"""Drawn classes, claims and requests: selectors, constraints, alternatives, and what can be wrong with them."""

from tests.allocation.drawing import GPU, NIC, ROOT, Draw, Json

PLACE = "derived.example.com/place"

# Guarded: no device makes them err.
SELECTORS = (
    "true",
    "device.driver == 'gpu.example.com' || device.driver == 'nic.example.com'",
    "device.attributes[device.driver].?model.orValue('A') == 'A'",
    "device.attributes[device.driver].?numa.orValue(0) == 0",
    "'model' in device.attributes[device.driver] && device.attributes[device.driver].model != 'B'",
    "has(device.attributes['topology.example.com'].root)",
    "device.allowMultipleAllocations || device.driver == 'gpu.example.com'",
    "device.capacity[device.driver].?memory.orValue(quantity('8')).compareTo(quantity('1')) >= 0",
)
# On some devices each of these errs: a key is missing, a type is another, there is no value.
RASH_SELECTORS = (
    "device.attributes['gpu.example.com'].numa == 0",
    "device.attributes[device.driver].model == 'A'",
    "device.attributes[device.driver].fast",
    "device.attributes[device.driver].version.isGreaterThan(semver('1.0.0'))",
    "device.capacity[device.driver].memory.isGreaterThan(quantity('1'))",
    "device.attributes[device.driver].links.exists(link, link == 'x')",
    "device.attributes[device.driver].links.includes('x')",
    "device.attributes[device.driver].model",
)
# What classes select on, beside what they are for.
CLASS_SELECTORS = ("device.attributes[device.driver].numa == 0", "device.driver", "device.colour == 'red'")
WRONG_SELECTORS: tuple[Json, ...] = (
    {"cel": {"expression": "device.colour == 'red'"}},
    {"cel": {"expression": "1 + 1"}},
    {"cel": {"expression": "device.driver =="}},
    {},
)
DERIVED = (
    "device.attributes[device.driver].?numa.orValue(0)",
    "device.attributes[device.driver].?model.orValue('A')",
    "device.driver",
    "device.attributes[device.driver].?version.orValue(semver('1.0.0'))",
    "device.attributes[device.driver].?fast.orValue(true)",
    "'here'",
    "[0, 1]",
    "device.attributes['topology.example.com'].?root.orValue('pci0')",
    "'links' in device.attributes[device.driver] ? device.attributes[device.driver].links : dyn(['x'])",
)
RASH_DERIVED = (
    "device.attributes[device.driver].numa",
    "device.attributes[device.driver].links",
    "device.capacity",
    "[]",
)
TOLERATIONS: tuple[Json, ...] = (
    {"operator": "Exists"},
    {"key": "example.com/sick", "operator": "Exists"},
    {"key": "example.com/sick", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
    {"key": "example.com/sick", "operator": "Equal", "value": "very"},
    {"key": "example.com/old", "value": "yes", "effect": "NoSchedule"},
    {"key": "example.com/old", "operator": "Gt", "value": "yes"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Equal", "value": "yes"},
)
AMOUNTS = ("0", "500m", "1", "1", "1", "2", "1250m", "1750m", "3", "4")
STRANGE_AMOUNTS = ("-1", "10E", "1n", "3000m", "1000000001n", "9223372036854775807", "9223372036854775")


def classes(draw: Draw, themes: frozenset[str]) -> list[Json]:
    """Draw the cluster's classes; requests know their names."""
    expressions: dict[str, tuple[str, ...]] = {
        "any": (),
        "gpu": (f"device.driver == '{GPU}'",),
        "nic": (f"device.driver == '{NIC}'",),
        "model-a": (f"device.driver == '{GPU}'", "device.attributes['gpu.example.com'].?model.orValue('A') == 'A'"),
    }
    drawn = []
    for name, texts in expressions.items():
        rash = [draw.pick(CLASS_SELECTORS)] if "rash" in themes and draw.chance(0.1) else []
        spec: Json = {"selectors": [{"cel": {"expression": text}} for text in (*texts, *rash)]}
        if draw.chance(0.2):
            spec["config"] = [_opaque(draw, f"{name}-{index}") for index in range(draw.between(1, 2))]
        drawn.append({"metadata": {"name": name}, "spec": spec})
    return drawn


# How many requests each claim of a pod has.
ROOMY = ((1,), (1,), (1,), (1,), (1,), (2,), (2,), (3,), (4,), (1, 1), (2, 1), (1, 1, 1))
FEW = ((1,), (1,), (1,), (2,), (1, 1))
CROWDED = ((1,), (1,), (2,), (2,), (2,), (3,), (4,), (1, 1), (1, 1), (2, 1), (1, 2), (1, 1, 1))


def claims(draw: Draw, themes: frozenset[str]) -> list[Json]:
    """Draw a pod's claims without allocations: at most four requests, beyond which upstream may search for minutes."""
    sizes = draw.pick(FEW if "many" in themes else CROWDED if "dense" in themes else ROOMY)
    return [_claim(draw, f"c{number}", size, themes) for number, size in enumerate(sizes)]


def _claim(draw: Draw, name: str, size: int, themes: frozenset[str]) -> Json:
    requests = [_request(draw, f"r{number}", themes) for number in range(size)]
    devices: Json = {"requests": requests}
    if "constraints" in themes:
        devices["constraints"] = [_constraint(draw, requests, themes) for _ in range(draw.pick((1, 1, 2)))]
    if draw.chance(0.15):
        devices["config"] = [_config(draw, requests, f"{name}-{index}") for index in range(draw.between(1, 3))]
    if "strange" in themes and draw.chance(0.05):
        devices["requests"] = []
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}


def names_of(requests: list[Json]) -> list[str]:
    """Return every name by which constraints and configurations may refer to requests."""
    alternatives = [
        f"{request['name']}/{sub['name']}" for request in requests for sub in request.get("firstAvailable", ())
    ]
    return [request["name"] for request in requests] + alternatives


def _request(draw: Draw, name: str, themes: frozenset[str]) -> Json:
    if "alternatives" in themes and draw.chance(0.6):
        subs = [{"name": f"s{number}"} | _body(draw, themes) for number in range(draw.between(1, 3))]
        return {"name": name, "firstAvailable": subs}
    body = _body(draw, themes)
    if "admin" in themes and draw.chance(0.5):
        body["adminAccess"] = draw.chance(0.8)
    return {"name": name, "exactly": body}


def _body(draw: Draw, themes: frozenset[str]) -> Json:
    names = ("any", "any", "any", "gpu", "gpu", "model-a", "gpu" if "dense" in themes else "nic")
    body: Json = {"deviceClassName": draw.pick(names)}
    body |= _amount(draw, themes)
    if selectors := _selectors(draw, themes):
        body["selectors"] = selectors
    if "taints" in themes and draw.chance(0.5):
        body["tolerations"] = [dict(entry) for entry in draw.sample(TOLERATIONS, draw.between(1, 2))]
    if "capacity" in themes and draw.chance(0.55):
        body["capacity"] = {"requests": _capacity(draw, themes)}
    if "derived" in themes and draw.chance(0.6):
        body["derivedAttributes"] = _derived(draw)
    if draw.chance(0.002):
        body["deviceClassName"] = draw.pick(("", "unknown"))
    return body


def _amount(draw: Draw, themes: frozenset[str]) -> Json:
    if "all" in themes and draw.chance(0.4):
        return {"allocationMode": "All"}
    if draw.chance(0.003):
        return {"allocationMode": draw.pick(("", "Some"))}
    if "many" in themes and draw.chance(0.6):
        return {"allocationMode": "All"}
    count = 1 if "many" in themes else draw.pick((1, 1, 1, 1, 1, 2, 2, 3))
    if "strange" in themes and "many" not in themes and draw.chance(0.15):
        # Upstream tries every set of devices for a count that is just allowed: only where there are few.
        count = draw.pick((0, 31, 32, 33, 500) if "dense" in themes else (0, 33, 500))
    return {"allocationMode": "ExactCount", "count": count}


def _selectors(draw: Draw, themes: frozenset[str]) -> list[Json]:
    texts = draw.sample(SELECTORS, draw.pick((0, 0, 0, 0, 1, 1, 2)))
    if "rash" in themes and draw.chance(0.3):
        texts.append(draw.pick(RASH_SELECTORS))
    selectors: list[Json] = [{"cel": {"expression": text}} for text in draw.shuffled(texts)]
    if draw.chance(0.004):
        selectors.append(draw.pick(WRONG_SELECTORS))
    return selectors


def _capacity(draw: Draw, themes: frozenset[str]) -> Json:
    names = draw.some(("memory", "lanes"), 0.6)
    if draw.chance(0.03):
        # Not the name under which it is published, though it would mean the same elsewhere.
        names.append(f"{GPU}/memory")
    amounts = STRANGE_AMOUNTS if "strange" in themes and draw.chance(0.4) else AMOUNTS
    return {name: draw.pick(amounts) for name in names}


def _derived(draw: Draw) -> list[Json]:
    names = draw.sample((PLACE, PLACE, f"{GPU}/numa", ROOT), draw.between(1, 2))
    return [
        {"name": name, "expression": draw.pick(RASH_DERIVED if draw.chance(0.1) else DERIVED)}
        for name in dict.fromkeys(names)
    ]


def _constraint(draw: Draw, requests: list[Json], themes: frozenset[str]) -> Json:
    bare = ("model", "numa", "version", "fast", "side", "side")
    attributes = [*(f"{GPU}/{name}" for name in bare), ROOT, ROOT, f"{NIC}/numa"]
    if "lists" in themes:
        attributes += [f"{GPU}/links", f"{GPU}/links", f"{NIC}/links"] * 2
    if "derived" in themes:
        attributes += [PLACE] * 6
    if "edges" in themes:
        attributes += [f"{GPU}/version"] * 6
    kind = "distinctAttribute" if draw.chance(0.3) else "matchAttribute"
    constraint: Json = {kind: draw.pick(attributes)}
    if draw.chance(0.5):
        constraint["requests"] = draw.sample(names_of(requests), draw.between(1, 3))
    return {} if draw.chance(0.004) else constraint


def _opaque(draw: Draw, kind: str) -> Json:
    """Draw a configuration that tells of which entry it is."""
    return {"opaque": {"driver": draw.pick((GPU, GPU, NIC)), "parameters": {"kind": kind}}}


def _config(draw: Draw, requests: list[Json], kind: str) -> Json:
    names = draw.sample(names_of(requests), draw.between(0, 3))
    return _opaque(draw, kind) | ({"requests": names} if names else {})
