"""A rejected node says what is short, and by how much."""

from typing import Any

import pytest

from tests.allocation.test_intended_rules import GPU, NIC, counted, device, exact, published, told

Json = dict[str, Any]
TAINT = {"key": "sick", "value": "very", "effect": "NoSchedule"}
SELECTOR = {"cel": {"expression": f"has(device.attributes['{GPU}'].a) && device.attributes['{GPU}'].a == 1"}}


def devices(*values: int) -> list[Json]:
    return [device(f"d{index}", attributes={"a": {"int": value}}) for index, value in enumerate(values)]


def used(*names: str) -> list[Json]:
    return [{"driver": GPU, "pool": "n1", "device": name} for name in names]


@pytest.mark.parametrize(
    ("slices", "request_", "fields", "reason"),
    [
        ([], exact("r"), {}, "no devices are published for the node"),
        (
            [published(GPU, *devices(1, 2))],
            exact("r", 2, selectors=[SELECTOR]),
            {},
            "claim c, request r needs 2 free devices, has 1: no other matches",
        ),
        (
            [published(GPU, *devices(1, 1, 1))],
            exact("r", 3),
            {"usedDevices": used("d0", "d1")},
            "claim c, request r needs 3 free devices, has 1: 2 in use",
        ),
        (
            [published(GPU, *devices(1, 1, 1))],
            exact("r", 4),
            {"usedDevices": used("d0", "d1")},
            "claim c, request r needs 4 free devices, has 1: 2 in use, no other matches",
        ),
        (
            [published(GPU, device("d", taints=[TAINT]))],
            exact("r"),
            {},
            "claim c, request r needs 1 free device, has 0: 1 has taint sick=very:NoSchedule",
        ),
        (
            [published(GPU, device("d", capacity={"memory": {"value": "1Gi"}}))],
            exact("r", capacity={"requests": {"memory": "2Gi"}}),
            {},
            "claim c, request r needs 1 free device, has 0: 1 without the capacity, no other matches",
        ),
        (
            [published(GPU, device("d", capacity={"memory": {"value": "1Gi"}}))],
            exact("r", capacity={"requests": {"cores": "1"}}),
            {},
            "claim c, request r needs 1 free device, has 0: 1 without the capacity, no other matches",
        ),
        (
            [published(GPU, *devices(1, 1, 2, 2, 2, 3))],
            exact("r", 4),
            {"constraints": [{"matchAttribute": f"{GPU}/a"}]},
            f"claim c needs 4 free devices with one value of {GPU}/a, best has 3",
        ),
        (
            [published(GPU, *devices(1, 1, 2, 2))],
            exact("r", 3),
            {"constraints": [{"distinctAttribute": f"{GPU}/a"}]},
            f"claim c needs 3 free devices with different values of {GPU}/a, has 2",
        ),
        (
            counted(GPU, "1", device("big", "2")),
            exact("r"),
            {},
            "claim c, request r needs 1 device within what is left of their pool's counters, has 0",
        ),
        (
            counted(GPU, "3", device("p0", "2"), device("p1", "2")),
            exact("r", 2),
            {},
            "claim c, request r has enough free devices, but cannot be given them together",
        ),
    ],
    ids=[
        "none",
        "match",
        "use",
        "too-many",
        "taint",
        "capacity",
        "no-such-capacity",
        "same",
        "different",
        "counters",
        "together",
    ],
)
def test_the_nearest_miss_is_told(slices: list[Json], request_: Json, fields: Json, reason: str) -> None:
    node = told(slices, request_, **fields)
    assert node["fits"] is False
    assert node["reason"] == reason


def alternatives(name: str, *counts: int) -> Json:
    bodies = [{"name": f"s{count}"} | exact("", count)["exactly"] for count in counts]
    return {"name": name, "firstAvailable": bodies}


SAME = [{"matchAttribute": f"{GPU}/a"}]


def test_of_alternatives_the_one_that_needs_least_is_told() -> None:
    node = told([published(GPU, *devices(1, 1, 2, 2))], alternatives("r", 4, 3), constraints=SAME)
    assert node["reason"] == f"claim c needs 3 free devices with one value of {GPU}/a, best has 2"


