"""What keeps a pod from nodes because of what it has is told by name, with where that can be used."""

from dataclasses import replace

import pytest

from extender.allocation.result import is_usable
from extender.model.claim import Allocation
from extender.model.names import NodeName
from extender.model.node import Node, Pod
from extender.scheduling import survey
from extender.scheduling.account import note_of, of_plan
from extender.scheduling.needs import Needs
from extender.scheduling.planner import Rejection
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.scheduling.test_elsewhere import lent

P, USER = pod("p", "c"), pod("q", "c")
N1, N2 = NodeName("n1"), NodeName("n2")


def rejected(belief: Belief, subject: Pod) -> Rejection:
    plan = planner_of(belief).plan(subject, None, 0.0)
    assert isinstance(plan, Rejection)
    return plan


def test_a_claim_that_is_allocated_on_a_node_that_is_gone_is_told_of_with_the_node() -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), held(claim("c"), device("n9", 0), by=USER), P)
    plan = rejected(belief, P)
    assert (plan.word, plan.detail) == (Word.CLAIM_ELSEWHERE, "claim c is allocated on node n9, which is not there")
    told = note_of(of_plan(P, plan, 1, 0.0))
    assert told.endswith("on another node: claim c is allocated on node n9, which is not there (1 node, such as n1)")


def test_a_claim_that_no_node_can_use_is_told_of() -> None:
    belief = belief_of(node("n1"), lent("c", 0, but="n1"), P)
    plan = rejected(belief, P)
    assert (plan.word, plan.detail) == (Word.CLAIM_ELSEWHERE, "claim c can be used on no node")


def test_nodes_are_told_which_of_several_claims_is_elsewhere() -> None:
    claims = lent("c", 0, but="n1"), lent("d", 1, but="n2")
    subject = pod("p", "c", "d")
    plan = rejected(belief_of(*map(node, ("n1", "n2")), *claims, subject), subject)
    told = {(tally.word, tally.nodes, tally.message, tally.example) for tally in plan.rejected}
    assert told == {
        (Word.CLAIM_ELSEWHERE, 1, "claim c is allocated on node n2", N1),
        (Word.CLAIM_ELSEWHERE, 1, "claim d is allocated on node n1", N2),
    }


def test_of_claims_that_are_tied_to_the_same_nodes_these_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alike, looked = tuple(lent(name, index, but="n2") for index, name in enumerate("abc")), list[str]()

    def usable(allocation: Allocation, item: Node) -> bool:
        looked.append(item.name)
        return is_usable(allocation, item)

    monkeypatch.setattr(survey, "is_usable", usable)
    belief = belief_of(node("n1"), node("n2"))
    surveyed = survey.survey(Needs(P, allocated=alike), belief.seen_by(), belief.questions)
    assert isinstance(surveyed, survey.Survey)
    assert [flags.tolist() for flags in surveyed.usable_of] == [[True, False]] * 3
    assert looked == ["n1", "n2"]


def test_nodes_that_lack_a_claim_are_told_so_where_another_is_full() -> None:
    taken, subject = held(claim("c"), device("n1", 0), by=USER), pod("p", "c", "a")
    belief = belief_of(node("n1"), gpus("n1", 1), node("n2"), gpus("n2", 1), taken, claim("a"), subject)
    plan = rejected(belief, subject)
    assert plan.word is Word.IN_USE
    assert [tally.message for tally in plan.rejected if tally.example == N2] == ["claim c is allocated on node n1"]


@pytest.mark.parametrize("plugs", [1, 2])
def test_a_claim_that_the_status_names_and_that_is_gone_is_not_told_to_be_allocated(plugs: int) -> None:
    subject = replace(pod("p", gpus=1), extended_claim="p-gone")
    nodes = [node(f"n{number}", {"ex.com/gpu": 4}) for number in range(1, plugs + 1)]
    plan = rejected(belief_of(*nodes, subject), subject)
    told = "the pod's status names claim p-gone, which is gone, and node n1 serves it without one"
    assert (plan.word, plan.detail) == (Word.CLAIM_GONE, told)
    assert [tally[:3] for tally in plan.rejected] == [(Word.CLAIM_GONE, plugs, told)]
