"""R2: of claims that hold one device, or overdraw it or its pool, those shown first keep it. Against a slow account."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.inventory import Inventory, inventory_of
from extender.model.claim import AllocatedDevice, Allocation, ClaimSpec, ResourceClaim
from extender.model.device import (
    Capacity,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    NodeSelection,
    ResourceSlice,
    Traits,
)
from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolKey, PoolName, Uid
from extender.model.quantity import parse_quantity
from extender.state.contest import contested, draws_counters, overdrafts
from extender.state.seniority import Seniority

DRIVER, POOL = DriverName("gpu.example.com"), PoolName("n1")
UNITS = {"whole": 0, "half": 2, "half2": 2, "full": 4, "shared": 3}
HAS, MEMORY = 4, 10


def published() -> ResourceSlice:
    return ResourceSlice(
        name="s",
        driver=DRIVER,
        pool=POOL,
        generation=2,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName("n1")),
        devices=tuple(_device(name, units) for name, units in UNITS.items()),
        shared_counters=_counters(HAS),
    )


def _counters(units: int) -> tuple[CounterSet, ...]:
    return (CounterSet(name="slices", counters=(Counter("units", parse_quantity(str(units))),)),)


def _device(name: str, units: int, memory: int = MEMORY) -> Device:
    draws = (CounterConsumption("slices", (Counter("units", parse_quantity(str(units))),)),) if units else ()
    traits = Traits(consumes_counters=draws, allow_multiple_allocations=name == "shared")
    return Device(DeviceName(name), capacity=(("memory", Capacity(parse_quantity(str(memory)))),), traits=traits)


def left_over(name: str, amount: int) -> ResourceSlice:
    """Return a slice of the generation before that says *amount* of everything."""
    devices = tuple(_device(each, amount, amount) for each in UNITS)
    return replace(published(), name=name, generation=1, devices=devices, shared_counters=_counters(amount))


INVENTORIES = (
    inventory_of((published(),)),
    *(inventory_of((published(), left_over(name, amount))) for name in "az" for amount in (1, 100)),
)
inventories = st.sampled_from(INVENTORIES)


def result(name: str, memory: int | None) -> AllocatedDevice:
    whole = AllocatedDevice(request="r", device=DeviceKey(DRIVER, POOL, DeviceName(name)))
    if memory is None:
        return whole
    return replace(whole, share_id=f"{name}-{memory}", consumed_capacity=(("memory", parse_quantity(str(memory))),))


wholes = st.sampled_from([name for name in UNITS if name != "shared"]).map(lambda name: result(name, None))
shares = st.sampled_from([0, 3, 6, 11]).map(lambda memory: result("shared", memory))
results = st.lists(wholes | shares, max_size=2, unique_by=lambda item: item.device)


def held(name: str, uid: str, devices: list[AllocatedDevice]) -> ResourceClaim:
    allocation = Allocation(devices=tuple(devices)) if devices else None
    return ResourceClaim(key=ObjectKey("ns", name), uid=Uid(uid), spec=ClaimSpec(), allocation=allocation)


claims = st.builds(held, st.sampled_from("abcd"), st.sampled_from("12"), results)
events = st.lists(claims | st.sampled_from("abcd"), max_size=12)


def in_order(told: list[ResourceClaim | str]) -> list[ResourceClaim]:
    """Keep a list in which a claim goes to the end whenever what it is or holds changes."""
    order: list[ResourceClaim] = []
    for event in told:
        name = event if isinstance(event, str) else event.key.name
        known = next((item for item in order if item.key.name == name), None)
        if isinstance(event, ResourceClaim) and event == known:
            continue
        order = [item for item in order if item.key.name != name]
        if isinstance(event, ResourceClaim) and event.allocation:
            order.append(event)
    return order


def is_contested(claim: ResourceClaim, earlier: list[ResourceClaim]) -> bool:
    taken = {item.device for other in earlier for item in devices_of(other)}
    is_taken = any(item.share_id is None and item.device in taken for item in devices_of(claim))
    return is_taken or is_overdrawn(claim, earlier)


def is_overdrawn(claim: ResourceClaim, earlier: list[ResourceClaim]) -> bool:
    mine, others = devices_of(claim), [item for other in earlier for item in devices_of(other)]
    taken = {item.device for item in others}
    active = {item.device.device for item in (*mine, *others)}
    for item in mine:
        used = sum(memory(other) for other in (*mine, *others) if other.device == item.device)
        if item.share_id and memory(item) and used > MEMORY:
            return True
        adds = item.device not in taken and UNITS[item.device.device]
        if adds and sum(UNITS[name] for name in active) > HAS:
            return True
    return False


def devices_of(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    return claim.allocation.devices if claim.allocation else ()


def memory(item: AllocatedDevice) -> int:
    return sum(amount.nanos // 10**9 for _, amount in item.consumed_capacity)


def seniority_after(told: list[ResourceClaim | str]) -> Seniority:
    seniority = Seniority()
    for event in told:
        if isinstance(event, str):
            seniority.drop(ObjectKey("ns", event))
        else:
            seniority.put(event)
    return seniority


@given(events, inventories)
def test_r2_whoever_was_shown_first_keeps_what_it_holds(told: list[ResourceClaim | str], inventory: Inventory) -> None:
    seniority, order = seniority_after(told), in_order(told)
    for index, claim in enumerate(order):
        mine = seniority.of(claim.key)
        found = contested(mine, seniority.before(claim.key), inventory)
        assert (found is not None) is is_contested(claim, order[:index])
        if not draws_counters(mine, inventory):
            assert contested(mine, seniority.before(claim.key, mine), inventory) == found
        assert found is None or found in [item.device for item in devices_of(claim)]


@given(events, inventories)
def test_whoever_overdraws_a_device_or_its_pool_is_found_in_one_go(
    told: list[ResourceClaim | str], inventory: Inventory
) -> None:
    seniority, order, pool = seniority_after(told), in_order(told), PoolKey(DRIVER, POOL)
    found = list(overdrafts(seniority.holders(pool), pool, inventory))
    assert [key for key, _ in found] == [claim.key for claim in order]
    for index, (claim, (_, device)) in enumerate(zip(order, found, strict=True)):
        assert (device is not None) is is_overdrawn(claim, order[:index])
        assert device is None or device in [item.device for item in devices_of(claim)]


@given(events, st.sets(st.sampled_from("abcd")))
def test_what_is_dropped_holds_nothing(told: list[ResourceClaim | str], kept: set[str]) -> None:
    seniority, fresh = Seniority(), Seniority()
    for event in told:
        if isinstance(event, ResourceClaim):
            seniority.put(event)
            if event.key.name in kept:
                fresh.put(event)
    for name in {*"abcd"} - kept:
        seniority.drop(ObjectKey("ns", name))
    for name in "abcd":
        key = ObjectKey("ns", name)
        assert seniority.of(key) == fresh.of(key)
        assert seniority.before(key) == fresh.before(key)


def test_r2_a_claim_of_the_same_name_that_was_made_later_is_not_the_earlier_one() -> None:
    seniority, inventory = Seniority(), inventory_of((published(),))
    seniority.put(held("a", "1", [result("whole", None)]))
    seniority.put(held("b", "1", [result("whole", None)]))
    seniority.put(held("a", "2", [result("whole", None)]))
    contest = {name: contested(seniority.of(key), seniority.before(key), inventory) for name, key in KEYS.items()}
    assert contest == {"a": DeviceKey(DRIVER, POOL, DeviceName("whole")), "b": None}


KEYS = {name: ObjectKey("ns", name) for name in "ab"}


@pytest.mark.parametrize("first", [None, 3])
def test_of_one_device_a_part_and_the_whole_do_not_go_together(first: int | None) -> None:
    """As where a driver has come to have its devices shared, or no more."""
    seniority, second = Seniority(), 3 if first is None else None
    seniority.put(held("a", "1", [result("shared", first)]))
    seniority.put(held("b", "1", [result("shared", second)]))
    found = [contested(seniority.of(key), seniority.before(key), INVENTORIES[0]) for key in KEYS.values()]
    assert found == [None, DeviceKey(DRIVER, POOL, DeviceName("shared"))]


def test_admin_access_contests_nothing() -> None:
    watching = replace(result("whole", None), admin_access=True)
    seniority, inventory = Seniority(), inventory_of((published(),))
    seniority.put(held("a", "1", [result("whole", None)]))
    seniority.put(held("b", "1", [watching]))
    key = ObjectKey("ns", "b")
    assert contested(seniority.of(key), seniority.before(key), inventory) is None


def test_devices_that_are_no_longer_published_are_contested_all_the_same() -> None:
    seniority = Seniority()
    for name in "ab":
        seniority.put(held(name, "1", [result("whole", None)]))
    found = [contested(seniority.of(key), seniority.before(key), inventory_of(())) for key in KEYS.values()]
    assert found == [None, DeviceKey(DRIVER, POOL, DeviceName("whole"))]


def test_of_a_device_that_is_no_longer_published_nobody_knows_whether_it_suffices_for_a_second_share() -> None:
    seniority = Seniority()
    for name in "ab":
        seniority.put(held(name, "1", [result("shared", 3)]))
    shared = DeviceKey(DRIVER, POOL, DeviceName("shared"))
    found = [contested(seniority.of(key), seniority.before(key), inventory_of(())) for key in KEYS.values()]
    assert found == [None, shared]
    told = [contested(seniority.of(key), seniority.before(key), inventory_of((published(),))) for key in KEYS.values()]
    assert told == [None, None]


def judged(inventory: Inventory, *holding: ResourceClaim) -> list[DeviceName | None]:
    """Say of each claim of which device there is not enough for it, too, once in each way."""
    seniority, pool = Seniority(), PoolKey(DRIVER, POOL)
    for claim in holding:
        seniority.put(claim)
    told = [contested(seniority.of(claim.key), seniority.before(claim.key), inventory) for claim in holding]
    assert told == [device for _, device in overdrafts(seniority.holders(pool), pool, inventory)]
    return [device and device.device for device in told]


HALVES = held("a", "1", [result("half", None)]), held("b", "1", [result("half2", None)])
FULL = held("c", "1", [result("full", None)])


@pytest.mark.parametrize("name", ["a", "z"])
@pytest.mark.parametrize("amount", [1, 100])
def test_of_what_is_left_over_of_an_older_generation_nothing_counts(name: str, amount: int) -> None:
    inventory = inventory_of((published(), left_over(name, amount)))
    assert judged(inventory, *HALVES, FULL) == [None, None, "full"]
    shares = [held(name, "1", [result("shared", memory)]) for name, memory in (("a", 6), ("b", 3), ("c", 3))]
    assert judged(inventory, *shares) == [None, None, "shared"]


def test_a_device_that_only_an_older_generation_has_is_judged_by_that() -> None:
    newest = replace(published(), devices=(_device("full", HAS),))
    inventory = inventory_of((newest, left_over("a", 3)))
    # What is new is given as if nothing drew from its counters; the search does not look at older ones either.
    assert judged(inventory, *HALVES, FULL) == [None, "half2", None]
    shares = held("a", "1", [result("shared", 2)]), held("b", "1", [result("shared", 3)])
    assert judged(inventory, *shares) == [None, "shared"]


@pytest.mark.parametrize("counters_first", [True, False])
def test_while_slices_are_replaced_one_by_one_the_counters_that_are_there_count(*, counters_first: bool) -> None:
    counters, devices = replace(published(), devices=()), replace(published(), name="d", shared_counters=())
    older = replace(devices if counters_first else counters, generation=1)
    inventory = inventory_of((counters, older) if counters_first else (older, devices))
    assert judged(inventory, *HALVES, FULL) == [None, None, "full"]