def test_a_constraint_that_an_alternative_escapes_is_no_reason() -> None:
    requests = alternatives("r", 3, 1), exact("rest", 4)
    constraints = [{"matchAttribute": f"{GPU}/a", "requests": ["r/s3"]}]
    node = told([published(GPU, *devices(1, 1, 2, 2))], *requests, constraints=constraints)
    assert node["reason"] == "claim c: each request has enough free devices, but not all can be given them together"


def test_devices_that_are_too_full_are_told_apart_from_those_that_are_too_small() -> None:
    sized = [
        device(f"d{size}", capacity={"memory": {"value": f"{size}Gi"}}, allowMultipleAllocations=True)
        for size in (1, 4, 5)
    ]
    taken = [entry | {"consumed": {"memory": "4Gi"}} for entry in used("d4", "d5")]
    ask = {"requests": {"memory": "2Gi"}}
    node = told([published(GPU, *sized)], exact("r", capacity=ask), usedCapacity=taken)
    texts = "2 without enough capacity left, 1 without the capacity"
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {texts}"


def test_a_constraint_that_partitions_fail_is_not_told_as_counters() -> None:
    node = told(counted(GPU, "10", device("p0", "4"), device("p1", "4")), exact("r", 2), constraints=SAME)
    assert node["reason"] == f"claim c needs 2 free devices with one value of {GPU}/a, best has 0"


def test_partitions_of_a_group_that_may_not_be_active_now_are_told_as_such() -> None:
    slices = counted(GPU, "10", device("p0", "4"), device("p1", "4"))
    for item, group in zip(slices[0]["spec"]["devices"], ("x", "y"), strict=True):
        item["consumesCounters"][0]["compatibilityGroups"] = [group]
    taken = "of groups that go with what is active in their pool, has 0"
    node = told(slices, exact("r"), usedDevices=used("p0"))
    assert node["reason"] == f"claim c, request r needs 1 device {taken}"


def test_devices_of_other_nodes_are_none_of_those_that_lack_something() -> None:
    spread = published(GPU, device("d0", nodeName="n1"), device("d1", nodeName="n2"), perDeviceNodeSelection=True)
    del spread["spec"]["nodeName"]
    node = told([spread], exact("r", 2))
    assert node["reason"] == "claim c, request r needs 2 free devices, has 1: no other matches"


def test_devices_that_have_to_be_made_ready_are_told_where_that_is_off() -> None:
    node = told([published(GPU, device("d", bindingConditions=["ready"]))], exact("r"), features=[])
    why = "1 has to be made ready first, but the feature is off"
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


@pytest.mark.parametrize(
    ("fields", "features", "why"),
    [
        ({"taints": [TAINT]}, ["DRADeviceTaints"], "2 have taint sick=very:NoSchedule"),
        ({"consumesCounters": [{"counterSet": "s", "counters": {}}]}, [], "2 are partitioned, but the feature is off"),
    ],
    ids=["have", "are"],
)
def test_several_devices_are_told_of_as_several(fields: Json, features: list[str], why: str) -> None:
    node = told([published(GPU, device("d0", **fields), device("d1", **fields))], exact("r"), features=features)
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


def test_devices_that_are_too_small_are_not_what_others_wait_for() -> None:
    sized = [device(f"d{size}", capacity={"memory": {"value": f"{size}Gi"}}) for size in (1, 2, 3, 8)]
    asked = exact("r", capacity={"requests": {"memory": "4Gi"}})
    node = told([published(GPU, *sized)], asked, usedDevices=used("d8"))
    why = "3 without the capacity, 1 in use"
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


FORTY = {"memory": {"value": "40Gi"}}


@pytest.mark.parametrize("taken", [(), ("d0",)], ids=["free", "in use"])
@pytest.mark.parametrize(
    ("fields", "asked", "why"),
    [
        pytest.param({"capacity": FORTY}, "50Gi", "1 without the capacity, no other matches", id="too small"),
        pytest.param(
            {"capacity": FORTY, "taints": [TAINT]}, "50Gi", "1 without the capacity, no other matches", id="and tainted"
        ),
        pytest.param({"capacity": FORTY, "taints": [TAINT]}, "40Gi", "1 has taint sick=very:NoSchedule", id="tainted"),
    ],
)
def test_what_a_device_would_not_be_given_for_if_it_were_free_is_told_where_it_is_in_use(
    fields: Json, asked: str, why: str, taken: tuple[str, ...]
) -> None:
    request_ = exact("r", capacity={"requests": {"memory": asked}})
    node = told([published(GPU, device("d0", **fields))], request_, usedDevices=used(*taken))
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


