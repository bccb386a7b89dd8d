"""What drivers publish: ResourceSlices and the devices in them."""

from collections.abc import Hashable
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from extender.model.frozen import dataclass
from extender.model.names import DeviceName, DriverName, NodeName, PoolKey, PoolName
from extender.model.node_selector import NodeSelector, NodeSelectorTerm
from extender.model.quantity import Quantity
from extender.model.taint import Taint

Scalar = int | bool | str
AttributeKind = Literal["int", "bool", "string", "version", "ints", "bools", "strings", "versions", "invalid"]


class Attribute(NamedTuple):
    """A device attribute: its kind keeps ``true`` and ``1`` apart. Lists are tuples, versions stay as written.

    Kind ``invalid`` carries the reason as its value: one such attribute makes every selector err on the device. Where
    only its versions cannot be read, their kind and texts come after the reason.
    """

    kind: AttributeKind
    value: Scalar | tuple[Scalar, ...]

    @property
    def fault(self) -> str:
        """Why an invalid attribute is that."""
        return str(self.value[0] if isinstance(self.value, tuple) else self.value)

    @property
    def compared(self) -> "Attribute | None":
        """The attribute as rules compare it, which never read a version; None where it has no value."""
        if self.kind != "invalid":
            return self
        match self.value:
            case (_, "version", text):
                return Attribute("version", text)
            case (_, "versions", *texts):
                return Attribute("versions", tuple(texts))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidRange:
    """Amounts from *minimum* to *maximum*, in steps counted from the minimum."""

    minimum: Quantity
    maximum: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy:
    """How much of a shared capacity one request may take."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: ValidRange | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount that a device has of something."""

    value: Quantity
    policy: RequestPolicy | None = None


class Counter(NamedTuple):
    """A named amount in a counter set, declared by a pool or consumed by a device."""

    name: str
    value: Quantity


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters that the partitions of one physical device share; counters are sorted by name."""

    name: str
    counters: tuple[Counter, ...]


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """What an allocated device takes from one counter set of its pool."""

    counter_set: str
    counters: tuple[Counter, ...]
    compatibility_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Where devices can be reached from: one node, the nodes of a selector, or all. Nothing set: nowhere."""

    node_name: NodeName | None = None
    selector: NodeSelector | None = None
    all_nodes: bool = False

    @property
    def terms(self) -> tuple[NodeSelectorTerm, ...]:
        return self.selector.terms if self.selector else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """All that counts of a device but name, attributes and capacity: few distinct values stand for a whole fleet."""

    consumes_counters: tuple[CounterConsumption, ...] = ()
    selection: NodeSelection | None = None
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
    unknown_fields: tuple[str, ...] = ()


PLAIN = Traits()


def common(traits: Traits) -> Traits:
    """Return the one that serves all devices with these traits: a fleet of partitions takes a third of the memory."""
    amounts = (counter.value for item in traits.consumes_counters for counter in item.counters)
    return PLAIN if traits == PLAIN else _common(traits, tuple(amount.spelling for amount in amounts))


@lru_cache(maxsize=4096)
def _common(traits: Traits, _spellings: tuple[Hashable, ...]) -> Traits:
    # The key has the spellings, too, for amounts are equal however they are written.
    return traits


@dataclass(frozen=True, slots=True)
class Device:
    """One allocatable device. Attribute and capacity names are as published: with a domain or without."""

    name: DeviceName
    attributes: tuple[tuple[str, Attribute], ...] = ()
    capacity: tuple[tuple[str, Capacity], ...] = ()
    traits: Traits = PLAIN


class Seal(StrEnum):
    """Why none of a slice's devices is given to anybody. People count by these words: they stay as they are."""

    CLOSED = "PoolClosed"  # somebody else has allocated from its pool
    NOT_OURS = "NotOurs"  # its driver is not among those that we own


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSlice:
    """A part of a pool: devices or counter sets. *selection* is None where each device has its own.

    Two things are not published. *seal*: it is we who keep its devices from being given, to anybody. *is_barred*: its
    driver keeps others from each of its devices, by the owner's taint, which allocation does not see.
    """

    name: str
    driver: DriverName
    pool: PoolName
    generation: int
    slice_count: int
    selection: NodeSelection | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
    unknown_fields: tuple[str, ...] = ()
    seal: Seal | None = None
    is_barred: bool = False

    @property
    def pool_key(self) -> PoolKey:
        return PoolKey(self.driver, self.pool)
