"""Writes against an API server: what lands, what is refused, and how one knows."""

import dataclasses
import json
from datetime import UTC, datetime
from unittest.mock import AsyncMock, patch

import pytest

from extender.allocation.extended import Use
from extender.kube import objects
from extender.kube.api import Api
from extender.kube.outcome import Refused, RequestOutcome, Succeeded
from extender.kube.protobuf import PROTOBUF
from extender.kube.request import APPLY_PATCH, MERGE_PATCH
from extender.kube.resource import CLAIMS as CLAIM_RESOURCE
from extender.kube.resource import Served
from extender.kube.writes import Writes
from extender.model.claim import Allocation, Consumer, DeviceConfig, DeviceRequest, ResourceClaim
from extender.model.names import ClassName, NodeName, ObjectKey, Uid, is_dns_subdomain
from extender.model.node import Pod, PodClaimStatus
from extender.model.parse import parse_claim, parse_pod
from extender.model.problem import Problem
from extender.scheduling.account import NOTE_BYTES
from extender.scheduling.claiming import FINALIZER, consumer_of
from extender.scheduling.steps import Refusal
from tests.kube_objects import CLAIMS, PODS, allocation, claim, pod
from tests.servers import REAL, Cluster

NODE = NodeName("node-1")
CONFIGURED = [{"opaque": {"driver": "gpu.example.com", "parameters": {"mode": "shared", "of": [1, 2]}}}]


def writes_to(cluster: Cluster) -> Writes:
    return Writes(cluster.api, lambda: Served(CLAIM_RESOURCE, "v1"))


def read_claim(raw: object) -> ResourceClaim:
    read = parse_claim(raw)
    assert not isinstance(read, Problem)
    return read


def read_pod(raw: object) -> Pod:
    read = parse_pod(raw)
    assert not isinstance(read, Problem)
    return read


def done(outcome: RequestOutcome) -> Succeeded:
    assert isinstance(outcome, Succeeded), outcome
    return outcome


def refused(outcome: RequestOutcome) -> Refusal:
    assert isinstance(outcome, Refused), outcome
    return outcome.kind


def granted(device: str = "gpu-0") -> Allocation:
    read = read_claim({**claim("x"), "status": {"allocation": allocation(device)}}).allocation
    assert read is not None
    return read


async def new_claim(cluster: Cluster, **metadata: object) -> ResourceClaim:
    return read_claim(await cluster.create(CLAIMS, claim(cluster.name("claim"), **metadata)))


async def new_pod(cluster: Cluster, **spec: object) -> Pod:
    return read_pod(await cluster.create(PODS, pod(cluster.name("pod"), **spec)))


async def consumer(cluster: Cluster) -> Consumer:
    """Return a reservation for a pod that is there: a controller takes back those of pods that are not."""
    return consumer_of(await new_pod(cluster))


async def allocated(cluster: Cluster) -> ResourceClaim:
    writes, fresh, one = writes_to(cluster), await new_claim(cluster), await consumer(cluster)
    kept = read_claim(done(await writes.add_finalizer(fresh)).object)
    return read_claim(done(await writes.write_allocation(kept, granted(), one)).object)


@pytest.mark.parametrize("length", [1, 233, *range(234, 254)])
def test_a_claim_for_extended_resources_can_be_named_after_a_pod_of_any_name(length: int) -> None:
    made = objects.extended_claim(Pod(key=ObjectKey("default", "p" * length), uid=Uid("p")), "v1", [])
    assert is_dns_subdomain(made["metadata"]["generateName"].rstrip("-"))


async def test_a_finalizer_joins_those_that_are_there(api_server: Cluster) -> None:
    fresh = await new_claim(api_server, finalizers=["example.com/kept"])
    kept = read_claim(done(await writes_to(api_server).add_finalizer(fresh)).object)
    assert kept.finalizers == ("example.com/kept", FINALIZER)


