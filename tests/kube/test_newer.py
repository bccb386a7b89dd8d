"""Fields that a newer API server has, and we do not know, are there after each of our writes."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from extender.allocation.extended import Use
from extender.kube.outcome import RequestOutcome
from extender.kube.resource import RULES, Served
from extender.model.claim import Consumer
from extender.model.names import NodeName, Uid
from extender.model.node import PodClaimStatus
from extender.scheduling.claiming import consumer_of
from tests.kube.test_writes import done, read_claim, read_pod, writes_to
from tests.kube_objects import CLAIMS, PODS, allocation, claim, pod
from tests.servers import Cluster, embedded

GPU = "example.com/gpu"
NEWER = {"newer": {"of": [1, "two"]}}
RULE = "/apis/resource.k8s.io/v1/devicetaintrules"


@pytest_asyncio.fixture
async def newer() -> AsyncIterator[Cluster]:
    """Run an API server that keeps what it does not know."""
    async with embedded() as cluster:
        yield cluster


def told(item: object) -> int:
    """Count the fields of *item* that are not known."""
    return json.dumps(item).count(json.dumps(NEWER)[1:-1])


def left(outcome: RequestOutcome) -> int:
    return told(done(outcome).object)


async def stored(cluster: Cluster, path: str, item: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    item["metadata"] |= NEWER
    made = await cluster.create(path, item)
    whole = {**made, "status": {**status, **NEWER}}
    return await cluster.do("PUT", f"{path}/{item['metadata']['name']}/status", whole)


async def test_fields_of_a_claim_that_are_not_known_stay(newer: Cluster) -> None:
    there = Consumer(resource="pods", name="p", uid=Uid("p"))
    given = allocation() | NEWER
    given["devices"]["results"][0] |= NEWER
    reserved = [{"resource": "pods", "name": there.name, "uid": there.uid, **NEWER}]
    raw = await stored(newer, CLAIMS, claim("c"), {"allocation": given, "reservedFor": reserved})
    assert told(raw) == 5
    writes, other = writes_to(newer), consumer_of(read_pod(await newer.create(PODS, pod("q"))))
    kept = done(await writes.add_finalizer(read_claim(raw))).object
    shared = done(await writes.reserve_shared(read_claim(kept), other)).object
    again = done(await writes.release(read_claim(shared), other.uid, deallocate=False)).object
    touched = done(await writes.touch_claim(read_claim(again), "mark")).object
    freed = done(await writes.release(read_claim(touched), there.uid, deallocate=True)).object
    assert [told(item) for item in (kept, shared, again, touched, freed)] == [5, 5, 5, 5, 2]


async def test_fields_of_a_pod_that_are_not_known_stay(newer: Cluster) -> None:
    asked = {"name": "main", "image": "none", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    mapping = [{"containerName": "main", "resourceName": GPU, "requestName": "r"}]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": mapping, **NEWER}}
    raw = await stored(newer, PODS, pod("p", containers=[asked], **NEWER), status)
    before, writes = told(raw), writes_to(newer)
    assert before == 4
    assert left(await writes.nominate(read_pod(raw), NodeName("n"))) == before
    assert left(await writes.annotate_pod(read_pod(raw), "a", "b")) == before
    assert left(await writes.name_claims(read_pod(raw), [PodClaimStatus(name="c", claim_name="d")])) == before
    now = read_pod(await newer.do("GET", f"{PODS}/p"))
    assert left(await writes.map_extended(now, "y", [Use("main", GPU, "r")])) == before


async def test_fields_of_a_rule_that_are_not_known_stay(newer: Cluster) -> None:
    rules, writes = Served(RULES, "v1"), writes_to(newer)
    made = done(await writes.create_taint(rules, "gpu.example.com", "k")).object
    made["spec"] |= NEWER
    made["spec"]["taint"] |= NEWER
    await newer.do("PUT", f"{RULE}/{made['metadata']['name']}", made)
    assert left(await writes.restore_taint(rules, "gpu.example.com", "k")) == 2
