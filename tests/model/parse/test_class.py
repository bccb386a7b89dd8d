"""DeviceClasses."""

from typing import Any

import pytest

from extender.model.claim import DeviceClass, DeviceConfig, Selector
from extender.model.names import ClassName
from extender.model.parse import parse_class
from tests.model.parse.exemplars import CLASS, OPAQUE
from tests.model.parse.reading import changed, fault


def read_class(raw: dict[str, Any]) -> DeviceClass:
    read = parse_class(raw)
    assert isinstance(read, DeviceClass), read
    return read


def test_a_class_has_everything() -> None:
    assert read_class(CLASS) == DeviceClass(
        name=ClassName("gpu"),
        selectors=(Selector("device.driver == 'gpu.example.com'"),),
        config=(DeviceConfig(opaque=OPAQUE),),
        extended_resource="example.com/gpu",
        created="2026-01-01T00:00:00Z",
    )


def test_a_class_needs_a_name_only() -> None:
    assert read_class({"metadata": {"name": "any"}}) == DeviceClass(name=ClassName("any"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("spec", "newThing"), "newThing"),
        (("spec", "config", 0, "newThing"), "config.newThing"),
        (("spec", "selectors", 0, "newThing"), "selectors.newThing"),
        (("spec", "selectors", 0, "cel", "newThing"), "selectors.cel.newThing"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_an_unknown_field_of_a_class_is_remembered(path: tuple[str | int, ...], found: str) -> None:
    assert read_class(changed(CLASS, *path, value=1)).unknown_fields == (found,)


def test_a_selector_of_another_kind_has_no_expression_and_is_remembered() -> None:
    read = read_class(changed(CLASS, "spec", "selectors", 0, value={"rego": {}}))
    assert (read.selectors, read.unknown_fields) == ((Selector(None),), ("selectors.rego",))


def test_the_suitable_nodes_of_classic_claims_are_passed_over() -> None:
    assert read_class(changed(CLASS, "spec", "suitableNodes", value={})) == read_class(CLASS)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("metadata",), None, "metadata.name: is required"),
        (("spec",), "x", "spec: is no JSON object"),
        (("spec", "selectors"), {}, "spec.selectors: is no list"),
        (("spec", "selectors", 0, "cel"), "true", "spec.selectors[0].cel: is no JSON object"),
        (("spec", "selectors", 0, "cel", "expression"), 1, "spec.selectors[0].cel.expression: is no string"),
        (("spec", "config", 0, "opaque"), [], "spec.config[0].opaque: is no JSON object"),
        (("spec", "extendedResourceName"), 1, "spec.extendedResourceName: is no string"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_class_is_a_problem_that_names_the_field(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    assert fault(changed(CLASS, *path, value=value)) == f"DeviceClass: {problem}"