async def claim_with_spaces(cluster: Cluster) -> ResourceClaim:
    """Create a claim with parameters as Python spells them: the API server keeps every space."""
    item = claim(cluster.name("claim"))
    item["spec"]["devices"]["config"] = CONFIGURED
    created = await cluster.do("POST", CLAIMS, json.dumps(item).encode())
    return read_claim(created)


async def test_a_claim_whose_parameters_have_spaces_gets_its_finalizer_and_its_devices(api_server: Cluster) -> None:
    fresh, one, writes = await claim_with_spaces(api_server), await consumer(api_server), writes_to(api_server)
    kept = read_claim(done(await writes.add_finalizer(fresh)).object)
    assert kept.finalizers == (FINALIZER,)
    assert kept.spec == fresh.spec
    assert read_claim(done(await writes.write_allocation(kept, granted(), one)).object).allocation == granted()


async def test_parameters_that_a_patch_spells_longer_than_they_may_be_get_into_an_allocation(
    api_server: Cluster,
) -> None:
    fresh, one, writes = await new_claim(api_server), await consumer(api_server), writes_to(api_server)
    parameters = {"of": "<&>" * 700}
    configured = DeviceConfig(source="FromClass", opaque={"driver": "gpu.example.com", "parameters": parameters})
    wanted = dataclasses.replace(granted(), config=(configured,))
    outcome = await writes.write_allocation(fresh, wanted, one)
    assert read_claim(done(outcome).object).allocation == wanted
    assert refused(await writes.write_allocation(fresh, wanted, one)) is Refusal.CONFLICT


async def test_a_claim_whose_parameters_have_spaces_gets_no_finalizer_once_it_moved_on(api_server: Cluster) -> None:
    fresh, writes = await claim_with_spaces(api_server), writes_to(api_server)
    versions = [done(await writes.touch_claim(fresh, mark)).resource_version for mark in ("a", "b")]
    assert len({fresh.resource_version, *versions}) == 3
    assert refused(await writes.add_finalizer(fresh)) is Refusal.CONFLICT
    other = dataclasses.replace(fresh, uid=Uid("another"))
    assert refused(await writes.touch_claim(other, "c")) is Refusal.CONFLICT


async def test_a_claim_that_was_read_as_it_was_before_is_not_put_in_place_of_what_it_is(api_server: Cluster) -> None:
    """Of several API servers one may be behind: what others wrote since would be lost."""
    before, writes = await claim_with_spaces(api_server), writes_to(api_server)
    path = f"{CLAIMS}/{before.key.name}"
    late = await api_server.api.read_as(PROTOBUF, path)
    noted = await api_server.do("GET", path)
    noted["metadata"]["annotations"] = {"example.com/since": "then"}
    now = read_claim(await api_server.do("PUT", path, json.dumps(noted).encode()))
    with patch.object(Api, "read_as", AsyncMock(return_value=late)):
        outcome = await writes.add_finalizer(now)
    left = await api_server.do("GET", path)
    assert left["metadata"].get("annotations") == {"example.com/since": "then"}
    assert isinstance(outcome, Succeeded) or refused(outcome) is Refusal.CONFLICT


async def test_without_the_right_to_put_claims_it_is_told_what_the_patch_was_refused_for(api_server: Cluster) -> None:
    claim, writes = await claim_with_spaces(api_server), writes_to(api_server)
    wrong = Refused(kind=Refusal.INVALID, status=422, reason="Invalid", message="spec.devices: too many")
    barred = Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="cannot update resourceclaims")
    with patch.object(Writes, "_send", AsyncMock(side_effect=[wrong, barred])):
        outcome = await writes.add_finalizer(claim)
    # Whoever sends no claim in protobuf is asked for no more.
    by_both = "403 Forbidden: spec.devices: too many; cannot update resourceclaims"
    assert str(outcome) in {"422 Invalid: spec.devices: too many", by_both}


