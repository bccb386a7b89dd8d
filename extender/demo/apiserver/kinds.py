"""The kinds of objects that the API server has."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from extender.model.frozen import dataclass

Json = dict[str, Any]
DRA: Final = "resource.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind: what its paths and its objects are called, and what parts it has."""

    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    is_namespaced: bool = False
    has_status: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


POD: Final = Kind(name="Pod", plural="pods", is_namespaced=True, has_status=True)
NODE: Final = Kind(name="Node", plural="nodes", has_status=True)
NAMESPACE: Final = Kind(name="Namespace", plural="namespaces", has_status=True)
EVENT: Final = Kind(name="Event", plural="events", group="events.k8s.io", is_namespaced=True)
LEASE: Final = Kind(name="Lease", plural="leases", group="coordination.k8s.io", is_namespaced=True)


def kinds(dra_version: str, *, has_rules: bool) -> Mapping[tuple[str, str, str], Kind]:
    """Return all kinds by group, version and plural: devices in *dra_version*, with taint rules or without."""
    of_devices = partial(Kind, group=DRA, version=dra_version)
    listed = [
        *(POD, NODE, NAMESPACE, EVENT, LEASE),
        of_devices(name="ResourceSlice", plural="resourceslices"),
        of_devices(name="DeviceClass", plural="deviceclasses"),
        of_devices(name="ResourceClaim", plural="resourceclaims", is_namespaced=True, has_status=True),
        of_devices(name="ResourceClaimTemplate", plural="resourceclaimtemplates", is_namespaced=True),
    ]
    if has_rules:
        listed.append(of_devices(name="DeviceTaintRule", plural="devicetaintrules", has_status=True))
    return {(kind.group, kind.version, kind.plural): kind for kind in listed}
