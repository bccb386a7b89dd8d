"""DeviceTaintRules, v1alpha3 of Kubernetes 1.33 and 1.34 included."""

import pytest

from extender.model.names import ClassName, DeviceName, DriverName, PoolName
from extender.model.parse import parse_rule
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from tests.model.parse.exemplars import RULE
from tests.model.parse.reading import changed, fault


def test_a_taint_rule_has_everything() -> None:
    selector = TaintSelector(driver=DriverName("gpu.example.com"), pool=PoolName("n1"), device=DeviceName("gpu-0"))
    taint = Taint(key="sick", value="very", effect="NoExecute")
    assert parse_rule(RULE) == DeviceTaintRule(name="sick", selector=selector, taint=taint)


@pytest.mark.parametrize(
    ("selector", "read"),
    [
        (None, None),
        ({}, TaintSelector()),
        ({"driver": ""}, TaintSelector(driver=DriverName(""))),
        ({"deviceClassName": "gpu"}, TaintSelector(class_name=ClassName("gpu"))),
        (
            {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}, {}]},
            TaintSelector(class_name=ClassName("gpu"), expressions=("true", None)),
        ),
    ],
    ids=["absent", "empty", "an empty name", "v1alpha3, a class", "v1alpha3, selectors too"],
)
def test_the_selector_of_a_taint_rule(selector: object, read: TaintSelector | None) -> None:
    rule = parse_rule(changed(RULE, "spec", "deviceSelector", value=selector))
    assert isinstance(rule, DeviceTaintRule)
    assert rule.selector == read


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("metadata", "name"), None, "metadata.name: is required"),
        (("spec", "deviceSelector"), [], "spec.deviceSelector: is no JSON object"),
        (("spec", "deviceSelector", "pool"), 1, "spec.deviceSelector.pool: is no string"),
        (("spec", "deviceSelector", "color"), "red", "spec.deviceSelector.color: is a field that is not known here"),
        (("spec", "deviceSelector", "selectors"), [1], "spec.deviceSelector.selectors[0]: is no JSON object"),
        (("spec", "taint", "effect"), 1, "spec.taint.effect: is no string"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_malformed_rule_is_a_problem_that_names_the_field(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    assert fault(changed(RULE, *path, value=value)) == f"DeviceTaintRule: {problem}"
