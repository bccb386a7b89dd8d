"""A question as the checker sees it: gates, pools, use by others, and what is wrong whatever the answer."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.allocation.checked_amounts import amounts_of, nanos
from tests.allocation.checked_devices import selector_problem
from tests.allocation.checked_pools import Key, Published, SeenPool, pools_of
from tests.allocation.drawing import GATES

Json = dict[str, Any]
DeviceKey = tuple[str, str, str]


@dataclass
class Use:
    """What others hold: whole devices, devices of which there are shares, and the capacity that shares consume."""

    dedicated: set[DeviceKey] = field(default_factory=set)
    shared: set[DeviceKey] = field(default_factory=set)
    consumed: dict[DeviceKey, dict[str, int]] = field(default_factory=dict)

    def consume(self, key: DeviceKey, amounts: Json) -> None:
        total = self.consumed.setdefault(key, {})
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + nanos(amount)


@dataclass
class View:
    """One node's part of a question."""

    case: Json
    node: Json
    gates: frozenset[str]
    pools: dict[Key, SeenPool]
    classes: dict[str, Json]
    use: Use

    def published(self, result: Json) -> Published | None:
        """Find the device of a result among those that the node can use."""
        pool = self.pools.get((result.get("driver", ""), result.get("pool", "")))
        if pool is None or pool.state != "usable":
            return None
        return next(
            (item for item in pool.devices if item.is_reachable and item.device["name"] == result.get("device")), None
        )

    def selectors(self, body: Json) -> list[Json]:
        class_spec = self.classes[body["deviceClassName"]].get("spec") or {}
        return [*(class_spec.get("selectors") or ()), *(body.get("selectors") or ())]

    def is_shared(self, published: Published) -> bool:
        return "DRAConsumableCapacity" in self.gates and bool(published.device.get("allowMultipleAllocations"))

    def everything(self, body: Json) -> list[Published]:
        """Return what allocationMode All takes: all that match, but those that could never give the capacity."""
        return [
            item
            for pool in self.pools.values()
            for item in pool.devices
            if item.is_reachable
            and self.may_bind(item)
            and selector_problem(item, self.selectors(body)) is None
            and not self._is_too_small(item, body)
        ]

    def may_bind(self, published: Published) -> bool:
        return self.gates >= BINDING or not published.device.get("bindingConditions")

    def amounts(self, published: Published, body: Json) -> dict[str, int] | str:
        requested = (body.get("capacity") or {}).get("requests") or {}
        fractional = "DRAFractionalCapacityRange" in self.gates
        return amounts_of(requested, published.device.get("capacity") or {}, fractional=fractional)

    def _is_too_small(self, published: Published, body: Json) -> bool:
        if "DRAConsumableCapacity" not in self.gates:
            return False
        amounts = self.amounts(published, body)
        capacity = published.device.get("capacity") or {}
        return isinstance(amounts, str) or any(
            amount > nanos(capacity[name]["value"]) for name, amount in amounts.items()
        )


BINDING = frozenset(("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"))


def view_of(case: Json, node: Json) -> View:
    named = case.get("features")
    gates = frozenset(gate for name in (GATES if named is None else named) for gate in name.split("+"))
    return View(
        case=case,
        node=node,
        gates=gates,
        pools=pools_of(case["slices"], node, gates),
        classes={entry["metadata"]["name"]: entry for entry in case["classes"]},
        use=_use(case, gates),
    )


def _use(case: Json, gates: frozenset[str]) -> Use:
    use = Use(dedicated={_key(entry) for entry in case.get("usedDevices") or ()})
    for entry in case.get("usedShares") or ():
        driver, rest = entry["id"].split("/", 1)
        pool, device, _ = rest.rsplit("/", 2)
        use.shared.add((driver, pool, device))
    for entry in case.get("usedCapacity") or ():
        use.shared.add(_key(entry))
        use.consume(_key(entry), entry["consumed"])
    holders = {
        (claim["metadata"].get("namespace"), claim["metadata"]["name"]): claim["status"]["allocation"]
        for claim in [*case["claims"], *(case.get("allocated") or ())]
        if (claim.get("status") or {}).get("allocation")
    }
    for allocation in holders.values():
        for result in (allocation.get("devices") or {}).get("results") or ():
            _hold(use, result, gates)
    return use


def _hold(use: Use, result: Json, gates: frozenset[str]) -> None:
    if result.get("adminAccess"):
        return
    if "DRAConsumableCapacity" in gates and result.get("shareID"):
        use.shared.add(_key(result))
        use.consume(_key(result), result.get("consumedCapacity") or {})
    else:
        use.dedicated.add(_key(result))


def _key(entry: Json) -> DeviceKey:
    return entry["driver"], entry["pool"], entry["device"]


def refusals(view: View) -> Iterator[str]:
    """Say what is wrong with the question itself: it must not have been answered with an allocation."""
    for claim in view.case["claims"]:
        if (claim.get("status") or {}).get("allocation"):
            continue
        devices = claim["spec"]["devices"]
        for request in devices.get("requests") or ():
            if request.get("firstAvailable") and "DRAPrioritizedList" not in view.gates:
                yield f"request {request['name']}: alternatives are off"
            for body in request.get("firstAvailable") or (request["exactly"],):
                yield from _body_refusals(view, request["name"], body)
        for constraint in devices.get("constraints") or ():
            if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
                yield "a constraint without an attribute"


def _body_refusals(view: View, name: str, body: Json) -> Iterator[str]:
    gated = (
        ("adminAccess", "DRAAdminAccess"),
        ("capacity", "DRAConsumableCapacity"),
        ("derivedAttributes", "DRADerivedAttributes"),
    )
    for field_name, gate in gated:
        if body.get(field_name) not in (None, []) and gate not in view.gates:
            yield f"request {name}: {field_name} is off"
    if body.get("allocationMode") not in ("ExactCount", "All"):
        yield f"request {name}: unknown mode"
    if body.get("deviceClassName") not in view.classes:
        yield f"request {name}: unknown class"
        return
    if not all((selector.get("cel") or {}).get("expression") for selector in view.selectors(body)):
        yield f"request {name}: a selector without an expression"
    elif body.get("allocationMode") == "All":
        yield from _all_refusals(view, name, body)


def _all_refusals(view: View, name: str, body: Json) -> Iterator[str]:
    for key, pool in view.pools.items():
        if pool.state != "usable":
            yield f"request {name}: all devices are asked for, and pool {key} is {pool.state}"
        for item in pool.devices:
            problem = selector_problem(item, view.selectors(body)) if view.may_bind(item) else None
            if problem and problem.startswith("error"):
                yield f"request {name}: all devices are asked for, and on {item.key}: {problem}"
