"""Configuration as each release of Kubernetes writes it: which entries, and for which requests."""

import json
from typing import Any

import pytest

from extender.allocation.result import Release
from extender.cli.allocate import MANNERS, answer
from tests.allocation.test_intended_rules import GPU, device, exact, published

Json = dict[str, Any]


def opaque(name: str) -> Json:
    return {"driver": GPU, "parameters": {"name": name}}


def config(release: Release) -> list[tuple[str, str, list[str]]]:
    """Return source, parameters and requests of each entry for two requests, one with alternatives."""
    listed = {"name": "b", "firstAvailable": [exact("x")["exactly"] | {"name": "s"}]}
    claimed = [
        {"opaque": opaque("all")},
        {"requests": ["a", "b/s"], "opaque": opaque("both")},
        {"requests": ["a"], "opaque": opaque("one")},
        {"requests": ["c"], "opaque": opaque("other")},
    ]
    spec = {"devices": {"requests": [exact("a"), listed], "config": claimed}}
    items = [published(GPU, device("d0"), device("d1"))]
    items[0]["spec"]["pool"]["resourceSliceCount"] = 1
    case = {
        "name": "case",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {"config": [{"opaque": opaque("class")}]}}],
        "slices": items,
        "claims": [{"metadata": {"namespace": "ns", "name": "c"}, "spec": spec}],
    }
    told = answer(json.dumps(case).encode(), MANNERS["first"], release)
    entries = told["nodes"]["n1"]["allocations"][0]["devices"]["config"]
    return [(item["source"], item["opaque"]["parameters"]["name"], item.get("requests", [])) for item in entries]


Entry = tuple[str, str, list[str]]
ALL: Entry = ("FromClaim", "all", [])
BOTH: Entry = ("FromClaim", "both", ["a", "b/s"])
ONE: Entry = ("FromClaim", "one", ["a"])
MERGED: Entry = ("FromClass", "class", ["a", "b/s"])


@pytest.mark.parametrize(
    ("release", "entries"),
    [
        (Release.V1_37, [("FromClass", "class", []), ALL, ("FromClaim", "both", []), ONE]),
        (Release.V1_36, [MERGED, ALL, BOTH, BOTH, ONE]),
        (Release.V1_35, [MERGED, ALL, BOTH, BOTH, ONE]),
        (Release.V1_34, [("FromClass", "class", []), ("FromClass", "class", []), ALL, BOTH, BOTH, ONE]),
    ],
)
def test_configuration_is_written_as_the_release_does(release: Release, entries: list[Entry]) -> None:
    assert config(release) == entries
