"""What placement documents do not have at all: sets over several NUMA nodes, sets without links, what is forbidden.

Nothing of the product is imported here.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from tests.interleavings.law import DRIVER

Json = dict[str, Any]
ANNOTATION: Final = "dra-extender.x-k8s.io/policy"
NUMA: Final = "numa"
PEERS: Final = "peers"
SHIPPED: Final[dict[str, Json]] = {
    "protect": {},
    "pack": {},
    "spread": {},
    "one-numa": {"numa": "strict"},
    "linked": {"links": "strict"},
}


class Policy(NamedTuple):
    """What a request must have: one NUMA node, links between each two, nothing that is forbidden."""

    is_on_one: bool = False
    is_linked: bool = False
    forbidden: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def has(self, devices: Sequence[tuple[str, Json]]) -> bool:
        """Tell whether a request may have *devices*, each of which is named and published so."""
        if any(_is_any(published, self.forbidden) for _, published in devices):
            return False
        if len(devices) < 2:
            return True
        return (not self.is_on_one or _is_on_one(devices)) and (not self.is_linked or _is_linked(devices))


ANY: Final = Policy()


def policy_for(document: Json | None, claim: Json) -> Policy | None:
    """Return the policy of *claim*, None where it names one that it may not have; without a document all are free."""
    if document is None:
        return ANY
    policies: Json = document.get("policies") or {}
    named = {**SHIPPED, **(policies.get("named") or {})}
    name = (claim["metadata"].get("annotations") or {}).get(ANNOTATION)
    if name is None:
        name = (policies.get("classes") or {}).get(_first_class(claim)) or policies.get("default", "protect")
    elif name not in policies.get("allowed", named):
        return None
    said = named[name]
    forbidden = [*(said.get("forbid") or ()), *(policies.get("forbid") or ())]
    traits = tuple((trait["attribute"], tuple(trait["values"])) for trait in forbidden)
    return Policy(said.get("numa") == "strict", said.get("links") == "strict", traits)


def _first_class(claim: Json) -> str:
    request = claim["spec"]["devices"]["requests"][0]
    first: Json = request.get("exactly") or request["firstAvailable"][0]
    return str(first["deviceClassName"])


def _is_any(published: Json, forbidden: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    said = published.get("attributes") or {}
    for attribute, values in forbidden:
        bare = attribute.removeprefix(f"{DRIVER}/")
        known = said.get(f"{DRIVER}/{bare}") or said.get(bare) or {}
        if any(fnmatchcase(str(value), pattern) for value in known.values() for pattern in values):
            return True
    return False


def _is_on_one(devices: Sequence[tuple[str, Json]]) -> bool:
    """Tell whether all are on one NUMA node; one of which none is known is on one of its own."""
    places = [(published.get("attributes") or {}).get(NUMA, {}).get("int") for _, published in devices]
    return None not in places and len(set(places)) == 1


def _is_linked(devices: Sequence[tuple[str, Json]]) -> bool:
    """Tell whether one of each two says that it is linked to the other."""
    names = [name for name, _ in devices]
    said = {name: _peers(published) for name, published in devices}
    return all(one in said[other] or other in said[one] for one in names for other in names if one != other)


def _peers(published: Json) -> list[str]:
    listed: list[str] = (published.get("attributes") or {}).get(PEERS, {}).get("strings") or []
    return listed
