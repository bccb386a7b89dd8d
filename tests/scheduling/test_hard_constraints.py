"""Whatever a policy prefers, no rule of an allocation is broken for it; and nothing fits for it that would not fit."""

from dataclasses import replace

import pytest

from extender.allocation.question import Refusal, ask
from extender.allocation.solve import BEST, Manner
from extender.cli.answer import answers, as_json
from extender.cli.case import Case, case_of
from extender.scheduling.taste import Taste
from extender.topology.document import Document
from extender.topology.learning import Learning
from extender.topology.policies import SHIPPED
from extender.topology.policy import Policy, Trait, Wish
from tests.allocation.checker import violations
from tests.allocation.clusters import question
from tests.allocation.comparison import summary

CASES = 150
CLAIMS = 8
OWN = (
    Policy(name="near", numa=Wish.PREFERRED),
    Policy(name="picky", prefer=(Trait("model", ("a*",)),), avoid=(Trait("model", ("b*",)),)),
)


def manner(taste: Taste, policy: Policy, case: Case) -> Manner:
    """Return how to search for what a case asks, as *policy* has it."""
    try:
        asked = ask([claim for claim in case.claims if not claim.allocation], case.classes, case.features)
    except Refusal:
        return BEST
    return taste.preferring(asked, [policy] * CLAIMS).manner(BEST)


@pytest.mark.parametrize("policy", [*SHIPPED, *OWN], ids=lambda policy: policy.name)
def test_in_drawn_clusters_no_policy_overrides_a_hard_constraint(policy: Policy) -> None:
    taste = Taste(Document(), Learning().mix_for)
    broken, differing, had = [], [], 0
    for case in map(question, range(CASES)):
        preferred = answers(case_of(case), manner(taste, policy, case_of(case)))
        pairs = zip(answers(case_of(case), BEST), preferred, strict=True)
        for node, (anybody, preferring) in zip(case["nodes"], pairs, strict=True):
            place = case["name"], preferring.node
            if preferring.fits and violations(case, node, as_json(preferring)["allocations"]):
                broken.append(place)
            if preferring.fits != anybody.fits and (preferring.fits or not policy.is_strict):
                differing.append(place)
            had += bool(preferring.fits)
    assert (broken, differing) == ([], [])
    assert had


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda policy: policy.name)
def test_who_knows_that_a_node_fits_finds_the_same_there(policy: Policy) -> None:
    taste = Taste(Document(), Learning().mix_for)
    for case in map(question, range(CASES)):
        asked = manner(taste, policy, case_of(case))
        for told, sure in zip(
            answers(case_of(case), asked), answers(case_of(case), replace(asked, is_sure=True)), strict=True
        ):
            if told.fits:
                assert summary(as_json(sure)) == summary(as_json(told))
