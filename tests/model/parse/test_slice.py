"""ResourceSlices, their devices, attributes and amounts."""

import json
import tracemalloc
from copy import deepcopy
from typing import Any

import pytest

from extender.model.device import (
    PLAIN,
    Attribute,
    Capacity,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    NodeSelection,
    RequestPolicy,
    ResourceSlice,
    Traits,
    ValidRange,
)
from extender.model.names import NodeName
from extender.model.node_selector import NodeSelector
from extender.model.parse import parse_list, parse_slice
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.model.taint import Taint
from tests.model.parse.exemplars import SELECTOR, SLICE

Json = dict[str, Any]
GI, MOST = parse_quantity("1Gi"), parse_quantity("40Gi")


def raw_slice(device: Json, **spec: object) -> Json:
    pool = {"name": "n1", "generation": 3, "resourceSliceCount": 1}
    base: Json = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": [device]}
    return {"metadata": {"name": "slice-1", "uid": "u1"}, "spec": base | spec}


def read_slice(raw: Json) -> ResourceSlice:
    read = parse_slice(raw)
    assert isinstance(read, ResourceSlice), read
    return read


def read_device(**fields: object) -> Device:
    (device,) = read_slice(raw_slice({"name": "a"} | fields)).devices
    return device


def test_a_slice_has_everything_about_its_pool() -> None:
    read = read_slice(SLICE)
    assert (read.name, read.driver, read.pool) == ("slice", "gpu.example.com", "n1")
    assert (read.generation, read.slice_count) == (2, 1)
    assert read.skip_node_operations == ("Prepare",)
    assert read.selection == NodeSelection(node_name=NodeName("n1"))
    assert read.unknown_fields == ()


def test_a_device_has_everything() -> None:
    (device,) = read_slice(SLICE).devices
    assert device.name == "gpu-0"
    assert device.attributes == (
        ("ids", Attribute("ints", (1, 2))),
        ("model", Attribute("string", "A")),
        ("v", Attribute("version", "1.2.3")),
    )
    policy = RequestPolicy(
        default=GI, valid_values=(GI, parse_quantity("2Gi")), valid_range=ValidRange(minimum=GI, maximum=MOST, step=GI)
    )
    assert device.capacity == (("memory", Capacity(MOST, policy)),)
    assert device.traits == Traits(
        consumes_counters=(CounterConsumption("c", (Counter("m", parse_quantity("1")),), ("g",)),),
        taints=(Taint(key="sick", effect="NoSchedule"),),
        binds_to_node=True,
        binding_conditions=("Ready",),
        binding_failure_conditions=("Failed",),
        allow_multiple_allocations=True,
    )


def test_a_pool_may_declare_counters() -> None:
    read = read_slice(raw_slice({"name": "a"}, sharedCounters=[{"name": "c", "counters": {"m": {"value": "1Gi"}}}]))
    assert read.shared_counters == (CounterSet("c", (Counter("m", GI),)),)


@pytest.mark.parametrize(
    ("where", "selection"),
    [
        ({}, NodeSelection()),
        ({"nodeName": "n1"}, NodeSelection(node_name=NodeName("n1"))),
        ({"allNodes": True}, NodeSelection(all_nodes=True)),
        ({"nodeName": "", "allNodes": False, "nodeSelector": None}, NodeSelection()),
        ({"nodeSelector": {}}, NodeSelection(selector=NodeSelector())),
    ],
    ids=["nowhere", "a node", "all nodes", "empty values of old versions", "an empty selector"],
)
def test_where_slices_and_devices_belong(where: Json, selection: NodeSelection) -> None:
    assert read_slice(raw_slice({"name": "a"}, **({"nodeName": None} | where))).selection == selection
    assert (read_device(**where).traits.selection or NodeSelection()) == selection


