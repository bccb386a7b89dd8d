"""The oracle answers upstream's own table as the table says: its inputs are put together as upstream does it."""

from tests.allocation.comparison import normalised
from tests.allocation.table import cases
from tests.oracle_program import Oracle

# Errors with words of the test that made the table: its class lister's, and of a list that JSON cannot tell from none.
REWORDED = {"no-classes", "unknown-class", "list-attributes-distinct-constaint-with-empty-or-unknown-type"}


def test_oracle_reproduces_upstream_table(oracle: Oracle) -> None:
    table = cases()
    answers = oracle.ask("allocate", table)
    different = []
    for case, answer in zip(table, answers, strict=True):
        (told,) = answer["nodes"].values()
        error = told["nodeError"] or told["fatalError"]
        same = bool(error) == bool(case["error"]) if case["name"] in REWORDED else error == case["error"]
        # Two cases ask for nothing, which fits with nothing; their lists of results cannot tell that from not fitting.
        fits = bool(case["results"]) or not case["claims"]
        same = same and bool(told["nodeError"]) == case["nodeLocal"] and told["fits"] == fits
        if not same or normalised(told["allocations"]) != normalised(case["results"]):
            different.append((case["name"], told))
    assert not different
    assert len(table) == 279


def test_oracle_answers_for_each_node(oracle: Oracle) -> None:
    (case,) = [case for case in cases() if case["name"] == "optional-node-operations"]
    other = {"metadata": {"name": "node-2", "labels": {}}}
    case["nodes"] = [case.pop("node"), other]
    (answer,) = oracle.ask("allocate", [case])
    assert {name: told["fits"] for name, told in answer["nodes"].items()} == {"node-1": True, "node-2": False}


def test_oracle_names_a_gate_that_it_does_not_know(oracle: Oracle) -> None:
    (answer,) = oracle.ask("allocate", [{"name": "typo", "features": ["DRAAdminAcces"]}])
    assert "DRAAdminAcces" in answer["error"]
