"""Pods, as far as their claims need them."""

from typing import Any

import pytest

from extender.model.claim import OwnerReference
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Container, Pod, PodClaim, PodClaimStatus
from extender.model.parse import parse_other_pod, parse_pod
from extender.model.quantity import parse_quantity
from tests.model.parse.exemplars import POD
from tests.model.parse.reading import changed, fault


def read_pod(raw: dict[str, Any]) -> Pod:
    read = parse_pod(raw)
    assert isinstance(read, Pod), read
    return read


def test_a_pod_has_everything() -> None:
    read = read_pod(POD)
    assert (read.key, read.uid, read.node_name, read.nominated_node) == (ObjectKey("ml", "pod"), "p1", "n1", "n2")
    assert (read.scheduler, read.phase, read.priority) == ("default-scheduler", "Pending", 100)
    assert (read.resource_version, read.created, read.is_deleting) == ("3", "2026-01-01T00:00:00Z", False)
    assert read.claims == (
        PodClaim(name="gpus", template_name="template"),
        PodClaim(name="shared", claim_name="claim"),
    )
    assert read.extended_claim == "pod-extended"
    assert (read.scheduling_group, read.scheduling_gates) == ("group", ("wait",))
    assert read.owners == (OwnerReference(kind="ReplicaSet", uid=Uid("r1")),)


@pytest.mark.parametrize(
    ("conditions", "node", "refusal"),
    [
        ([("Ready", "x", "m"), ("PodScheduled", "Unschedulable", "0/1 nodes")], "", "0/1 nodes"),
        ([("PodScheduled", "SchedulerError", "refused")], "", ""),
        ([("PodScheduled", "Unschedulable", "old")], "n1", ""),
        ([], "", ""),
    ],
    ids=["refused", "tried again anyhow", "bound", "not looked at"],
)
def test_a_refusal_is_what_the_scheduler_said_of_a_pod_that_waits(
    conditions: list[tuple[str, str, str]], node: str, refusal: str
) -> None:
    told = [dict(zip(("type", "reason", "message"), each, strict=True)) for each in conditions]
    raw = {**POD, "spec": {**POD["spec"], "nodeName": node}, "status": {**POD["status"], "conditions": told}}
    if not node:
        del raw["spec"]["nodeName"]
    assert read_pod(raw).refusal == refusal


def test_an_entry_that_needed_no_claim_has_a_status_without_one() -> None:
    assert read_pod(POD).claim_statuses == (
        PodClaimStatus(name="gpus", claim_name="pod-gpus-x"),
        PodClaimStatus(name="none"),
    )


def test_init_containers_come_first_and_those_that_restart_are_sidecars() -> None:
    assert read_pod(POD).containers == (
        Container(name="side", is_init=True, is_sidecar=True),
        Container(name="init", is_init=True),
        Container(name="main", requests=(("cpu", parse_quantity("500m")),)),
    )


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ({"name": "c"}, PodClaim(name="c")),
        ({"name": "c", "resourceClaimName": ""}, PodClaim(name="c")),
        ({"name": "c", "podGroupClaim": "x"}, PodClaim(name="c", unknown_fields=("podGroupClaim",))),
    ],
    ids=["of no source", "of an empty one", "of a kind that is not known"],
)
def test_an_entry_of_no_source_that_we_know_is_kept(entry: dict[str, Any], read: PodClaim) -> None:
    assert read_pod(changed(POD, "spec", "resourceClaims", value=[entry])).claims == (read,)


@pytest.mark.parametrize(
    ("group", "read"),
    [(None, None), ({"podGroupName": "g"}, "g"), ({}, ""), ({"newKind": "g"}, "")],
    ids=["none", "named", "empty", "of a kind that is not known"],
)
def test_a_scheduling_group_without_a_name_does_not_pass_for_none(group: object, read: str | None) -> None:
    assert read_pod(changed(POD, "spec", "schedulingGroup", value=group)).scheduling_group == read


def test_a_pod_that_waits_for_a_node_has_none() -> None:
    read = read_pod({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert (read.node_name, read.nominated_node, read.extended_claim, read.is_deleting) == (None, None, None, True)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("metadata", "name"), None, "metadata.name: is required"),
        (("spec", "priority"), 1.5, "spec.priority: is no integer"),
        (("spec", "resourceClaims", 0, "name"), "", "spec.resourceClaims[0].name: is required"),
        (("spec", "containers", 0, "resources"), [], "spec.containers[0].resources: is no JSON object"),
        (
            ("spec", "containers", 0, "resources", "requests", "cpu"),
            2**600,
            "spec.containers[0].resources.requests[cpu]: the integer is too large for a quantity",
        ),
        (("status", "resourceClaimStatuses", 1, "name"), "", "status.resourceClaimStatuses[1].name: is required"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_pod_is_a_problem_that_names_the_field(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    assert fault(changed(POD, *path, value=value)) == f"Pod: {problem}"


OTHER = Pod(
    key=ObjectKey("ml", "pod"),
    uid=Uid("p1"),
    resource_version="3",
    node_name=NodeName("n1"),
    scheduler="default-scheduler",
    phase="Pending",
)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (POD, OTHER),
        (changed(POD, "spec", "schedulerName", value="ours"), None),
        (changed(POD, "spec", "containers", value=7), OTHER),
        (changed(POD, "spec", "schedulerName", value=7), None),
        (changed(POD, "metadata", "uid", value=7), None),
        ([], None),
    ],
    ids=["other", "ours", "nobody reads that", "no scheduler", "no identity", "no object"],
)
def test_of_pods_of_other_schedulers_no_more_is_read_than_who_they_are(raw: object, found: Pod | None) -> None:
    assert parse_other_pod(raw, ("ours",)) == found
