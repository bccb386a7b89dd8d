"""Of nodes and bound pods only a part is looked at: it says the same as the whole."""

import json
from copy import deepcopy
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from extender.kube.decoding import Read, decoded
from extender.kube.resource import BOUND, NODES, PODS, RESOURCES, Resource
from extender.kube.setback import Remedy, Setback
from extender.kube.stream import Event, event_of
from extender.model.footprint import Footprint
from extender.model.node import Node, Pod
from tests.allocation.cel.expressions import seeded
from tests.kube.scripted import failure
from tests.model.parse.damage import damage
from tests.model.parse.exemplars import NODE, POD, Json

MUCH: Json = {
    "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}}],
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "generateName": "p-",
}
# With all that a footprint is read from, and much else.
TAKES: Json = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1"}, "claims": [{"name": "gpus"}]}
BOUND_POD: Json = deepcopy(POD) | {
    "metadata": POD["metadata"] | MUCH,
    "spec": POD["spec"]
    | {
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": TAKES, "env": [{"name": "A", "value": "{"}]},
            {"name": "init", "resources": {"requests": {"cpu": "4"}}},
        ],
        "containers": [{"name": "main", "image": "i", "resources": TAKES}, {"name": "other", "resources": {}}],
        "resources": {"requests": {"memory": "9Gi"}},
        "overhead": {"cpu": "10m"},
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "status": POD["status"]
    | {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible", "lastTransitionTime": None}],
        "initContainerStatuses": [{"name": "side", "ready": True, "resources": TAKES}],
        "containerStatuses": [{"name": "main", "ready": True, "allocatedResources": TAKES["requests"]}],
        "allocatedResources": {"cpu": "3"},
        "resources": TAKES,
    },
}
LARGE_NODE: Json = deepcopy(NODE) | {
    "metadata": NODE["metadata"] | {"managedFields": MUCH["managedFields"], "uid": "n", "resourceVersion": "5"},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
    "status": NODE["status"] | {"images": [{"names": ["a@b", "a:1"], "sizeBytes": 1}], "conditions": []},
}
WAITING_POD: Json = deepcopy(BOUND_POD) | {
    "metadata": BOUND_POD["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {name: value for name, value in BOUND_POD["spec"].items() if name != "nodeName"}
    | {
        "nodeSelector": {"a": "b"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "imagePullSecrets": [{"name": "n1"}],
    },
    "status": BOUND_POD["status"]
    | {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "0"}]},
}
LARGE = {NODES: LARGE_NODE, BOUND: BOUND_POD, PODS: WAITING_POD}
CASES = pytest.mark.parametrize(("resource", "raw"), LARGE.items(), ids=map(str, LARGE))


def nouns(resource: Resource, read: Read, *items: Any) -> list[object]:
    """Return what *items* of a page are *read* as."""
    page = read(json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}).encode())
    assert page["metadata"] == {"resourceVersion": "7"}
    return [resource.parse(item, "v1") for item in page["items"]]


@CASES
def test_a_part_says_the_same_as_the_whole(resource: Resource, raw: Json) -> None:
    (noun,) = nouns(resource, resource.reading.page, raw)
    assert isinstance(noun, Node | Footprint | Pod)
    assert [noun] == nouns(resource, decoded, raw)


@CASES
def test_what_is_not_looked_at_is_not_made_into_objects(resource: Resource, raw: Json) -> None:
    (part,) = resource.reading.page(orjson.dumps({"items": [raw]}))["items"]
    ignored = {"managedFields", "generateName", "images", "env", "imagePullSecrets", "ready"}
    ignored |= {"annotations", "labels"} if resource is not NODES else set()
    ignored |= {"containerStatuses"} if resource is not BOUND else {"lastTransitionTime"}
    ignored |= {"volumes", "limits"} if resource is not PODS else set()
    assert not ignored & set(names(part))


def names(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for inner in value.values() for name in names(inner))]
    return [name for inner in value for name in names(inner)] if isinstance(value, list) else []


