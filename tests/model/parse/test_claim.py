"""ResourceClaims and their templates: everything that is written there is in the noun."""

from copy import deepcopy
from typing import Any

import orjson
import pytest

from extender.model.claim import (
    AllocatedDevice,
    ClaimTemplate,
    Consumer,
    DerivedAttribute,
    DeviceCondition,
    OwnerReference,
    Selector,
)
from extender.model.names import DeviceKey, DeviceName, DriverName, ObjectKey, PoolName, Uid
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.parse import nominators, parse_object
from extender.model.quantity import parse_quantity
from extender.model.taint import Toleration
from tests import fleet
from tests.model.parse.exemplars import CLAIM, EXACT, SPEC, TEMPLATE
from tests.model.parse.reading import changed, fault, read_claim

SHARE = "11111111-2222-3333-4444-555555555555"
DEVICE = DeviceKey(DriverName("gpu.example.com"), PoolName("n1"), DeviceName("gpu-0"))
TOLERATION = Toleration(key="sick", operator="Exists", effect="NoSchedule", seconds=30)
EXACTLY = ("spec", "devices", "requests", 0, "exactly")
RESULT = ("status", "allocation", "devices", "results", 0)


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
    assert "unknown_fields=('" not in repr(spec)


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


@pytest.mark.parametrize(
    ("status", "is_allocated"),
    [(None, False), ({}, False), ({"allocation": None}, False), ({"allocation": {}}, True)],
    ids=["absent", "empty", "null", "of nothing"],
)
def test_a_claim_is_allocated_once_its_allocation_is_there(status: object, *, is_allocated: bool) -> None:
    claim = read_claim(CLAIM | {"status": status})
    assert (claim.allocation is not None) is is_allocated


def test_a_claim_has_its_metadata() -> None:
    claim = read_claim(CLAIM)
    assert (claim.key, claim.uid, claim.resource_version) == (ObjectKey("ml", "claim"), "u1", "7")
    assert claim.annotations == (("resource.kubernetes.io/pod-claim-name", "gpus"),)
    assert claim.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert claim.is_deleting
    assert claim.owners == (OwnerReference(kind="Pod", uid=Uid("p1")),)


def test_a_template_has_the_spec_of_its_claims() -> None:
    read = parse_object(TEMPLATE)
    assert isinstance(read, ClaimTemplate)
    assert read.spec == read_claim(CLAIM).spec
    assert read.key == ObjectKey("ml", "template")


def test_a_template_has_the_annotations_of_its_claims_and_not_its_own() -> None:
    metadata = TEMPLATE["metadata"] | {"annotations": {"own": "x"}}
    made = TEMPLATE["spec"] | {"metadata": {"annotations": {"b": "2", "a": "1"}}}
    read = parse_object(TEMPLATE | {"metadata": metadata, "spec": made})
    assert isinstance(read, ClaimTemplate)
    assert read.annotations == (("a", "1"), ("b", "2"))


