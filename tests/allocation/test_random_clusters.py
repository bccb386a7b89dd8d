"""Drawn clusters: the same answers as kube-scheduler's allocator, node by node; with a preference, sound ones."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from extender.allocation.features import GATES, Features
from extender.cli.allocate import MANNERS, answer
from tests.allocation.checker import violations
from tests.allocation.clusters import question
from tests.allocation.comparison import summary
from tests.allocation.defects import charges_who_only_looks, without_use_of_lookers
from tests.oracle_program import Oracle

Json = dict[str, Any]
CASES = int(os.environ.get("DRA_CASES", "500"))
BATCH = 1000
# What the drawn questions and their answers must have had in them, each in at least one case of a hundred.
ASKED = (
    "All",
    "NoExecute",
    "a-rack/fabric",
    "adminAccess",
    "allocated",
    "allowMultipleAllocations",
    "allNodes",
    "bindingConditions",
    "bindsToNode",
    "bools",
    "capacity",
    "compatibilityGroups",
    "config",
    "consumesCounters",
    "declaredFeatures",
    "derivedAttributes",
    "distinctAttribute",
    "features",
    "firstAvailable",
    "ints",
    "matchAttribute",
    "matchFields",
    "nodeSelector",
    "perDeviceNodeSelection",
    "r0/s0",
    "requestPolicy",
    "skipNodeOperations",
    "strings",
    "taintRules",
    "taints",
    "tolerations",
    "usedCapacity",
    "usedDevices",
    "usedShares",
    "validRange",
    "validValues",
    "versions",
    "withdrawn",
)
BY_DEFAULT = [gate for gate, field in GATES.items() if getattr(Features(), field)]
# Devices as errors name them.
DEVICE = re.compile(r"(?:gpu|nic)\.example\.com/[\w/-]+/d\d+")
GIVEN = (
    "adminAccess",
    "bindingConditions",
    "config",
    "consumedCapacity",
    "matchExpressions",
    "metadata.name",
    "shareID",
    "skipNodeOperations",
    "tolerations",
    "r0/s0",
    "r0/s1",
)


def ours(case: Json, order: str) -> dict[str, Json]:
    told = answer(json.dumps(case).encode(), MANNERS[order])
    assert "error" not in told, (case["name"], told)
    nodes: dict[str, Json] = told["nodes"]
    return nodes


def conversations(oracle: Oracle) -> Iterator[tuple[Json, dict[str, Json]]]:
    """Yield drawn questions with the oracle's answers, as few processes as memory allows."""
    for start in range(0, CASES, BATCH):
        drawn = [question(number) for number in range(start, min(start + BATCH, CASES))]
        for case, told in zip(drawn, oracle.ask("allocate", drawn), strict=True):
            yield case, told["nodes"]


def difference(case: Json, node: Json, mine: Json, theirs: Json) -> str:
    """Say in what two answers for one node differ that should not; nothing where they do not."""
    if mine["fits"] is None:
        return "not decided"
    left, right = summary(mine), summary(theirs)
    if left == right:
        left_at, right_at = _met_at(mine), _met_at(theirs)
        is_other = left_at and right_at and left_at != right_at and not charges_who_only_looks(case, node)
        return "the device that an error is about" if is_other else ""
    differing = ", ".join(key for key in left if left[key] != right[key])
    if not charges_who_only_looks(case, node):
        return differing
    left["allocations"] = without_use_of_lookers(left["allocations"])
    right["allocations"] = without_use_of_lookers(right["allocations"])
    if left == right or (mine["fits"] and not violations(case, node, mine["allocations"])):
        return ""
    # Charged for nothing upstream takes another path, which may miss an error; but it finds nothing that we could not.
    return differing if theirs["fits"] and not mine["nodeError"] and not mine["fatalError"] else ""


def _met_at(told: Json) -> list[str]:
    """Return the device that an error is about. Of several errors another may be met first that is about none."""
    return DEVICE.findall(told["nodeError"] or told["fatalError"])[:1]