@settings(max_examples=300)
@given(st.integers(0, 1 << 40))
def test_whatever_is_wrong_with_an_object_is_said_as_if_it_was_read_whole(seed: int) -> None:
    random = seeded(seed)
    for resource, raw in LARGE.items():
        items = [wrong(random, raw), raw]
        assume(is_json_of_go(items))
        assert nouns(resource, resource.reading.page, *items) == nouns(resource, decoded, *items)


def is_json_of_go(items: list[Json]) -> bool:
    """Tell whether an API server could have sent *items*: it has no numbers that are too large for it."""
    try:
        decoded(json.dumps(items).encode())
    except ValueError:
        return False
    return True


def wrong(random: Random, raw: Json) -> Json:
    found = deepcopy(raw)
    for _ in range(random.randint(1, 3)):
        damage(random, found)
    return found


@CASES
@pytest.mark.parametrize("odd", ["\ud800", "\ud83d\ude00", "\u0000", "\\", '"}]'], ids=ascii)
@pytest.mark.parametrize("field", ["name", "generateName"])
def test_odd_characters_are_read_alike(resource: Resource, raw: Json, odd: str, field: str) -> None:
    found = deepcopy(raw)
    found["metadata"][field] = odd + "x"
    assert nouns(resource, resource.reading.page, found) == nouns(resource, decoded, found)


@CASES
def test_bytes_that_are_no_utf8_and_depths_hide_no_object(resource: Resource, raw: Json) -> None:
    text = orjson.dumps({"items": [raw]})
    for name in (b'"a"', b'"n1"', b'"Pending"', b'"b"'):
        spoilt = text.replace(name, b'"\xff"')
        here = [resource.parse(item, "v1") for item in resource.reading.page(spoilt)["items"]]
        assert here == [resource.parse(item, "v1") for item in decoded(spoilt)["items"]]
    deep = text.replace(b'"v"', b"[" * 3000 + b"]" * 3000).replace(b'"a@b"', b"[" * 3000 + b"]" * 3000)
    (noun,) = (resource.parse(item, "v1") for item in resource.reading.page(deep)["items"])
    assert [noun] == nouns(resource, decoded, raw)


@pytest.mark.parametrize("resource", RESOURCES, ids=str)
def test_an_error_in_a_watch_is_read_whole(resource: Resource) -> None:
    found = event_of(failure(410, "Expired"), resource.reading)
    assert found == event_of(failure(410, "Expired"))
    assert isinstance(found, Setback)
    assert found.remedy is Remedy.RELIST
    # As nobody sends it: what it is depends on its type, not on what there is of it.
    bare = b'{"type":"ERROR","object":{"code":500,"message":"why"}}'
    assert event_of(bare, resource.reading) == event_of(bare)
    # What is wrong in a part that is passed over ends no more than the watch.
    spoilt = b'{"type":"ERROR","object":{"code":410,"details":1e999}}'
    assert event_of(spoilt, resource.reading) == event_of(spoilt)


@CASES
def test_events_are_read_as_pages_are(resource: Resource, raw: Json) -> None:
    raw["metadata"]["resourceVersion"] = "5"
    event = event_of(orjson.dumps({"type": "MODIFIED", "object": raw}), resource.reading)
    assert isinstance(event, Event)
    assert event.version == "5"
    assert [resource.parse(event.object, "v1")] == nouns(resource, decoded, raw)
    mark = event_of(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}', resource.reading)
    assert isinstance(mark, Event)
    assert (mark.type, mark.version) == ("BOOKMARK", "9")


@pytest.mark.parametrize("resource", LARGE, ids=str)
@pytest.mark.parametrize("text", [b"", b"<html>", b"[]", b"null", b'{"items":null}', b'{"items":{}}', b'{"items":[3]}'])
def test_what_is_no_page_is_what_it_would_be_read_whole(resource: Resource, text: bytes) -> None:
    def told(read: Read) -> object:
        try:
            return read(text)
        except orjson.JSONDecodeError:
            return "no JSON"

    assert told(resource.reading.page) == told(decoded)