def test_a_slice_that_leaves_the_nodes_to_its_devices_has_no_selection() -> None:
    assert read_slice(raw_slice({"name": "a"}, nodeName=None, perDeviceNodeSelection=True)).selection is None


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (None, "metadata.name"),
        ([], "object"),
        ({"metadata": {"name": "s"}}, "spec.driver"),
        (raw_slice({}), "spec.devices[0].name"),
        (raw_slice({"name": "a", "attributes": []}), "spec.devices[0].attributes"),
        (raw_slice({"name": "a", "attributes": {"x": "1"}}), "spec.devices[0].attributes[x]"),
        (raw_slice({"name": "a", "attributes": {"x": {"int": "1"}}}), "spec.devices[0].attributes[x].int"),
        (raw_slice({"name": "a", "attributes": {"x": {"int": True}}}), "spec.devices[0].attributes[x].int"),
        (raw_slice({"name": "a", "attributes": {"x": {"int": 2**63}}}), "spec.devices[0].attributes[x].int"),
        (raw_slice({"name": "a", "attributes": {"x": {"bool": 1}}}), "spec.devices[0].attributes[x].bool"),
        (raw_slice({"name": "a", "attributes": {"x": {"version": 1}}}), "spec.devices[0].attributes[x].version"),
        (raw_slice({"name": "a", "attributes": {"x": {"ints": 0}}}), "spec.devices[0].attributes[x].ints"),
        (raw_slice({"name": "a", "attributes": {"x": {"ints": [1, "2"]}}}), "spec.devices[0].attributes[x].ints[1]"),
        (raw_slice({"name": "a", "capacity": {"m": "1"}}), "spec.devices[0].capacity[m]"),
        (raw_slice({"name": "a", "capacity": {"m": {}}}), "spec.devices[0].capacity[m].value"),
        (raw_slice({"name": "a", "capacity": {"m": {"value": "10XB"}}}), "spec.devices[0].capacity[m].value"),
        (raw_slice({"name": "a"}, allNodes=True), "spec"),
        (raw_slice({"name": "a"}, devices={}), "spec.devices"),
        (raw_slice({"name": "a"}, devices=[{"name": "a"}, None]), "spec.devices[1].name"),
    ],
)
def test_a_malformed_slice_is_a_problem_that_names_the_field(raw: object, path: str) -> None:
    read = parse_slice(raw)
    assert isinstance(read, Problem)
    assert read.path == path


@pytest.mark.parametrize(
    "value",
    [{}, {"ints": []}, {"version": "1.0"}, {"versions": ["1.0.0", "x"]}, {"int": 1, "bool": True}, {"float": 1}],
    ids=str,
)
def test_an_attribute_that_cannot_be_used_is_kept_as_invalid(value: Json) -> None:
    assert dict(read_device(attributes={"x": value}).attributes)["x"].kind == "invalid"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"int": -(2**63)}, Attribute("int", -(2**63))),
        ({"int": 0}, Attribute("int", 0)),
        ({"bool": False}, Attribute("bool", value=False)),
        ({"string": ""}, Attribute("string", "")),
        ({"string": "x", "int": None}, Attribute("string", "x")),
        ({"bools": [True]}, Attribute("bools", (True,))),
        ({"versions": ["1.0.0"], "strings": []}, Attribute("versions", ("1.0.0",))),
    ],
    ids=str,
)
def test_an_attribute_has_the_one_value_that_is_set(value: Json, read: Attribute) -> None:
    assert dict(read_device(attributes={"x": value}).attributes) == {"x": read}


def test_values_that_python_holds_for_equal_stay_apart() -> None:
    values: Json = {"a": {"int": 1}, "b": {"bool": True}, "c": {"string": "1.0.0"}, "d": {"version": "1.0.0"}}
    for order in (values, dict(reversed(values.items()))):
        read = dict(read_device(attributes=order).attributes)
        assert [attribute.kind for attribute in read.values()] == ["int", "bool", "string", "version"]
        assert [type(attribute.value) for attribute in read.values()] == [int, bool, str, str]


def test_attributes_and_capacities_are_sorted_by_name() -> None:
    device = read_device(
        attributes={"b": {"int": 1}, "a": {"int": 2}}, capacity={"b": {"value": "1"}, "a": {"value": "2"}}
    )
    assert [name for name, _ in device.attributes] == ["a", "b"]
    assert [name for name, _ in device.capacity] == ["a", "b"]


def test_a_capacity_keeps_how_it_is_written() -> None:
    written = ["1Gi", "1024Mi", "1073741824"]
    read = [read_device(capacity={"m": {"value": text}}).capacity[0][1].value for text in written]
    assert len({quantity.nanos for quantity in read}) == 1
    assert [quantity.format for quantity in read] == ["BinarySI", "BinarySI", "DecimalSI"]


