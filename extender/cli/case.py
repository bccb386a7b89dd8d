"""A question for the allocator as one JSON object: a cluster, the claims of a pod, and what is in use."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from extender.allocation.extended import through_devices
from extender.allocation.features import ALL, Features, features_of
from extender.allocation.tainting import Tainting
from extender.allocation.usage import UNUSED, WHOLE, Hold, Usage, add, holds_of
from extender.model.change import problem_in
from extender.model.claim import Allocation, DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, PoolName
from extender.model.node import Node
from extender.model.parse import parse_claim, parse_class, parse_node, parse_rule, parse_slice
from extender.model.parse.fields import Fields, Malformed
from extender.model.problem import Problem
from extender.scheduling.needs import Needs
from extender.scheduling.survey import claims_for

N = TypeVar("N")
KNOWN: Final = frozenset(
    (
        *("name", "node", "nodes", "classes", "slices", "claims", "taintRules", "features"),
        *("allocated", "usedDevices", "usedShares", "usedCapacity"),
    )
)
LOWERED: Final = {name.lower(): name for name in KNOWN}
CLOSE: Final = 0.81


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that an answer depends on.

    *unmade*: a pod's extended resources, of which each node serves some by devices; there is no claim for them yet.
    """

    name: str
    nodes: tuple[Node, ...]
    classes: Mapping[ClassName, DeviceClass]
    slices: tuple[ResourceSlice, ...]
    claims: tuple[ResourceClaim, ...]
    tainting: Tainting
    usage: Mapping[DeviceKey, Usage]
    features: Features
    unmade: Needs | None = None

    def usage_of(self, device: DeviceKey) -> Usage:
        return self.usage.get(device, UNUSED)

    def served_by(self, node: Node) -> tuple[str, ...]:
        """Return the extended resources for which a claim would be made on *node*."""
        return through_devices(self.unmade.extended, node) if self.unmade else ()

    def claims_with(self, served: tuple[str, ...]) -> tuple[ResourceClaim, ...]:
        """Return the claims to have devices for where extended resources are *served* by devices, these last."""
        return (*self.claims, *claims_for(self.unmade, served)) if self.unmade else self.claims


def case_of(raw: object) -> Case:
    """Read a case; raise Malformed, which names the field, where it makes no sense."""
    fields = Fields.of(raw, "")
    for unknown in fields.unknown(KNOWN):
        # Whoever keeps cases may have keys of his own in them; one that is misspelt would change the answer.
        for meant in get_close_matches(unknown.lower(), LOWERED, n=1, cutoff=CLOSE):
            raise Malformed(unknown, f"is no key; is {LOWERED[meant]} meant?")
    nodes = [*_nouns(fields, "nodes", parse_node)]
    if fields.has("node"):
        nodes.append(_noun(fields.raw["node"], "node", parse_node))
    if not nodes:
        raise Malformed("nodes", "is required, or node")
    repeated = next((name for name, count in Counter(node.name for node in nodes).items() if count > 1), None)
    if repeated:
        raise Malformed("nodes", f"{repeated} is there more than once")
    classes = {item.name: item for item in _nouns(fields, "classes", parse_class)}
    features = _features(fields)
    rules = tuple(_nouns(fields, "taintRules", parse_rule))
    return Case(
        name=fields.text("name"),
        nodes=tuple(nodes),
        classes=classes,
        slices=tuple(_nouns(fields, "slices", parse_slice)),
        claims=tuple(_nouns(fields, "claims", _claim)),
        tainting=Tainting(rules, classes),
        usage=usage_by_device(_holds(fields, features)),
        features=features,
    )


def usage_by_device(holds: Iterable[Hold]) -> dict[DeviceKey, Usage]:
    """Add up what is held of each device."""
    found: dict[DeviceKey, Usage] = {}
    for hold in holds:
        found[hold.device] = add(found.get(hold.device, UNUSED), hold.usage)
    return found


def _claim(raw: object) -> ResourceClaim | Problem:
    """Read a claim as a whole: whoever has written it is here."""
    found = parse_claim(raw)
    return problem_in(found) or found


def _nouns(fields: Fields, name: str, parse: Callable[[Any], N | Problem]) -> Iterator[N]:
    for item, path in fields.items(name):
        yield _noun(item, path, parse)


def _noun(raw: object, path: str, parse: Callable[[Any], N | Problem]) -> N:
    noun = parse(raw)
    if isinstance(noun, Problem):
        raise Malformed(f"{path}.{noun.path}", noun.message)
    return noun


def _features(fields: Fields) -> Features:
    if not fields.has("features"):
        return ALL
    # Gates that only mean something together are written with a plus between them.
    gates = [gate for entry in fields.texts("features") for gate in entry.split("+")]
    try:
        return features_of(gates)
    except ValueError as error:
        raise Malformed("features", str(error)) from error


def _holds(fields: Fields, features: Features) -> Iterator[Hold]:
    for allocation in _allocations(fields):
        yield from holds_of(allocation, sharing=features.consumable_capacity)
    for entry in fields.objects("usedDevices"):
        yield Hold(_device(entry), WHOLE)
    for entry in fields.objects("usedShares"):
        yield Hold(_shared_device(entry), Usage(shares=1))
    for entry in fields.objects("usedCapacity"):
        consumed = tuple((name, amount.nanos) for name, amount in entry.quantities("consumed"))
        yield Hold(_device(entry), Usage(consumed=consumed))


def _allocations(fields: Fields) -> Iterator[Allocation]:
    """Yield what claims hold, each of them once: the pod's own may be among those that are allocated too."""
    known = set()
    for claim in _nouns(fields, "allocated", _claim):
        if claim.allocation:
            known.add((claim.key, claim.uid))
            yield claim.allocation
    for claim in _nouns(fields, "claims", _claim):
        if claim.allocation and (claim.key, claim.uid) not in known:
            yield claim.allocation


def _device(entry: Fields) -> DeviceKey:
    return DeviceKey(
        DriverName(entry.required("driver")), PoolName(entry.required("pool")), DeviceName(entry.required("device"))
    )


def _shared_device(entry: Fields) -> DeviceKey:
    """Read driver/pool/device/share; a pool's name may have slashes of its own."""
    driver, *pool, device, share = entry.required("id").split("/") if entry.text("id").count("/") >= 3 else [""] * 4
    if not share:
        raise Malformed(entry.at("id"), "is not of the form driver/pool/device/share")
    return DeviceKey(DriverName(driver), PoolName("/".join(pool)), DeviceName(device))
