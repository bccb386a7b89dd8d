"""The checker accepts what is right and notices what is not: rule by rule, and wherever an answer is changed."""

from copy import deepcopy
from typing import Any

import pytest

from tests.allocation.checker import violations
from tests.allocation.clusters import question
from tests.allocation.planted import PLANTED, Change, changed
from tests.allocation.sound import BASE
from tests.allocation.table import cases
from tests.oracle_program import Oracle

Json = dict[str, Any]
# Upstream has those consume of a shared device who only look into it (appendix A 5).
LOOKED_INTO = "consumedCapacity of what is looked into only"


def test_sound_allocation_is_accepted() -> None:
    case, allocations = deepcopy(BASE)
    assert violations(case, case["node"], allocations) == []


@pytest.mark.parametrize(("change", "expected"), PLANTED.values(), ids=PLANTED)
def test_planted_violation_is_noticed(change: Change, expected: str) -> None:
    case, allocations = deepcopy(BASE)
    change(case, allocations)
    found = violations(case, case["node"], allocations)
    assert any(expected in problem for problem in found), found


def test_every_result_of_upstream_table_is_accepted() -> None:
    answered = [case for case in cases() if case["results"]]
    found = {case["name"]: violations(case, case["node"], case["results"]) for case in answered}
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert len(answered) == 163


def test_every_change_of_upstream_results_is_noticed() -> None:
    unnoticed = []
    for case in cases():
        for what, allocations in changed(case["results"]):
            if not violations(case, case["node"], allocations):
                unnoticed.append((case["name"], what))
    assert unnoticed == []


def test_drawn_answers_are_accepted_and_their_changes_noticed(oracle: Oracle) -> None:
    drawn = [question(f"checker {number}") for number in range(250)]
    refused, unnoticed, accepted, changes = [], [], 0, 0
    for case, answer in zip(drawn, oracle.ask("allocate", drawn), strict=True):
        for node in case["nodes"]:
            allocations = answer["nodes"][node["metadata"]["name"]]["allocations"] or []
            problems = violations(case, node, allocations) if allocations else []
            if all(LOOKED_INTO in problem for problem in problems):
                accepted += bool(allocations)
            else:
                refused.append((case["name"], problems))
            for what, other in changed([] if problems else allocations):
                changes += 1
                if not violations(case, node, other):
                    unnoticed.append((case["name"], what))
    assert (refused, unnoticed) == ([], [])
    assert accepted > 100
    assert changes > 1000
