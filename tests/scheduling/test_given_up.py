"""A search that is given up on one node hides no other: seven linked pairs, of which nobody knows whether some have."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import RequestSlot, Selector
from extender.model.names import DeviceKey, DeviceName, NodeName, PoolName
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Plan, Planner, Rejection, Trouble
from extender.scheduling.precedent import Vain
from extender.scheduling.refining import GIVEN_UP
from extender.scheduling.veto import helped
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.questions import Questions
from extender.topology.document import Document, document_of
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import asks, cluster, gpus, one, planner_of, some

NAMES = tuple(f"n{index:02}" for index in range(9))
HARD = {"product": "H100", "count": 16, "linkWeight": 25, "links": [[a, b] for a in range(9) for b in range(9, 16)]}
EASY = {"product": "H100", "count": 18, "linkWeight": 5, "links": [[2 * pair, 2 * pair + 1] for pair in range(9)]}


def hard_and_easy(hard: Mapping[str, tuple[int, int]]) -> tuple[Belief, Planner]:
    """Return a cluster with six pairs on each node that is *hard*, where two devices are taken, and nine on z."""
    found = document_of({"deviceTopology": [{"match": {"driver": NVIDIA}, "products": [HARD, EASY]}]})
    assert isinstance(found, Document)
    belief = cluster(*(gpus(name, 16) for name in hard), gpus("z", 18), nodes=[*hard, "z"])
    for name, taken in hard.items():
        had = (DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{place}")) for place in taken)
        belief.apply(Changed(held(asks(f"held-{name}", some(2)), *had)))
    pairs = (some(2, name=f"pair-{index}") for index in range(7))
    belief.apply(Changed(asks("c", *pairs, policy="linked")))
    return belief, planner_of(belief, found)


def decided(planner: Planner) -> tuple[Plan, int]:
    """Plan in as many turns as it takes; return what came of it, and how many these were."""
    for turns in range(1, 100):
        plan = planner.plan(pod("p", "c"), None, 0.0)
        if not (isinstance(plan, Trouble) and plan.goes_on):
            return plan, turns
    raise AssertionError("no end of turns")


def test_nodes_that_are_given_up_alike_are_searched_once_and_hide_no_other() -> None:
    _, planner = hard_and_easy(dict.fromkeys(NAMES, (0, 9)))
    plan, _ = decided(planner)
    assert isinstance(plan, Offer)
    assert plan.nodes == ("z",)


def test_look_ends_after_some_searches_that_were_given_up_and_the_next_goes_on_behind_them() -> None:
    _, planner = hard_and_easy({name: (place, 9) for place, name in enumerate(NAMES)})
    first, _ = decided(planner)
    assert isinstance(first, Rejection)
    assert "given up" in first.detail
    assert planner.chooser.taste is not None
    assert len(planner.chooser.taste.found) == GIVEN_UP
    second, _ = decided(planner)
    assert isinstance(second, Offer)
    assert second.nodes == ("z",)


def test_what_was_given_up_is_nowhere_told_as_not_there() -> None:
    belief, planner = hard_and_easy({name: (place, 9) for place, name in enumerate(NAMES)})
    plan, _ = decided(planner)
    assert isinstance(plan, Rejection)
    assert [tally.message for tally in plan.rejected if tally.word is Word.POLICY] == [plan.detail]
    needs = needs_of(pod("p", "c"), belief)
    assert isinstance(needs, Needs)
    # The second time it is known from the first.
    for _ in range(2):
        found = planner.chooser.place(needs, NodeName("n00"))
        assert isinstance(found, Vain)
        assert found.is_open
        assert "of node n00 was given up" in str(found)


def test_what_is_given_up_for_another_question_does_not_count() -> None:
    """Two claims with one policy, each of which alone is offered z: five nodes are given up for each."""
    belief, planner = hard_and_easy({name: (place, 9) for place, name in enumerate(NAMES[:5])})
    wanted = replace(one(2), selectors=(Selector("true"),))
    requests = (RequestSlot(name=f"pair-{index}", exactly=replace(wanted, name=f"pair-{index}")) for index in range(7))
    belief.apply(Changed(asks("c2", *requests, policy="linked")))
    waiting, found = {"p": "c", "q": "c2"}, dict[str, Plan]()
    while waiting:
        for name, claim in tuple(waiting.items()):
            plan = planner.plan(pod(name, claim), None, 0.0)
            if not (isinstance(plan, Trouble) and plan.goes_on):
                found[name] = plan
                planner.withdraw(pod(name, claim).uid)
                del waiting[name]
    assert [plan.nodes for plan in found.values() if isinstance(plan, Offer)] == [("z",), ("z",)]


def test_look_goes_on_while_another_question_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    _, planner = hard_and_easy({"a": (0, 9)})
    monkeypatch.setattr(Questions, "late", lambda _: True)
    plan, turns = decided(planner)
    assert isinstance(plan, Offer)
    assert turns > 1


def test_victims_are_found_behind_a_node_whose_search_is_given_up() -> None:
    _, planner = hard_and_easy({"a": (0, 9)})
    victims = {NodeName("a"): (), NodeName("z"): ()}
    assert helped(pod("p", "c"), victims, planner.chooser, 0.0) == ("z",)


def test_victims_are_found_behind_many_nodes_that_are_given_up_alike() -> None:
    _, planner = hard_and_easy(dict.fromkeys(NAMES, (0, 9)))
    victims = {NodeName(name): () for name in (*NAMES, "z")}
    assert helped(pod("p", "c"), victims, planner.chooser, 0.0) == ("z",)
    searched = planner.chooser.pauses
    assert helped(pod("p", "c"), victims, planner.chooser, 0.0) == ("z",)
    assert planner.chooser.pauses == searched


def test_what_was_given_up_for_victims_is_passed_over_when_it_is_asked_about_again() -> None:
    _, planner = hard_and_easy({name: (place, 9) for place, name in enumerate(NAMES)})
    victims = {NodeName(name): () for name in (*NAMES, "z")}
    found = [helped(pod("p", "c"), victims, planner.chooser, 0.0) for _ in range(3)]
    assert found[0] == ()
    assert found[-1] == ("z",)
