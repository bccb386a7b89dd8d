"""R5: the node on which devices are held is set off from its equals, so that the scheduler takes it."""

from extender.scheduling.planner import Offer
from extender.scheduling.ranking import Answer, AnswerPolicy
from tests.scheduling.cast import belief_of, claim, gpus, names, node, planner_of, pod

P = pod("p", "c")


def test_r5_of_equal_nodes_the_one_with_the_hold_has_the_highest_score() -> None:
    nodes = names("n1", "n2", "n3")
    belief = belief_of(*(node(name) for name in nodes), *(gpus(name, 2) for name in nodes), claim("c"), P)
    plan = planner_of(belief, AnswerPolicy(Answer.ALL)).plan(P, nodes, 0.0)
    assert isinstance(plan, Offer)
    assert [plan.scores[name] for name in plan.nodes] == [10, 9, 9]
    assert plan.placement.node == plan.nodes[0]
    assert [item.score for item in plan.best] == [10, 9]


def test_r5_nodes_that_are_worse_anyway_keep_their_scores() -> None:
    nodes = names("n1", "n2", "n3")
    sizes = dict(zip(nodes, (1, 3, 5), strict=True))
    belief = belief_of(*map(node, nodes), *(gpus(name, count) for name, count in sizes.items()), claim("c"), P)
    plan = planner_of(belief, AnswerPolicy(Answer.ALL)).plan(P, nodes, 0.0)
    assert isinstance(plan, Offer)
    assert [plan.scores[name] for name in nodes] == [10, 9, 8]
