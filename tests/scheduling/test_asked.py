"""Where nearly all nodes are named, the best alone are looked for among them, and nothing is answered otherwise."""

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import NodeName
from extender.scheduling import asked
from extender.scheduling.asked import Asked
from extender.scheduling.planner import Offer
from extender.scheduling.plans import Plan
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.roll import Lookup, Roll, by_dictionary
from tests.scheduling.cast import belief_of, claim, gpus, names, node, planner_of, pod

COUNT = 20
ALL = names(*(f"n{index:02}" for index in range(COUNT)))
POD = pod("p", "c")


def planned(free: Sequence[int], named: Sequence[str], policy: AnswerPolicy, roll: Roll) -> Plan:
    """Plan one pod among nodes with so many free devices each."""
    slices = (gpus(name, count) for name, count in zip(ALL, free, strict=True) if count)
    belief = belief_of(*(node(name) for name in ALL), *slices, claim("c"))
    planner = planner_of(belief, policy)
    planner.roll = roll
    return planner.plan(POD, named, 0.0)


def told(plan: Plan, *, is_counted: bool = True) -> object:
    if not isinstance(plan, Offer):
        return plan
    count = plan.fitting if is_counted else None
    return plan.scores, plan.placement.node, plan.placement.claims, plan.best, count


@given(
    st.lists(st.integers(0, 3), min_size=COUNT, max_size=COUNT),
    st.permutations(ALL),
    st.integers(0, 4),
    st.lists(st.just("stranger"), max_size=2),
    st.builds(AnswerPolicy, st.sampled_from(Answer), st.integers(1, 11)),
)
def test_who_is_found_at_a_glance_is_the_one_that_all_lookups_lead_to(
    free: list[int], order: list[str], missing: int, strangers: list[str], policy: AnswerPolicy
) -> None:
    named = [*order[missing:], *strangers]
    # As many names as there are nodes are taken for theirs, and not counted.
    is_counted = not strangers or len(named) != COUNT
    at_a_glance = told(planned(free, named, policy, Roll()), is_counted=is_counted)
    with patch.object(asked, "NEARLY_ALL", 11 * COUNT):
        assert at_a_glance == told(planned(free, named, policy, Roll()), is_counted=is_counted)


class Lookups:
    """Counts how often names are looked up."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, everything: Sequence[NodeName]) -> Lookup:
        found = by_dictionary(everything)

        def lookup(names: Sequence[str]) -> object:
            self.count += 1
            return found(names)

        return lookup  # type: ignore[return-value]  # as there


@pytest.mark.parametrize(
    ("missing", "lookups"),
    [
        (set(), 0),
        # One that is none of the best, of which nobody knows whether it would fit until it is counted.
        ({"n05"}, 0),
        ({"n02"}, 1),
        ({"n05", "n06"}, 0),
        ({"n05", "n06", "n07"}, 1),
    ],
)
def test_names_are_looked_up_only_where_the_best_are_not_all_among_nearly_all(missing: set[str], lookups: int) -> None:
    counting = Lookups()
    free = [3, 3, 1, 2, 2, *[4] * (COUNT - 5)]
    plan = planned(free, [name for name in ALL if name not in missing], AnswerPolicy(), Roll(counting))
    assert isinstance(plan, Offer)
    assert counting.count == lookups
    assert plan.fitting == COUNT - len(missing)


def test_who_names_all_nodes_names_those_that_fit() -> None:
    counting = Lookups()
    assert Asked(ALL[::-1], ALL, Roll(counting)).count(np.arange(7)) == 7
    assert counting.count == 0
    assert Asked(ALL[3:], ALL, Roll(counting)).count(np.arange(7)) == 4
