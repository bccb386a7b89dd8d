import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, product
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.scheduling.endings import Order
from extender.web.names import plain_names
from extender.web.request import Unreadable, binding_of, candidates_of, eviction_of
from extender.web.verbs import Victims
from tests.oracle_program import Oracle
from tests.web.record import BODIES, NAMES, NODES, POD, recorded, written_by_go

PATHS = pytest.mark.parametrize("quick_from", [0, sys.maxsize], ids=["quick", "plain"])


def test_the_recorded_bodies_are_what_go_writes(oracle: Oracle) -> None:
    assert {name: recorded(name) for name in BODIES} == written_by_go(oracle)


@PATHS
@pytest.mark.parametrize("name", [name for name, (verb, _) in BODIES.items() if verb in ("filter", "prioritize")])
def test_a_body_of_the_scheduler_is_read_in_both_node_modes(name: str, quick_from: int) -> None:
    asked = candidates_of(recorded(name), quick_from)
    assert isinstance(asked.pod, Pod)
    assert asked.pod.key == ObjectKey("lab", "trainer-0")
    wanted = BODIES[name][1].get("NodeNames", ["worker-1", "worker-2"])
    assert (asked.names, orjson.loads(asked.names.json)) == (wanted, wanted)
    assert (asked.nodes is not None) == (name == "filter-nodes")


@PATHS
def test_names_are_found_whole_and_nothing_else_is(quick_from: int) -> None:
    body = orjson.dumps({"Pod": POD, "NodeNames": ["worker-1", "worker-12"]})
    asked = candidates_of(body, quick_from).names
    assert [name in asked for name in ("worker-1", "worker-12", "worker", "orker-1", "worker-2")] == [True] * 2 + [
        False
    ] * 3
    assert list(asked) == ["worker-1", "worker-12"]


def test_whole_nodes_are_kept_verbatim() -> None:
    nodes = candidates_of(recorded("filter-nodes")).nodes
    assert nodes is not None
    written = orjson.loads(recorded("filter-nodes"))["Nodes"]["items"]
    assert list(nodes.values()) == written
    assert [node["metadata"] for node in written] == [node["metadata"] for node in NODES["items"]]


def test_victims_are_read_by_uid_in_both_modes() -> None:
    victims = {"worker-1": Victims((Uid("victim-1"),), 1), "worker-2": Victims(())}
    assert eviction_of(recorded("preempt-meta")).victims == victims
    assert eviction_of(recorded("preempt-whole")).victims == victims


def test_bind_says_which_pod_and_which_node() -> None:
    uid = Uid("8d3f8c1e-6d0f-4b3a-9f57-0c5f2a8e7f11")
    wanted = Order(ObjectKey("lab", "trainer-0"), uid, NodeName("worker-1"))
    assert binding_of(recorded("bind")) == wanted


@PATHS
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(b"", "the body is no JSON", id="empty"),
        pytest.param(b"<html>", "the body is no JSON", id="html"),
        pytest.param(b"[]", "the body is no JSON object", id="list"),
        pytest.param(b"{}", "NodeNames: neither these nor Nodes are there", id="nothing"),
        pytest.param(b'{"NodeNames":["a"]}', "Pod: is required", id="no-pod"),
        pytest.param(b'{"Pod":3,"NodeNames":["a"]}', "Pod: is no JSON object", id="pod-number"),
        pytest.param(b'{"Pod":{},"NodeNames":"a"}', "NodeNames: is no list", id="names-text"),
        pytest.param(b'{"Pod":{},"NodeNames":["a",3]}', "NodeNames[1]: is no string", id="name-number"),
        pytest.param(b'{"Pod":{},"Nodes":[]}', "Nodes: is no JSON object", id="nodes-list"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[{}]}}', "Nodes.items[0].metadata.name: is required", id="nameless"),
    ],
)
def test_a_body_of_another_shape_is_refused_with_its_field(body: bytes, complaint: str, quick_from: int) -> None:
    with pytest.raises(Unreadable) as caught:
        candidates_of(body, quick_from)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param({"NodeNameToMetaVictims": []}, "NodeNameToMetaVictims: is no JSON object", id="list"),
        pytest.param(
            {"NodeNameToMetaVictims": {"a": 1}}, "NodeNameToMetaVictims[a]: is no JSON object", id="victims-number"
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"a": {"Pods": [{}]}}},
            "NodeNameToMetaVictims[a].Pods[0].UID: is required",
            id="no-uid",
        ),
        pytest.param(
            {"NodeNameToVictims": {"a": {"NumPDBViolations": 1.5}}},
            "NodeNameToVictims[a].NumPDBViolations: is no integer",
            id="fraction",
        ),
        pytest.param({}, "Pod: is required", id="nothing"),
    ],
)
def test_a_preemption_of_another_shape_is_refused_with_its_field(body: object, complaint: str) -> None:
    with pytest.raises(Unreadable) as caught:
        eviction_of(orjson.dumps(body))
    assert str(caught.value) == complaint