async def test_allocation_and_reservation_land_together(api_server: Cluster) -> None:
    fresh, one = await new_claim(api_server), await consumer(api_server)
    written = read_claim(done(await writes_to(api_server).write_allocation(fresh, granted(), one)).object)
    assert written.allocation == granted()
    assert written.reserved_for == (one,)


async def test_an_allocation_names_who_wrote_it_and_a_later_reservation_changes_nothing_about_that(
    api_server: Cluster,
) -> None:
    written = await allocated(api_server)
    assert written.writers == ("dra-extender",)
    shared = read_claim(done(await writes_to(api_server).reserve_shared(written, await consumer(api_server))).object)
    assert shared.writers == ("dra-extender",)


async def test_r1_no_write_of_before_a_touch_lands(api_server: Cluster) -> None:
    fresh = await new_claim(api_server)
    writes = writes_to(api_server)
    done(await writes.touch_claim(fresh, "a"))
    assert refused(await writes.add_finalizer(fresh)) is Refusal.CONFLICT
    one = await consumer(api_server)
    assert refused(await writes.write_allocation(fresh, granted(), one)) is Refusal.CONFLICT


async def test_every_touch_moves_the_version_on(api_server: Cluster) -> None:
    fresh = await new_claim(api_server)
    writes = writes_to(api_server)
    versions = [done(await writes.touch_claim(fresh, mark)).resource_version for mark in ("a", "b")]
    assert len({fresh.resource_version, *versions}) == 3


async def test_a_touch_that_something_takes_away_is_in_vain(api_server: Cluster) -> None:
    claim, fresh, writes = await new_claim(api_server), await new_pod(api_server), writes_to(api_server)
    with patch.object(objects, "annotated", lambda uid, *_annotation: {"metadata": {"uid": uid}}):
        outcomes = await writes.touch_claim(claim, "a"), await writes.touch_pod(fresh, "a")
    assert [*map(refused, outcomes)] == [Refusal.IN_VAIN] * 2
    assert read_pod(done(await writes.read_pod(fresh.key)).object).resource_version == fresh.resource_version


async def test_an_allocation_is_not_replaced_by_another(api_server: Cluster) -> None:
    written, two = await allocated(api_server), await consumer(api_server)
    outcome = await writes_to(api_server).write_allocation(written, granted("gpu-1"), two)
    assert refused(outcome) is Refusal.INVALID


async def test_a_shared_claim_is_reserved_by_several(api_server: Cluster) -> None:
    written, two = await allocated(api_server), await consumer(api_server)
    shared = read_claim(done(await writes_to(api_server).reserve_shared(written, two)).object)
    assert shared.reserved_for == (*written.reserved_for, two)
    assert shared.allocation == written.allocation


async def test_who_reserves_twice_is_listed_once(api_server: Cluster) -> None:
    written = await allocated(api_server)
    again = read_claim(done(await writes_to(api_server).reserve_shared(written, written.reserved_for[0])).object)
    assert again.reserved_for == written.reserved_for


async def test_a_claim_that_is_not_allocated_is_not_reserved(api_server: Cluster) -> None:
    fresh, one = await new_claim(api_server), await consumer(api_server)
    assert refused(await writes_to(api_server).reserve_shared(fresh, one)) is Refusal.INVALID


async def test_a_release_takes_its_own_reservation_back_and_leaves_those_of_others(api_server: Cluster) -> None:
    written, two, writes = await allocated(api_server), await consumer(api_server), writes_to(api_server)
    shared = read_claim(done(await writes.reserve_shared(written, two)).object)
    left = read_claim(done(await writes.release(shared, written.reserved_for[0].uid, deallocate=False)).object)
    assert (left.reserved_for, left.allocation) == ((two,), written.allocation)
    freed = read_claim(done(await writes.release(left, two.uid, deallocate=True)).object)
    assert (freed.reserved_for, freed.allocation) == ((), None)


