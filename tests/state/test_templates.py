"""What will be made from a template is told from what was made from it."""

from dataclasses import replace

import pytest

from extender.model.change import Changed, Gone
from extender.model.claim import OwnerReference, ResourceClaim
from extender.model.names import ObjectKey
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.state.belief import Belief
from extender.state.ledger import UNMADE
from extender.state.templates import ENTRY
from extender.topology.policies import ANNOTATION
from tests.scheduling.cast import belief_of, claim, device, held, pod

POLICY = (ANNOTATION, "pack")
ENTRIES = (PodClaim(name="c", template_name="t"),)
FIRST, SECOND = replace(pod("first"), claims=ENTRIES), replace(pod("second"), claims=ENTRIES)


def made_for(owner: Pod, *annotations: tuple[str, str], is_controller: bool = True) -> ResourceClaim:
    reference = OwnerReference(kind="Pod", name=owner.key.name, uid=owner.uid, is_controller=is_controller)
    return replace(claim(f"{owner.key.name}-c", 2), owners=(reference,), annotations=annotations)


MADE = made_for(FIRST, (ENTRY, "c"))


def foreseen(belief: Belief, subject: Pod = SECOND) -> ResourceClaim | None:
    found = belief.templates.foreseen(subject, subject.claims[0])
    assert belief.templates.foresees(subject) is (found is not None)
    return found


def test_what_is_foreseen_asks_for_what_was_made_by_the_same_policy_and_has_nothing_else_of_it() -> None:
    made = made_for(FIRST, (ENTRY, "c"), POLICY, ("example.com/other", "x"))
    found = foreseen(belief_of(FIRST, held(made, device("n1", 0), by=FIRST)))
    assert found is not None
    assert (found.key, found.spec) == (ObjectKey("ns", "second-c"), made.spec)
    assert found.annotations == (POLICY,)
    assert (found.allocation, found.reserved_for, found.owners, found.resource_version) == (None, (), (), "")
    assert found.uid.startswith(UNMADE)


def test_two_entries_of_one_template_are_two_claims() -> None:
    both = replace(SECOND, claims=(*ENTRIES, PodClaim(name="d", template_name="t")))
    belief = belief_of(FIRST, MADE)
    found = [belief.templates.foreseen(both, entry) for entry in both.claims]
    assert len({claim.uid for claim in found if claim}) == 2


@pytest.mark.parametrize(
    "nouns",
    [
        pytest.param((FIRST,), id="nothing was made"),
        pytest.param((MADE,), id="whose it is was not shown"),
        pytest.param((FIRST, made_for(FIRST)), id="by nobody who makes them from templates"),
        pytest.param((FIRST, made_for(FIRST, (ENTRY, "d"))), id="for an entry that there is not"),
        pytest.param((FIRST, made_for(FIRST, (ENTRY, "c"), is_controller=False)), id="not made for the pod"),
        pytest.param((replace(FIRST, claims=(PodClaim(name="c", claim_name="first-c"),)), MADE), id="from none"),
        pytest.param((replace(FIRST, claims=(PodClaim(name="c", template_name="u"),)), MADE), id="from another"),
    ],
)
def test_nothing_is_foreseen_of_a_template_of_which_nothing_is_known(nouns: tuple[Pod | ResourceClaim, ...]) -> None:
    assert foreseen(belief_of(*nouns)) is None


def test_a_template_of_another_namespace_is_another() -> None:
    assert foreseen(belief_of(FIRST, MADE), replace(SECOND, key=ObjectKey("another", "second"))) is None


def test_what_was_made_last_counts_for_as_long_as_it_is_there() -> None:
    third = replace(FIRST, key=ObjectKey("ns", "third"), uid=pod("third").uid)
    belief = belief_of(FIRST, MADE, third)
    smaller = replace(made_for(third, (ENTRY, "c")), spec=claim("x").spec)
    belief.apply(Changed(smaller))
    assert (found := foreseen(belief)) is not None
    assert found.spec == smaller.spec
    belief.apply(Gone(ResourceClaim, smaller.key))
    assert foreseen(belief) is None


def test_what_is_doubted_is_foreseen_again_once_something_is_made() -> None:
    belief = belief_of(FIRST, MADE, SECOND)
    named = replace(SECOND, claim_statuses=(PodClaimStatus(name="c", claim_name="second-c"),))
    belief.templates.doubt(named)
    assert foreseen(belief) is not None
    belief.templates.doubt(SECOND)
    assert foreseen(belief) is None
    belief.apply(Changed(made_for(SECOND, (ENTRY, "c"))))
    assert foreseen(belief, replace(SECOND, uid=pod("third").uid)) is not None
