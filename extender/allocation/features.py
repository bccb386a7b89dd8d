"""Feature gates of dynamic resource allocation: what a cluster's API server and kubelets can be asked for."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from extender.model.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The gates that change an allocation; as Kubernetes 1.37 sets them."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    device_binding_conditions: bool = True
    resource_claim_device_status: bool = True
    consumable_capacity: bool = True
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    derived_attributes: bool = False
    device_compatibility_groups: bool = False
    optional_node_operations: bool = False

    @property
    def binding(self) -> bool:
        """Whether binding conditions can be waited for: they are reported in the claim's status."""
        return self.device_binding_conditions and self.resource_claim_device_status


GATES: Final = {
    "DRA" + "".join(part.capitalize() for part in field.name.split("_")): field.name for field in fields(Features)
}
ALL: Final = Features(**dict.fromkeys(GATES.values(), True))
# The first minor release in which a gate is on unless somebody turns it off; the others are off up to 1.37. So is
# DRAFractionalCapacityRange, which takes programs that are told that no older ones are beside them.
ON_SINCE: Final = {
    "admin_access": 34,
    "prioritized_list": 34,
    "resource_claim_device_status": 34,
    "partitionable_devices": 36,
    "device_taints": 36,
    "device_binding_conditions": 36,
    "consumable_capacity": 36,
    "device_taint_rules": 37,
}


def features_by_default(minor: int) -> Features:
    """Return the features of Kubernetes 1.*minor* where nobody set a gate."""
    return Features(**{field: minor >= ON_SINCE.get(field, minor + 1) for field in GATES.values()})


def features_of(gates: Iterable[str]) -> Features:
    """Return the features with exactly *gates* on; raise ValueError for a name that is none."""
    wanted = frozenset(gates)
    unknown = sorted(wanted - GATES.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(GATES)}")
    return Features(**{field: gate in wanted for gate, field in GATES.items()})
