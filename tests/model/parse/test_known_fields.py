"""No field that the API has passes for an unknown one, and each has its place in the noun."""

import json
from typing import Any

import pytest

from extender.model.claim import Consumer
from extender.model.device import Attribute, NodeSelection, ResourceSlice
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.parse import (
    parse_claim,
    parse_class,
    parse_node,
    parse_pod,
    parse_rule,
    parse_slice,
)
from extender.model.problem import Problem
from extender.model.quantity import Quantity
from extender.model.taint import Taint, Toleration
from tests.model.parse.exemplars import CLAIM, NODE, POD, SELECTOR, SLICE
from tests.model.parse.reading import changed, fault, read_claim

Json = dict[str, Any]
DEVICE = ("spec", "devices", 0)
EXACTLY = ("spec", "devices", "requests", 0, "exactly")
TAINT = {"key": "sick", "value": "very", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
TERM = NodeSelectorTerm(
    expressions=(Requirement(key="zone", operator="In", values=("a",)),),
    fields=(Requirement(key="metadata.name", operator="In", values=("n1",)),),
)


def read_slice(raw: object) -> ResourceSlice:
    read = parse_slice(raw)
    assert isinstance(read, ResourceSlice), read
    return read


@pytest.mark.parametrize(
    ("parse", "kind"),
    [
        (parse_slice, "ResourceSlice"),
        (parse_class, "DeviceClass"),
        (parse_claim, "ResourceClaim"),
        (parse_rule, "DeviceTaintRule"),
        (parse_node, "Node"),
        (parse_pod, "Pod"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_problem_names_the_kind_that_was_to_be_read(parse: Any, kind: str) -> None:
    read = parse({"metadata": {"namespace": "ns", "name": 1}})
    assert isinstance(read, Problem)
    assert (read.kind, read.key.namespace, read.path) == (kind, "ns", "metadata.name")


def test_v1_is_read_unless_another_version_is_named() -> None:
    flat = changed(CLAIM, "spec", "devices", "requests", value=[{"name": "r", "deviceClassName": "gpu"}])
    assert read_claim(flat).spec.requests[0].unknown_fields == ("deviceClassName",)
    assert parse_claim(flat) == parse_claim(flat, "v1") != parse_claim(flat, "v1beta1")
    assert read_slice(SLICE) == parse_slice(SLICE, "v1") != parse_slice(SLICE, "v1beta1")


def test_a_consumer_has_its_group() -> None:
    entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    claim = read_claim(changed(CLAIM, "status", "reservedFor", value=[entry]))
    assert claim.reserved_for == (
        Consumer(api_group="scheduling.k8s.io", resource="podgroups", name="g", uid=Uid("u")),
    )


def test_what_is_not_known_of_a_consumer_is_kept() -> None:
    entry = {"resource": "pods", "name": "p", "uid": "u", "since": {"node": "n1"}}
    (consumer,) = read_claim(changed(CLAIM, "status", "reservedFor", value=[entry])).reserved_for
    assert consumer.more == (("since", {"node": "n1"}),)


def test_an_empty_share_is_none() -> None:
    claim = read_claim(changed(CLAIM, "status", "devices", 0, "shareID", value=""))
    assert claim.device_conditions[0].share_id is None


def test_a_toleration_has_its_value_and_none_of_its_fields_is_unknown() -> None:
    written = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0}
    request = read_claim(changed(CLAIM, *EXACTLY, "tolerations", value=[written])).spec.requests[0].exactly
    assert request is not None
    assert request.tolerations == (Toleration(key="k", operator="Equal", value="v", effect="NoExecute", seconds=0),)
    assert request.unknown_fields == ()


def test_a_device_that_is_cpu_or_memory_of_its_node_is_none_that_is_known() -> None:
    """Whoever gave it without having the node's own amounts counted would give these twice."""
    asked = {"cpu": {"capacityKey": "dra.example.com/cpu"}}
    (device,) = read_slice(changed(SLICE, *DEVICE, "nodeAllocatableResources", value=asked)).devices
    assert device.traits.unknown_fields == ("nodeAllocatableResources",)


def test_no_field_of_a_device_is_unknown() -> None:
    where = {"nodeName": None, "nodeSelector": SELECTOR, "allNodes": False}
    body = {"consumesCounters": SLICE["spec"]["devices"][0]["consumesCounters"], "taints": [TAINT]}
    raw = changed(SLICE, *DEVICE, value=SLICE["spec"]["devices"][0] | where | body)
    (device,) = read_slice(changed(raw, "spec", "nodeName", value=None)).devices
    assert device.traits.unknown_fields == ()
    assert device.traits.taints == (Taint(key="sick", value="very", effect="NoExecute"),)
    assert device.traits.selection == NodeSelection(selector=NodeSelector((TERM,)))


@pytest.mark.parametrize("where", [{"nodeName": "n2"}, {"allNodes": True}], ids=str)
def test_where_a_device_belongs_is_no_unknown_field(where: Json) -> None:
    (device,) = read_slice(changed(SLICE, *DEVICE, value={"name": "a"} | where)).devices
    assert device.traits.unknown_fields == ()


def test_a_container_that_restarts_is_no_sidecar_unless_it_is_an_init_container() -> None:
    pod = parse_pod(changed(POD, "spec", "containers", 0, "restartPolicy", value="Always"))
    assert not isinstance(pod, Problem)
    assert [container.is_sidecar for container in pod.containers] == [True, False, False]


@pytest.mark.parametrize("raw", [None, 1, {}, {"metadata": "x"}], ids=str)
def test_a_problem_of_an_object_without_a_name_names_none(raw: object) -> None:
    read = parse_node(raw)
    assert isinstance(read, Problem)
    assert read.key == ObjectKey("", "")


@pytest.mark.parametrize(
    ("where", "selection"),
    [
        ({"nodeName": "n2"}, NodeSelection(node_name=NodeName("n2"))),
        ({"nodeSelector": SELECTOR}, NodeSelection(selector=NodeSelector((TERM,)))),
        ({"allNodes": True}, NodeSelection(all_nodes=True)),
        ({"perDeviceNodeSelection": True}, None),
    ],
    ids=["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"],
)
def test_no_field_of_a_slice_is_unknown(where: Json, selection: NodeSelection | None) -> None:
    counters = [{"name": "c", "counters": {"m": {"value": "1"}}}]
    spec = {"nodeName": None, "sharedCounters": counters, "partitionTypeAttribute": "x"} | where
    read = read_slice(changed(SLICE, "spec", value=SLICE["spec"] | spec))
    assert read.unknown_fields == ()
    assert read.selection == selection
    assert [(item.name, len(item.counters)) for item in read.shared_counters] == [("c", 1)]


@pytest.mark.parametrize(
    ("fields", "unknown"),
    [
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"newThing": 1}]}]}},
            "nodeSelector.nodeSelectorTerms.matchExpressions.newThing",
        ),
        ({"capacity": {"m": {"value": "1", "requestPolicy": {"newThing": 1}}}}, "capacity[m].requestPolicy.newThing"),
    ],
    ids=["an expression", "a policy"],
)
def test_an_unknown_field_within_a_device_is_named_by_its_path(fields: Json, unknown: str) -> None:
    (device,) = read_slice(changed(SLICE, *DEVICE, value={"name": "a"} | fields)).devices
    assert device.traits.unknown_fields == (unknown,)


