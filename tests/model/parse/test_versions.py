"""The versions of resource.k8s.io: where they differ, the nouns do not."""

from copy import deepcopy
from typing import Any

import pytest

from extender.model.claim import ClaimTemplate, DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.node import Node, Pod
from extender.model.parse import key_of, parse_list, parse_object, parse_slice
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule
from tests.model.parse.exemplars import CLAIM, CLASS, EVERY, NODE, RULE, SLICE, SPEC, TEMPLATE
from tests.model.parse.reading import changed, read_claim

Json = dict[str, Any]
ALTERNATIVES = [{"name": "small", "deviceClassName": "gpu"}]


def flat(spec: Json) -> Json:
    """Write a claim's spec as v1beta1 does: the fields of an exact request stand beside its name."""
    written = deepcopy(spec)
    written["devices"]["requests"] = [
        # Go has no way to leave out the class: beside alternatives it is spelled empty.
        {"deviceClassName": ""} | {key: value for key, value in request.items() if key != "exactly"} | exactly
        for request in written["devices"]["requests"]
        for exactly in (request.get("exactly", {}),)
    ]
    return written


def wrapped(raw: Json, *, bare: bool) -> Json:
    """Write a slice as v1beta1 does, or with *bare* capacities as v1alpha3 does."""
    spec = deepcopy(raw["spec"])
    for device in spec["devices"]:
        if bare:
            device["capacity"] = {name: amount["value"] for name, amount in device["capacity"].items()}
    spec["devices"] = [{"name": device.pop("name"), "basic": device} for device in spec["devices"]]
    return raw | {"spec": spec | {"allNodes": False}}


def in_version(raw: Json, version: str) -> Json:
    written = raw | {"apiVersion": f"resource.k8s.io/{version}"}
    if version in ("v1", "v1beta2"):
        return written
    match raw["kind"]:
        case "ResourceClaim":
            return written | {"spec": flat(raw["spec"])}
        case "ResourceClaimTemplate":
            return written | {"spec": {"spec": flat(raw["spec"]["spec"])}}
        case "ResourceSlice":
            return wrapped(written, bare=version == "v1alpha3")
    return written


# A bare quantity cannot have a policy.
PLAIN_SLICE = changed(SLICE, "spec", "devices", 0, "capacity", value={"memory": {"value": "40Gi"}})


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1", "v1alpha3"])
@pytest.mark.parametrize("raw", [PLAIN_SLICE, CLAIM, TEMPLATE, CLASS, RULE], ids=lambda raw: raw["kind"])
def test_every_version_of_an_object_reads_as_the_same_noun(raw: Json, version: str) -> None:
    read = parse_object(raw)
    assert not isinstance(read, Problem)
    assert parse_object(in_version(raw, version)) == read


