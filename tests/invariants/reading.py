"""Kubernetes' JSON as these rules read it: quantities, node selectors, devices and who uses what."""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

Json = dict[str, Any]
FINISHED: Final = ("Succeeded", "Failed")
QUANTITY: Final = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


class Device(NamedTuple):
    """A device by the names that no two devices share."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class Result(NamedTuple):
    """A device in a claim, for the request of that name, with what of it is taken where it is shared."""

    request: str
    device: Device
    is_admin: bool
    consumed: dict[str, Fraction]


def quantity(text: object) -> Fraction:
    """Read "500m", "2Gi", "1e3"."""
    found = QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, power, suffix = found.groups()
    return Fraction(number) * (Fraction(10) ** int(power) if power else SUFFIXES[suffix or ""])


def name(item: Json) -> str:
    """Return namespace/name, or the name of what has no namespace."""
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def uid(item: Json) -> str:
    return str(item["metadata"]["uid"])


def is_alive(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") not in FINISHED


def results(claim: Json) -> list[Result]:
    """Return the devices that *claim* has."""
    devices = (_allocation(claim) or {}).get("devices") or {}
    return [
        Result(
            item["request"],
            Device(item["driver"], item["pool"], item["device"]),
            bool(item.get("adminAccess")),
            {key: quantity(value) for key, value in (item.get("consumedCapacity") or {}).items()},
        )
        for item in devices.get("results") or ()
    ]


def is_allocated(claim: Json) -> bool:
    return _allocation(claim) is not None


def reach(claim: Json) -> Json | None:
    """Return the selector of the nodes on which the devices of *claim* can be used; None for all."""
    selector: Json | None = (_allocation(claim) or {}).get("nodeSelector")
    return selector


def reserved(claim: Json) -> set[str]:
    """Return the UIDs of those for whom *claim* is reserved."""
    return {entry["uid"] for entry in (claim.get("status") or {}).get("reservedFor") or ()}


def wanted(pod: Json) -> Iterator[str | None]:
    """Yield the claims that *pod* names; None for one that is not made yet. A template may make none."""
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    for entry in pod["spec"].get("resourceClaims") or ():
        given = entry.get("resourceClaimName") or made.get(entry["name"])
        if given is not None or entry["name"] not in made:
            yield f"{pod['metadata']['namespace']}/{given}" if given else None


def mapped(pod: Json) -> str | None:
    """Return the claim for the extended resources of *pod*."""
    given = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return f"{pod['metadata']['namespace']}/{given}" if given else None


def amounts(pod: Json) -> dict[str, Fraction]:
    """Add up what the containers of *pod* request, by resource; an extended resource's limit is its request."""
    total: dict[str, Fraction] = {"pods": Fraction(1)}
    for container in pod["spec"]["containers"]:
        given = container.get("resources") or {}
        for key, value in {**(given.get("limits") or {}), **(given.get("requests") or {})}.items():
            total[key] = total.get(key, Fraction(0)) + quantity(value)
    return total


def allocatable(node: Json) -> dict[str, Fraction]:
    return {key: quantity(value) for key, value in ((node.get("status") or {}).get("allocatable") or {}).items()}


def selects(selector: Json | None, node: Json) -> bool:
    """Tell whether a node selector matches *node*: none at all does, and so does any of its terms."""
    if selector is None:
        return True
    return any(_term_selects(term, node) for term in selector.get("nodeSelectorTerms") or ())


def _term_selects(term: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    pairs = [(labels, each) for each in term.get("matchExpressions") or ()]
    pairs += [({"metadata.name": node["metadata"]["name"]}, each) for each in term.get("matchFields") or ()]
    return bool(pairs) and all(_holds(values, each) for values, each in pairs)


def _holds(values: Json, wish: Json) -> bool:
    found, listed = values.get(wish["key"]), wish.get("values") or []
    match wish["operator"]:
        case "In":
            return found in listed
        case "NotIn":
            return found not in listed
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt":
            return found is not None and int(found) > int(listed[0])
        case "Lt":
            return found is not None and int(found) < int(listed[0])
        case other:
            raise ValueError(f"operator {other!r}")


def _allocation(claim: Json) -> Json | None:
    found: Json | None = (claim.get("status") or {}).get("allocation")
    return found


def named(items: Iterable[Json]) -> dict[str, Json]:
    return {name(item): item for item in items}
