"""Allocations as resource.k8s.io/v1 spells them in JSON. What is empty is left out, as Go does."""

from collections.abc import Iterable
from typing import Any

from extender.model.claim import AllocatedDevice, Allocation, DeviceConfig
from extender.model.node_selector import NodeSelector, Requirement
from extender.model.taint import Toleration

Json = dict[str, Any]


def allocation(value: Allocation) -> Json:
    devices = _without_empty(
        results=[_result(item) for item in value.devices], config=[_config(item) for item in value.config]
    )
    return {
        "devices": devices,
        **_without_empty(
            nodeSelector=node_selector(value.node_selector) if value.node_selector else None,
            allocationTimestamp=value.timestamp,
        ),
    }


def _result(item: AllocatedDevice) -> Json:
    return {
        "request": item.request,
        "driver": item.device.driver,
        "pool": item.device.pool,
        "device": item.device.device,
        **_without_empty(
            adminAccess=item.admin_access,
            tolerations=[toleration(entry) for entry in item.tolerations],
            bindingConditions=list(item.binding_conditions),
            bindingFailureConditions=list(item.binding_failure_conditions),
            shareID=item.share_id,
            consumedCapacity={name: str(amount) for name, amount in item.consumed_capacity},
            skipNodeOperations=list(item.skip_node_operations),
        ),
    }


def toleration(item: Toleration) -> Json:
    spelled = _without_empty(key=item.key, operator=item.operator, value=item.value, effect=item.effect)
    return spelled if item.seconds is None else {**spelled, "tolerationSeconds": item.seconds}


def _config(item: DeviceConfig) -> Json:
    return {
        "source": item.source,
        **_without_empty(requests=list(item.requests), opaque=dict(item.opaque) if item.opaque else None),
    }


def node_selector(value: NodeSelector) -> Json:
    terms = [
        _without_empty(matchExpressions=_requirements(term.expressions), matchFields=_requirements(term.fields))
        for term in value.terms
    ]
    return {"nodeSelectorTerms": terms}


def _requirements(items: Iterable[Requirement]) -> list[Json]:
    return [{"key": item.key, "operator": item.operator, **_without_empty(values=list(item.values))} for item in items]


def _without_empty(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value}
