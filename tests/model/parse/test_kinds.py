"""Claims, templates, classes, taint rules, nodes and pods: everything that is written there is in the noun."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from extender.model.claim import (
    AllocatedDevice,
    ClaimTemplate,
    Consumer,
    DerivedAttribute,
    DeviceClass,
    DeviceCondition,
    OwnerReference,
    ResourceClaim,
    Selector,
)
from extender.model.device import ResourceSlice
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node, Pod, PodClaim, PodClaimStatus
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.parse import (
    key_of,
    parse_claim,
    parse_class,
    parse_list,
    parse_node,
    parse_object,
    parse_pod,
    parse_rule,
    parse_template,
)
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, Toleration
from tests.model.parse.exemplars import CLAIM, CLASS, EVERY, EXACT, NODE, POD, RULE, SPEC, TEMPLATE

CASES = Path(__file__).parents[4] / "shared" / "data" / "conformance" / "allocator-1.37.jsonl"
SHARE = "11111111-2222-3333-4444-555555555555"
DEVICE = DeviceKey(DriverName("gpu.example.com"), PoolName("n1"), DeviceName("gpu-0"))
TOLERATION = Toleration(key="sick", operator="Exists", effect="NoSchedule", seconds=30)


def read_claim(raw: dict[str, Any], version: str = "v1") -> ResourceClaim:
    read = parse_claim(raw, version)
    assert isinstance(read, ResourceClaim), read
    return read


def test_a_claim_has_everything_that_its_requests_say() -> None:
    spec = read_claim(CLAIM).spec
    exact, several = spec.requests
    assert exact.exactly is not None
    assert exact.exactly.class_name == "gpu"
    assert exact.exactly.selectors == (Selector("device.driver == 'gpu.example.com'"),)
    assert (exact.exactly.mode, exact.exactly.count, exact.exactly.admin_access) == ("ExactCount", 2, False)
    assert exact.exactly.tolerations == (TOLERATION,)
    assert exact.exactly.capacity == (("memory", parse_quantity("10Gi")),)
    assert exact.exactly.derived_attributes == (DerivedAttribute("example.com/place", "'here'"),)
    assert [request.name for request in several.first_available] == ["small"]
    assert several.first_available[0].admin_access is None
    match, distinct = spec.constraints
    assert (match.requests, match.match_attribute, match.distinct_attribute) == (("gpus",), "example.com/numa", None)
    assert (distinct.requests, distinct.distinct_attribute) == ((), "example.com/root")
    assert spec.config[0].requests == ("gpus",)
    assert spec.config[0].opaque is not None
    assert spec.config[0].opaque["parameters"] == {"kind": "Config", "mode": 1}
    assert spec.unknown_fields == ()


def test_a_claim_has_everything_about_its_allocation() -> None:
    claim = read_claim(CLAIM)
    assert claim.allocation is not None
    assert claim.allocation.devices == (
        AllocatedDevice(
            request="gpus",
            device=DEVICE,
            admin_access=True,
            tolerations=(TOLERATION,),
            binding_conditions=("Ready",),
            binding_failure_conditions=("Failed",),
            share_id=SHARE,
            consumed_capacity=(("memory", parse_quantity("10Gi")),),
            skip_node_operations=("Prepare",),
        ),
    )
    requirement = Requirement(key="metadata.name", operator="In", values=("n1",))
    zone = Requirement(key="zone", operator="In", values=("a",))
    assert claim.allocation.node_selector == NodeSelector(
        (NodeSelectorTerm(expressions=(zone,), fields=(requirement,)),)
    )
    assert claim.allocation.config[0].source == "FromClass"
    assert claim.allocation.timestamp == "2026-01-01T00:00:00Z"
    assert claim.reserved_for == (Consumer(resource="pods", name="p", uid=Uid("p1")),)
    assert claim.device_conditions == (DeviceCondition(device=DEVICE, share_id=SHARE, type="Ready", status="True"),)


def test_a_claim_has_its_metadata() -> None:
    claim = read_claim(CLAIM)
    assert (claim.key, claim.uid, claim.resource_version) == (ObjectKey("ml", "claim"), "u1", "7")
    assert claim.annotations == (("resource.kubernetes.io/pod-claim-name", "gpus"),)
    assert claim.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert claim.is_deleting
    assert not claim.is_classic
    assert claim.owners == (OwnerReference(kind="Pod", name="p", uid=Uid("p1"), is_controller=True),)


def flat(raw: dict[str, Any]) -> dict[str, Any]:
    """Write a claim as v1beta1 does: the fields of an exact request stand beside its name."""
    changed = deepcopy(raw)
    requests = changed["spec"]["devices"]["requests"]
    changed["spec"]["devices"]["requests"] = [
        {key: value for key, value in request.items() if key != "exactly"} | request.get("exactly", {})
        for request in requests
    ]
    return changed


@pytest.mark.parametrize(("version", "raw"), [("v1beta2", CLAIM), ("v1beta1", flat(CLAIM)), ("v1alpha3", flat(CLAIM))])
def test_every_version_of_a_claim_reads_as_the_same_noun(version: str, raw: dict[str, Any]) -> None:
    assert read_claim(raw, version) == read_claim(CLAIM)


def test_a_claim_that_names_a_controller_is_classic() -> None:
    assert read_claim(CLAIM | {"spec": SPEC | {"controller": "old"}}, "v1alpha3").is_classic


def test_a_template_has_the_spec_of_its_claims() -> None:
    read = parse_template(TEMPLATE)
    assert isinstance(read, ClaimTemplate)
    assert read.spec == read_claim(CLAIM).spec
    assert read.key == ObjectKey("ml", "template")


@pytest.mark.parametrize(
    ("exact", "capacity", "admin"),
    [
        ({}, None, None),
        ({"capacity": None, "adminAccess": None}, None, None),
        ({"capacity": {}, "adminAccess": False}, (), False),
        ({"capacity": {"requests": {}}, "adminAccess": True}, (), True),
    ],
    ids=["absent", "null", "empty", "set"],
)
def test_absent_is_not_empty(exact: dict[str, Any], capacity: object, admin: object) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"} | exact}]}}
    request = read_claim(CLAIM | {"spec": spec}).spec.requests[0].exactly
    assert request is not None
    assert request.capacity == capacity
    assert request.admin_access is admin


def test_what_the_allocator_has_to_judge_reaches_it() -> None:
    requests: list[dict[str, Any]] = [
        {"name": "r", "exactly": {"allocationMode": "Some", "selectors": [{}]}},
        {"name": "r"},
    ]
    spec = {"devices": {"requests": requests, "constraints": [{}]}}
    read = read_claim(CLAIM | {"spec": spec}).spec
    first, second = read.requests
    assert first.exactly is not None
    assert (first.exactly.class_name, first.exactly.mode, first.exactly.selectors) == ("", "Some", (Selector(None),))
    assert second.exactly is None
    assert read.constraints[0].match_attribute is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("devices", "requests", 0), "newThing"),
        (("devices", "requests", 0, "exactly"), "newThing"),
        (("devices", "requests", 0, "exactly", "capacity"), "capacity.newThing"),
        (("devices", "requests", 1, "firstAvailable", 0), "newThing"),
        (("devices", "constraints", 0), "newThing"),
        (("devices",), "devices.newThing"),
        ((), "newThing"),
    ],
    ids=str,
)
def test_an_unknown_field_is_remembered_where_it_stands(path: tuple[Any, ...], found: str) -> None:
    raw = deepcopy(CLAIM)
    place: Any = raw["spec"]
    for step in path:
        place = place[step]
    place["newThing"] = 1
    assert repr(read_claim(raw)).count(f"unknown_fields=('{found}',)") == 1


def test_admin_access_is_no_field_of_an_alternative() -> None:
    requests = [{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu", "adminAccess": True}]}]
    read = read_claim(CLAIM | {"spec": {"devices": {"requests": requests}}})
    assert read.spec.requests[0].first_available[0].unknown_fields == ("adminAccess",)


def test_a_class_has_everything() -> None:
    read = parse_class(CLASS)
    assert isinstance(read, DeviceClass)
    assert (read.name, read.extended_resource, read.created) == ("gpu", "example.com/gpu", "2026-01-01T00:00:00Z")
    assert read.selectors == (Selector("device.driver == 'gpu.example.com'"),)
    assert len(read.config) == 1
    assert read.unknown_fields == ()


def test_a_taint_rule_has_everything() -> None:
    read = parse_rule(RULE)
    selector = TaintSelector(driver=DriverName("gpu.example.com"), pool=PoolName("n1"), device=DeviceName("gpu-0"))
    taint = Taint(key="sick", value="very", effect="NoExecute")
    assert read == DeviceTaintRule(name="sick", selector=selector, taint=taint)


@pytest.mark.parametrize(
    ("selector", "read"),
    [
        (None, None),
        ({}, TaintSelector()),
        (
            {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}, {}]},
            TaintSelector(class_name=ClassName("gpu"), expressions=("true", None)),
        ),
    ],
    ids=["absent", "empty", "v1alpha3"],
)
def test_the_selector_of_a_taint_rule(selector: object, read: object) -> None:
    rule = parse_rule({"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": {"key": "k"}}})
    assert isinstance(rule, DeviceTaintRule)
    assert rule.selector == read


def test_a_node_has_everything() -> None:
    read = parse_node(NODE)
    assert read == Node(
        name=NodeName("n1"),
        labels=(("zone", "a"),),
        allocatable=(("cpu", parse_quantity("8")), ("memory", parse_quantity("32Gi"))),
        declared_features=("DRAOptionalNodeOperations",),
        annotations=(("x", "y"),),
        is_unschedulable=True,
    )


def test_a_pod_has_everything() -> None:
    read = parse_pod(POD)
    assert isinstance(read, Pod)
    assert (read.key, read.uid, read.node_name, read.nominated_node) == (ObjectKey("ml", "pod"), "p1", "n1", "n2")
    assert (read.scheduler, read.phase, read.priority) == ("default-scheduler", "Pending", 100)
    assert read.claims == (
        PodClaim(name="gpus", template_name="template"),
        PodClaim(name="shared", claim_name="claim"),
    )
    assert read.claim_statuses == (
        PodClaimStatus(name="gpus", claim_name="pod-gpus-x"),
        PodClaimStatus(name="none"),
    )
    assert read.extended_claim == "pod-extended"
    assert (read.scheduling_group, read.scheduling_gates) == ("group", ("wait",))
    assert [(item.name, item.is_init, item.is_sidecar) for item in read.containers] == [
        ("side", True, True),
        ("init", True, False),
        ("main", False, False),
    ]
    assert read.containers[2].requests == (("cpu", parse_quantity("500m")),)
    assert read.containers[2].claims == ("gpus",)
    assert read.owners == (OwnerReference(kind="ReplicaSet", name="r", uid=Uid("r1"), api_group="apps"),)


def without(raw: dict[str, Any], *path: Any, value: object) -> dict[str, Any]:
    changed = deepcopy(raw)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("raw", "path", "value", "problem"),
    [
        (CLAIM, ("metadata", "name"), "", "metadata.name: is required"),
        (CLAIM, ("spec",), [], "spec: is no JSON object"),
        (CLAIM, ("spec", "devices", "requests"), {}, "spec.devices.requests: is no list"),
        (
            CLAIM,
            ("spec", "devices", "requests", 0, "exactly", "count"),
            "2",
            "spec.devices.requests[0].exactly.count: is no integer",
        ),
        (
            CLAIM,
            ("spec", "devices", "requests", 1, "firstAvailable", 0, "capacity", "requests", "memory"),
            "ten",
            "spec.devices.requests[1].firstAvailable[0].capacity.requests[memory]: ",
        ),
        (
            CLAIM,
            ("status", "allocation", "devices", "results", 0, "device"),
            None,
            "status.allocation.devices.results[0].device: is required",
        ),
        (CLASS, ("spec", "selectors", 0, "cel", "expression"), 1, "spec.selectors[0].cel.expression: is no string"),
        (RULE, ("spec", "deviceSelector", "color"), "red", "spec.deviceSelector.color: is a field that is not known"),
        (NODE, ("metadata", "labels"), {"a": 1}, "metadata.labels[a]: is no string"),
        (POD, ("spec", "priority"), 1.5, "spec.priority: is no integer"),
        (POD, ("spec", "resourceClaims", 0, "name"), "", "spec.resourceClaims[0].name: is required"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_object_is_a_problem_that_names_the_field(
    raw: dict[str, Any], path: tuple[Any, ...], value: object, problem: str
) -> None:
    read = parse_object(without(raw, *path, value=value))
    assert isinstance(read, Problem)
    assert f"{read.path}: {read.message}".startswith(problem)
    assert read.kind == raw["kind"]


def test_a_list_of_many_kinds_is_read_by_their_own() -> None:
    items = [*EVERY.values(), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, {"metadata": None}]
    read = list(parse_list({"apiVersion": "v1", "kind": "List", "items": items}))
    kinds = [ResourceSlice, ResourceClaim, ClaimTemplate, DeviceClass, DeviceTaintRule, Node, Pod]
    assert [type(item) for item in read[:-2]] == kinds
    assert [type(item) for item in read[-2:]] == [Problem, Problem]
    named = [key_of(item) for item in read if not isinstance(item, Problem)]
    assert [key.name for key in named] == ["slice", "claim", "template", "gpu", "sick", "n1", "pod"]


@pytest.mark.skipif(not CASES.exists(), reason="the recorded conformance cases are not here")
@pytest.mark.parametrize(("name", "parse"), [("claims", parse_claim), ("classes", parse_class)])
def test_every_object_of_the_recorded_cases_can_be_read(name: str, parse: Any) -> None:
    raws = [raw for line in CASES.read_text().splitlines() for raw in json.loads(line)[name] or ()]
    assert raws
    assert [read for raw in raws if isinstance(read := parse(raw), Problem)] == []


def test_the_exemplar_leaves_no_field_of_a_request_unknown() -> None:
    assert set(EXACT) == {
        "deviceClassName",
        "selectors",
        "allocationMode",
        "count",
        "adminAccess",
        "tolerations",
        "capacity",
        "derivedAttributes",
    }