@pytest.mark.parametrize("count", [2**63, -(2**63) - 1])
def test_an_integer_beyond_64_bits_is_a_problem(count: int) -> None:
    assert fault(changed(CLAIM, *EXACTLY, "count", value=count)) == (
        "ResourceClaim: spec.devices.requests[0].exactly.count: does not fit into 64 bits"
    )


def test_the_largest_integer_of_64_bits_is_none() -> None:
    at_the_edge = read_claim(changed(CLAIM, *EXACTLY, "count", value=2**63 - 1))
    assert at_the_edge.spec.requests[0].exactly is not None


def test_a_range_without_a_minimum_begins_at_zero() -> None:
    amount = {"value": "4", "requestPolicy": {"validRange": {"max": "2"}}}
    (device,) = read_slice(changed(SLICE, *DEVICE, "capacity", value={"m": amount})).devices
    policy = device.capacity[0][1].policy
    assert policy is not None
    assert policy.valid_range is not None
    assert policy.valid_range.minimum == Quantity(0)
    assert (policy.default, policy.valid_values, policy.valid_range.step) == (None, (), None)


UNPARSED = "'v1' is not a semantic version: it needs major, minor and patch"


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ({"strings": ["b", "a"]}, Attribute("strings", ("b", "a"))),
        ({"ints": [2, 1]}, Attribute("ints", (2, 1))),
        ({"bools": [False]}, Attribute("bools", (False,))),
        ({}, Attribute("invalid", "unsupported attribute value")),
        ({"strings": []}, Attribute("invalid", "unsupported attribute value")),
        ({"int": 1, "strings": ["a"]}, Attribute("invalid", "more than one value")),
        ({"int": 1, "float": 1}, Attribute("invalid", "a value of a kind that is not known here")),
        ({"version": "v1"}, Attribute("invalid", (f"version 'v1': {UNPARSED}", "version", "v1"))),
        ({"versions": ["1.0.0", "v1"]}, Attribute("invalid", (f"version 'v1': {UNPARSED}", "versions", "1.0.0", "v1"))),
    ],
    ids=str,
)
def test_an_attribute_is_read_with_its_kind_or_says_why_it_has_none(value: Json, attribute: Attribute) -> None:
    (device,) = read_slice(changed(SLICE, *DEVICE, "attributes", value={"x": value})).devices
    assert device.attributes == (("x", attribute),)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"string": 1}, "string: is no string"),
        ({"strings": ["a", 1]}, "strings[1]: is no string"),
        ({"bools": [1]}, "bools[0]: is neither true nor false"),
        ({"versions": [None]}, "versions[0]: is no string"),
    ],
    ids=str,
)
def test_an_attribute_of_the_wrong_type_is_a_problem(value: Json, problem: str) -> None:
    raw = changed(SLICE, *DEVICE, "attributes", value={"x": value})
    assert fault(raw) == f"ResourceSlice: spec.devices[0].attributes[x].{problem}"


