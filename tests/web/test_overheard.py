"""What a real kube-scheduler sent is understood, and is what its types write."""

import sys

import orjson
import pytest

from extender.model.node import Pod
from extender.telemetry.metrics import Metrics
from extender.web.request import binding_of, candidates_of, eviction_of
from extender.web.routes import OK, Routes
from tests.oracle_program import Oracle
from tests.web.overhear import NODES, OVERHEARD, VERBS
from tests.web.standin import StandIn

BODIES = {path.stem: path.read_bytes() for path in sorted(OVERHEARD.iterdir())}
MODES = pytest.mark.parametrize("mode", ["names", "nodes"])


def test_every_verb_was_overheard_in_both_node_modes() -> None:
    assert BODIES.keys() == {f"{verb}-{mode}" for verb in VERBS for mode in ("names", "nodes")}


@pytest.mark.parametrize("name", BODIES)
async def test_what_was_overheard_is_answered(name: str) -> None:
    standin = StandIn()
    reply = await Routes(standin, Metrics()).answer(name.partition("-")[0], BODIES[name])
    assert (reply.status, reply.result, len(standin.asked)) == (200, OK, 1)


@pytest.mark.parametrize("name", BODIES)
def test_what_was_overheard_is_what_go_writes(name: str, oracle: Oracle) -> None:
    asked = {"verb": name.partition("-")[0], "request": orjson.loads(BODIES[name])}
    (answer,) = oracle.ask("wire", [asked])
    assert answer["body"].encode() == BODIES[name]


@MODES
@pytest.mark.parametrize("quick_from", [0, sys.maxsize], ids=["quick", "plain"])
def test_the_nodes_that_filter_let_pass_are_those_that_are_scored(mode: str, quick_from: int) -> None:
    filtered = candidates_of(BODIES[f"filter-{mode}"], quick_from)
    scored = candidates_of(BODIES[f"prioritize-{mode}"], quick_from)
    assert sorted(filtered.names) == list(NODES)
    assert sorted(scored.names) == list(NODES)[:2]
    assert (filtered.nodes is None) == (scored.nodes is None) == (mode == "names")


@MODES
def test_the_pod_that_was_placed_is_the_pod_that_is_bound(mode: str) -> None:
    placed, bound = candidates_of(BODIES[f"filter-{mode}"]).pod, binding_of(BODIES[f"bind-{mode}"])
    assert isinstance(placed, Pod)
    assert (placed.key, placed.uid) == (bound.pod, bound.uid)
    assert [claim.claim_name for claim in placed.claims] == ["shared"]


@MODES
def test_each_node_has_the_victim_that_would_make_room(mode: str) -> None:
    victims = eviction_of(BODIES[f"preempt-{mode}"]).victims
    assert {node: len(evicted.pods) for node, evicted in victims.items()} == dict.fromkeys(NODES, 1)
