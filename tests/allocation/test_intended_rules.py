"""The rules as they are meant where upstream once did, or still does, something else."""

import json
from typing import Any

import pytest

from extender.cli.allocate import MANNERS, answer

Json = dict[str, Any]
GPU, NIC = "gpu.example.com", "nic.example.com"


def published(driver: str, *devices: Json, pool: str = "n1", **spec: Any) -> Json:
    """Publish a pool of one slice, or of two where it declares counters."""
    return {
        "metadata": {"name": f"{driver}-{pool}-{'counters' if spec else 'devices'}"},
        "spec": {"driver": driver, "nodeName": "n1", "pool": {"name": pool, "generation": 1}, "devices": devices}
        | spec,
    }


def counted(driver: str, left: str, *devices: Json) -> list[Json]:
    sets = [{"name": "set", "counters": {"slots": {"value": left}}}]
    counters = published(driver, sharedCounters=sets)
    del counters["spec"]["devices"]
    return [published(driver, *devices), counters]


def device(name: str, slots: str = "", **body: Any) -> Json:
    consumed = [{"counterSet": "set", "counters": {"slots": {"value": slots}}}]
    return {"name": name} | ({"consumesCounters": consumed} if slots else {}) | body


def exact(name: str, count: int = 1, class_name: str = "any", **body: Any) -> Json:
    asked = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count} | body
    return {"name": name, "exactly": asked}


def of_driver(driver: str) -> Json:
    return {"cel": {"expression": f"device.driver == '{driver}'"}}


def asked(slices: list[Json], *requests: Json, **fields: Any) -> Json:
    """Put a question together. *whole*: the slices are all that their pools have."""
    constraints = fields.pop("constraints", [])
    for item in slices if fields.pop("whole", True) else ():
        same = [other for other in slices if other["spec"]["driver"] == item["spec"]["driver"]]
        item["spec"]["pool"]["resourceSliceCount"] = len(same)
    spec = {"devices": {"requests": list(requests), "constraints": constraints}}
    case = {
        "name": "case",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": slices,
        "claims": [{"metadata": {"namespace": "ns", "name": "c"}, "spec": spec}],
    }
    return case | fields


def told(slices: list[Json], *requests: Json, order: str = "first", **fields: Any) -> Json:
    case = asked(slices, *requests, **fields)
    node: Json = answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["n1"]
    return node


def results(node: Json) -> list[Json]:
    return [result for allocation in node["allocations"] for result in allocation["devices"]["results"]]


def given(node: Json) -> list[str]:
    return [result["device"] for result in results(node)]


both_orders = pytest.mark.parametrize("order", MANNERS)


@both_orders
def test_pools_of_two_drivers_with_one_name_count_apart(order: str) -> None:
    slices = [*counted(GPU, "1", device("g", "1")), *counted(NIC, "1", device("n", "1"))]
    gpu, nic = exact("gpu", selectors=[of_driver(GPU)]), exact("nic", selectors=[of_driver(NIC)])
    assert given(told(slices, gpu, nic, order=order)) == ["g", "n"]


@both_orders
def test_a_rejected_candidate_gives_its_counters_back(order: str) -> None:
    taints = [{"key": "sick", "effect": "NoSchedule"}]
    slices = counted(GPU, "1", device("bad", "1", taints=taints), device("good", "1"))
    assert given(told(slices, exact("r"), order=order)) == ["good"]


@both_orders
def test_a_candidate_that_a_constraint_rejects_gives_its_counters_back(order: str) -> None:
    slices = counted(GPU, "1", device("bare", "1"), device("good", "1", attributes={"a": {"int": 1}}))
    constraints = [{"matchAttribute": f"{GPU}/a"}]
    assert given(told(slices, exact("r"), constraints=constraints, order=order)) == ["good"]


@both_orders
def test_what_lists_have_in_common_is_as_before_after_a_step_back(order: str) -> None:
    values = {"d0": [1, 2], "d1": [1], "d2": [2], "d3": [2]}
    devices = [device(name, attributes={"a": {"ints": list_}}) for name, list_ in values.items()]
    node = told([published(GPU, *devices)], exact("r", 3), constraints=[{"matchAttribute": f"{GPU}/a"}], order=order)
    assert given(node) == ["d0", "d2", "d3"]


@both_orders
def test_distinct_values_differ_from_all_others(order: str) -> None:
    values = {"d0": "a", "d1": "b", "d2": "a", "d3": "c"}
    devices = [device(name, attributes={"a": {"string": value}}) for name, value in values.items()]
    constraints = [{"distinctAttribute": f"{GPU}/a"}]
    assert given(told([published(GPU, *devices)], exact("r", 3), constraints=constraints, order=order)) == [
        "d0",
        "d1",
        "d3",
    ]
    assert told([published(GPU, *devices[:3])], exact("r", 3), constraints=constraints, order=order)["fits"] is False


@both_orders
def test_admin_access_draws_no_counters(order: str) -> None:
    slices = counted(GPU, "1", device("one", "1"), device("two", "1"))
    used = [{"driver": GPU, "pool": "n1", "device": "one"}]
    node = told(slices, exact("r", 2, adminAccess=True), usedDevices=used, order=order)
    assert given(node) == ["one", "two"]


@both_orders
def test_admin_access_to_a_full_shared_device_takes_no_share(order: str) -> None:
    shared = device("s", allowMultipleAllocations=True, capacity={"memory": {"value": "1Gi"}})
    consumed = [{"driver": GPU, "pool": "n1", "device": "s", "consumed": {"memory": "1Gi"}}]
    node = told([published(GPU, shared)], exact("r", adminAccess=True), usedCapacity=consumed, order=order)
    (result,) = results(node)
    assert result.pop("shareID")
    assert result == {"request": "r", "driver": GPU, "pool": "n1", "device": "s", "adminAccess": True}
    assert told([published(GPU, shared)], exact("r"), usedCapacity=consumed, order=order)["fits"] is False


