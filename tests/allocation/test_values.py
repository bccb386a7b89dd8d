"""What constraints compare, in questions that kube-scheduler's allocator is asked as well."""

import json
from typing import Any

import pytest

from extender.cli.allocate import MANNERS, answer
from tests.allocation.test_intended_rules import GPU, asked, device, exact, published
from tests.oracle_program import Oracle

Json = dict[str, Any]
# More than uint64 holds, so that no selector can read it: the API takes numbers of any length.
LONG = "99999999999999999999.0.0"
ATTRIBUTE = f"{GPU}/a"
MATCH, DISTINCT = {"matchAttribute": ATTRIBUTE}, {"distinctAttribute": ATTRIBUTE}
WITHOUT_LISTS = ["DRAConsumableCapacity"]


def question(constraint: Json, *values: Json, count: int = 2, **fields: Any) -> Json:
    devices = [device(f"d{number}", attributes={"a": value}) for number, value in enumerate(values)]
    return asked([published(GPU, *devices)], exact("r", count), constraints=[constraint], **fields)


CASES = {
    "alike": (question(MATCH, {"version": LONG}, {"version": LONG}), True),
    "not alike": (question(MATCH, {"version": LONG}, {"version": "1.0.0"}), False),
    "a version and a string": (question(MATCH, {"version": LONG}, {"string": LONG}), False),
    "distinct": (question(DISTINCT, {"version": LONG}, {"version": f"{LONG}-a"}), True),
    "not distinct": (question(DISTINCT, {"version": LONG}, {"version": LONG}), False),
    "one of a list": (question(MATCH, {"versions": ["1.0.0", LONG]}, {"version": LONG}), True),
    "a list of others": (question(MATCH, {"versions": ["1.0.0", LONG]}, {"version": "2.0.0"}), False),
    "alike, lists off": (question(MATCH, {"version": LONG}, {"version": LONG}, features=WITHOUT_LISTS), True),
    "a list, lists off": (question(MATCH, *[{"versions": [LONG]}] * 2, features=WITHOUT_LISTS), False),
    "no value": (question(MATCH, {}, count=1), False),
}


@pytest.mark.parametrize("order", MANNERS)
@pytest.mark.parametrize(("case", "fits"), CASES.values(), ids=CASES)
def test_rules_compare_versions_that_cannot_be_read_by_their_texts(case: Json, order: str, *, fits: bool) -> None:
    assert answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["n1"]["fits"] is fits


def test_kubernetes_says_the_same(oracle: Oracle) -> None:
    told = oracle.ask("allocate", [case for case, _ in CASES.values()])
    assert [item["nodes"]["n1"]["fits"] for item in told] == [fits for _, fits in CASES.values()]


@pytest.mark.parametrize("order", MANNERS)
def test_selectors_err_on_a_device_with_a_version_that_cannot_be_read(order: str) -> None:
    case = question(MATCH, {"version": LONG}, count=1)
    (request,) = case["claims"][0]["spec"]["devices"]["requests"]
    request["exactly"]["selectors"] = [{"cel": {"expression": "true"}}]
    told = answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["n1"]
    assert (told["fits"], LONG in told["fatalError"] + told["nodeError"]) == (False, True)
