"""Scores are remembered between filter and prioritize."""

from typing import Any

import pytest

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.service.answers import Answers
from extender.service.offers import Offers
from extender.service.scores import REMEMBERED
from extender.web.verbs import FilterRequest, PreemptRequest, PrioritizeRequest, Victims
from tests.scheduling.cast import chooser_of, names, node, planner_of
from tests.scheduling.test_counted import GPU, asking, cluster, gpus, taker

ALL = names("rest", "whole")


def answers() -> Answers:
    belief = cluster(*gpus("rest", 8, 2), *gpus("whole", 8, 8))
    nobody: Any = None  # who is not asked about pods that need no devices of us
    return Answers(
        belief=belief,
        planner=planner_of(belief),
        chooser=chooser_of(belief),
        binds=nobody,
        journal=nobody,
        attention=nobody,
        offers=Offers(),
        missing=lambda: (),
        now=lambda: 0.0,
    )


def scored(answering: Answers, name: str = "p") -> object:
    """Ask as the scheduler does; return what prioritize answers."""
    pod = asking(name, gpu=2)
    assert answering.filter(FilterRequest(pod, ALL)).names == ALL
    return answering.prioritize(PrioritizeRequest(pod, ALL))


def test_every_node_passes_and_the_better_one_has_the_better_score() -> None:
    assert scored(answers()) == [10, 9]


def test_scores_of_an_earlier_answer_do_not_last() -> None:
    answering = answers()
    scored(answering)
    for name in ALL:
        answering.belief.apply(Changed(taker(name, gpu=8)))
    assert scored(answering) is None


def test_as_many_pods_are_remembered_as_there_is_room_for() -> None:
    answering = answers()
    for number in range(REMEMBERED + 1):
        scored(answering, f"p{number}")
    first, last = asking("p0", gpu=2), asking(f"p{REMEMBERED}", gpu=2)
    assert answering.prioritize(PrioritizeRequest(first, ALL)) is None
    assert answering.prioritize(PrioritizeRequest(last, ALL)) == [10, 9]


def test_nodes_that_come_between_filter_and_prioritize_have_no_score() -> None:
    answering = answers()
    scored(answering)
    answering.belief.apply(Changed(node("new", {GPU: 8})))
    answering.belief.apply(Listed(Footprint, ()))
    assert answering.prioritize(PrioritizeRequest(asking("p", gpu=2), [*ALL, "new"])) == [10, 9, 0]


def test_a_pod_for_which_others_are_to_be_evicted_has_been_asked_about() -> None:
    answering, told = answers(), list[tuple[object, ...]]()
    answering.asked = lambda pod, names: told.append((pod.key.name, *names))
    answering.preempt(PreemptRequest(asking("p", gpu=2), {"rest": Victims(())}))
    assert told == [("p",)]


@pytest.mark.parametrize(("victims", "told"), [({"rest": Victims(())}, ["uid-p"]), ({}, [])])
def test_others_are_evicted_for_a_pod_only_where_that_helps_it(victims: dict[str, Victims], told: list[str]) -> None:
    answering, evicting = answers(), list[str]()
    answering.evicting = evicting.append
    answering.preempt(PreemptRequest(asking("p", gpu=2), victims))
    assert evicting == told
