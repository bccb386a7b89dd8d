"""Links as a matrix of names and weights, with the origin of each weight."""

from collections import Counter
from itertools import combinations
from typing import Any, Final

from extender.cli.machines import Machine
from extender.cli.sets import row_of
from extender.cli.table import Row, aligned, printable
from extender.topology.links import Links

# Devices beyond which a matrix is for programs only.
DRAWN: Final = 64
UNREAD: Final = "the node itself was not read: what goes by its labels or annotations does not apply"


def kind_of(machine: Machine, links: Links, sets: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Tell all that is known of one kind of devices on one node, as JSON has it."""
    products = sorted({place.product for place in links.places} - {""})
    told = {
        "node": machine.node.name,
        "driver": links.devices[0].driver,
        "products": products,
        "isKnown": links.is_known,
        "shape": links.shape,
        "devices": [key.device for key in links.devices],
        "weightsGBps": links.weights.tolist(),
        "origins": _origins(links),
        "complaints": [*links.complaints, *([] if machine.is_read else [UNREAD])],
    }
    return told if sets is None else {**told, "sets": sets}


def _origins(links: Links) -> list[dict[str, Any]]:
    """Count the pairs of each weight and source, the strongest first."""
    counted = Counter(
        (float(links.weights[pair]), links.source(*pair)) for pair in combinations(range(len(links.devices)), 2)
    )
    return [
        {"weightGBps": weight, "pairs": pairs, "layer": source.layer, "read": source.read, "rule": source.rule}
        for (weight, source), pairs in sorted(counted.items(), key=lambda item: (-item[0][0], item[0][1]))
    ]


def drawn(told: dict[str, Any], width: int | None) -> str:
    """Write one kind of devices for people."""
    parts = [printable(_heading(told)) + "\n"]
    count = len(told["devices"])
    if 1 < count <= DRAWN:
        parts.append(aligned(_matrix(told), width))
    elif count > DRAWN:
        parts.append(f"{count} devices are too many to draw; with -o json all weights are told\n")
    if told["origins"]:
        parts.append(aligned(_sources(told), width))
    if "sets" in told:
        parts.append(aligned(_sets(told), width) if told["sets"] else "no such set: there are fewer devices\n")
    parts += [f"note: {printable(complaint)}\n" for complaint in told["complaints"]]
    return "".join(parts)


def _heading(told: dict[str, Any]) -> str:
    count, products = len(told["devices"]), ", ".join(told["products"]) or "a product without a name"
    known = "links are known" if told["isKnown"] else "links are not known, levels only"
    return f"{told['node']}: {count} of {products}, {told['driver']}" + (f"; {known}" if count > 1 else "")


def _matrix(told: dict[str, Any]) -> list[Row]:
    rows: list[Row] = [("GB/s", *told["devices"])]
    for index, (name, weights) in enumerate(zip(told["devices"], told["weightsGBps"], strict=True)):
        rows.append((name, *("." if index == other else f"{weight:g}" for other, weight in enumerate(weights))))
    return rows


def _sources(told: dict[str, Any]) -> list[Row]:
    rows: list[Row] = [("GB/s", "PAIRS", "LAYER", "WHAT WAS READ", "RULE")]
    for origin in told["origins"]:
        words = (origin[key] or "-" for key in ("layer", "read", "rule"))
        rows.append((f"{origin['weightGBps']:g}", str(origin["pairs"]), *words))
    return rows


def _sets(told: dict[str, Any]) -> list[Row]:
    header = ("BEST SETS", "RINGS", "ALL PAIRS", "OF THE BEST", "LEFT FOR OTHERS")
    return [header, *map(row_of, told["sets"])]