async def test_to_free_what_somebody_has_freed_meanwhile_is_a_conflict(api_server: Cluster) -> None:
    writes, first = writes_to(api_server), await consumer(api_server)
    given = done(await writes.write_allocation(await new_claim(api_server), granted(), first))
    known = read_claim(given.object)
    done(await writes.release(known, first.uid, deallocate=True))
    assert refused(await writes.release(known, first.uid, deallocate=True)) is Refusal.CONFLICT


async def test_writes_leave_alone_what_they_do_not_name(api_server: Cluster) -> None:
    fresh = await new_claim(api_server, labels={"a": "b"}, annotations={"example.com/x": "y"})
    writes = writes_to(api_server)
    kept = read_claim(done(await writes.add_finalizer(fresh)).object)
    after = done(await writes.write_allocation(kept, granted(), await consumer(api_server))).object
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["metadata"]["annotations"] == {"example.com/x": "y"}
    assert after["metadata"]["finalizers"] == [FINALIZER]


async def test_a_pod_is_bound_once(api_server: Cluster) -> None:
    fresh, writes = await new_pod(api_server), writes_to(api_server)
    done(await writes.bind_pod(fresh, NODE))
    bound = read_pod(done(await writes.read_pod(fresh.key)).object)
    assert bound.node_name == NODE
    again = await writes.bind_pod(bound, NODE)
    assert isinstance(again, Refused)
    assert again.kind is Refusal.CONFLICT
    assert 'is already assigned to node "node-1"' in again.message


async def test_r1_no_binding_of_before_a_touch_lands(api_server: Cluster) -> None:
    fresh, writes = await new_pod(api_server), writes_to(api_server)
    done(await writes.touch_pod(fresh, "a"))
    assert refused(await writes.bind_pod(fresh, NODE)) is Refusal.CONFLICT
    assert read_pod(done(await writes.read_pod(fresh.key)).object).node_name is None


async def test_a_pod_of_the_same_name_is_not_bound_in_its_place(api_server: Cluster) -> None:
    fresh = await new_pod(api_server)
    former = dataclasses.replace(fresh, uid=Uid("former"))
    assert refused(await writes_to(api_server).bind_pod(former, NODE)) is Refusal.CONFLICT


async def test_a_gated_pod_is_not_bound(api_server: Cluster) -> None:
    gated = await new_pod(api_server, schedulingGates=[{"name": "example.com/gate"}])
    assert refused(await writes_to(api_server).bind_pod(gated, NODE)) is Refusal.CONFLICT


async def test_a_pod_that_is_gone_is_not_found(api_server: Cluster) -> None:
    fresh = await new_pod(api_server)
    await api_server.do("DELETE", f"{PODS}/{fresh.key.name}")
    assert refused(await writes_to(api_server).bind_pod(fresh, NODE)) is Refusal.NOT_FOUND


async def test_a_nomination_is_set_and_cleared(api_server: Cluster) -> None:
    fresh, writes = await new_pod(api_server), writes_to(api_server)
    nominated = read_pod(done(await writes.nominate(fresh, NODE)).object)
    assert nominated.nominated_node == NODE
    assert refused(await writes.nominate(fresh, None)) is Refusal.CONFLICT
    assert read_pod(done(await writes.nominate(nominated, None)).object).nominated_node is None


async def test_patches_of_a_former_pod_do_not_reach_its_successor(api_server: Cluster) -> None:
    former, writes = dataclasses.replace(await new_pod(api_server), uid=Uid("former")), writes_to(api_server)
    assert refused(await writes.nominate(former, NODE)) is Refusal.CONFLICT
    assert refused(await writes.annotate_pod(former, "example.com/woken", "1")) is Refusal.CONFLICT
    assert refused(await writes.touch_pod(former, "1")) is Refusal.CONFLICT