def preferred_difference(case: Json, node: Json, mine: Json, theirs: Json) -> str:
    """Say what is wrong with an answer of which only fit and error must be those of the oracle."""
    if mine["fits"] is None:
        return "not decided"
    problems = violations(case, node, mine["allocations"]) if mine["fits"] else []
    if problems:
        return "; ".join(problems)
    erred = bool(mine["nodeError"] or mine["fatalError"])
    if (mine["fits"], erred) == (theirs["fits"], bool(theirs["nodeError"] or theirs["fatalError"])):
        return ""
    return "" if charges_who_only_looks(case, node) and not (theirs["fits"] and not erred) else "fits or error"


@pytest.mark.parametrize(("order", "compare"), [("first", difference), ("best", preferred_difference)])
def test_drawn_clusters_get_the_answers_of_kubernetes(oracle: Oracle, order: str, compare: Any) -> None:
    different = []
    for case, theirs in conversations(oracle):
        mine = ours(case, order)
        assert mine.keys() == theirs.keys()
        for node in case["nodes"]:
            name = node["metadata"]["name"]
            if wrong := compare(case, node, mine[name], theirs[name]):
                different.append((case["name"], name, wrong))
    assert different == []


def test_drawn_clusters_get_the_answers_of_the_variant_that_is_used_where_nobody_sets_a_gate(oracle: Oracle) -> None:
    drawn = [question(f"default {number}") | {"features": BY_DEFAULT} for number in range(CASES // 4)]
    # That variant gives devices that skip node operations, whatever the gate says: such questions are left out.
    compared = [case for case in drawn if not any("skipNodeOperations" in item["spec"] for item in case["slices"])]
    assert len(compared) > len(drawn) * 3 // 4
    told = oracle.ask("allocate", [case | {"allocator": "incubating"} for case in compared])
    different = []
    for case, theirs in zip(compared, told, strict=True):
        for order, compare in (("first", difference), ("best", preferred_difference)):
            mine = ours(case, order)
            for node in case["nodes"]:
                name = node["metadata"]["name"]
                if wrong := compare(case, node, mine[name], theirs["nodes"][name]):
                    different.append((case["name"], name, order, wrong))
    assert different == []


@pytest.mark.parametrize("order", MANNERS)
def test_allocations_in_drawn_clusters_break_no_rule(order: str) -> None:
    broken = []
    for case in map(question, range(min(CASES, 500))):
        for name, told in ours(case, order).items():
            node = next(node for node in case["nodes"] if node["metadata"]["name"] == name)
            if problems := violations(case, node, told["allocations"]) if told["fits"] else []:
                broken.append((case["name"], name, problems))
    assert broken == []


@pytest.mark.parametrize("order", MANNERS)
def test_drawn_clusters_get_the_same_answers_twice(order: str) -> None:
    for case in map(question, range(100)):
        before, after = ours(case, order), ours(case, order)
        assert {name: summary(told) for name, told in before.items()} == {
            name: summary(told) for name, told in after.items()
        }


def test_questions_follow_from_their_seeds_and_cover_every_feature(oracle: Oracle) -> None:
    count = 1000
    drawn = [question(f"coverage {number}") for number in range(count)]
    assert drawn == [question(f"coverage {number}") for number in range(count)]
    answers = [told["nodes"] for told in oracle.ask("allocate", drawn)]
    fits = [any(told["fits"] for told in nodes.values()) for nodes in answers]
    assert 0.45 < sum(fits) / count < 0.55
    asked = Counter(name for case in map(json.dumps, drawn) for name in ASKED if f'"{name}"' in case)
    given = Counter(name for nodes in map(json.dumps, answers) for name in GIVEN if f'"{name}"' in nodes)
    assert {name for name in ASKED if asked[name] < count / 100} == set()
    assert {name for name in GIVEN if given[name] < count / 100} == set()
