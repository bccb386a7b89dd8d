"""One malformed object among fifteen thousand is named, and takes none of the others with it."""

from collections.abc import Callable
from typing import Any

import pytest

from extender.allocation.features import Features
from extender.model.change import Changed, Kind, Listed
from extender.model.device import ResourceSlice
from extender.model.node import Node
from extender.model.parse import parse_node, parse_slice
from extender.model.problem import Problem
from extender.scheduling.planner import Offer
from extender.state.belief import Belief
from tests.scheduling.cast import DRIVER, GPU_CLASS, OURS, claim, planner_of, pod

Json = dict[str, Any]
COUNT = 15_000
NAMES = [f"n{number:05}" for number in range(COUNT)]
DAMAGE: dict[str, Callable[[Json], Json]] = {
    "nothing": lambda raw: {"metadata": {"name": raw["metadata"]["name"]}, "spec": [], "status": []},
    "labels": lambda raw: {**raw, "metadata": {**raw["metadata"], "labels": [1], "annotations": 1}},
    "spec": lambda raw: {**raw, "spec": "x"},
}


def node(name: str) -> Json:
    return {"metadata": {"name": name, "labels": {"zone": "a"}}, "status": {"allocatable": {"cpu": "64"}}}


def published(name: str) -> Json:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [{"name": "d0"}]}
    return {"metadata": {"name": f"{name}-gpus"}, "spec": spec}


@pytest.fixture(scope="module")
def whole() -> tuple[list[Any], list[Any]]:
    """Read all nodes and slices as they should be."""
    return [parse_node(node(name)) for name in NAMES], [parse_slice(published(name)) for name in NAMES]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("at", [0, COUNT // 2, COUNT - 1])
@pytest.mark.parametrize("kind", [Node, ResourceSlice], ids=["node", "slice"])
def test_the_others_are_offered_as_ever(whole: tuple[list[Any], list[Any]], kind: Kind, at: int, damage: str) -> None:
    nodes, slices = list(whole[0]), list(whole[1])
    if kind is Node:
        nodes[at] = parse_node(DAMAGE[damage](node(NAMES[at])))
    else:
        slices[at] = parse_slice(DAMAGE[damage](published(NAMES[at])))
    broken = nodes[at] if kind is Node else slices[at]
    if damage == "labels" and kind is ResourceSlice:
        assert not isinstance(broken, Problem)  # nothing that is read of a slice
        return
    assert isinstance(broken, Problem)
    belief = Belief((OURS,), Features())
    belief.apply(Changed(GPU_CLASS))
    belief.apply(Listed(Node, tuple(nodes)))
    belief.apply(Listed(ResourceSlice, tuple(slices)))
    assert tuple(belief.cluster.problems) == (broken,)
    subject = pod("p", "c")
    for item in (claim("c"), subject):
        belief.apply(Changed(item))
    plan = planner_of(belief).plan(subject, NAMES, 0.0)
    assert isinstance(plan, Offer)
    assert plan.fitting == COUNT - 1