async def test_names_of_claims_join_those_that_are_there_and_yield_to_others(api_server: Cluster) -> None:
    entries = [{"name": name, "resourceClaimTemplateName": "none"} for name in ("a", "b")]
    fresh, writes = await new_pod(api_server, resourceClaims=entries), writes_to(api_server)

    def names(**named: str) -> list[PodClaimStatus]:
        return [PodClaimStatus(name=name, claim_name=claim_name) for name, claim_name in named.items()]

    path = f"{PODS}/{fresh.key.name}/status"
    others = {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}}
    await api_server.do("PATCH", path, others, MERGE_PATCH)
    both = names(a="x", b="y")
    for _ in range(2):
        assert read_pod(done(await writes.name_claims(fresh, both)).object).claim_statuses == tuple(both)
    assert refused(await writes.name_claims(fresh, names(a="z", b="y"))) is Refusal.CONFLICT
    former = dataclasses.replace(fresh, uid=Uid("former"))
    assert refused(await writes.name_claims(former, both)) is Refusal.CONFLICT


@pytest.mark.parametrize("plane", [pytest.param("real", marks=REAL)], indirect=True)
async def test_a_name_that_we_apply_stays_when_its_controller_takes_it_back_and_yields_to_another(
    api_server: Cluster,
) -> None:
    entries = [{"name": name, "resourceClaimTemplateName": "none"} for name in ("a", "b")]
    fresh, writes = await new_pod(api_server, resourceClaims=entries), writes_to(api_server)

    async def controlled(**named: str) -> dict[str, str | None]:
        listed = [{"name": name, "resourceClaimName": claim_name} for name, claim_name in named.items()]
        applied = {"apiVersion": "v1", "kind": "Pod", "status": {"resourceClaimStatuses": listed}}
        path = f"{PODS}/{fresh.key.name}/status?fieldManager=ResourceClaimController&force=true"
        read = read_pod(await api_server.do("PATCH", path, applied, APPLY_PATCH))
        return {status.name: status.claim_name for status in read.claim_statuses}

    def ours(name: str) -> list[PodClaimStatus]:
        return [PodClaimStatus(name="a", claim_name="x"), PodClaimStatus(name="b", claim_name=name)]

    assert await controlled(a="x", b="y") == {"a": "x", "b": "y"}
    assert await controlled(a="x") == {"a": "x"}
    done(await writes.name_claims(fresh, ours("y")))
    assert await controlled(a="x") == {"a": "x", "b": "y"}
    assert await controlled(b="z") == {"a": "x", "b": "z"}
    assert refused(await writes.name_claims(fresh, ours("y"))) is Refusal.CONFLICT
    former = dataclasses.replace(fresh, uid=Uid("former"))
    assert refused(await writes.name_claims(former, ours("z"))) is Refusal.CONFLICT


async def test_an_annotation_joins_those_that_are_there(api_server: Cluster) -> None:
    fresh, writes = await new_pod(api_server), writes_to(api_server)
    done(await writes.annotate_pod(fresh, "example.com/a", "1"))
    after = done(await writes.annotate_pod(fresh, "example.com/b", "2")).object
    assert after["metadata"]["annotations"] == {"example.com/a": "1", "example.com/b": "2"}


async def test_a_hidden_claim_is_made_mapped_and_deleted(api_server: Cluster) -> None:
    resources = {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}
    container = {"name": "c", "image": "none", "resources": resources}
    fresh, writes = await new_pod(api_server, containers=[container]), writes_to(api_server)
    request = DeviceRequest(name="container-0-request-0", class_name=ClassName("gpu.example.com"), count=2)
    made = done(await writes.create_claim("default", objects.extended_claim(fresh, "v1", [request]))).object
    hidden = read_claim(made)
    assert [entry.exactly.count for entry in hidden.spec.requests if entry.exactly] == [2]
    assert hidden.owners[0].uid == fresh.uid
    mapping = Use("c", "example.com/gpu", "container-0-request-0")
    mapped = done(await writes.map_extended(fresh, hidden.key.name, [mapping]))
    assert read_pod(mapped.object).extended_claim == hidden.key.name
    # Whatever lands late must not have the pod name a claim that is gone.
    assert refused(await writes.map_extended(fresh, "late", [mapping])) is Refusal.CONFLICT
    read = hidden.uid, hidden.resource_version
    assert refused(await writes.delete_claim(hidden.key, Uid("another"), hidden.resource_version)) is Refusal.CONFLICT
    touched = read_claim(done(await writes.touch_claim(hidden, "1")).object)
    assert refused(await writes.delete_claim(hidden.key, *read)) is Refusal.CONFLICT
    done(await writes.delete_claim(hidden.key, hidden.uid, touched.resource_version))
    assert refused(await writes.delete_claim(hidden.key, *read)) is Refusal.NOT_FOUND