@pytest.mark.parametrize("missing", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_binding_needs_each_of_its_fields(missing: str) -> None:
    body = orjson.loads(recorded("bind"))
    del body[missing]
    with pytest.raises(Unreadable) as caught:
        binding_of(orjson.dumps(body))
    assert str(caught.value) == f"{missing}: is required"


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        pytest.param({**POD, "spec": {"resourceClaims": [{}]}}, "spec.resourceClaims[0].name", id="claim"),
        pytest.param({**POD, "spec": {"priority": "high"}}, "spec.priority", id="priority"),
        pytest.param({"metadata": {"name": "p", "namespace": "n"}}, "metadata.uid", id="uid"),
        pytest.param({"metadata": {"name": "p", "namespace": "n", "uid": "u" * 129}}, "metadata.uid", id="long-uid"),
        pytest.param({"metadata": {"name": "p", "namespace": "n", "uid": "a\nb"}}, "metadata.uid", id="odd-uid"),
        pytest.param({"metadata": {"name": "p" * 254, "namespace": "n", "uid": "u"}}, "metadata.name", id="long-name"),
        pytest.param({"metadata": {"name": "P", "namespace": "n", "uid": "u"}}, "metadata.name", id="odd-name"),
        pytest.param({"metadata": {"name": "p", "namespace": "a/b", "uid": "u"}}, "metadata.namespace", id="namespace"),
    ],
)
def test_a_pod_that_cannot_be_read_is_a_problem_with_its_field(pod: object, path: str) -> None:
    asked = candidates_of(orjson.dumps({"Pod": pod, "NodeNames": NAMES}))
    assert isinstance(asked.pod, Problem)
    assert asked.pod.path == path


def test_fields_that_we_do_not_know_are_tolerated() -> None:
    body = {"Pod": {**POD, "spec": {"future": [1]}, "extra": {}}, "Later": 1, "NodeNames": NAMES}
    assert isinstance(candidates_of(orjson.dumps(body)).pod, Pod)


# Names of any characters, and more often those that look like the JSON around them.
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.text('",[]\\{}:a', max_size=4)


@given(st.lists(NAME, max_size=6))
def test_both_paths_read_the_same_names(names: list[str]) -> None:
    body = orjson.dumps({"Pod": POD, "Nodes": None, "NodeNames": names})
    quick, plain = candidates_of(body, 0), candidates_of(body, sys.maxsize)
    assert quick == plain
    assert quick.names == names
    assert len(quick.names) == len(names)


@pytest.mark.parametrize("quick_from", [0, sys.maxsize])
def test_what_else_is_called_as_the_names_are_is_not_taken_for_them(quick_from: int) -> None:
    metadata = {**POD["metadata"], "labels": {"NodeNames": '"NodeNames":["x"]}'}}
    body = orjson.dumps({"Pod": {**POD, "metadata": metadata}, "NodeNames": ["b", "c"]})
    twice = body.replace(b'{"Pod"', b'{"NodeNames":["a"],"Pod"')
    assert twice != body
    assert candidates_of(body, quick_from).names == candidates_of(twice, quick_from).names == ["b", "c"]


@given(st.lists(NAME, max_size=4), st.binary(max_size=3), st.integers(1, 9), st.data())
def test_names_taken_for_plain_are_what_json_says(
    names: list[str], inserted: bytes, chunk: int, data: st.DataObject
) -> None:
    json = orjson.dumps(names)
    at = data.draw(st.integers(0, len(json)))
    damaged = json[:at] + inserted + json[at:]
    with patch("extender.web.names.CHUNK", chunk):
        found = plain_names(damaged)
    try:
        wanted = orjson.loads(damaged)
    except orjson.JSONDecodeError:
        assert found is None
        return
    assert found is None or found == wanted


@pytest.mark.parametrize("chunk", range(1, 6))
def test_strings_without_commas_are_plain_and_nothing_else_is(chunk: int) -> None:
    for letters in chain.from_iterable(product(b'",a', repeat=length) for length in range(8)):
        json = b'["' + bytes(letters) + b'"]'
        try:
            wanted = orjson.loads(json)
        except orjson.JSONDecodeError:
            wanted = [","]
        with patch("extender.web.names.CHUNK", chunk):
            found = plain_names(json)
        assert found == (None if any("," in name for name in wanted) else wanted)


JSON_PARTS = [b"null", b"[", b"]", b"{", b"}", b'"', b",", b":", b"1e400", b"-", b'"NodeNames":', b"\\ud800", b"\xff"]


def damaged(body: bytes, data: st.DataObject) -> bytes:
    """Replace some bytes by others."""
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        part = data.draw(st.binary(max_size=6) | st.sampled_from(JSON_PARTS))
        body = body[:at] + part + body[at + data.draw(st.integers(0, 9)) :]
    return body


@settings(max_examples=300)
@given(st.sampled_from(sorted(BODIES)), st.data())
def test_damaged_bodies_are_refused_or_read_but_never_crash(name: str, data: st.DataObject) -> None:
    body = damaged(recorded(name), data)
    for read in (partial(candidates_of, quick_from=0), candidates_of, eviction_of, binding_of):
        with suppress(Unreadable):
            read(body)


@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "Node"])
@pytest.mark.parametrize("name", ["../../x", "..", "p/status", "p?watch=true", "p q", "p\n", "Ü", "p" * 254])
def test_a_binding_names_nothing_that_would_be_another_path_at_the_api_server(field: str, name: str) -> None:
    body = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"} | {field: name}
    with pytest.raises(Unreadable, match=f"{field}: is no name of an object"):
        binding_of(orjson.dumps(body))


@pytest.mark.parametrize("quick_from", [0, 1 << 30], ids=["quick", "plain"])
def test_a_pod_that_is_known_in_that_version_is_not_read_again(quick_from: int) -> None:
    body = recorded("filter-names")
    read = candidates_of(body, quick_from).pod
    assert isinstance(read, Pod)
    asked, other = list[tuple[str, str]](), replace(read, priority=7)

    def known(uid: str, version: str) -> Pod:
        asked.append((uid, version))
        return other

    assert candidates_of(body, quick_from, known).pod is other
    assert asked == [(read.uid, read.resource_version)]
    assert candidates_of(body, quick_from, lambda _uid, _version: None).pod == read
