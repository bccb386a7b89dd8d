"""What each kind makes of what is written: defaults, parts that a write cannot reach, and what is refused."""

from collections.abc import Iterator

from extender.demo.apiserver.failure import invalid
from extender.demo.apiserver.kinds import Json, Kind

RESERVATIONS_MAX = 256
# Of each kind, the field of the status whose manager is kept.
SIGNED = {"ResourceClaim": "allocation", "Pod": "nominatedNodeName"}
POD_DEFAULTS: Json = {
    "schedulerName": "default-scheduler",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}


def on_create(kind: Kind, item: Json) -> Json:
    """Return *item* as it is stored first: with defaults, and without the status that only others may write."""
    if kind.name == "Pod":
        spec = {**POD_DEFAULTS, **item.get("spec", {})}
        return {**item, "spec": spec, "status": {"phase": "Pending", **_gated(spec)}}
    if kind.name == "ResourceClaim":
        return {**item, "spec": _defaulted(item.get("spec") or {}), "status": {}}
    if kind.name == "ResourceClaimTemplate":
        template = item.get("spec") or {}
        return {**item, "spec": {**template, "spec": _defaulted(template.get("spec") or {})}}
    return item


def on_update(kind: Kind, old: Json, new: Json) -> Json:
    """Return what a write to the object itself makes of *old*: the status stays."""
    if kind.name == "ResourceClaim" and new.get("spec") != old.get("spec"):
        raise invalid(kind, old["metadata"]["name"], "spec", "Invalid value: field is immutable")
    kept = {name: value for name, value in new.items() if name != "status"} if kind.has_status else new
    if kind.name == "Node" and "status" not in old:
        return new
    return {**kept, "status": old["status"]} if kind.has_status and "status" in old else kept


def on_status(kind: Kind, old: Json, new: Json) -> Json:
    """Return what a write to the status makes of *old*: everything else stays."""
    status = new.get("status") or {}
    if kind.name == "ResourceClaim":
        _refuse_first(kind, old, _claim_problems(old, status))
        status = _without_reports(old, status)
    elif kind.name == "Pod":
        _refuse_first(kind, old, _mapping_problems(old, status))
    return {**old, "status": status}


def signed(kind: Kind, old: Json, new: Json, manager: str) -> Json:
    """Return *new* with the field manager that its allocation or nomination is from: of all fields, these are kept."""
    field = SIGNED.get(kind.name, "")
    given = (new.get("status") or {}).get(field)
    if not field or given == (old.get("status") or {}).get(field):
        return new
    metadata = {name: value for name, value in new["metadata"].items() if name != "managedFields"}
    if given:
        fields: Json = {"f:status": {f"f:{field}": {}}}
        entry = {"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": fields}
        metadata["managedFields"] = [entry]
    return {**new, "metadata": metadata}


def _gated(spec: Json) -> Json:
    if not spec.get("schedulingGates"):
        return {}
    gated = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    return {"conditions": [gated]}


def _defaulted(spec: Json) -> Json:
    devices = spec.get("devices") or {}
    requests = [_default_request(request) for request in devices.get("requests") or ()]
    return {**spec, "devices": {**devices, "requests": requests}} if requests else spec


def _default_request(request: Json) -> Json:
    if request.get("exactly") is not None:
        return {**request, "exactly": _default_count(request["exactly"])}
    if request.get("firstAvailable"):
        return {**request, "firstAvailable": [_default_count(entry) for entry in request["firstAvailable"]]}
    return _default_count(request) if "deviceClassName" in request else request


def _default_count(ask: Json) -> Json:
    mode = ask.get("allocationMode") or "ExactCount"
    count = {"count": ask.get("count") or 1} if mode == "ExactCount" else {}
    return {**ask, "allocationMode": mode, **count}


def _claim_problems(old: Json, status: Json) -> Iterator[tuple[str, str]]:
    before, allocation = (old.get("status") or {}).get("allocation"), status.get("allocation")
    reserved = status.get("reservedFor") or []
    if before and allocation and before != allocation:
        yield "status.allocation", "Invalid value: field is immutable"
    if reserved and not allocation:
        yield "status.reservedFor", "Forbidden: may not be specified when `allocated` is not set"
    if len(reserved) > RESERVATIONS_MAX:
        yield "status.reservedFor", f"Too many: {len(reserved)}: must have at most {RESERVATIONS_MAX} items"
    uids = [entry.get("uid") for entry in reserved]
    if len(uids) != len(set(uids)):
        yield "status.reservedFor", "Duplicate value"
    known = {entry.get("uid") for entry in (old.get("status") or {}).get("reservedFor") or ()}
    if old["metadata"].get("deletionTimestamp") and not known.issuperset(uids):
        yield "status.reservedFor", "Forbidden: new consumers may not be added while the claim is being deleted"


def _without_reports(old: Json, status: Json) -> Json:
    """Drop what drivers have said of devices that this write gives back: it says nothing of the next allocation."""
    given = _given(old.get("status") or {})
    if not given or given == _given(status) or not isinstance(status.get("devices"), list):
        return status
    return {**status, "devices": [entry for entry in status["devices"] if _place(entry) in _given(status)]}


def _given(status: Json) -> list[Json]:
    allocation = status.get("allocation") or {}
    return [_place(item) for item in (allocation.get("devices") or {}).get("results") or ()]


def _place(item: Json) -> Json:
    return {name: item.get(name) for name in ("driver", "pool", "device", "shareID")}


def _mapping_problems(pod: Json, status: Json) -> Iterator[tuple[str, str]]:
    containers = {entry["name"]: entry for entry in pod["spec"].get("containers") or ()}
    for mapping in (status.get("extendedResourceClaimStatus") or {}).get("requestMappings") or ():
        asked = (containers.get(mapping.get("containerName")) or {}).get("resources") or {}
        if mapping.get("resourceName") not in (asked.get("requests") or {}):
            place = "status.extendedResourceClaimStatus.requestMappings[0].resourceName"
            yield place, "Invalid value: must match the extended resource name of an entry in the requests"


def _refuse_first(kind: Kind, old: Json, problems: Iterator[tuple[str, str]]) -> None:
    for path, why in problems:
        raise invalid(kind, old["metadata"]["name"], path, why)
