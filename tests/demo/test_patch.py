"""Patches do what their standards say."""

from copy import deepcopy
from typing import Any

import pytest

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.patch import apply_patch, json_patch, merge_patch

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": {"b": "c", "d": 1}}, {"a": {"b": None}}, {"a": {"d": 1}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "b"}, {"a": {"b": "c"}}, {"a": {"b": "c"}}),
        ({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
    ],
)
def test_a_merge_patch_follows_its_rfc(target: Json, patch: Json, result: Json) -> None:
    before = deepcopy(target)
    assert merge_patch(target, patch) == result
    assert target == before


@pytest.mark.parametrize(
    ("target", "steps", "result"),
    [
        ({}, [{"op": "add", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1, 3]}, [{"op": "remove", "path": "/a/0"}], {"a": [3]}),
        ({"a": [1, 3]}, [{"op": "replace", "path": "/a/0", "value": 2}], {"a": [2, 3]}),
        ({"x/y": 1, "~": 2}, [{"op": "remove", "path": "/x~1y"}, {"op": "remove", "path": "/~0"}], {}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
    ],
)
def test_a_json_patch_follows_its_rfc(target: Json, steps: list[Json], result: Json) -> None:
    before = deepcopy(target)
    assert json_patch(target, steps) == result
    assert target == before


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b/c", "value": 1},
        {"op": "fly", "path": "/a"},
    ],
)
def test_a_step_that_does_not_apply_is_invalid(step: Json) -> None:
    with pytest.raises(Failure) as refused:
        json_patch({"a": 1}, [step])
    assert refused.value.code == 422


STATUSES = {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}}


def test_what_is_applied_joins_what_is_there() -> None:
    entry = {"name": "b", "resourceClaimName": "y"}
    merged = apply_patch(STATUSES, {"status": {"resourceClaimStatuses": [entry]}})
    assert merged["status"]["resourceClaimStatuses"] == [*STATUSES["status"]["resourceClaimStatuses"], entry]
    assert apply_patch({}, merged) == apply_patch(merged, merged) == merged


@pytest.mark.parametrize("name", ["z", ""])
def test_what_is_applied_without_force_does_not_replace_what_somebody_else_says(name: str) -> None:
    with pytest.raises(Failure, match="resourceClaimName") as refused:
        apply_patch(STATUSES, {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": name}]}})
    assert refused.value.code == 409