async def test_an_event_on_a_pod_is_taken(api_server: Cluster) -> None:
    fresh, writes = await new_pod(api_server), writes_to(api_server)
    note = objects.Note(
        regarding=fresh,
        name=api_server.name("event"),
        reason="DevicesAllocated",
        action="Binding",
        text="x" + "ü" * 2000,
        is_warning=False,
    )
    at = datetime(2026, 11, 21, 8, 30, 1, 123456, tzinfo=UTC)
    written = done(await writes.create_event("default", objects.event(note, "example.com/us", "us-1", at))).object
    assert len(written["note"].encode()) == NOTE_BYTES
    assert written["note"].endswith("ü…")
    assert written["eventTime"] == "2026-11-21T08:30:01.123456Z"
    assert written["regarding"]["uid"] == fresh.uid


async def test_a_name_that_is_taken_is_told_from_a_conflict(api_server: Cluster) -> None:
    fresh = await new_claim(api_server)
    assert refused(await writes_to(api_server).create_claim("default", claim(fresh.key.name))) is Refusal.EXISTS


async def test_a_claim_that_is_in_use_stays_until_it_is_released(api_server: Cluster) -> None:
    written, writes = await allocated(api_server), writes_to(api_server)
    done(await writes.delete_claim(written.key, written.uid, written.resource_version))
    going = read_claim(done(await writes.read_claim(written.key)).object)
    assert going.is_deleting
    assert going.allocation == written.allocation


@pytest.mark.parametrize("key", [ObjectKey("default", "never-was")])
async def test_what_never_was_is_not_found(api_server: Cluster, key: ObjectKey) -> None:
    assert refused(await writes_to(api_server).read_claim(key)) is Refusal.NOT_FOUND


def test_drivers_that_differ_by_capitals_alone_have_rules_of_their_own() -> None:
    drivers = ("gpu.example.com", "GPU.example.com", "Gpu.Example.com")
    names = [objects.rule_name(driver) for driver in drivers]
    assert names[0] == "dra-extender-owned-gpu.example.com"
    assert len(set(names)) == len(names)
    assert all(map(is_dns_subdomain, names))


async def test_a_claim_that_others_allocated_with_spaces_is_shared_and_left(api_server: Cluster) -> None:
    """Kube-scheduler writes in protobuf, and so the parameters of the claim as they were sent."""
    fresh, one = await claim_with_spaces(api_server), await consumer(api_server)
    config = [{"source": "FromClaim", **each} for each in CONFIGURED]
    given = allocation("gpu-0")
    given["devices"]["config"] = config
    status = {"allocation": given, "reservedFor": [{"resource": "pods", "name": one.name, "uid": one.uid}]}
    path = f"{CLAIMS}/{fresh.key.name}"
    whole = {**await api_server.do("GET", path), "status": status}
    theirs = read_claim(await api_server.do("PUT", f"{path}/status", json.dumps(whole).encode()))
    two = await consumer(api_server)
    shared = read_claim(done(await writes_to(api_server).reserve_shared(theirs, two)).object)
    assert shared.reserved_for == (one, two)
    left = read_claim(done(await writes_to(api_server).release(shared, two.uid, deallocate=False)).object)
    assert left.reserved_for == (one,)
    assert left.allocation == theirs.allocation
    freed = read_claim(done(await writes_to(api_server).release(left, one.uid, deallocate=True)).object)
    assert (freed.allocation, freed.reserved_for) == (None, ())
