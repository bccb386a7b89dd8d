"""Where kube-scheduler v0.37.1 does what it should not: appendix A 5, adminAccess with partitions and shared devices.

It charges an admin request for counters and shares that are not taken, and writes them down. Of the other defects in
the appendix none is left in that version: taint rules without a selector (8) select nothing there.
"""

from typing import Any

from tests.allocation.checked_devices import selector_problem
from tests.allocation.checked_pools import Published
from tests.allocation.checked_question import View, view_of

Json = dict[str, Any]


def charges_who_only_looks(case: Json, node: Json) -> bool:
    """Tell whether an admin request may meet a device on *node* for which upstream would charge it."""
    view = view_of(case, node)
    looking = [
        request["exactly"]
        for claim in case["claims"]
        for request in claim["spec"]["devices"].get("requests") or ()
        if (request.get("exactly") or {}).get("adminAccess")
    ]
    return any(
        _is_charged(view, item) and _may_be_met(view, body, item)
        for body in looking
        if body.get("deviceClassName") in view.classes
        for pool in view.pools.values()
        for item in pool.devices
    )


def _is_charged(view: View, item: Published) -> bool:
    partition = bool(item.device.get("consumesCounters")) and "DRAPartitionableDevices" in view.gates
    return partition or view.is_shared(item) or item.key in view.use.consumed


def _may_be_met(view: View, body: Json, item: Published) -> bool:
    if not item.is_reachable:
        return False
    problem = selector_problem(item, view.selectors(body))
    return problem is None or problem.startswith("error")


def without_use_of_lookers(allocations: list[Json]) -> list[Json]:
    """Take off normalised allocations what nobody consumes."""
    return [
        allocation
        | {
            "results": [
                {key: value for key, value in result.items() if key != CONSUMED or not result.get("adminAccess")}
                for result in allocation["results"]
            ]
        }
        for allocation in allocations
    ]


CONSUMED = "consumedCapacity"