@pytest.mark.parametrize(
    ("features", "why"), [(["DRAConsumableCapacity"], "1 without the capacity, no other matches"), ([], "1 in use")]
)
def test_capacities_say_something_of_a_device_in_use_only_where_they_are_looked_at(
    features: list[str], why: str
) -> None:
    capacity = {"memory": {"value": "40Gi", "requestPolicy": {"default": "50Gi", "validValues": ["50Gi"]}}}
    item = device("d0", capacity=capacity)
    node = told([published(GPU, item)], exact("r"), usedDevices=used("d0"), features=features)
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


def test_a_device_that_was_shared_and_is_no_longer_is_in_use_as_long_as_somebody_has_a_share() -> None:
    once = device("d0", capacity={"memory": {"value": "40Gi"}})
    taken = [entry | {"consumed": {"memory": "20Gi"}} for entry in used("d0")]
    node = told([published(GPU, once)], exact("r"), usedCapacity=taken)
    assert node["reason"] == "claim c, request r needs 1 free device, has 0: 1 in use"
    too_much = exact("r", capacity={"requests": {"memory": "80Gi"}})
    node = told([published(GPU, once)], too_much, usedCapacity=taken)
    why = "1 without the capacity, no other matches"
    assert node["reason"] == f"claim c, request r needs 1 free device, has 0: {why}"


def test_of_all_devices_the_one_that_is_too_full_is_told() -> None:
    shared = [
        device(name, capacity={"memory": {"value": "40Gi"}}, allowMultipleAllocations=True) for name in ("d0", "d1")
    ]
    taken = [entry | {"consumed": {"memory": "20Gi"}} for entry in used("d0")]
    capacity = {"requests": {"memory": "30Gi"}}
    every = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "All", "capacity": capacity}}
    node = told([published(GPU, *shared)], every, usedCapacity=taken)
    why = "1 without enough capacity left"
    assert node["reason"] == f"claim c, request r needs 2 free devices, has 1: {why}"


def test_a_shared_device_that_is_too_full_for_two_is_not_blamed_on_a_constraint() -> None:
    capacity = {"memory": {"value": "10Gi"}}
    shared = device("s", attributes={"a": {"int": 1}}, allowMultipleAllocations=True, capacity=capacity)
    both = [exact(name, capacity={"requests": {"memory": "6Gi"}}) for name in ("one", "two")]
    node = told([published(GPU, shared)], *both, constraints=SAME)
    assert node["reason"] == "claim c: each request has enough free devices, but not all can be given them together"


def test_a_request_for_shared_devices_is_told_what_it_lacks_alone() -> None:
    shared = [device(f"s{value}", attributes={"a": {"int": value}}, allowMultipleAllocations=True) for value in (1, 2)]
    node = told([published(GPU, *shared)], exact("one"), exact("two", 2), constraints=SAME)
    assert node["reason"] == f"claim c, request two needs 2 free devices with one value of {GPU}/a, best has 1"


def test_a_pool_that_is_being_updated_is_named() -> None:
    half = published(GPU, *devices(1))
    half["spec"]["pool"]["resourceSliceCount"] = 2
    reason = f"a pool of {GPU} is being updated: 1 of 2 slices are there"
    assert told([half], exact("r"), whole=False)["reason"] == reason


def of_slices(slices: int, item: Json) -> Json:
    item["spec"]["pool"]["resourceSliceCount"] = slices
    return item


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "claim c, request r needs 1 free device, has 0: 2 in a pool that is being updated"),
        (3, "claim c, request r needs 3 free devices, has 0: 2 in a pool that is being updated, no other matches"),
    ],
)
def test_matching_devices_in_a_pool_that_is_being_updated_are_told_beside_whole_pools(count: int, text: str) -> None:
    slices = [of_slices(2, published(GPU, *devices(1, 1, 2))), of_slices(1, published(NIC, device("nic")))]
    assert told(slices, exact("r", count, selectors=[SELECTOR]), whole=False)["reason"] == text


def test_a_pool_that_is_being_updated_is_no_reason_where_its_devices_do_not_match() -> None:
    slices = [of_slices(2, published(NIC, device("nic"))), of_slices(1, published(GPU, *devices(2)))]
    node = told(slices, exact("r", selectors=[SELECTOR]), whole=False)
    assert node["reason"] == "claim c, request r needs 1 free device, has 0: no other matches"
