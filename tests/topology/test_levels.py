"""What drivers publish of where devices are: the first level that two of them share."""

import sys
from itertools import combinations
from math import comb
from random import Random
from types import FrameType
from typing import Any

import pytest

from extender.topology.aliases import Member
from extender.topology.links import links_of
from extender.topology.tables import shipped
from tests.topology.configured import configured
from tests.topology.machines import bare, member

LEVELS: list[dict[str, Any]] = [
    {"key": "bus", "weight": 60},
    {"key": "root", "weight": 50},
    {"key": "numa", "match": "first", "weight": 40},
    {"key": "numa", "match": "intersect", "weight": 30},
    {"attribute": "gpu.nvidia.com/rack", "weight": 20},
    {"node": True, "weight": 10},
]


def drawn(random: Random, index: int) -> dict[str, Any]:
    """Draw what a device publishes."""
    values: dict[str, Any] = {
        "bus": f"0000:{random.randrange(3):02x}:00.0",
        "root": tuple(random.sample(("a", "b", "c"), random.randint(1, 2))),
        "numa": tuple(random.sample(range(4), random.randint(1, 3))),
        "rack": random.choice("xy"),
    }
    return {key: value for key, value in values.items() if random.random() < 0.7} | {"index": index}


def shares(level: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare two devices by one level."""
    key = level.get("key", "rack" if "attribute" in level else "index")
    if "node" in level:
        return True
    if key not in one or key not in other:
        return False
    if key in ("bus", "rack"):
        return bool(one[key] == other[key])
    if level.get("match") == "first":
        return bool(one[key][0] == other[key][0])
    return not set(one[key]).isdisjoint(other[key])


@pytest.mark.parametrize("seed", range(30))
def test_a_pair_has_the_weight_of_the_first_level_that_it_shares(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret depends on it
    levels = random.sample(LEVELS, random.randint(0, len(LEVELS)))
    values = {f"gpu-{index}": drawn(random, index) for index in range(8)}
    members = [member(name, **told) for name, told in values.items()]
    links = links_of(bare(), members, configured({"deviceTopology": [{"match": {}, "levels": levels}]}))
    told = [values[key.device] for key in links.devices]
    for one, other in combinations(range(len(told)), 2):
        level = next((level for level in levels if shares(level, told[one], told[other])), {"weight": 0})
        assert links.weights[one, other] == links.weights[other, one] == level["weight"]
        assert (links.source(one, other).layer == "levels") is (level != {"weight": 0})


def test_hundreds_of_devices_are_not_compared_two_by_two() -> None:
    """A driver may publish each CPU: 600 of a node took seconds."""
    cpus = [member(f"cpu-{number}", numa=number % 4, root=f"root-{number % 16}") for number in range(600)]
    assert calls(cpus) < comb(len(cpus), 2)


def calls(members: list[Member]) -> int:
    """Count the calls that it takes to work links out."""
    counted = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal counted
        counted += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert links_of(bare(), members, shipped()).weights.any()
    finally:
        sys.setprofile(before)
    return counted
