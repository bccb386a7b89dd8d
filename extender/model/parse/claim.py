"""ResourceClaims, their templates and DeviceClasses. Versions differ in where a request's fields stand."""

from typing import Final, NamedTuple

from extender.model.claim import (
    Allocation,
    ClaimSpec,
    ClaimTemplate,
    Constraint,
    Consumer,
    DerivedAttribute,
    DeviceClass,
    DeviceCondition,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.names import ClassName, Uid
from extender.model.parse.alike import alike
from extender.model.parse.allocation import allocation_of, conditions_of, config_of, consumers_of, devices_of, users_of
from extender.model.parse.fields import Fields, Malformed, shared_name
from extender.model.parse.metadata import key_of, owners_of, writers_of
from extender.model.parse.selection import TOLERATION, toleration_of
from extender.model.problem import Problem

FLAT_VERSIONS = ("v1beta1", "v1alpha3")
SPEC = frozenset(("devices", "controller"))
DEVICES = frozenset(("requests", "constraints", "config"))
SLOT = frozenset(("name", "exactly", "firstAvailable"))
EXACT = frozenset(
    (
        "deviceClassName",
        "selectors",
        "allocationMode",
        "count",
        "adminAccess",
        "tolerations",
        "capacity",
        "derivedAttributes",
    )
)
# adminAccess is no field of an alternative.
ALTERNATIVE = EXACT - {"adminAccess"} | {"name"}
FLAT = EXACT | {"name", "firstAvailable"}
# What Go can leave unset; of the other three it spells the zero value, at least of the class.
NULLABLE = EXACT - {"deviceClassName", "allocationMode", "count"}
SELECTOR = frozenset(("cel",))
CEL = frozenset(("expression",))
AMOUNTS = frozenset(("requests",))
DERIVED = frozenset(("name", "expression"))
CONFIG = frozenset(("requests", "opaque"))
# Twice as many as the API lets a device have. Who asks for more is given none, whatever is known of others, and each
# would be looked at for each device.
MOST_CAPACITIES: Final = 64
CONSTRAINT = frozenset(("requests", "matchAttribute", "distinctAttribute"))
CLASS = frozenset(("selectors", "config", "extendedResourceName", "suitableNodes"))


class _Said(NamedTuple):
    """What a claim asks for and was given, and who uses it. Where it makes no sense, what it has may be clear still."""

    spec: ClaimSpec
    allocation: Allocation | None
    users: tuple[Consumer, ...]
    conditions: tuple[DeviceCondition, ...] = ()
    is_classic: bool = False
    problem: Problem | None = None


def claim_of(fields: Fields, version: str) -> ResourceClaim:
    """Read a claim, with its problem where it makes no sense; raise Malformed where nobody can say what it holds."""
    metadata, status = fields.child("metadata"), fields.child("status")
    key, said = key_of(metadata), _said_in(fields, version)
    return ResourceClaim(
        key=key,
        uid=Uid(metadata.text("uid")),
        spec=said.spec,
        resource_version=metadata.text("resourceVersion"),
        allocation=said.allocation,
        reserved_for=said.users,
        device_conditions=said.conditions,
        owners=owners_of(metadata),
        finalizers=tuple(map(shared_name, metadata.texts("finalizers"))),
        annotations=metadata.strings("annotations"),
        is_deleting=metadata.has("deletionTimestamp"),
        writers=writers_of(metadata.raw, "f:allocation") if status.has("allocation") else (),
        is_classic=said.is_classic,
        problem=said.problem,
    )


def _said_in(fields: Fields, version: str) -> _Said:
    status = fields.child("status")
    has_devices, allocation = status.has("allocation"), status.child("allocation")
    try:
        spec = fields.child("spec")
        return _Said(
            spec_of(spec, version),
            allocation_of(allocation) if has_devices else None,
            consumers_of(status),
            tuple(condition for entry in status.objects("devices") for condition in conditions_of(entry)),
            is_classic=bool(spec.text("controller") or allocation.text("controller")),
        )
    except Malformed as error:
        problem = Problem("ResourceClaim", key_of(fields.child("metadata")), error.path, error.message)
        return _Said(ClaimSpec(), devices_of(allocation) if has_devices else None, users_of(status), problem=problem)


def template_of(fields: Fields, version: str) -> ClaimTemplate:
    """Read a template; raise Malformed where it makes no sense."""
    made = fields.child("spec")
    return ClaimTemplate(
        key=key_of(fields.child("metadata")),
        spec=spec_of(made.child("spec"), version),
        annotations=made.child("metadata").strings("annotations"),
    )


def class_of(fields: Fields) -> DeviceClass:
    """Read a class; raise Malformed where it makes no sense."""
    metadata, spec = fields.child("metadata"), fields.child("spec")
    return DeviceClass(
        name=ClassName(metadata.required("name")),
        selectors=tuple(selector_of(entry) for entry in spec.objects("selectors")),
        config=tuple(config_of(entry) for entry in spec.objects("config")),
        extended_resource=spec.text("extendedResourceName") or None,
        created=metadata.text("creationTimestamp"),
        unknown_fields=spec.unknown(CLASS) + _unknown_in_selectors(spec) + spec.unknown_in("config", CONFIG),
    )


def spec_of(fields: Fields, version: str) -> ClaimSpec:
    """Read the spec of a claim or of a template: it is the same one for all that were made from one template."""
    return _specs(fields, version)


def _spec_of(fields: Fields, version: str) -> ClaimSpec:
    devices = fields.child("devices")
    return ClaimSpec(
        requests=tuple(slot_of(entry, version) for entry in devices.objects("requests")),
        constraints=tuple(_constraint(entry) for entry in devices.objects("constraints")),
        config=tuple(config_of(entry) for entry in devices.objects("config")),
        unknown_fields=(
            *fields.unknown(SPEC),
            *devices.unknown(DEVICES, "devices."),
            *devices.unknown_in("config", CONFIG, "devices."),
        ),
    )


_specs: Final = alike(_spec_of, 1024)


def slot_of(fields: Fields, version: str) -> RequestSlot:
    """Read a request. In older versions the fields of an exact one stand beside its name."""
    name = fields.text("name")
    alternatives = tuple(_request(entry, ALTERNATIVE, entry.text("name")) for entry in fields.objects("firstAvailable"))
    exactly, known = None, SLOT
    if version in FLAT_VERSIONS:
        known = FLAT
        exactly = _request(fields, FLAT, name) if _asks_itself(fields) else None
    elif fields.has("exactly"):
        exactly = _request(fields.child("exactly"), EXACT, name)
    return RequestSlot(name=name, exactly=exactly, first_available=alternatives, unknown_fields=fields.unknown(known))


def _asks_itself(fields: Fields) -> bool:
    """Tell whether a flat request sets any field of an exact one; beside alternatives its class is spelled empty."""
    if fields.text("deviceClassName") or fields.text("allocationMode") or fields.integer("count"):
        return True
    return any(fields.has(name) for name in NULLABLE)


def _request(fields: Fields, known: frozenset[str], name: str) -> DeviceRequest:
    capacity = fields.child("capacity")
    return DeviceRequest(
        name=name,
        class_name=ClassName(fields.text("deviceClassName")),
        selectors=tuple(selector_of(entry) for entry in fields.objects("selectors")),
        mode=fields.text("allocationMode"),
        count=_count(fields),
        admin_access=fields.flag("adminAccess") if fields.has("adminAccess") else None,
        tolerations=tuple(toleration_of(entry) for entry in fields.objects("tolerations")),
        capacity=capacity.quantities("requests")[:MOST_CAPACITIES] if fields.has("capacity") else None,
        derived_attributes=tuple(
            DerivedAttribute(entry.text("name"), entry.text("expression"))
            for entry in fields.objects("derivedAttributes")
        ),
        unknown_fields=(
            *fields.unknown(known),
            *capacity.unknown(AMOUNTS, "capacity."),
            *_unknown_in_selectors(fields),
            *fields.unknown_in("tolerations", TOLERATION),
            *fields.unknown_in("derivedAttributes", DERIVED),
        ),
    )


def _count(fields: Fields) -> int:
    count = fields.integer("count")
    if count < 0:
        raise Malformed(fields.at("count"), "is below 0")
    return count


def _unknown_in_selectors(fields: Fields) -> tuple[str, ...]:
    unknown = fields.unknown_in("selectors", SELECTOR)
    for entry in fields.objects("selectors"):
        unknown += entry.child("cel").unknown(CEL, "selectors.cel.")
    return unknown


def selector_of(fields: Fields) -> Selector:
    """Read a selector; one of a kind that we do not know has no expression."""
    return Selector(fields.child("cel").text("expression") if fields.has("cel") else None)


def _constraint(fields: Fields) -> Constraint:
    return Constraint(
        requests=fields.texts("requests"),
        match_attribute=fields.text("matchAttribute") if fields.has("matchAttribute") else None,
        distinct_attribute=fields.text("distinctAttribute") if fields.has("distinctAttribute") else None,
        unknown_fields=fields.unknown(CONSTRAINT),
    )
