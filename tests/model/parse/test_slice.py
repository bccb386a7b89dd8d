import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.device import Attribute, NodeSelection, ResourceSlice
from extender.model.names import NodeName
from extender.model.parse import parse_list, parse_object, parse_slice
from extender.model.problem import Problem

CASES = Path(__file__).parents[4] / "shared" / "data" / "conformance" / "allocator-1.37.jsonl"
BODY: dict[str, Any] = {
    "attributes": {"model": {"string": "H100"}, "numa": {"int": 1}, "driverVersion": {"version": "550.1.0"}},
    "taints": [{"key": "broken", "effect": "NoSchedule"}],
    "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "10Gi"}}}],
}


def raw_slice(device: dict[str, Any], **spec: object) -> dict[str, Any]:
    pool = {"name": "n1", "generation": 3, "resourceSliceCount": 1}
    base: dict[str, Any] = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": [device]}
    return {"metadata": {"name": "slice-1", "uid": "u1"}, "spec": base | spec}


def in_version(version: str) -> dict[str, Any]:
    capacity: object = "80Gi" if version == "v1alpha3" else {"value": "80Gi"}
    body = BODY | {"capacity": {"memory": capacity}}
    if version in ("v1beta1", "v1alpha3"):
        return raw_slice({"name": "gpu-0", "basic": body}, allNodes=False)
    return raw_slice({"name": "gpu-0"} | body)


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1", "v1alpha3"])
def test_every_version_of_a_slice_reads_as_the_same_noun(version: str) -> None:
    read = parse_slice(in_version("v1"))
    assert isinstance(read, ResourceSlice)
    assert parse_slice(in_version(version), version) == read


def test_node_name_becomes_the_selection() -> None:
    read = parse_slice(in_version("v1"))
    assert isinstance(read, ResourceSlice)
    assert read.selection == NodeSelection(node_name=NodeName("n1"))


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (None, "metadata.name"),
        ([], "object"),
        ({"metadata": {"name": "s"}}, "spec.driver"),
        (raw_slice({}), "spec.devices[0].name"),
        (raw_slice({"name": "a", "attributes": {"x": {"int": "1"}}}), "spec.devices[0].attributes[x].int"),
        (raw_slice({"name": "a", "attributes": {"x": {"int": 2**63}}}), "spec.devices[0].attributes[x].int"),
        (raw_slice({"name": "a", "capacity": {"m": {"value": "10XB"}}}), "spec.devices[0].capacity[m].value"),
        (raw_slice({"name": "a"}, allNodes=True), "spec"),
        (raw_slice({"name": "a"}, devices={}), "spec.devices"),
    ],
)
def test_a_malformed_slice_is_a_problem_that_names_the_field(raw: object, path: str) -> None:
    read = parse_slice(raw)
    assert isinstance(read, Problem)
    assert read.path == path


@pytest.mark.parametrize(
    "value",
    [{}, {"ints": []}, {"version": "1.0"}, {"versions": ["1.0.0", "x"]}, {"int": 1, "bool": True}, {"float": 1}],
)
def test_an_attribute_that_cannot_be_used_is_kept_as_invalid(value: dict[str, Any]) -> None:
    read = parse_slice(raw_slice({"name": "a", "attributes": {"x": value}}))
    assert isinstance(read, ResourceSlice)
    assert read.devices[0].attributes[0][1].kind == "invalid"


def test_true_and_one_stay_apart() -> None:
    read = parse_slice(raw_slice({"name": "a", "attributes": {"x": {"int": 1}, "y": {"bool": True}}}))
    assert isinstance(read, ResourceSlice)
    assert dict(read.devices[0].attributes) == {"x": Attribute("int", 1), "y": Attribute("bool", value=True)}
    assert read.devices[0].attributes[0][1].value is not True


@pytest.mark.parametrize(
    ("device", "field"),
    [
        ({"name": "a", "newThing": 1}, "newThing"),
        ({"name": "a", "capacity": {"m": {"value": "1", "newThing": 1}}}, "capacity[m].newThing"),
        ({"name": "a", "consumesCounters": [{"counterSet": "c", "newThing": 1}]}, "consumesCounters.newThing"),
    ],
)
def test_an_unknown_field_of_a_device_is_remembered(device: dict[str, Any], field: str) -> None:
    read = parse_slice(raw_slice(device))
    assert isinstance(read, ResourceSlice)
    assert read.devices[0].traits.unknown_fields == (field,)


def test_one_bad_slice_of_a_list_leaves_the_others_readable() -> None:
    items = [in_version("v1"), {"metadata": {"name": "bad"}}, in_version("v1")]
    read = list(parse_list({"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": items}))
    assert [type(item) for item in read] == [ResourceSlice, Problem, ResourceSlice]


def test_a_version_that_is_not_served_is_named() -> None:
    read = parse_object(in_version("v1") | {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v9"})
    assert isinstance(read, Problem)
    assert read.path == "apiVersion"


@pytest.mark.skipif(not CASES.exists(), reason="the recorded conformance cases are not here")
def test_every_slice_of_the_recorded_cases_can_be_read() -> None:
    slices = [raw for line in CASES.read_text().splitlines() for raw in json.loads(line)["slices"]]
    assert slices
    assert [read for raw in slices if isinstance(read := parse_slice(raw), Problem)] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*sorted(BODY), "name", "x"]), inner),
    max_leaves=12,
)


@given(JSON, JSON, st.sampled_from(["v1", "v1beta1", "v1alpha3"]))
def test_no_json_value_raises(whole: object, device: object, version: str) -> None:
    for raw in (whole, {"metadata": {"name": "s"}, "spec": whole}, raw_slice({"name": "a"}, devices=[device])):
        assert isinstance(parse_slice(raw, version), ResourceSlice | Problem)