@both_orders
def test_who_looks_into_a_shared_device_twice_can_tell_which_is_which(order: str) -> None:
    shared = device("s", allowMultipleAllocations=True)
    looks = [exact("r0", adminAccess=True), exact("r1", adminAccess=True)]
    assert len({item["shareID"] for item in results(told([published(GPU, shared)], *looks, order=order))}) == 2
    dedicated = [published(GPU, device("s"))]
    assert told(dedicated, *looks, order=order)["fits"] is False
    assert "shareID" not in results(told(dedicated, looks[0], order=order))[0]


@both_orders
def test_a_further_share_of_a_device_without_capacity_draws_no_counters(order: str) -> None:
    slices = counted(GPU, "1", device("s", "1", allowMultipleAllocations=True))
    shares = [{"id": f"{GPU}/n1/s/11111111-2222-3333-4444-555555555555"}]
    assert given(told(slices, exact("r"), usedShares=shares, order=order)) == ["s"]


TAKES = {"one": exact("r"), "all": {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "All"}}}


@both_orders
@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize(
    ("capacity", "devices"),
    [
        pytest.param({"value": "10Gi"}, [], id="taken-whole"),
        pytest.param({"value": "10Gi", "requestPolicy": {"default": "6Gi"}}, ["s"], id="enough-left"),
        pytest.param({"value": "10Gi", "requestPolicy": {"default": "7Gi"}}, [], id="too-little-left"),
        pytest.param({"value": "0"}, [], id="nothing"),
    ],
)
def test_a_device_that_is_shared_no_more_is_given_when_its_shares_leave_enough(
    order: str, take: str, capacity: Json, devices: list[str]
) -> None:
    slices = [published(GPU, device("s", capacity={"memory": capacity}))]
    use = {
        "usedShares": [{"id": f"{GPU}/n1/s/11111111-2222-3333-4444-555555555555"}],
        "usedCapacity": [{"driver": GPU, "pool": "n1", "device": "s", "consumed": {"memory": "4Gi"}}],
    }
    assert given(told(slices, TAKES[take], order=order, **use)) == devices


@both_orders
def test_a_constraint_that_forbids_one_of_all_devices_is_an_error_however_little_is_left(order: str) -> None:
    values = (1, 2)
    devices = [
        device(f"d{value}", attributes={"a": {"int": value}}, capacity={"memory": {"value": "1Gi"}}) for value in values
    ]
    consumed = [{"driver": GPU, "pool": "n1", "device": "d2", "consumed": {"memory": "1Gi"}}]
    constraints = [{"matchAttribute": f"{GPU}/a"}]
    node = told([published(GPU, *devices)], TAKES["all"], constraints=constraints, usedCapacity=consumed, order=order)
    assert "a constraint forbids" in node["fatalError"] + node["nodeError"]


@both_orders
def test_an_allocation_has_no_timestamp_of_its_own(order: str) -> None:
    bound = device("d", bindingConditions=["Ready"], bindingFailureConditions=["Failed"])
    node = told([published(GPU, bound)], exact("r"), order=order)
    assert node["fits"] is True
    assert "allocationTimestamp" not in node["allocations"][0]


@both_orders
@pytest.mark.parametrize(("selector", "devices"), [(None, ["d"]), ({}, [])], ids=["absent", "empty"])
def test_a_taint_rule_without_a_selector_taints_nothing(order: str, selector: object, devices: list[str]) -> None:
    rule = {
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoExecute"}},
    }
    node = told([published(GPU, device("d"))], exact("r"), taintRules=[rule], order=order)
    assert given(node) == devices


@both_orders
@pytest.mark.parametrize(
    ("expression", "devices"), [("device.driver == 'gpu.example.com'", []), ("false", ["d"]), ("nonsense", [])]
)
def test_a_taint_rule_of_old_may_ask_for_attributes_and_taints_in_doubt(
    order: str, expression: str, devices: list[str]
) -> None:
    selector = {"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]}
    rule = {
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoExecute"}},
    }
    node = told([published(GPU, device("d"))], exact("r"), taintRules=[rule], order=order)
    assert given(node) == devices


@both_orders
@pytest.mark.parametrize("place", ["device", "slice"])
def test_a_device_with_a_field_that_is_not_known_is_not_given(order: str, place: str) -> None:
    strange: Json = {"newThing": 1}
    odd = device("odd", **(strange if place == "device" else {}))
    slices = [published(GPU, odd)]
    slices[0]["spec"] |= strange if place == "slice" else {}
    node = told(slices, exact("r"), order=order)
    assert node["fits"] is False
    assert "has a field that is not known here (newThing)" in node["reason"]


@both_orders
def test_a_request_with_a_field_that_is_not_known_is_refused(order: str) -> None:
    node = told([published(GPU, device("d"))], exact("r", newThing=1), order=order)
    assert "request r: newThing: this field is not known here" in node["fatalError"]


@both_orders
def test_both_orders_agree_that_what_one_order_finds_is_there(order: str) -> None:
    # The one device that both could have must go to the request that has no other.
    a, b = device("a", attributes={"x": {"int": 1}}), device("b", attributes={"x": {"int": 2}})
    picky = exact("picky", selectors=[{"cel": {"expression": f"device.attributes['{GPU}'].x == 1"}}])
    assert given(told([published(GPU, a, b)], exact("any"), picky, order=order)) == ["b", "a"]
