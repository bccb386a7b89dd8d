"""Nodes."""

import pytest

from extender.model.names import NodeName
from extender.model.node import Node
from extender.model.parse import parse_node
from extender.model.quantity import parse_quantity
from tests.model.parse.exemplars import NODE
from tests.model.parse.reading import changed, fault


def test_a_node_has_everything() -> None:
    assert parse_node(NODE) == Node(
        name=NodeName("n1"),
        labels=(("zone", "a"),),
        allocatable=(("cpu", parse_quantity("8")), ("memory", parse_quantity("32Gi"))),
        declared_features=("DRAOptionalNodeOperations",),
        annotations=(("x", "y"),),
        is_unschedulable=True,
    )


def test_a_node_needs_a_name_only() -> None:
    assert parse_node({"metadata": {"name": "n1"}, "spec": None}) == Node(name=NodeName("n1"))


def test_labels_are_sorted_by_name_and_null_is_empty() -> None:
    read = parse_node(changed(NODE, "metadata", "labels", value={"b": "2", "a": None, "c": ""}))
    assert isinstance(read, Node)
    assert read.labels == (("a", ""), ("b", "2"), ("c", ""))


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("metadata", "name"), "", "metadata.name: is required"),
        (("metadata", "labels"), {"b": "x", "a": 1}, "metadata.labels[a]: is no string"),
        (("metadata", "labels"), [], "metadata.labels: is no JSON object"),
        (("spec", "unschedulable"), "yes", "spec.unschedulable: is neither true nor false"),
        (("status", "allocatable", "cpu"), None, "status.allocatable[cpu]: is required"),
        (("status", "declaredFeatures"), "x", "status.declaredFeatures: is no list"),
        (("status", "declaredFeatures"), ["x", 1], "status.declaredFeatures[1]: is no string"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_node_is_a_problem_that_names_the_field(path: tuple[str, ...], value: object, problem: str) -> None:
    assert fault(changed(NODE, *path, value=value)) == f"Node: {problem}"
