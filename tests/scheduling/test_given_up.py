"""A search that is given up on one node hides no other: seven linked pairs, of which nobody knows whether some have."""

from extender.model.change import Changed
from extender.model.names import DeviceKey, DeviceName, NodeName, PoolName
from extender.scheduling.planner import Offer, Planner, Trouble
from extender.scheduling.veto import helped
from extender.state.belief import Belief
from extender.topology.document import Document, document_of
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import asks, cluster, gpus, planner_of, some

ALIKE = tuple(f"n{index:02}" for index in range(12))
HARD = {"product": "H100", "count": 16, "linkWeight": 25, "links": [[a, b] for a in range(9) for b in range(9, 16)]}
EASY = {"product": "H100", "count": 18, "linkWeight": 5, "links": [[2 * pair, 2 * pair + 1] for pair in range(9)]}


def hard_and_easy(*hard: str) -> tuple[Belief, Planner]:
    """Return a cluster in which six pairs are left on each node that is *hard*, and nine on z."""
    found = document_of({"deviceTopology": [{"match": {"driver": NVIDIA}, "products": [HARD, EASY]}]})
    assert isinstance(found, Document)
    belief = cluster(*(gpus(name, 16) for name in hard), gpus("z", 18), nodes=[*hard, "z"])
    for name in hard:
        had = (DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{place}")) for place in (0, 9))
        belief.apply(Changed(held(asks(f"held-{name}", some(2)), *had)))
    pairs = (some(2, name=f"pair-{index}") for index in range(7))
    belief.apply(Changed(asks("c", *pairs, policy="linked")))
    return belief, planner_of(belief, found)


def test_nodes_that_are_given_up_alike_are_searched_once_and_hide_no_other() -> None:
    _, planner = hard_and_easy(*ALIKE)
    for _ in range(50):
        plan = planner.plan(pod("p", "c"), None, 0.0)
        if not (isinstance(plan, Trouble) and plan.goes_on):
            break
    assert isinstance(plan, Offer)
    assert plan.nodes == ("z",)


def test_victims_are_found_behind_a_node_whose_search_is_given_up() -> None:
    belief, planner = hard_and_easy("a")
    victims = {NodeName("a"): (), NodeName("z"): ()}
    assert helped(pod("p", "c"), victims, belief, planner.chooser) == ("z",)
