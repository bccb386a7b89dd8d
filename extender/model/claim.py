"""What people ask for and what they were given: classes, claims, templates and allocations."""

from collections.abc import Iterable, Mapping
from typing import Any

from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey, ObjectKey, Uid
from extender.model.node_selector import NodeSelector
from extender.model.problem import Problem
from extender.model.quantity import Quantity
from extender.model.taint import Toleration

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Selector:
    """A CEL expression over ``device``; None where the selector is of a kind that we do not know."""

    expression: str | None


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """An attribute computed by CEL, seen by constraints only."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """An exact request, or one alternative of a prioritised list.

    An empty mode is kept as such: the API server defaults it, the allocator does not. *capacity* is None where
    the field is absent, *admin_access* likewise: a field behind a gate that is off is refused even when false.
    """

    name: str
    class_name: ClassName
    selectors: tuple[Selector, ...] = ()
    mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: tuple[tuple[str, Quantity], ...] | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSlot:
    """One entry of a claim's requests: either *exactly* or a list of alternatives in order of preference."""

    name: str
    exactly: DeviceRequest | None = None
    first_available: tuple[DeviceRequest, ...] = ()
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A rule over the devices of several requests; no requests named means all of them."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """Configuration for a driver, handed through unread. *source* is set in allocations only.

    *flaw* says why it cannot be handed through; *opaque* is missing then.
    """

    requests: tuple[str, ...] = ()
    opaque: Json | None = None
    source: str = ""
    flaw: str = ""


def flaws_in(config: Iterable[DeviceConfig]) -> tuple[str, ...]:
    """Say what of *config* cannot be handed through."""
    return tuple(f"config[{index}].opaque: {entry.flaw}" for index, entry in enumerate(config) if entry.flaw)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSpec:
    """The devices part of a claim's spec."""

    requests: tuple[RequestSlot, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """One result of an allocation: a whole device, or with *share_id* a share of one."""

    request: str
    device: DeviceKey
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = None
    consumed_capacity: tuple[tuple[str, Quantity], ...] = ()
    skip_node_operations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """``status.allocation``; without a node selector the claim may be used on every node."""

    devices: tuple[AllocatedDevice, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    node_selector: NodeSelector | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """An entry of ``status.reservedFor``; *more*: its fields that are not known here, which stay."""

    resource: str
    name: str
    uid: Uid
    api_group: str = ""
    more: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReference:
    """The owner of an object that controls it."""

    kind: str
    uid: Uid


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCondition:
    """A condition that a driver reports on an allocated device."""

    device: DeviceKey
    share_id: str | None
    type: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaim:
    """A claim. *is_classic* marks one that names a controller (the DRA of 1.31), which we refuse.

    *writers* are the field managers that its allocation is from; none where the API server does not tell.
    *problem*: it cannot be read as a whole. It holds what it has, asks for nothing, and no pod may use it.
    """

    key: ObjectKey
    uid: Uid
    spec: ClaimSpec
    resource_version: str = ""
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    device_conditions: tuple[DeviceCondition, ...] = ()
    owners: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    is_deleting: bool = False
    is_classic: bool = False
    writers: tuple[str, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """What the resource claim controller makes claims from: *annotations* are those that they have."""

    key: ObjectKey
    spec: ClaimSpec
    annotations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A class of devices: selectors and configuration by an administrator."""

    name: ClassName
    selectors: tuple[Selector, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    extended_resource: str | None = None
    created: str = ""
    unknown_fields: tuple[str, ...] = ()
