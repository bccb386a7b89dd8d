"""Which generation of a pool counts, where slices say what is not understood: as for kube-scheduler's allocator."""

import json
from typing import Any

import pytest

from extender.allocation.features import ALL, GATES
from extender.allocation.pools import pools_of
from extender.cli.allocate import MANNERS, answer
from extender.model.device import ResourceSlice
from extender.model.names import NodeName
from extender.model.node import Node
from tests.allocation.checker import violations
from tests.allocation.comparison import summary
from tests.allocation.small import device, published
from tests.oracle_program import Oracle

Json = dict[str, Any]
DRIVER = "gpu.example.com"
NODES: list[Json] = [{"metadata": {"name": name, "labels": {}}} for name in ("a", "b")]
GROUPS = "DRADeviceCompatibilityGroups"


def part(node: str, generation: int, group: str = "", count: int = 2) -> Json:
    """Publish one device of the pool for one node."""
    name = f"{node}-{generation}{group}"
    consumed = [{"counterSet": "set", "counters": {"slots": {"value": "1"}}, "compatibilityGroups": [group]}]
    pool = {"name": "pool", "generation": generation, "resourceSliceCount": count}
    devices = [{"name": name} | ({"consumesCounters": consumed} if group else {})]
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    }


OLD = [part("a", 1), part("b", 1)]
PUBLISHED = {
    "of one generation": OLD,
    "replaced on another node": [*OLD, part("a", 2)],
    "replaced by groups on another node": [*OLD, part("a", 2, "mig")],
    "whole on its node, replaced by groups on another": [part("b", 1, count=1), part("a", 2, "mig")],
    "with groups on another node": [part("a", 1, "mig"), part("b", 1)],
    "with groups of an older generation": [part("a", 1, "mig"), *(part(node, 2) for node in "ab")],
}


def case(slices: list[Json], gates: list[str]) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    return {
        "name": "generations",
        "features": gates,
        "nodes": NODES,
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "slices": slices,
        "claims": [{"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": [request]}}}],
    }


@pytest.mark.parametrize("without", [(), (GROUPS,)], ids=["with every gate", "without compatibility groups"])
@pytest.mark.parametrize("slices", PUBLISHED.values(), ids=PUBLISHED)
def test_each_node_is_given_the_generation_of_kubernetes(
    oracle: Oracle, slices: list[Json], without: tuple[str, ...]
) -> None:
    gates = [name for gate in GATES for name in gate.split("+") if name not in without]
    asked = case(slices, gates)
    (theirs,) = oracle.ask("allocate", [asked])
    for order in MANNERS:
        ours = answer(json.dumps(asked).encode(), MANNERS[order])["nodes"]
        assert {name: summary(told) for name, told in ours.items()} == {
            name: summary(told) for name, told in theirs["nodes"].items()
        }
    for node in NODES:
        given = theirs["nodes"][node["metadata"]["name"]]["allocations"]
        assert not given or not violations(asked, node, given)


@pytest.mark.parametrize("node", NODES, ids=["a", "b"])
def test_the_checker_knows_no_pool_that_a_slice_with_groups_is_about_to_replace(node: Json) -> None:
    name = node["metadata"]["name"]
    result = {"request": "r", "driver": DRIVER, "pool": "pool", "device": f"{name}-1"}
    asked = case(PUBLISHED["replaced by groups on another node"], [])
    assert any("no usable" in told for told in violations(asked, node, [{"devices": {"results": [result]}}]))


def test_pools_that_are_whole_elsewhere_alone_are_gathered_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may see parts of hundreds of pools: to look for the rest of each among all slices takes their square."""
    pools = [f"p{number:02}" for number in range(40)]
    here = [published(pool, device("x"), count=2, all_nodes=True) for pool in pools]
    elsewhere = [published(pool, device("y"), name=f"{pool}-b", count=2, node_name="b") for pool in pools]
    slices, looked_at = [*here, *elsewhere], []
    key = vars(ResourceSlice)["pool_key"].fget

    def counted(item: ResourceSlice) -> Any:
        looked_at.append(item)
        return key(item)

    monkeypatch.setattr(ResourceSlice, "pool_key", property(counted))
    assert [pool.key.pool for pool in pools_of(Node(name=NodeName("a")), slices, ALL) if pool.elsewhere] == pools
    assert len(looked_at) <= 2 * len(slices)
