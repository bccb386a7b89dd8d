"""Drawn devices: attributes, capacities, taints, what they consume, and where each can be reached."""

from tests.allocation.drawing import GPU, ROOT, Draw, Json

CAPACITIES = ("1", "2", "4", "4", "4000m", "8", "8", "2500m", "16")
POLICIES: tuple[Json | None, ...] = (
    None,
    None,
    {"default": "1"},
    {"default": "0"},
    {"default": "1", "validValues": ["1", "2", "4"]},
    {"default": "2", "validValues": ["2"]},
    {"default": "1", "validRange": {"min": "1"}},
    {"default": "1", "validRange": {"min": "1", "max": "2"}},
    {"default": "1", "validRange": {"min": "1", "max": "3", "step": "2"}},
    {"default": "1", "validRange": {"min": "1", "max": "8", "step": "3"}},
    {"default": "500m", "validRange": {"min": "500m", "max": "2", "step": "250m"}},
    {"default": "1", "validRange": {"min": "500m", "max": "4", "step": "1500u"}},
    {"default": "2500m", "validRange": {"min": "500m", "max": "8", "step": "500m"}},
    {"default": "1", "validRange": {"min": "250m", "step": "750m"}},
    {"validRange": {"min": "1", "step": "1"}},
)
# What validation has let in once, or will some day: a default off the grid, a negative amount.
STRANGE_POLICIES: tuple[Json, ...] = (
    {"default": "1", "validValues": ["2", "4"]},
    {"default": "3", "validRange": {"min": "0", "max": "2", "step": "2"}},
    {"default": "-1"},
)
# At the edge of what int64 holds, in thousandths or at all.
EDGY_CAPACITIES: tuple[Json, ...] = (
    {"value": "9Pi", "requestPolicy": {"default": "9Pi", "validRange": {"min": "1", "step": "1"}}},
    {"value": "9Pi", "requestPolicy": {"default": "8Pi", "validRange": {"min": "0", "step": "1"}}},
    {"value": "16P", "requestPolicy": {"default": "10P", "validRange": {"min": "1", "step": "3"}}},
    {"value": "9Pi", "requestPolicy": {"default": "9Pi", "validRange": {"min": "1", "max": "9Pi", "step": "1"}}},
    {"value": "8E", "requestPolicy": {"default": "8E", "validRange": {"min": "1", "step": "1"}}},
    {"value": "9Pi", "requestPolicy": {"default": "9Pi", "validValues": ["1", "9Pi"]}},
)
# Versions that the API lets in and nobody can parse.
EDGY_VERSIONS = ("99999999999999999999.0.0", "1.0.0-99999999999999999999")
TAINTS: tuple[Json, ...] = (
    {"key": "example.com/sick", "effect": "NoSchedule"},
    {"key": "example.com/sick", "value": "very", "effect": "NoExecute"},
    {"key": "example.com/old", "value": "yes", "effect": "NoSchedule"},
    {"key": "example.com/seen", "effect": "None"},
    {"key": "example.com/odd", "effect": "FromTheFuture"},
    {"key": "example.com/new", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
)
DRAWN = ("0", "1", "1", "1", "2", "500m")
GROUPS: tuple[list[str], ...] = ([], ["mig"], ["mig"], ["mig", "vgpu"], ["vgpu", "mig"], ["vgpu"])


def device(draw: Draw, name: str, themes: frozenset[str]) -> Json:
    """Draw a device without counters."""
    drawn: Json = {"name": name}
    if attributes := _attributes(draw, themes):
        drawn["attributes"] = attributes
    if "capacity" in themes:
        capacity = {name: _capacity(draw, themes) for name in draw.some(("memory", "lanes"), 0.7)}
        if capacity:
            drawn["capacity"] = capacity
    if "shared" in themes and draw.chance(0.7):
        drawn["allowMultipleAllocations"] = True
    elif draw.chance(0.03):
        drawn["allowMultipleAllocations"] = False
    if "taints" in themes and draw.chance(0.25):
        drawn["taints"] = [dict(taint) for taint in draw.sample(TAINTS, draw.between(1, 2))]
    if "binding" in themes:
        _bind(draw, drawn)
    return drawn


def _attributes(draw: Draw, themes: frozenset[str]) -> Json:
    attributes: Json = {}
    if draw.chance(0.9):
        attributes["model"] = {"string": draw.pick("AAB")}
    if draw.chance(0.85):
        attributes["numa"] = _numa(draw)
    if draw.chance(0.4):
        attributes["fast"] = {"bool": draw.chance(0.6)}
    if draw.chance(0.4):
        versions = EDGY_VERSIONS if "edges" in themes else ("1.0.0", "1.0.0", "1.0.0+2", "2.0.0-rc.1")
        attributes["version"] = {"version": draw.pick(versions)}
    if draw.chance(0.5):
        attributes[ROOT] = {"string": draw.pick(("pci0", "pci1"))}
    if draw.chance(0.5):
        # Under both names: constraints take the full one. Which one selectors see is up to a Go map: none asks.
        attributes |= {"side": _numa(draw), f"{GPU}/side": _numa(draw)}
    if "lists" in themes:
        attributes["links"] = _links(draw)
    if "broken" in themes and draw.chance(0.15):
        attributes["broken"] = draw.pick(({}, {"version": "v1"}))
    return attributes


def _numa(draw: Draw) -> Json:
    return {"int": draw.between(0, 1)} if draw.chance(0.93) else {"string": "0"}


def _links(draw: Draw) -> Json:
    kind = draw.pick(("strings", "strings", "strings", "string", "ints", "bools", "versions"))
    match kind:
        case "string":
            return {kind: draw.pick("xyz")}
        case "strings":
            return {kind: draw.sample("xyz", draw.between(1, 2))}
        case "ints":
            return {kind: draw.sample((1, 2, 3), draw.between(1, 2))}
        case "bools":
            return {kind: draw.sample((True, False), draw.between(1, 2))}
    return {kind: draw.sample(("1.0.0", "2.0.0"), draw.between(1, 2))}


def _capacity(draw: Draw, themes: frozenset[str]) -> Json:
    if "edges" in themes and draw.chance(0.6):
        return dict(draw.pick(EDGY_CAPACITIES))
    capacity: Json = {"value": "0" if draw.chance(0.02) else draw.pick(CAPACITIES)}
    policy = draw.pick(STRANGE_POLICIES) if "strange" in themes and draw.chance(0.1) else draw.pick(POLICIES)
    if policy is not None:
        capacity["requestPolicy"] = policy
    return capacity


def _bind(draw: Draw, drawn: Json) -> None:
    if draw.chance(0.4):
        drawn["bindingConditions"] = draw.sample(("example.com/attached", "example.com/ready"), draw.between(1, 2))
        drawn["bindingFailureConditions"] = draw.sample(("example.com/broken", "Failed"), draw.between(1, 2))
    if draw.chance(0.4):
        drawn["bindsToNode"] = True


def consume(draw: Draw, drawn: Json, sets: list[Json], themes: frozenset[str]) -> None:
    """Let a device consume from some of its pool's counter sets."""
    chosen = draw.sample(sets, 2 if draw.chance(0.2) else 1)
    consumption = []
    for entry in chosen:
        counters = draw.some(sorted(entry["counters"]), 0.8) or sorted(entry["counters"])
        drawn_entry: Json = {
            "counterSet": entry["name"],
            "counters": {
                name: {"value": "-1" if "edges" in themes and draw.chance(0.4) else draw.pick(DRAWN)}
                for name in counters
            },
        }
        if "groups" in themes and (groups := draw.pick(GROUPS)):
            drawn_entry["compatibilityGroups"] = groups
        consumption.append(drawn_entry)
    drawn["consumesCounters"] = consumption
