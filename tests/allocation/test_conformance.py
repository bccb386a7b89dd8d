"""Upstream's own table: with its order the same devices, with ours the same errors and the same nodes."""

from typing import Any

import pytest

from extender.allocation.solve import BEST, FIRST, Manner
from extender.cli.answer import answers, as_json
from extender.cli.case import case_of
from tests.allocation.checker import violations
from tests.allocation.comparison import normalised
from tests.allocation.table import FILE, Case, cases

ABSENT = pytest.param({"name": "absent"}, marks=pytest.mark.skip(f"{FILE.name} is not there"))
TABLE = [pytest.param(case, id=case["name"]) for case in cases()] if FILE.exists() else [ABSENT]


def answered(case: Case, manner: Manner) -> dict[str, Any]:
    (answer,) = answers(case_of(case), manner)
    return as_json(answer)


def fits(case: Case) -> bool:
    """Without a claim there is nothing that could not be satisfied."""
    return bool(case["results"] or not case["claims"])


@pytest.mark.parametrize("case", TABLE)
def test_the_first_solution_is_upstreams(case: Case) -> None:
    answer = answered(case, FIRST)
    told = bool(answer["fatalError"]), bool(answer["nodeError"])
    assert told == (bool(case["error"]) and not case["nodeLocal"], case["nodeLocal"])
    assert normalised(answer["allocations"]) == normalised(case["results"])
    assert answer["fits"] == fits(case)


@pytest.mark.parametrize("case", TABLE)
def test_the_preferred_solution_agrees_on_error_and_on_fit(case: Case) -> None:
    answer = answered(case, BEST)
    assert bool(answer["fatalError"] or answer["nodeError"]) == bool(case["error"])
    assert answer["fits"] == fits(case)
    if not answer["fits"] and not case["error"]:
        assert answer["reason"]
    if answer["fits"]:
        assert violations(case, case["node"], answer["allocations"]) == []
