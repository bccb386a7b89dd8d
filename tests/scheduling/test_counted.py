"""Devices known by count only: whole nodes are not torn open while there are others."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Container, Node, Pod
from extender.model.quantity import Amounts, parse_quantity
from extender.scheduling.counted import MOST, change, counts_of, flat, is_extended
from extender.scheduling.planner import Plain
from extender.state.belief import Belief
from extender.topology.choice import Ranker
from extender.topology.demand import EXPECTED
from tests.scheduling.cast import belief_of, node, planner_of, pod

GPU, NIC = "nvidia.com/gpu", "example.com/nic"


def asking(name: str = "p", **requests: int) -> Pod:
    return replace(pod(name), containers=(container(requests),))


def container(requests: Mapping[str, int], *, is_sidecar: bool = False) -> Container:
    named = {"gpu": GPU, "nic": NIC}
    asked = tuple((named.get(key, key), parse_quantity(str(count))) for key, count in sorted(requests.items()))
    return Container(name="c", requests=asked, is_init=is_sidecar, is_sidecar=is_sidecar)


def taker(on: str, *, name: str = "", **amounts: int) -> Footprint:
    named: Amounts = tuple(sorted(({"gpu": GPU, "nic": NIC}[key], count) for key, count in amounts.items()))
    return Footprint(key=ObjectKey("ns", name or f"on-{on}"), uid=Uid(on), node=NodeName(on), amounts=named)


def cluster(*nouns: Node | Footprint) -> Belief:
    belief = belief_of(*(noun for noun in nouns if isinstance(noun, Node)))
    belief.apply(Listed(Footprint, tuple(noun for noun in nouns if isinstance(noun, Footprint))))
    return belief


def gpus(name: str, has: int, free: int) -> tuple[Node | Footprint, ...]:
    return node(name, {GPU: has}), taker(name, gpu=has - free)


def of_gpus(*nodes: tuple[str, int, int]) -> Belief:
    return cluster(*(noun for each in nodes for noun in gpus(*each)))


def scores(belief: Belief, asked: Pod, names: Iterable[str] | None = None) -> dict[str, int]:
    plan = planner_of(belief).plan(asked, None if names is None else list(names), 0.0)
    assert isinstance(plan, Plain)
    return {str(name): score for name, score in plan.scores.items()}


RULES: dict[str, tuple[Belief, Pod, dict[str, int]]] = {
    "what is left over is used up before a whole node is torn open": (
        of_gpus(("rest", 8, 2), ("whole", 8, 8)),
        asking(gpu=2),
        {"rest": 10, "whole": 9},
    ),
    "a single device comes out of a pair that is broken already": (
        of_gpus(("pair", 8, 2), ("three", 8, 3), ("whole", 8, 8)),
        asking(gpu=1),
        {"three": 10, "pair": 9, "whole": 8},
    ),
    "of equal losses the fewest free devices decide": (
        of_gpus(("two", 8, 2), ("three", 8, 3), ("six", 8, 6)),
        asking(gpu=2),
        {"two": 10, "three": 9, "six": 8},
    ),
    "equal nodes have equal scores": (
        of_gpus(("a", 8, 2), ("b", 8, 2), ("c", 8, 8)),
        asking(gpu=2),
        {"a": 10, "b": 10, "c": 9},
    ),
    "nodes that do not hold it have none": (
        of_gpus(("short", 8, 1), ("overdrawn", 8, -1), ("fits", 8, 2)),
        asking(gpu=2),
        {"fits": 10},
    ),
    "shares are not devices": (of_gpus(("shares", 100, 100), ("devices", 8, 8)), asking(gpu=1), {"devices": 10}),
    "where there are nothing but shares, nothing is said": (of_gpus(("shares", 100, 100)), asking(gpu=1), {}),
    "several resources count together": (
        cluster(
            node("a", {GPU: 8, NIC: 4}),
            taker("a", gpu=6, nic=0),
            node("b", {GPU: 8, NIC: 4}),
            taker("b", gpu=6, nic=2),
            node("c", {GPU: 8}),
        ),
        asking(gpu=2, nic=2),
        {"b": 10, "a": 9},
    ),
    "more than any node has fits nowhere": (of_gpus(("a", 8, 8)), asking(gpu=MOST + 1), {}),
    "cpu and memory say nothing": (cluster(node("a", {"cpu": 8})), asking(cpu=1), {}),
    "sidecars count": (
        of_gpus(("two", 8, 2), ("three", 8, 3)),
        replace(pod("p"), containers=(container({"gpu": 1}, is_sidecar=True), container({"gpu": 2}))),
        {"three": 10},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_nodes_are_scored_by_what_is_left(rule: str) -> None:
    belief, asked, expected = RULES[rule]
    assert scores(belief, asked) == expected


def test_there_are_eleven_scores_and_the_rest_has_none() -> None:
    belief = of_gpus(*((f"n{free:02}", 16, free) for free in range(17)))
    found = scores(belief, asking(gpu=1))
    assert sorted(found.values(), reverse=True) == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_only_nodes_that_were_asked_about_are_compared() -> None:
    belief = of_gpus(("two", 8, 2), ("six", 8, 6), ("whole", 8, 8))
    assert scores(belief, asking(gpu=2), ["whole", "unheard-of", "six"]) == {"six": 10, "whole": 9}


def test_before_bound_pods_are_known_nothing_is_said() -> None:
    assert scores(belief_of(node("a", {GPU: 8})), asking(gpu=1)) == {}


def test_nobody_is_scored_where_the_scheduler_did_not_ask() -> None:
    plan = planner_of(of_gpus(("a", 8, 8))).plan(asking(gpu=1), None, 0.0, is_answer=False)
    assert plan == Plain()


def test_what_pods_take_meanwhile_and_nodes_that_come_are_seen() -> None:
    belief = of_gpus(("a", 8, 8), ("b", 8, 8))
    planner = planner_of(belief)
    two = asking(gpu=2)
    assert planner.plan(two, None, 0.0) == Plain({NodeName("a"): 10, NodeName("b"): 10})
    belief.apply(Changed(taker("b", name="p", gpu=2)))
    assert planner.plan(two, None, 0.0) == Plain({NodeName("b"): 10, NodeName("a"): 9})
    for noun in gpus("0", 8, 2):
        belief.apply(Changed(noun))
    assert planner.plan(two, None, 0.0) == Plain({NodeName("0"): 10, NodeName("b"): 9, NodeName("a"): 8})


def test_a_resource_that_a_class_serves_is_not_merely_counted() -> None:
    belief = cluster(node("a", {"ex.com/gpu": 8}))
    assert not isinstance(planner_of(belief).plan(pod("p", gpus=1), None, 0.0), Plain)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (GPU, True),
        ("rdma/hca", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("attachable-volumes-csi/x", False),
        ("deviceclass.resource.kubernetes.io/gpu", False),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_resources_of_somebody_else_are_extended(name: str, *, counts: bool) -> None:
    assert is_extended(name) is counts
    asked = replace(pod("p"), containers=(container({name: 1}),))
    assert bool(counts_of(asked)) is counts


@given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 8), st.integers(0, 1 << 20))
def test_any_set_of_equal_devices_is_worth_as_much_as_the_first_ones(size: int, free: int, count: int, at: int) -> None:
    free = min(size, free)
    everywhere = [mask for mask in range(1 << size) if mask.bit_count() == free]
    best = Ranker(flat(size), EXPECTED).best(everywhere[at % len(everywhere)], count)
    assert (best is None) is (count > free)
    assert change(size, free, count) == (best.change if best else 0)


@given(st.integers(1, MOST), st.integers(0, MOST), st.integers(1, MOST))
def test_taking_devices_never_leaves_more(size: int, free: int, count: int) -> None:
    assert change(size, min(size, free), count) <= 0


nodes_drawn = st.lists(st.tuples(st.sampled_from([4, 8, 16, 80]), st.integers(0, 16)), min_size=1, max_size=14)


@given(nodes_drawn, st.integers(1, 8))
def test_the_order_of_scores_is_that_of_losses_then_of_free_devices(drawn: list[tuple[int, int]], count: int) -> None:
    known = {f"n{index:02}": (has, min(has, free)) for index, (has, free) in enumerate(drawn)}
    found = scores(of_gpus(*((name, has, free) for name, (has, free) in known.items())), asking(gpu=count))
    worth = {
        name: (change(has, free, count), -free) for name, (has, free) in known.items() if free >= count and has <= MOST
    }
    order = sorted(set(worth.values()), reverse=True)
    expected = {name: 10 - order.index(value) for name, value in worth.items() if order.index(value) < 10}
    assert found == expected