@pytest.mark.parametrize("values", [("a", "b"), (1, 2), (False, True), ("1.0.0", "2.0.0")], ids=str)
def test_a_name_is_kept_once_whatever_stands_under_it(values: tuple[object, object]) -> None:
    kind = "version" if values[0] == "1.0.0" else {str: "string", int: "int", bool: "bool"}[type(values[0])]
    read = [
        # Decoded twice, for equal strings of one module are the same to begin with.
        read_slice(json.loads(json.dumps(changed(SLICE, *DEVICE, "attributes", value={"a name": {kind: value}}))))
        for value in values
    ]
    first, second = (item.devices[0].attributes[0] for item in read)
    assert first != second
    assert first[0] is second[0]


def test_the_name_of_a_capacity_with_a_policy_is_kept_once() -> None:
    first, second = (
        read_slice(json.loads(json.dumps(changed(SLICE, *DEVICE, "capacity", "memory", "value", value=value))))
        for value in ("1Gi", "2Gi")
    )
    assert first.devices[0].capacity != second.devices[0].capacity
    assert first.devices[0].capacity[0][0] is second.devices[0].capacity[0][0]


def test_entries_are_sorted_by_key() -> None:
    node = parse_node(changed(NODE, "status", "allocatable", value={"b": "1", "a": "2"}))
    assert not isinstance(node, Problem)
    assert [name for name, _ in node.allocatable] == ["a", "b"]