def test_a_counter_keeps_how_it_is_written_whatever_was_read_before() -> None:
    written = ["1Gi", "1073741824", "1048576Ki"]
    consumed = [[{"counterSet": "c", "counters": {"m": {"value": text}}}] for text in written]
    read = [read_device(consumesCounters=item).traits.consumes_counters[0] for item in consumed]
    assert len(set(read)) == 1
    assert [item.counters[0].value.spelling for item in read] == [parse_quantity(text).spelling for text in written]


def test_devices_share_what_they_have_alike() -> None:
    body = {"attributes": {"model": {"string": "A"}, "numa": {"int": 1}}, "capacity": {"memory": {"value": "40Gi"}}}
    first, second = (read_device(**deepcopy(body)) for _ in range(2))
    odd, even = (read_device(taints=[{"key": "sick", "effect": "NoSchedule"}]) for _ in range(2))
    assert odd.traits is even.traits
    assert all(mine is theirs for mine, theirs in zip(first.attributes, second.attributes, strict=True))
    assert first.capacity is second.capacity
    assert first.traits is second.traits is PLAIN


def test_devices_share_capacities_with_policies_that_are_written_alike() -> None:
    def capacity(default: str) -> Json:
        return {"m": {"value": "4", "requestPolicy": {"default": default}}}

    first, second, other = (read_device(capacity=capacity(default)).capacity for default in ("1", "1", "1000m"))
    assert first is second
    assert first == other
    assert str(first) != str(other)


def test_a_name_that_many_have_is_kept_once() -> None:
    # Decoded twice, for equal strings of one module are the same to begin with.
    text = json.dumps(raw_slice({"name": "gpu-0", "attributes": {"x": {"int": None, "bool": True}}}))
    first, second = (read_slice(json.loads(text)) for _ in range(2))
    assert first.pool is second.pool
    assert first.driver is second.driver
    assert first.selection is not None
    assert second.selection is not None
    assert first.selection.node_name is second.selection.node_name
    assert first.devices[0].name is second.devices[0].name
    assert first.devices[0].attributes[0][0] is second.devices[0].attributes[0][0]


def test_names_of_what_is_gone_are_forgotten() -> None:
    tracemalloc.start()
    read_slice(raw_slice({}, devices=[{"name": f"device-{number:032}"} for number in range(20_000)]))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_500_000


@pytest.mark.parametrize(
    ("device", "field"),
    [
        ({"newThing": 1}, "newThing"),
        ({"capacity": {"m": {"value": "1", "newThing": 1}}}, "capacity[m].newThing"),
        (
            {"capacity": {"m": {"value": "1", "requestPolicy": {"validRange": {"newThing": 1}}}}},
            "capacity[m].requestPolicy.validRange.newThing",
        ),
        ({"consumesCounters": [{"counterSet": "c", "newThing": 1}]}, "consumesCounters.newThing"),
        (
            {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1", "newThing": 1}}}]},
            "consumesCounters.counters[m].newThing",
        ),
        ({"taints": [{"key": "k", "newThing": 1}]}, "taints.newThing"),
        ({"nodeSelector": SELECTOR | {"newThing": 1}}, "nodeSelector.newThing"),
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"newThing": 1}]}},
            "nodeSelector.nodeSelectorTerms.newThing",
        ),
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"newThing": 1}]}]}},
            "nodeSelector.nodeSelectorTerms.matchFields.newThing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unknown_field_of_a_device_is_remembered(device: Json, field: str) -> None:
    assert read_device(**device).traits.unknown_fields == (field,)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"newThing": 1}, "newThing"),
        ({"pool": {"name": "p", "newThing": 1}}, "pool.newThing"),
        ({"sharedCounters": [{"name": "c", "newThing": 1}]}, "sharedCounters.newThing"),
        (
            {"sharedCounters": [{"name": "c", "counters": {"m": {"value": "1", "newThing": 1}}}]},
            "sharedCounters.counters[m].newThing",
        ),
        ({"nodeName": None, "nodeSelector": {"newThing": 1}}, "nodeSelector.newThing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unknown_field_of_a_slice_is_remembered(spec: Json, field: str) -> None:
    assert read_slice(raw_slice({"name": "a"}, **spec)).unknown_fields == (field,)


def test_one_bad_slice_of_a_list_leaves_the_others_readable() -> None:
    items = [SLICE, {"metadata": {"name": "bad"}}, SLICE]
    read = list(parse_list({"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": items}))
    assert [type(item) for item in read] == [ResourceSlice, Problem, ResourceSlice]