def test_of_more_capacities_than_a_device_can_have_as_many_are_kept_as_tell_that() -> None:
    asked = {f"c{number:04}": "1" for number in range(5000)}
    raw = CLAIM | {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"capacity": {"requests": asked}}}]}}}
    slot = read_claim(raw).spec.requests[0]
    assert slot.exactly is not None
    assert [name for name, _ in slot.exactly.capacity or ()] == [f"c{number:04}" for number in range(64)]


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
        ((), "newThing"),
        (("devices",), "devices.newThing"),
        (("devices", "config", 0), "devices.config.newThing"),
        (("devices", "constraints", 0), "newThing"),
        (("devices", "requests", 0), "newThing"),
        (("devices", "requests", 0, "exactly"), "newThing"),
        (("devices", "requests", 0, "exactly", "capacity"), "capacity.newThing"),
        (("devices", "requests", 0, "exactly", "selectors", 0), "selectors.newThing"),
        (("devices", "requests", 0, "exactly", "selectors", 0, "cel"), "selectors.cel.newThing"),
        (("devices", "requests", 0, "exactly", "tolerations", 0), "tolerations.newThing"),
        (("devices", "requests", 0, "exactly", "derivedAttributes", 0), "derivedAttributes.newThing"),
        (("devices", "requests", 1, "firstAvailable", 0), "newThing"),
        (("devices", "requests", 1, "firstAvailable", 0, "tolerations", 0), "tolerations.newThing"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_an_unknown_field_is_remembered_where_it_stands(path: tuple[Any, ...], found: str) -> None:
    raw = deepcopy(CLAIM)
    place: Any = raw["spec"]
    for step in path:
        place = place[step]
    place["newThing"] = 1
    assert repr(read_claim(raw)).count(f"unknown_fields=('{found}',)") == 1


@pytest.mark.parametrize("value", [None, 0, False, "", []], ids=repr)
def test_an_unknown_field_counts_whenever_it_is_not_null(value: object) -> None:
    read = read_claim(changed(CLAIM, *EXACTLY, "newThing", value=value)).spec.requests[0].exactly
    assert read is not None
    assert read.unknown_fields == (() if value is None else ("newThing",))


def test_admin_access_is_no_field_of_an_alternative() -> None:
    requests = [{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu", "adminAccess": True}]}]
    read = read_claim(CLAIM | {"spec": {"devices": {"requests": requests}}})
    assert read.spec.requests[0].first_available[0].unknown_fields == ("adminAccess",)


def test_the_exemplar_sets_every_field_of_a_request() -> None:
    request = read_claim(CLAIM).spec.requests[0].exactly
    assert request is not None
    unset = [name for name in request.__slots__ if getattr(request, name) in (None, "", 0, ())]
    # Compared by equality, false counts as 0.
    assert unset == ["admin_access", "unknown_fields"]
    assert len(EXACT) == len(request.__slots__) - 2


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("metadata", "name"), "", "metadata.name: is required"),
        (("metadata", "namespace"), 1, "metadata.namespace: is no string"),
        (("metadata", "ownerReferences", 0, "controller"), 1, "metadata.ownerReferences[0].controller: is neither"),
        (("spec",), [], "spec: is no JSON object"),
        (("spec", "devices", "requests"), {}, "spec.devices.requests: is no list"),
        (("spec", "devices", "requests", 1), "r", "spec.devices.requests[1]: is no JSON object"),
        ((*EXACTLY, "count"), "2", "spec.devices.requests[0].exactly.count: is no integer"),
        ((*EXACTLY, "count"), True, "spec.devices.requests[0].exactly.count: is no integer"),
        ((*EXACTLY, "count"), -3, "spec.devices.requests[0].exactly.count: is below 0"),
        ((*EXACTLY, "count"), 2**63, "spec.devices.requests[0].exactly.count: does not fit into 64 bits"),
        ((*EXACTLY, "adminAccess"), "no", "spec.devices.requests[0].exactly.adminAccess: is neither true nor false"),
        ((*EXACTLY, "capacity", "requests"), [], "spec.devices.requests[0].exactly.capacity.requests: is no JSON"),
        (
            ("spec", "devices", "requests", 1, "firstAvailable", 0, "capacity", "requests", "memory"),
            "ten",
            "spec.devices.requests[1].firstAvailable[0].capacity.requests[memory]: ",
        ),
        (
            (*EXACTLY, "tolerations", 0, "tolerationSeconds"),
            1.5,
            "spec.devices.requests[0].exactly.tolerations[0].tolerationSeconds: is no integer",
        ),
        (
            ("spec", "devices", "constraints", 0, "requests", 0),
            None,
            "spec.devices.constraints[0].requests[0]: is no string",
        ),
        ((*RESULT, "device"), None, "status.allocation.devices.results[0].device: is required"),
        ((*RESULT, "shareID"), 1, "status.allocation.devices.results[0].shareID: is no string"),
        (
            (*RESULT, "consumedCapacity", "memory"),
            None,
            "status.allocation.devices.results[0].consumedCapacity[memory]: is required",
        ),
        (
            ("status", "allocation", "nodeSelector", "nodeSelectorTerms"),
            {},
            "status.allocation.nodeSelector.nodeSelectorTerms: is no list",
        ),
        (("status", "reservedFor", 0, "uid"), 1, "status.reservedFor[0].uid: is no string"),
        (("status", "devices", 0, "pool"), None, "status.devices[0].pool: is required"),
        (("status", "devices", 0, "conditions", 0, "type"), 1, "status.devices[0].conditions[0].type: is no string"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_claim_is_a_problem_that_names_the_field(
    path: tuple[Any, ...], value: object, problem: str
) -> None:
    assert fault(changed(CLAIM, *path, value=value)).startswith(f"ResourceClaim: {problem}")


def test_a_template_names_the_field_within_its_inner_spec() -> None:
    spec = {"spec": changed({"spec": SPEC}, *EXACTLY, "count", value="2")["spec"]}
    assert fault(TEMPLATE | {"spec": spec}) == (
        "ResourceClaimTemplate: spec.spec.devices.requests[0].exactly.count: is no integer"
    )


def test_claims_of_one_template_on_one_node_share_all_that_is_alike() -> None:
    first, second = (read_claim(orjson.loads(orjson.dumps(raw))) for raw in fleet.claims(1)[:2])
    assert first.spec is second.spec
    assert first.allocation is not None
    assert second.allocation is not None
    assert first.allocation.node_selector is second.allocation.node_selector
    mine, other = first.allocation.devices[0].device, second.allocation.devices[0].device
    assert (mine.driver is other.driver, mine.pool is other.pool) == (True, True)
    assert first.owners[0].uid is first.reserved_for[0].uid


def test_a_claim_with_configuration_is_read_though_that_is_no_key() -> None:
    raw = fleet.claims(1)[0]
    raw["spec"]["devices"]["config"] = [{"opaque": {"driver": "d", "parameters": {"a": [1]}}}]
    assert [item.opaque for item in read_claim(raw).spec.config] == [{"driver": "d", "parameters": {"a": [1]}}]


def test_amounts_that_are_equal_keep_their_spelling() -> None:
    spelled = []
    for amount in ("1Gi", "1073741824"):
        raw = fleet.claims(1)[0]
        raw["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": amount}}
        (slot,) = read_claim(raw).spec.requests
        assert slot.exactly is not None
        assert slot.exactly.capacity is not None
        spelled.append(str(slot.exactly.capacity[0][1]))
    assert spelled == ["1Gi", "1073741824"]


def managed(manager: str, *fields: str) -> dict[str, Any]:
    status: dict[str, Any] = {f"f:{name}": {} for name in fields}
    return {"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": status}}


@pytest.mark.parametrize(
    ("kept", "writers"),
    [
        ([managed("a", "allocation", "reservedFor")], ("a",)),
        ([managed("a", "reservedFor"), managed("b", "allocation")], ("b",)),
        ([managed("a", "allocation"), managed("b", "allocation")], ("a", "b")),
        ([{"manager": "a", "fieldsV1": {"f:metadata": {}}}], ()),
        ([], ()),
        (None, ()),
        ([None, {}, {"fieldsV1": 1}, {"fieldsV1": {"f:status": 1}}], ()),
    ],
    ids=["one", "not-of-the-reservation", "two", "not-of-the-rest", "none-kept", "nothing", "nonsense"],
)
def test_the_writers_of_a_claim_are_the_managers_of_its_allocation(kept: object, writers: tuple[str, ...]) -> None:
    assert read_claim(changed(CLAIM, "metadata", "managedFields", value=kept)).writers == writers


def test_a_claim_without_an_allocation_has_no_writers() -> None:
    before = changed(CLAIM, "metadata", "managedFields", value=[managed("a", "allocation")])
    assert read_claim(changed(before, "status", "allocation", value=None)).writers == ()


@pytest.mark.parametrize(
    ("metadata", "managers"),
    [
        ({"managedFields": [managed("a", "nominatedNodeName"), managed("b", "conditions")]}, ("a",)),
        ({}, ()),
        (None, ()),
    ],
    ids=["one", "none-kept", "nonsense"],
)
def test_a_nomination_is_from_the_managers_of_that_field(metadata: object, managers: tuple[str, ...]) -> None:
    assert nominators({"metadata": metadata}) == managers