@pytest.mark.parametrize(
    ("fields", "is_exact"),
    [
        ({}, False),
        ({"deviceClassName": "", "allocationMode": "", "count": 0}, False),
        ({"selectors": None, "adminAccess": None, "capacity": None, "tolerations": None}, False),
        ({"deviceClassName": "gpu"}, True),
        ({"allocationMode": "All"}, True),
        ({"count": 1}, True),
        ({"adminAccess": False}, True),
        ({"selectors": []}, True),
        ({"tolerations": []}, True),
        ({"capacity": {}}, True),
        ({"derivedAttributes": []}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
@pytest.mark.parametrize("alternatives", [[], ALTERNATIVES], ids=["alone", "beside alternatives"])
def test_a_flat_request_is_an_exact_one_if_any_of_its_fields_is_set(
    fields: Json, version: str, alternatives: list[Json], *, is_exact: bool
) -> None:
    request = {"name": "r", "firstAvailable": alternatives} | fields
    (slot,) = read_claim(CLAIM | {"spec": {"devices": {"requests": [request]}}}, version).spec.requests
    assert (slot.exactly is not None) is is_exact
    assert len(slot.first_available) == len(alternatives)
    assert slot.unknown_fields == ()


@pytest.mark.parametrize(
    ("version", "request_", "unknown"),
    [
        ("v1", {"name": "r", "deviceClassName": "gpu"}, ("deviceClassName",)),
        ("v1beta1", {"name": "r", "exactly": {"deviceClassName": "gpu"}}, ("exactly",)),
        ("v1alpha3", {"name": "r", "exactly": {"deviceClassName": "gpu"}}, ("exactly",)),
    ],
    ids=["flat in v1", "nested in v1beta1", "nested in v1alpha3"],
)
def test_a_request_of_another_version_is_not_taken_for_an_empty_one(
    version: str, request_: Json, unknown: tuple[str, ...]
) -> None:
    (slot,) = read_claim(CLAIM | {"spec": {"devices": {"requests": [request_]}}}, version).spec.requests
    assert (slot.exactly, slot.unknown_fields) == (None, unknown)


@pytest.mark.parametrize(
    ("spec", "status", "is_classic"),
    [
        (SPEC, {}, False),
        (SPEC | {"controller": ""}, {"allocation": {"controller": ""}}, False),
        (SPEC | {"controller": "old"}, {}, True),
        (SPEC, {"allocation": {"controller": "old"}}, True),
    ],
    ids=["none", "an empty one", "of the spec", "of the allocation"],
)
def test_a_claim_that_names_a_controller_is_classic(spec: Json, status: Json, *, is_classic: bool) -> None:
    assert read_claim(CLAIM | {"spec": flat(spec), "status": status}, "v1alpha3").is_classic is is_classic


def test_a_device_of_an_old_version_may_have_no_body() -> None:
    read = parse_slice(changed(SLICE, "spec", "devices", value=[{"name": "gpu-0"}]), "v1beta1")
    assert isinstance(read, ResourceSlice)
    assert read.devices[0].attributes == ()


@pytest.mark.parametrize(
    ("version", "device", "unknown"),
    [
        ("v1", {"name": "a", "basic": {}}, ("basic",)),
        ("v1beta1", {"name": "a", "attributes": {}}, ("attributes",)),
        ("v1beta1", {"name": "a", "basic": {"newThing": 1}}, ("basic.newThing",)),
    ],
    ids=["wrapped in v1", "plain in v1beta1", "new in v1beta1"],
)
def test_a_device_of_another_version_is_remembered_as_such(
    version: str, device: Json, unknown: tuple[str, ...]
) -> None:
    read = parse_slice(changed(SLICE, "spec", "devices", value=[device]), version)
    assert isinstance(read, ResourceSlice)
    assert read.devices[0].traits.unknown_fields == unknown


@pytest.mark.parametrize("metadata", ["metadata", "listMeta"])
def test_the_metadata_of_a_list_may_stand_where_1_31_wrote_it(metadata: str) -> None:
    item = {
        key: value for key, value in in_version(PLAIN_SLICE, "v1alpha3").items() if key not in ("apiVersion", "kind")
    }
    listed = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSliceList",
        metadata: {"resourceVersion": "7"},
        "items": [item],
    }
    assert list(parse_list(listed)) == [parse_object(PLAIN_SLICE)]


def test_a_list_of_many_kinds_is_read_by_their_own() -> None:
    items = [*EVERY.values(), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, {"metadata": None}]
    read = list(parse_list({"apiVersion": "v1", "kind": "List", "items": items}))
    kinds = [ResourceSlice, ResourceClaim, ClaimTemplate, DeviceClass, DeviceTaintRule, Node, Pod]
    assert [type(item) for item in read[:-2]] == kinds
    assert [type(item) for item in read[-2:]] == [Problem, Problem]
    named = [key_of(item) for item in read if not isinstance(item, Problem)]
    assert [key.name for key in named] == ["slice", "claim", "template", "gpu", "sick", "n1", "pod"]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (None, "object (unnamed): kind: no object of the core group is read here"),
        ([], "object (unnamed): kind: no object of the core group is read here"),
        (NODE | {"kind": {}}, "object n1: kind: no object of the core group is read here"),
        (NODE | {"kind": "Secret"}, "Secret n1: kind: no Secret of the core group is read here"),
        (NODE | {"apiVersion": "v2"}, "Node n1: apiVersion: is none of v1"),
        (NODE | {"apiVersion": "x.io/v1"}, "Node n1: kind: no Node of x.io is read here"),
        (
            CLAIM | {"apiVersion": "resource.k8s.io/v1alpha2"},
            "ResourceClaim ml/claim: apiVersion: is none of v1, v1beta2, v1beta1, v1alpha3",
        ),
        ({"kind": "NodeList", "apiVersion": "v1", "items": {}}, "NodeList (unnamed): items: is no list"),
    ],
    ids=["null", "a list", "a kind that is no string", "another kind", "v2", "another group", "v1alpha2", "items"],
)
def test_an_object_that_is_not_read_here_says_so(raw: object, problem: str) -> None:
    assert [str(item) for item in parse_list(raw)] == [problem]


# Too large for Python to spell in decimal digits.
HUGE = 10**5000


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": HUGE},
        {"kind": "NodeList", "apiVersion": HUGE, "items": [{}]},
        NODE | {"apiVersion": HUGE},
        NODE | {"metadata": {"name": HUGE}},
        CLAIM | {"metadata": {"namespace": HUGE, "name": "c"}},
        changed(NODE, "status", "allocatable", "cpu", value=HUGE),
        changed(SLICE, "spec", "devices", 0, "attributes", "model", value={"int": HUGE}),
        changed(SLICE, "spec", "devices", 0, "capacity", "memory", value={"value": HUGE}),
    ],
    ids=["kind", "list", "apiVersion", "name", "namespace", "quantity", "attribute", "capacity"],
)
def test_a_number_too_large_to_spell_is_a_problem(raw: Json) -> None:
    (read,) = parse_list(raw)
    assert isinstance(read, Problem)
    assert len(str(read)) < 200
