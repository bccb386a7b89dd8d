"""The embedded API server answers like the real one: the same requests get the same answers from both."""

from collections.abc import Callable
from typing import Any

import pytest

from extender.kube.answer import Answer
from extender.kube.request import Body
from tests.kube_objects import CLAIMS, NODES, PODS, allocation, claim, pod
from tests.servers import Cluster

Json = dict[str, Any]
JSON = "application/json"
MERGE = "application/merge-patch+json"
PATCH = "application/json-patch+json"
FINALIZER = "example.com/kept"


async def ask(
    cluster: Cluster, method: str, path: str, content: object = None, kind: str = JSON
) -> tuple[int, str, Json]:
    """Return status, reason and object of an answer."""
    body = None if content is None else Body(content, kind)
    answer = await cluster.admin.call(method, path, body=body, timeout_s=30)
    assert isinstance(answer, Answer), answer
    read = answer.json() or {}
    return answer.status, str(read.get("reason", "")), read


async def made(cluster: Cluster, path: str, item: Callable[[str], Json]) -> tuple[str, Json]:
    """Create an object and return its path with what was made."""
    name = cluster.name("made")
    return f"{path}/{name}", await cluster.create(path, item(name))


def with_status(item: Json, **status: object) -> Json:
    return {**item, "status": status}


def with_metadata(item: Json, **metadata: object) -> Json:
    return {**item, "metadata": {**item["metadata"], **metadata}}


NOBODYS_BINDING = {"metadata": {"name": "never"}, "target": {"kind": "Node", "name": "n"}}


@pytest.mark.parametrize(
    ("request_line", "content", "kind", "answer"),
    [
        pytest.param(f"GET {CLAIMS}/never", None, JSON, (404, "NotFound"), id="get-nothing"),
        pytest.param(f"DELETE {CLAIMS}/never", {}, JSON, (404, "NotFound"), id="delete-nothing"),
        pytest.param(f"PATCH {CLAIMS}/never", {}, MERGE, (404, "NotFound"), id="patch-nothing"),
        pytest.param(f"POST {PODS}/never/binding", NOBODYS_BINDING, JSON, (404, "NotFound"), id="bind-nothing"),
        pytest.param(f"POST {CLAIMS}", {"metadata": {}}, JSON, (422, "Invalid"), id="no-name"),
        pytest.param(f"POST {CLAIMS}", [], JSON, (400, "BadRequest"), id="no-object"),
        pytest.param(f"PATCH {CLAIMS}/never", {}, "text/plain", (415, "UnsupportedMediaType"), id="unknown-patch"),
        pytest.param(f"GET {CLAIMS}?limit=1&continue=nonsense", None, JSON, (400, "BadRequest"), id="bad-token"),
    ],
)
async def test_a_request_is_refused_alike(
    api_server: Cluster, request_line: str, content: object, kind: str, answer: tuple[int, str]
) -> None:
    method, path = request_line.split(" ")
    assert (await ask(api_server, method, path, content, kind))[:2] == answer


async def test_a_path_that_leads_nowhere_is_not_found(api_server: Cluster) -> None:
    assert (await ask(api_server, "GET", "/apis/example.com/v1/nothings"))[0] == 404
    assert (await ask(api_server, "GET", "/apis/resource.k8s.io/v1alpha9"))[0] == 404


async def test_the_group_of_devices_is_served(api_server: Cluster) -> None:
    _, _, read = await ask(api_server, "GET", "/apis/resource.k8s.io/v1")
    names = {entry["name"] for entry in read["resources"]}
    assert {"resourceclaims", "resourceclaims/status", "resourceslices", "deviceclasses"} <= names
    _, _, listed = await ask(api_server, "GET", "/apis")
    (group,) = (each for each in listed["groups"] if each["name"] == "resource.k8s.io")
    assert "resource.k8s.io/v1" in [entry["groupVersion"] for entry in group["versions"]]


