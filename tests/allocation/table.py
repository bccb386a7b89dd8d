"""Upstream's table of allocations: 279 cases with the answers of v0.37.1, as the tests take them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "shared" / "data" / "conformance" / "allocator-1.37.jsonl"

Case = dict[str, Any]


def cases() -> list[Case]:
    """Return the cases in their order; skip where the file is absent."""
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not there")
    return [repaired(json.loads(line)) for line in FILE.read_text().splitlines()]


def repaired(case: Case) -> Case:
    """Give a case back what it lost when it was written down as JSON."""
    repair = REPAIRS.get(case["name"])
    if repair is not None:
        repair(case)
    return case


def _declare_the_feature(case: Case) -> None:
    case["node"]["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}


def _write_the_number_out(case: Case) -> None:
    # Go writes a decimal 10^21 as "1": the suffixes end at E, which is 10^18.
    case["claims"][0]["spec"]["devices"]["requests"][1]["exactly"]["capacity"]["requests"]["capacity-0"] = "1e21"
    policy = case["slices"][0]["spec"]["devices"][0]["capacity"]["capacity-0"]["requestPolicy"]
    policy["default"] = "1e21"
    case["results"][0]["devices"]["results"][1]["consumedCapacity"]["capacity-0"] = "1e21"


REPAIRS: dict[str, Callable[[Case], None]] = {
    # Only metadata of nodes was kept. Without the repair the case asks what
    # optional-node-operations-missing-feature asks, and has another answer.
    "optional-node-operations": _declare_the_feature,
    "consumable-capacity-requests-are-not-modified": _write_the_number_out,
}
