"""What constraints compare, in questions that kube-scheduler's allocator is asked as well."""

import json
from typing import Any

import pytest

from extender.cli.allocate import MANNERS, answer
from tests.allocation.test_intended_rules import GPU, asked, device, exact, published, results
from tests.oracle_program import Oracle

Json = dict[str, Any]
# More than uint64 holds, so that no selector can read it: the API takes numbers of any length.
LONG = "99999999999999999999.0.0"
ATTRIBUTE = f"{GPU}/a"
MATCH, DISTINCT = {"matchAttribute": ATTRIBUTE}, {"distinctAttribute": ATTRIBUTE}
WITHOUT_LISTS = ["DRAConsumableCapacity"]


def devices_with(*values: Json) -> list[Json]:
    return [device(f"d{number}", attributes={"a": value}) for number, value in enumerate(values)]


def question(constraint: Json, *values: Json, count: int = 2, **fields: Any) -> Json:
    devices = devices_with(*values)
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
def test_rules_compare_what_cannot_be_read_as_kubernetes_does(case: Json, order: str, *, fits: bool) -> None:
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


def lists_preferred() -> dict[str, tuple[Json, list[tuple[str, str]]]]:
    """Ask where a device with a list would be preferred, but could only come first; with what is given instead."""
    texts = [{"string": text} for text in "vwxyz"]
    pools = [
        published(GPU, *devices_with(*texts[:3]), pool="large"),
        published(GPU, *devices_with({"strings": ["a"]}), pool="small"),
    ]
    for item in pools:
        item["spec"]["pool"]["resourceSliceCount"] = 1
    devices = devices_with({"strings": ["a"]}, *texts)
    for item in devices[:2]:
        item["attributes"]["few"] = {"bool": True}
    slots = [
        exact(name, selectors=[{"cel": {"expression": f"{sign}has(device.attributes['{GPU}'].few)"}}])
        for name, sign in (("many", "!"), ("few", ""))
    ]
    fields: Json = {"constraints": [DISTINCT], "features": WITHOUT_LISTS}
    return {
        "of the fullest pool": (
            asked(pools, exact("r", 2), **fields, whole=False),
            [("large", "d0"), ("large", "d1")],
        ),
        "for whom there are fewest": (
            asked([published(GPU, *devices)], *slots, **fields),
            [("n1", "d2"), ("n1", "d1")],
        ),
    }


@pytest.mark.parametrize("order", MANNERS)
@pytest.mark.parametrize(("case", "given"), lists_preferred().values(), ids=lists_preferred())
def test_a_list_that_is_not_understood_comes_first_or_not_at_all(
    case: Json, given: list[tuple[str, str]], order: str
) -> None:
    told = answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["n1"]
    assert [(item["pool"], item["device"]) for item in results(told)] == given
