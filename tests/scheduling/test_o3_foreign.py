"""What filter answers where pools are closed, or devices are not ours: one text for each, and nothing is given."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.model.change import Changed, Gone, Noun
from extender.model.claim import ClaimSpec, ResourceClaim
from extender.model.names import ClassName, DriverName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, Toleration
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.precedent import Vain
from extender.scheduling.vocabulary import TEXTS, Word
from extender.state.belief import Belief
from extender.state.domain import Domain
from tests.scheduling.cast import (
    DRIVER,
    GPU_CLASS,
    OURS,
    chooser_of,
    claim,
    device,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
    request,
)

RULE = DeviceTaintRule(
    name="owned", selector=TaintSelector(driver=DRIVER), taint=Taint(key="example.com/owner", effect="NoSchedule")
)
(N1, N2) = names("n1", "n2")


def believing(*nouns: Noun, domain: Domain | None = None, features: Features | None = None) -> Belief:
    belief = Belief((OURS,), features or Features(), domain=domain or Domain(taint=RULE.taint.key, writer="us"))
    for noun in (GPU_CLASS, RULE, node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 2), *nouns):
        belief.apply(Changed(noun))
    return belief


def intruded(belief: Belief, *, on: str = "n1") -> ResourceClaim:
    """Have somebody else allocate a device on a node."""
    item = replace(held(claim(f"theirs-{on}"), device(on, 0)), writers=("kube-scheduler",))
    found = belief.foreign_in(Changed(item))
    belief.apply(Changed(item))
    belief.sealing.close(found)
    return item


def rejection(belief: Belief, *claims: str, asked: tuple[str, ...] = ("n1", "n2")) -> Rejection:
    plan = planner_of(belief).plan(pod("p", *claims), names(*asked), 0.0)
    assert isinstance(plan, Rejection), plan
    return plan


def test_nothing_more_is_given_from_a_closed_pool_and_everything_from_the_others() -> None:
    belief = believing(claim("a"))
    intruded(belief)
    plan = planner_of(belief).plan(pod("p", "a"), names("n1", "n2"), 0.0)
    assert isinstance(plan, Offer)
    assert plan.nodes == (N2,)
    assert [(tally.word, tally.example) for tally in plan.rejected] == [(Word.POOL_CLOSED, N1)]


def test_where_all_that_would_do_is_closed_the_pod_is_told_so_in_one_constant_text() -> None:
    belief = believing(claim("a"))
    intruded(belief)
    intruded(belief, on="n2")
    assert {rejection(belief, "a", asked=asked).word for asked in (("n1",), ("n2",), ("n1", "n2"))} == {
        Word.POOL_CLOSED
    }
    assert not any(character.isdigit() for character in TEXTS[Word.POOL_CLOSED])


def test_the_reason_in_full_says_what_is_closed() -> None:
    belief = believing(claim("a"))
    intruded(belief)
    intruded(belief, on="n2")
    told = rejection(belief, "a")
    assert told.word is Word.POOL_CLOSED
    assert told.detail == (
        "claim a, request gpu needs 1 free device, has 0: "
        "2 in a pool that is closed because somebody else has allocated from it"
    )


@pytest.mark.parametrize(
    "features", [Features(), Features(device_taints=False), Features(device_taint_rules=False)], ids=["all", "a", "b"]
)
def test_nobody_tolerates_that_a_pool_is_closed(features: Features) -> None:
    slot = request()
    assert slot.exactly is not None
    tolerant = replace(slot, exactly=replace(slot.exactly, tolerations=(Toleration(operator="Exists"),)))
    belief = believing(replace(claim("a"), spec=ClaimSpec(requests=(tolerant,))), features=features)
    intruded(belief)
    chooser = chooser_of(belief)
    needs = Needs(pod("p", "a"), pending=tuple(item for item in belief.cluster.claims if item.key.name == "a"))
    assert isinstance(chooser.place(needs, N1), Vain)
    assert isinstance(chooser.place(needs, N2), Placement)


def test_a_pod_waits_no_longer_when_the_pool_opens() -> None:
    belief = believing(claim("a"))
    intruded(belief)
    planner = planner_of(belief)
    subject = pod("p", "a")
    assert isinstance(planner.plan(subject, names("n1"), 0.0), Rejection)
    belief.apply(Gone(ResourceClaim, claim("theirs-n1").key))
    assert isinstance(planner.plan(subject, names("n1"), 1.0), Offer)


def test_what_another_driver_has_is_not_ours_to_allocate() -> None:
    belief = believing(claim("a"), domain=Domain(drivers=frozenset({"other.example.com"})))
    told = rejection(belief, "a")
    assert told.word is Word.NOT_OURS
    assert TEXTS[told.word] == "what the pod asks for is not ours to allocate"
    assert "2 not ours to allocate (ownership.drivers)" in told.detail


OWN = DriverName("own.example.com")


def test_who_asks_for_all_devices_is_told_that_some_are_not_ours() -> None:
    slot, own = claim("a").spec.requests[0], replace(gpus("n1", 1), name="own", driver=OWN)
    assert slot.exactly is not None
    every = replace(slot, exactly=replace(slot.exactly, mode="All", count=0))
    anything, wanted = replace(GPU_CLASS, selectors=()), replace(claim("a"), spec=ClaimSpec(requests=(every,)))
    belief = believing(anything, own, wanted, domain=Domain(drivers=frozenset({OWN})))
    assert rejection(belief, "a", asked=("n1",)).word is Word.NOT_OURS


@pytest.mark.parametrize(
    ("ours", "count", "word"),
    [
        pytest.param(0, 1, Word.NOT_OURS, id="none is ours"),
        pytest.param(1, 1, Word.IN_USE, id="ours would do"),
        pytest.param(1, 2, Word.NOT_OURS, id="ours would not suffice"),
        pytest.param(1, 4, Word.NO_MATCH, id="nothing would"),
    ],
)
def test_devices_are_not_ours_whether_in_use_or_not_and_told_so_where_what_is_ours_would_not_suffice(
    ours: int, count: int, word: Word
) -> None:
    own = replace(gpus("n1", ours), name="own", driver=OWN)
    used = held(claim("x"), device("n1", 0)), held(claim("y"), device("n1", 0)._replace(driver=OWN))
    anything = replace(GPU_CLASS, selectors=())
    belief = believing(anything, own, *used, claim("a", count), domain=Domain(drivers=frozenset({OWN})))
    assert rejection(belief, "a", asked=("n1",)).word is word


def test_a_class_that_we_do_not_own_is_refused_by_name() -> None:
    belief = believing(claim("a"), domain=Domain(classes=frozenset({"nic"})))
    told = rejection(belief, "a")
    assert (told.word, told.detail) == (Word.NOT_OURS, "claim a asks for class gpu, which is not ours to allocate")


def test_a_resource_of_a_class_that_we_do_not_own_is_refused_by_name() -> None:
    belief = believing(domain=Domain(classes=frozenset({ClassName("nic")})))
    plan = planner_of(belief).plan(pod("p", gpus=1), names("n1"), 0.0)
    assert isinstance(plan, Rejection)
    assert plan.detail == "ex.com/gpu stands for class gpu, which is not ours to allocate"


def test_a_claim_that_somebody_has_allocated_may_be_used_whoever_owns_its_class() -> None:
    belief = believing(held(claim("a"), device("n1", 0)), domain=Domain(classes=frozenset({"nic"})))
    assert isinstance(planner_of(belief).plan(pod("p", "a"), names("n1"), 0.0), Offer)
