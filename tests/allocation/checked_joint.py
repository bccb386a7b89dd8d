"""What devices must be together: nobody's twice, within their capacities, and within the counters of their pools."""

from collections.abc import Iterator, Sequence

from tests.allocation.checked_amounts import nanos
from tests.allocation.checked_pools import Published, SeenPool
from tests.allocation.checked_question import View
from tests.allocation.checked_results import Pick


def joint_problems(view: View, picks: Sequence[Pick]) -> Iterator[str]:
    """Judge the picks of all claims of a pod, in the order in which they were made."""
    yield from _use_problems(view, picks)
    shares = [pick.result["shareID"] for pick in picks if pick.result.get("shareID")]
    if len(shares) != len(set(shares)) and set(shares) != {"SHARE"}:
        yield "two shares have the same id"
    if "DRAConsumableCapacity" in view.gates:
        yield from _capacity_problems(view, picks)
    for key, pool in view.pools.items():
        own = [pick for pick in picks if pick.published.key[:2] == key]
        if "DRAPartitionableDevices" in view.gates:
            yield from _counter_problems(view, pool, own)
        if "DRADeviceCompatibilityGroups" in view.gates:
            yield from _group_problems(view, pool, own)


def _use_problems(view: View, picks: Sequence[Pick]) -> Iterator[str]:
    for index, pick in enumerate(picks):
        before = [other for other in picks[:index] if other.published.key == pick.published.key]
        if any(other.claim == pick.claim and other.body is pick.body for other in before):
            yield f"{pick.where}: twice for one request"
        if not pick.is_admin and pick.published.key in view.use.dedicated:
            yield f"{pick.where}: in use"
        if view.is_shared(pick.published):
            continue
        # Looking at a device keeps others of the pod from taking it, unless they took it before.
        if before and not pick.is_admin:
            yield f"{pick.where}: taken already"
        if any(other.claim == pick.claim for other in before):
            yield f"{pick.where}: twice in one claim"


def _capacity_problems(view: View, picks: Sequence[Pick]) -> Iterator[str]:
    taken = {key: dict(amounts) for key, amounts in view.use.consumed.items()}
    for pick in picks:
        amounts = view.amounts(pick.published, pick.body)
        if isinstance(amounts, str):
            yield f"{pick.where}: {amounts}"
            continue
        # Who only looks into a device takes nothing of it, whoever has how much; but it must be as large as asked for.
        total = {} if pick.is_admin else taken.setdefault(pick.published.key, {})
        for name, amount in amounts.items():
            available = nanos(pick.published.device["capacity"][name]["value"]) - total.get(name, 0)
            if amount > available:
                yield f"{pick.where}: takes {amount}n of {name}, {available}n are left"
            if view.is_shared(pick.published):
                total[name] = total.get(name, 0) + amount


def _newly_active(view: View, picks: Sequence[Pick]) -> list[Published]:
    """Return the devices that begin to consume counters: each once, and none that did before."""
    devices = {pick.published.key: pick.published for pick in picks if not pick.is_admin}
    return [
        device
        for key, device in devices.items()
        if key not in view.use.shared and key not in view.use.dedicated and device.device.get("consumesCounters")
    ]


def _counter_problems(view: View, pool: SeenPool, picks: Sequence[Pick]) -> Iterator[str]:
    new = _newly_active(view, picks)
    if not new:
        return
    active = [item for item in pool.everything if item.key in view.use.dedicated | view.use.shared]
    for (set_name, name), declared in pool.counters.items():
        left = declared
        for item in [*active, *new]:
            for consumption in item.device.get("consumesCounters") or ():
                if consumption["counterSet"] == set_name and name in consumption["counters"]:
                    left -= nanos(consumption["counters"][name]["value"])
        # Also a counter that none of the new devices uses: the pool is overdrawn, and gives nothing more.
        if left < 0:
            yield f"counter {set_name}/{name} of {new[0].key[:2]} is overdrawn by {-left}n"


def _group_problems(view: View, pool: SeenPool, picks: Sequence[Pick]) -> Iterator[str]:
    new = _newly_active(view, picks)
    active = [item for item in pool.everything if item.key in view.use.dedicated | view.use.shared]
    for set_name in {name for name, _ in pool.counters}:
        before, added = _groups(active, set_name), _groups(new, set_name)
        # With and without groups at once: the slices changed since, and no rule says what may join them now.
        if added and not (any(before) and not all(before)):
            groups = before + added
            if any(groups) and not frozenset.intersection(*groups):
                yield f"counter set {set_name}: groups {groups} have nothing in common"


def _groups(devices: Sequence[Published], set_name: str) -> list[frozenset[str]]:
    return [
        frozenset(consumption.get("compatibilityGroups") or ())
        for item in devices
        for consumption in item.device.get("consumesCounters") or ()
        if consumption["counterSet"] == set_name
    ]
