"""Ways to spoil a sound allocation, each with what the checker must say of it; and ways to spoil any allocation."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.allocation.drawing import GATES
from tests.allocation.sound import BASE, GPU

Json = dict[str, Any]
Change = Callable[[Json, list[Json]], object]


def both(*changes: Change) -> Change:
    def change(case: Json, allocations: list[Json]) -> None:
        for one in changes:
            one(case, allocations)

    return change


def case(**fields: Any) -> Change:
    return lambda case, _: case.update(fields)


def spec(index: int, **fields: Any) -> Change:
    return lambda case, _: case["slices"][index]["spec"].update(fields)


def device(index: int, *, slice_index: int = 0, **fields: Any) -> Change:
    return lambda case, _: case["slices"][slice_index]["spec"]["devices"][index].update(fields)


def asked(claim: int = 0, **fields: Any) -> Change:
    return lambda case, _: case["claims"][claim]["spec"]["devices"]["requests"][0]["exactly"].update(fields)


def claimed(claim: int = 0, **fields: Any) -> Change:
    return lambda case, _: case["claims"][claim]["spec"]["devices"].update(fields)


def told(index: int, *, claim: int = 0, **fields: Any) -> Change:
    """Change a result; None removes a field."""

    def change(_: Json, allocations: list[Json]) -> None:
        results = allocations[claim]["devices"]["results"]
        results[index] = {key: value for key, value in (results[index] | fields).items() if value is not None}

    return change


def allocated(claim: int = 0, **fields: Any) -> Change:
    return lambda _, allocations: allocations[claim].update(fields)


def results(change: Callable[[list[Json]], object]) -> Change:
    return lambda _, allocations: change(allocations[0]["devices"]["results"])


def without(*gates: str) -> Change:
    names = [name for gate in GATES for name in gate.split("+")]
    return case(features=[name for name in names if name not in gates])


def held(allocation: Json) -> Change:
    return lambda case, _: case["claims"][1].update(status={"allocation": allocation})


def consuming(slots: str, group: str = "mig") -> Json:
    entry = {"counterSet": "set", "counters": {"slots": {"value": slots}}, "compatibilityGroups": [group]}
    return {"consumesCounters": [entry]}


def used(name: str) -> Json:
    return {"driver": GPU, "pool": "pool", "device": name}


def attributes(numa: int, serial: str) -> Json:
    return {"attributes": {"numa": {"int": numa}, "serial": {"string": serial}}}


def class_with(**fields: Any) -> Change:
    return case(classes=[{"metadata": {"name": "gpu"}, "spec": fields}])


def other_pool(count: int) -> Change:
    pool = {"name": "other", "generation": 1, "resourceSliceCount": count}
    body = {"metadata": {"name": "s9"}, "spec": {"driver": GPU, "pool": pool, "allNodes": True, "devices": []}}
    return lambda case, _: case["slices"].append(body)


ELSEWHERE = "no usable"
NOT_ANSWERED = "do not answer its requests"
HOLDER = {
    "metadata": {"name": "holder"},
    "status": {"allocation": {"devices": {"results": [{"request": "r", **used("d2")}]}}},
}
SHARE: Json = deepcopy(BASE[1][1])

PLANTED: dict[str, tuple[Change, str]] = {
    "a device that nobody publishes": (told(0, device="nothing"), ELSEWHERE),
    "a device of another driver": (told(0, driver="nic.example.com"), ELSEWHERE),
    "a device of another node": (told(0, device="elsewhere"), ELSEWHERE),
    "a device that selects other nodes itself": (
        both(spec(0, perDeviceNodeSelection=True), device(0, nodeName="node-2"), device(1, allNodes=True)),
        ELSEWHERE,
    ),
    "an incomplete pool": (spec(0, pool={"name": "pool", "generation": 1, "resourceSliceCount": 4}), ELSEWHERE),
    "a pool that is being replaced": (
        spec(2, pool={"name": "pool", "generation": 2, "resourceSliceCount": 3}),
        ELSEWHERE,
    ),
    "a pool with one name twice": (device(3, name="d2"), ELSEWHERE),
    "a pool with an undeclared counter": (
        device(
            0,
            slice_index=2,
            **consuming("1") | {"consumesCounters": [{"counterSet": "set", "counters": {"other": {"value": "1"}}}]},
        ),
        ELSEWHERE,
    ),
    "a selector that does not match": (device(1, **attributes(1, "d1")), "does not match"),
    "a selector that errs": (device(1, attributes={"serial": {"string": "d1"}}), "error"),
    "an attribute without a value": (device(2, attributes={"serial": {"string": "d2"}, "odd": {}}), "error"),
    "a class that does not match": (class_with(selectors=[{"cel": {"expression": "false"}}]), "does not match"),
    "values that differ": (both(asked(selectors=[]), device(1, **attributes(1, "d1"))), "numa does not match"),
    "values that repeat": (device(2, **attributes(1, "d0")), "is not distinct"),
    "an attribute that is missing": (device(2, attributes={"numa": {"int": 1}}), "lacks"),
    "lists without a common value": (
        both(
            claimed(constraints=[{"matchAttribute": f"{GPU}/links", "requests": ["pair"]}]),
            device(0, attributes={"numa": {"int": 0}, "links": {"strings": ["x", "y"]}}),
            device(1, attributes={"numa": {"int": 0}, "links": {"strings": ["z"]}}),
        ),
        "links does not match",
    ),
    "a derived attribute that differs": (
        both(
            asked(derivedAttributes=[{"name": f"{GPU}/numa", "expression": f"device.attributes['{GPU}'].serial"}]),
        ),
        "numa does not match",
    ),
    "a device in use": (case(usedDevices=[used("d1")]), "in use"),
    "a device of another claim": (case(allocated=[HOLDER]), "in use"),
    "a shared device that somebody has to himself": (case(usedDevices=[used("d3")]), "in use"),
    "a device twice": (told(1, device="d0"), "twice for one request"),
    "a device for two requests": (told(2, device="d0"), "taken already"),
    "a device that the pod looks into already": (
        both(asked(adminAccess=True), told(0, adminAccess=True), told(1, adminAccess=True), told(2, device="d0")),
        "taken already",
    ),
    "too few devices": (results(list.pop), NOT_ANSWERED),
    "too many devices": (results(lambda own: own.append(own[0])), NOT_ANSWERED),
    "requests out of order": (results(list.reverse), NOT_ANSWERED),
    "an alternative that does not exist": (told(2, request="one/other"), NOT_ANSWERED),
    "a request without its alternative": (told(2, request="one"), NOT_ANSWERED),
    "not all devices": (both(asked(allocationMode="All"), device(2, **attributes(0, "d2"))), NOT_ANSWERED),
    "all devices of a pool in the making": (both(asked(allocationMode="All"), other_pool(2)), "all devices are asked"),
    "all devices of which one errs": (
        both(asked(allocationMode="All"), device(2, attributes={})),
        "all devices are asked",
    ),
    "a taint": (both(asked(tolerations=[]), told(0, tolerations=[]), told(1, tolerations=[])), "is not tolerated"),
    "a taint by a rule": (
        case(taintRules=[{"spec": {"deviceSelector": {"device": "d2"}, "taint": {"key": "k", "effect": "NoExecute"}}}]),
        "is not tolerated",
    ),
    "counters overdrawn": (device(0, **consuming("4")), "is overdrawn"),
    "counters that others use": (
        both(device(0, slice_index=2, **consuming("2")), case(usedDevices=[used("elsewhere")])),
        "is overdrawn",
    ),
    "groups without a common one": (
        both(device(0, slice_index=2, **consuming("0", "vgpu")), case(usedDevices=[used("elsewhere")])),
        "nothing in common",
    ),
    "a capacity that others use": (case(usedCapacity=[used("d3") | {"consumed": {"memory": "3"}}]), "are left"),
    "an amount against the policy": (asked(1, capacity={"requests": {"memory": "3"}}), "against the policy"),
    "a capacity that is not there": (asked(1, capacity={"requests": {"lanes": "1"}}), "no capacity lanes"),
    "a default that is not enough": (told(0, claim=1, consumedCapacity={"memory": "1"}), "consumedCapacity"),
    "an amount that was not rounded": (told(0, claim=1, consumedCapacity={"memory": "1500m"}), "consumedCapacity"),
    "a share without an id": (told(0, claim=1, shareID=None), "without an id"),
    "a share of a whole device": (told(0, shareID="1"), "cannot be shared"),
    "tolerations left out": (told(0, tolerations=None), "tolerations"),
    "binding conditions left out": (told(2, bindingConditions=None), "bindingConditions"),
    "binding failure conditions left out": (told(2, bindingFailureConditions=None), "bindingFailureConditions"),
    "node operations left out": (told(0, skipNodeOperations=None), "skipNodeOperations"),
    "an unasked look into a device": (told(0, adminAccess=True), "adminAccess"),
    "a look into a device that does not say so": (asked(adminAccess=True), "adminAccess"),
    "a field of our own": (told(0, score=1), "unexpected"),
    "configuration left out": (allocated(devices={"results": BASE[1][0]["devices"]["results"]}), "config"),
    "configuration of a class left out": (class_with(config=[{"opaque": {"driver": GPU}}]), "config"),
    "configuration of an alternative not chosen": (
        both(told(2, request="one/far")),
        "config",
    ),
    "the node selector left out": (allocated(nodeSelector=None), "terms"),
    "the node selector of a device bound to its node": (device(2, bindsToNode=True), "terms"),
    "a timestamp": (allocated(allocationTimestamp="2026-01-01T00:00:00Z"), "unexpected"),
    "a claim left out": (lambda _, allocations: allocations.pop(), "1 allocations for 2 claims"),
    "an allocation that was there already changed": (held({"devices": {"results": []}}), "was changed"),
    "an allocation for other nodes": (
        both(
            held(SHARE | {"nodeSelector": {"nodeSelectorTerms": []}}),
            allocated(1, nodeSelector={"nodeSelectorTerms": []}),
        ),
        "for other nodes",
    ),
    "alternatives while off": (without("DRAPrioritizedList"), "alternatives are off"),
    "capacity while off": (without("DRAConsumableCapacity"), "capacity is off"),
    "admin access while off": (both(asked(adminAccess=False), without("DRAAdminAccess")), "adminAccess is off"),
    "derived attributes while off": (
        both(asked(derivedAttributes=[{"name": "a.b/c", "expression": "1"}]), without("DRADerivedAttributes")),
        "derivedAttributes is off",
    ),
    "binding conditions while off": (without("DRADeviceBindingConditions"), "binding conditions are off"),
    "device status while off": (without("DRAResourceClaimDeviceStatus"), "binding conditions are off"),
    "partitions while off": (
        both(device(0, **consuming("1")), without("DRAPartitionableDevices")),
        "partitions are off",
    ),
    "groups while off": (without("DRADeviceCompatibilityGroups"), ELSEWHERE),
    "skipped operations while off": (without("DRAOptionalNodeOperations"), "cannot be skipped"),
    "skipped operations on a node that cannot": (
        lambda case, _: case["node"].pop("status"),
        "cannot be skipped",
    ),
    "a mode that nobody knows": (asked(allocationMode="Some"), "unknown mode"),
    "a class that nobody knows": (asked(deviceClassName="other"), "unknown class"),
    "a selector of another kind": (asked(selectors=[{}]), "without an expression"),
    "a constraint of another kind": (claimed(constraints=[{}]), "without an attribute"),
}


def changed(allocations: list[Json]) -> Iterator[tuple[str, list[Json]]]:
    """Yield *allocations* with one thing changed that no rule leaves open."""
    for claim, allocation in enumerate(allocations):
        for what, other in _allocations(allocation):
            yield f"claim {claim}: {what}", [*allocations[:claim], other, *allocations[claim + 1 :]]


def _allocations(allocation: Json) -> Iterator[tuple[str, Json]]:
    devices = allocation.get("devices") or {}
    own = devices.get("results") or []
    for index, result in enumerate(own):
        yield f"result {index} dropped", _with(allocation, results=own[:index] + own[index + 1 :])
        yield f"result {index} twice", _with(allocation, results=[*own, result])
        for what, other in _results(result):
            yield f"result {index}: {what}", _with(allocation, results=[*own[:index], other, *own[index + 1 :]])
    config = devices.get("config") or []
    yield "configuration added", _with(allocation, config=[*config, {"source": "FromClass", "opaque": {}}])
    for index, entry in enumerate(config):
        yield f"configuration {index} dropped", _with(allocation, config=config[:index] + config[index + 1 :])
        narrowed = entry | {"requests": [*(entry.get("requests") or []), "nobody"]}
        yield (
            f"configuration {index} narrowed",
            _with(allocation, config=[*config[:index], narrowed, *config[index + 1 :]]),
        )
    if allocation.get("nodeSelector"):
        yield "node selector dropped", allocation | {"nodeSelector": None}
    nowhere = {"key": "metadata.name", "operator": "In", "values": ["nowhere"]}
    yield "another node", allocation | {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [nowhere]}]}}


def _with(allocation: Json, **parts: list[Json]) -> Json:
    return allocation | {"devices": (allocation.get("devices") or {}) | parts}


def _results(result: Json) -> Iterator[tuple[str, Json]]:
    for name in ("request", "driver", "pool", "device"):
        yield f"another {name}", result | {name: result[name] + "x"}
    yield "admin access", result | {"adminAccess": not result.get("adminAccess")}
    for name in ("tolerations", "bindingConditions", "bindingFailureConditions", "skipNodeOperations"):
        if result.get(name):
            yield f"{name} dropped", {key: value for key, value in result.items() if key != name}
    yield "a toleration added", result | {"tolerations": [*(result.get("tolerations") or []), {"key": "new"}]}
    yield "a condition added", result | {"bindingConditions": [*(result.get("bindingConditions") or []), "new"]}
    if result.get("shareID"):
        yield "share id dropped", {key: value for key, value in result.items() if key != "shareID"}
    else:
        yield "share id added", result | {"shareID": "new"}
    consumed = result.get("consumedCapacity") or {}
    for name in consumed:
        yield f"another amount of {name}", result | {"consumedCapacity": consumed | {name: "12345"}}
    yield "an amount added", result | {"consumedCapacity": consumed | {"new": "1"}}
