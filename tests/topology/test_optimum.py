import pytest

from extender.topology.choice import Ranker
from loadtests.quality.fleet import Run, by_count, jointly
from loadtests.quality.optimum import Node
from loadtests.quality.policies import policies
from loadtests.quality.workload import DGX_1V, FOUR_PCIE

LOAD = 0.9


def test_a_node_is_in_as_many_states_as_there_are_ways_to_hold_its_devices() -> None:
    # Four devices, free or held one by one; a pair held, six ways, beside two others, each free or held, or three ways
    # to hold two pairs; or all held together.
    assert len(Node(FOUR_PCIE).states) == 16 + 6 * 4 + 3 + 1


@pytest.mark.parametrize("name", policies(FOUR_PCIE))
def test_no_policy_is_better_than_the_optimum(name: str) -> None:
    node = Node(FOUR_PCIE)
    best = node.outcome(node.best(LOAD), LOAD).quality
    got = node.outcome(node.following(policies(FOUR_PCIE)[name]), LOAD).quality
    assert got <= best + 1e-6
    if name == "ours":
        assert got >= 0.99 * best


def test_what_is_exact_on_one_node_is_what_a_simulation_comes_to() -> None:
    policy = policies(FOUR_PCIE)["first fit"]
    node = Node(FOUR_PCIE)
    ranker = Ranker(FOUR_PCIE.shape, FOUR_PCIE.mix)
    run = Run(FOUR_PCIE, nodes=1, load=LOAD, warm_up=100, arrivals=20_000)
    tally = run.tally(by_count(policy, 1), ranker, seed=3)
    assert tally.quality == pytest.approx(node.outcome(node.following(policy), LOAD).quality, abs=0.02)


def test_choosing_node_and_devices_together_is_better_than_one_after_the_other() -> None:
    ranker = Ranker(DGX_1V.shape, DGX_1V.mix)
    run = Run(DGX_1V, nodes=8, load=LOAD, warm_up=500, arrivals=3000)
    together = run.tally(jointly(ranker), ranker, seed=3)
    apart = run.tally(by_count(policies(DGX_1V)["ours"], 1), ranker, seed=3)
    assert together.quality > 0.95 > apart.quality
    assert together.blocking() < apart.blocking() + 0.02