async def test_a_name_is_taken_once(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    assert (await ask(api_server, "POST", CLAIMS, claim(item["metadata"]["name"])))[:2] == (409, "AlreadyExists")
    assert path.endswith(item["metadata"]["name"])


async def test_a_claim_is_created_without_a_status_and_with_defaults(api_server: Cluster) -> None:
    name = api_server.name("claim")
    read = await api_server.create(CLAIMS, with_status(claim(name), allocation=allocation()))
    assert read["status"] == {}
    exactly = read["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["allocationMode"], exactly["count"]) == ("ExactCount", 1)


async def test_a_claim_is_not_asked_for_anew(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    other = {**item, "spec": {"devices": {"requests": []}}}
    assert (await ask(api_server, "PUT", path, other))[:2] == (422, "Invalid")


async def test_an_object_that_was_modified_is_not_put(api_server: Cluster) -> None:
    path, item = await made(api_server, NODES, node)
    await api_server.do("PUT", path, with_metadata(item, labels={"a": "b"}))
    code, reason, read = await ask(api_server, "PUT", path, with_metadata(item, labels={"a": "c"}))
    assert (code, reason) == (409, "Conflict")
    assert "the object has been modified; please apply your changes" in read["message"]
    assert (await ask(api_server, "PUT", path, with_metadata(item, uid="other", resourceVersion="")))[0] == 409


async def test_a_put_without_a_version_overwrites(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    await api_server.do("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    read = await api_server.do("PUT", path, with_metadata(item, resourceVersion=None, labels={"a": "c"}))
    assert read["metadata"]["labels"] == {"a": "c"}


async def test_a_write_that_changes_nothing_has_no_version_of_its_own(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    read = await api_server.do("PATCH", path, {"metadata": {"labels": None}}, MERGE)
    assert read["metadata"]["resourceVersion"] == item["metadata"]["resourceVersion"]


async def test_a_status_write_reaches_the_status_alone(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    changed = with_metadata(with_status(item, allocation=allocation()), finalizers=[FINALIZER], labels={"a": "b"})
    read = await api_server.do("PUT", f"{path}/status", changed)
    assert read["status"]["allocation"]["devices"] == allocation()["devices"]
    assert "finalizers" not in read["metadata"]
    assert "labels" not in read["metadata"]


async def test_what_drivers_say_of_devices_goes_with_them(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    given = allocation()["devices"]["results"][0]
    said = {name: given[name] for name in ("driver", "pool", "device")}
    read = await api_server.do("PUT", f"{path}/status", with_status(item, allocation=allocation(), devices=[said]))
    # Of conditions that nobody has reported the real one may say that there are none.
    assert [entry["device"] for entry in read["status"]["devices"]] == [given["device"]]
    freed = [{"op": "remove", "path": "/status/allocation"}]
    read = await api_server.do("PATCH", f"{path}/status", freed, PATCH)
    assert not read.get("status", {}).get("devices")


async def test_a_write_to_the_object_does_not_reach_its_status(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    read = await api_server.do(
        "PUT", path, with_metadata(with_status(item, allocation=allocation()), labels={"a": "b"})
    )
    assert read["status"] == {}
    assert read["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        pytest.param([{"op": "test", "path": "/metadata/name", "value": "no"}], PATCH, id="test"),
        pytest.param([{"op": "remove", "path": "/metadata/labels"}], PATCH, id="remove"),
        pytest.param([{"op": "replace", "path": "/metadata/no/no", "value": 1}], PATCH, id="replace"),
    ],
)
async def test_a_patch_that_does_not_apply_is_invalid(api_server: Cluster, patch: object, kind: str) -> None:
    path, _ = await made(api_server, CLAIMS, claim)
    code, reason, read = await ask(api_server, "PATCH", path, patch, kind)
    assert (code, reason) == (422, "Invalid")
    assert read["message"] == "the server rejected our request due to an error in our request"


async def test_what_has_finalizers_is_marked_and_goes_with_the_last(api_server: Cluster) -> None:
    path, _ = await made(api_server, CLAIMS, lambda name: claim(name, finalizers=[FINALIZER]))
    await api_server.do("DELETE", path)
    read = await api_server.do("GET", path)
    assert read["metadata"]["deletionTimestamp"]
    await api_server.do("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    assert (await ask(api_server, "GET", path))[0] == 404


async def test_only_the_object_that_is_meant_is_deleted(api_server: Cluster) -> None:
    path, item = await made(api_server, CLAIMS, claim)
    assert (await ask(api_server, "DELETE", path, {"preconditions": {"uid": "other"}}))[:2] == (409, "Conflict")
    await api_server.do("DELETE", path, {"preconditions": {"uid": item["metadata"]["uid"]}})


async def test_a_binding_answers_with_a_status(api_server: Cluster) -> None:
    path, item = await made(api_server, PODS, pod)
    binding = {"metadata": {"name": item["metadata"]["name"]}, "target": {"kind": "Node", "name": "n"}}
    code, _, read = await ask(api_server, "POST", f"{path}/binding", binding)
    assert (code, read["kind"], read["status"]) == (201, "Status", "Success")
    bound = await api_server.do("GET", path)
    assert bound["spec"]["nodeName"] == "n"
    assert [(entry["type"], entry["status"]) for entry in bound["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_binding_takes_a_nomination_away(api_server: Cluster) -> None:
    path, item = await made(api_server, PODS, pod)
    await api_server.do("PATCH", f"{path}/status", {"status": {"nominatedNodeName": "n"}}, MERGE)
    binding = {"metadata": {"name": item["metadata"]["name"]}, "target": {"kind": "Node", "name": "n"}}
    await ask(api_server, "POST", f"{path}/binding", binding)
    assert "nominatedNodeName" not in (await api_server.do("GET", path))["status"]


async def test_a_pod_without_a_node_goes_at_once(api_server: Cluster) -> None:
    path, _ = await made(api_server, PODS, lambda name: pod(name, terminationGracePeriodSeconds=30))
    await api_server.do("DELETE", path)
    assert (await ask(api_server, "GET", path))[0] == 404


async def test_a_list_says_how_much_is_left(api_server: Cluster) -> None:
    for _ in range(3):
        await made(api_server, NODES, node)
    _, _, first = await ask(api_server, "GET", f"{NODES}?limit=2")
    assert len(first["items"]) == 2
    assert first["metadata"]["remainingItemCount"] >= 1
    _, _, whole = await ask(api_server, "GET", NODES)
    assert "continue" not in whole["metadata"]
    assert "kind" not in whole["items"][0]


def node(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
