"""Captured bodies become those of other pods and nodes, and stay what kube-scheduler sends."""

import json

import pytest

from extender.model.node import Pod
from extender.web.request import binding_of, candidates_of
from loadtests.load.bodies import VERBS, Who, binding, captured, claim_in, made, who_in, window
from loadtests.verbs.world import SHAPES

WHO = Who("load", "load-one-1", "00000001-0000-4000-8000-000000000000")
NAMES = [f"node-{number:05d}.example.com" for number in range(15_000)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_was_captured_and_the_hopeless_one_was_never_bound(shape: str) -> None:
    verbs = VERBS[:1] if shape == "hopeless" else VERBS
    assert all(captured(shape, verb) for verb in verbs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 100, 15_000])
def test_a_body_is_made_that_of_another_pod_with_its_own_claim(shape: str, count: int) -> None:
    body = made(captured(shape, "filter"), WHO, NAMES[:count])
    assert who_in(body) == WHO
    assert claim_in(body) == "load-one-1-gpus"
    read = candidates_of(body)
    assert isinstance(read.pod, Pod)
    assert (read.pod.key.namespace, read.pod.key.name, read.pod.uid) == WHO
    assert list(read.names) == NAMES[:count]


def test_nothing_but_the_pod_its_claim_and_the_nodes_is_changed() -> None:
    before, after = captured("one", "filter"), made(captured("one", "filter"), WHO, ["n"])
    old, new = json.loads(before), json.loads(after)
    assert old["Pod"]["spec"] == new["Pod"]["spec"]
    assert list(old) == list(new)
    again = made(after, who_in(before), old["NodeNames"])
    assert again.replace(b"captured-one-gpus", claim_in(before).encode()) == before


def test_a_body_without_names_is_refused() -> None:
    body = captured("one", "filter").replace(b'"NodeNames":', b'"Others":')
    with pytest.raises(ValueError, match="no names of nodes"):
        made(body, WHO, ["n"])


def test_a_binding_has_the_fields_that_were_captured() -> None:
    body = binding(captured("one", "bind"), WHO, "n1")
    read = binding_of(body)
    assert ((read.pod.namespace, read.pod.name, read.uid), read.node) == (WHO, "n1")
    assert list(json.loads(body)) == list(json.loads(captured("one", "bind")))


@pytest.mark.parametrize(
    ("turn", "size", "found"),
    [(0, 2, "ab"), (1, 2, "cd"), (2, 2, "ea"), (3, 2, "bc"), (7, 5, "abcde"), (0, 1, "a")],
)
def test_windows_take_turns_and_go_round(turn: int, size: int, found: str) -> None:
    assert window("abcde", turn, size) == list(found)
