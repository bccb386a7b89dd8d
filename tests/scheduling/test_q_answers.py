"""Q1, Q3, Q4, Q5, W2: what a pod is told that cannot be placed."""

from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.causes import Shortage
from extender.allocation.extended import ANNOTATION
from extender.allocation.features import Features
from extender.allocation.solve import BEST, FIRST, Manner
from extender.model.change import Noun
from extender.model.claim import (
    ClaimSpec,
    Constraint,
    Consumer,
    DeviceClass,
    DeviceRequest,
    OwnerReference,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import Attribute, Traits
from extender.model.names import ClassName, NodeName, Uid
from extender.model.node import Pod, PodClaim
from extender.model.taint import Taint
from extender.scheduling.needs import RESERVATIONS
from extender.scheduling.planner import STEERS, Offer, Plan, Rejection, Trouble
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.vocabulary import TEXTS, Word
from tests.scheduling.cast import (
    DRIVER,
    GPU,
    THEIRS,
    belief_of,
    chooser_of,
    claim,
    device,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
    promised,
    request,
    surveyed,
)

ALL = names("n1", "n2")
SICK = Traits(taints=(Taint(key="sick", effect="NoSchedule"),))
BROKEN = ClassName("broken")
BROKEN_CLASS = DeviceClass(name=BROKEN, selectors=(Selector("device.attributes['a'].missing == 1"),))


def plan(subject: Pod, *nouns: Noun, manner: Manner = BEST, asked: list[NodeName] = ALL) -> Plan:
    belief = belief_of(node("n1"), node("n2"), *nouns, manner=manner)
    return planner_of(belief).plan(subject, asked, 0.0)


def word(subject: Pod, *nouns: Noun, manner: Manner = BEST) -> Word:
    found = plan(subject, *nouns, manner=manner)
    assert isinstance(found, Rejection)
    return found.word


def unlike(**fields: Any) -> ResourceClaim:
    """Return a claim whose one request is different."""
    slot = request()
    assert slot.exactly is not None
    exactly = replace(slot.exactly, **fields)
    return replace(claim("c"), spec=ClaimSpec(requests=(RequestSlot(name="gpu", exactly=exactly),)))


def test_q1_every_word_has_one_text_without_numbers_or_names() -> None:
    assert set(TEXTS) == set(Word)
    assert not [text for text in TEXTS.values() if any(letter.isdigit() or letter in "{}%/" for letter in text)]
    assert {kind.value for kind in Shortage} <= {item.value for item in Word}


P = pod("p", "c")


@pytest.mark.parametrize(
    ("subject", "nouns", "expected"),
    [
        (P, (claim("c"),), Word.NO_DEVICES),
        (P, (claim("c", 2), gpus("n1", 1)), Word.NO_MATCH),
        (P, (claim("c"), gpus("n1", 1), held(claim("x"), device("n1", 0))), Word.IN_USE),
        (P, (claim("c"), gpus("n1", 1, SICK)), Word.OBSTACLE),
        (P, (held(claim("c"), device("n9", 0)), gpus("n1", 1)), Word.CLAIM_ELSEWHERE),
        (replace(P, scheduler=THEIRS), (claim("c"), gpus("n1", 1)), Word.FOREIGN_SCHEDULER),
        (replace(P, scheduling_group="gang"), (claim("c"), gpus("n1", 1)), Word.GANG),
        (replace(P, claims=(PodClaim(name="c", unknown_fields=("x",)),)), (), Word.UNKNOWN_FIELD),
        (P, (unlike(class_name=ClassName("none")), gpus("n1", 1)), Word.QUESTION),
        (P, (unlike(mode="Some"), gpus("n1", 1)), Word.QUESTION),
        (P, (unlike(unknown_fields=("x",)), gpus("n1", 1)), Word.QUESTION),
        (P, (replace(claim("c"), is_classic=True), gpus("n1", 1)), Word.QUESTION),
    ],
    ids=lambda item: item.value if isinstance(item, Word) else "",
)
def test_q1_the_pods_leading_reason_is_its_text_on_every_node(
    subject: Pod, nouns: tuple[Noun, ...], expected: Word
) -> None:
    assert word(subject, *nouns) is expected


@pytest.mark.parametrize("nouns", [(), (replace(claim("c"), is_deleting=True),)], ids=["unknown", "deleting"])
def test_q4_a_claim_that_our_watch_does_not_show_yet_is_trouble_and_no_verdict(nouns: tuple[Noun, ...]) -> None:
    assert isinstance(plan(P, *nouns, gpus("n1", 1)), Trouble)


def test_q1_the_leading_reason_is_that_of_the_node_nearest_to_a_success_however_many_others_there_are() -> None:
    nouns = (claim("c"), gpus("n1", 1), held(claim("x"), device("n1", 0)))
    belief = belief_of(*(node(f"n{index}") for index in range(1, 30)), *nouns)
    found = planner_of(belief).plan(P, ALL, 0.0)
    assert isinstance(found, Rejection)
    assert found.word is Word.IN_USE
    assert [(tally.word, tally.nodes) for tally in found.rejected] == [(Word.NO_DEVICES, 28), (Word.IN_USE, 1)]


def test_a_cluster_without_nodes_has_no_devices() -> None:
    found = planner_of(belief_of(claim("c"))).plan(P, [], 0.0)
    assert isinstance(found, Rejection)
    assert found.word is Word.NO_DEVICES


def test_a_claim_that_is_full_is_refused_to_all_but_those_who_have_it() -> None:
    users = tuple(Consumer(resource="pods", name=f"u{index}", uid=Uid(f"u{index}")) for index in range(RESERVATIONS))
    full = replace(held(claim("c"), device("n1", 0)), reserved_for=users)
    assert word(P, full, gpus("n1", 1)) is Word.CLAIM_FULL
    assert isinstance(plan(replace(P, uid=Uid("u0")), full, gpus("n1", 1)), Offer)


FITS_ON_TWO = (claim("c"), gpus("n2", 1))


@pytest.mark.parametrize("asked", [names("n1"), names("unknown"), []], ids=["others", "unknown", "none"])
def test_q3_a_pod_that_fits_on_a_node_that_was_not_offered_is_told_where(asked: list[NodeName]) -> None:
    found = plan(P, *FITS_ON_TWO, asked=asked)
    assert isinstance(found, Rejection)
    assert (found.word, found.elsewhere) == (Word.NOT_OFFERED, "n2")


def test_q3_a_pod_is_sent_to_the_best_node_first_to_each_once_and_not_for_ever() -> None:
    fleet = [item for index in range(2, 9) for item in (node(f"n{index}"), gpus(f"n{index}", 10 - index))]
    planner = planner_of(belief_of(node("n1"), claim("c"), *fleet))
    sent = list[NodeName | None]()
    for _ in range(STEERS + 1):
        plan = planner.plan(P, names("n1"), 0.0)
        assert isinstance(plan, Rejection)
        sent.append(plan.elsewhere)
        if plan.elsewhere:
            assert isinstance(planner.plan(P, None, 0.0, is_answer=False), Offer)
    assert sent == ["n8", "n7", "n6", None]
    assert isinstance(planner.plan(P, names("n8"), 0.0), Offer)


PLACES = ("a0", "b0", "a1", "b1")


def test_q4_a_search_that_was_given_up_is_temporary() -> None:
    rules = Constraint(match_attribute=f"{DRIVER}/root"), Constraint(distinct_attribute=f"{DRIVER}/index")
    told = [(("root", Attribute("string", name[0])), ("index", Attribute("string", name[1]))) for name in PLACES]
    devices = zip(gpus("n1", 4).devices, told, strict=True)
    fleet = replace(gpus("n1", 4), devices=tuple(replace(item, attributes=values) for item, values in devices))
    hard = replace(claim("c"), spec=ClaimSpec(requests=(request(2),), constraints=rules))
    assert isinstance(plan(P, hard, fleet), Offer)
    assert isinstance(plan(P, hard, fleet, manner=replace(BEST, steps=0)), Trouble)


BAD = unlike(class_name=BROKEN)


def test_q5_what_cannot_be_evaluated_rejects_the_nodes_where_it_is_met() -> None:
    nouns = (BROKEN_CLASS, BAD, gpus("n1", 1))
    found = plan(P, *nouns)
    assert isinstance(found, Rejection)
    assert found.word is Word.NODE_ERROR
    assert {tally.word: tally.nodes for tally in found.rejected} == {Word.NO_DEVICES: 1, Word.NODE_ERROR: 1}
    assert "n1/d0" in next(tally.message for tally in found.rejected if tally.word is Word.NODE_ERROR)


def test_q5_upstreams_rule_fails_the_pod_everywhere() -> None:
    found = plan(P, BROKEN_CLASS, BAD, gpus("n1", 1), manner=FIRST)
    assert isinstance(found, Rejection)
    assert found.word is Word.NODE_ERROR
    assert "n1/d0" in found.detail


def test_q5_a_claim_for_more_devices_than_it_may_have_is_at_fault_itself() -> None:
    found = plan(P, replace(claim("c"), spec=ClaimSpec(requests=(request(33),))), gpus("n1", 40))
    assert isinstance(found, Rejection)
    assert found.word is Word.QUESTION
    assert "33 devices are more than the 32 of a claim" in found.detail


@pytest.mark.parametrize("manner", [BEST, FIRST], ids=["best", "first"])
def test_q5_what_cannot_be_evaluated_is_told_by_the_names_of_who_asks(manner: Manner) -> None:
    slot = request()
    assert slot.exactly is not None
    errs = (Selector("device.attributes['a'].missing == 1"),)
    spec = ClaimSpec(requests=(RequestSlot(name="gpu", exactly=replace(slot.exactly, selectors=errs)),))
    theirs, ours = (replace(claim(name), spec=spec) for name in ("theirs", "ours"))
    planner = planner_of(belief_of(node("n1"), node("n2"), gpus("n1", 1), theirs, ours, manner=manner))
    for name, other in (("theirs", "ours"), ("ours", "theirs")):
        told = str(planner.plan(pod(f"p-{name}", name), ALL, 0.0))
        assert f"claim {name}, request gpu, selector 0 on device" in told
        assert f"claim {other}" not in told


def test_w2_what_needs_a_feature_that_is_off_is_not_allocated_without_it() -> None:
    first = DeviceRequest(name="x", class_name=GPU, mode="ExactCount", count=1)
    either = replace(claim("c"), spec=ClaimSpec(requests=(RequestSlot(name="gpu", first_available=(first,)),)))
    belief = belief_of(node("n1"), gpus("n1", 1), either, features=Features(prioritized_list=False))
    found = planner_of(belief).plan(P, ALL, 0.0)
    assert isinstance(found, Rejection)
    assert found.word is Word.QUESTION
    assert "DRAPrioritizedList" in found.detail


def test_w2_a_pod_of_a_group_that_needs_no_devices_is_let_through() -> None:
    assert not isinstance(plan(replace(pod("p"), scheduling_group="gang")), Rejection)


def admin(name: str) -> ResourceClaim:
    slot = request()
    assert slot.exactly is not None
    spec = ClaimSpec(requests=(RequestSlot(name="gpu", exactly=replace(slot.exactly, admin_access=True)),))
    return replace(claim(name), spec=spec)


def test_admin_access_is_given_to_devices_in_use_and_takes_nothing() -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), held(claim("x"), device("n1", 0)), admin("a"), admin("b"))
    planner = planner_of(belief)
    for name in ("a", "b"):
        assert isinstance(planner.plan(pod(f"p{name}", name), ALL, 0.0), Offer)
    assert promised(belief) == []
    assert belief.ledger.of_claim(Uid("uid-a")) is not None


def test_an_extended_resource_is_served_by_devices_only_where_no_device_plugin_serves_it() -> None:
    subject = pod("p", gpus=1)
    belief = belief_of(node("n1", {"ex.com/gpu": 0}), node("n2", {"ex.com/gpu": 4}), node("n3"), gpus("n1", 1))
    found = planner_of(belief, AnswerPolicy(Answer.SHORTLIST)).plan(subject, names("n1", "n2", "n3"), 0.0)
    assert isinstance(found, Offer)
    assert set(found.nodes) == {"n1", "n2"}
    chosen = {name: chooser_of(belief).place(surveyed(found).needs, name) for name in ALL}
    assert {name: bool(getattr(item, "claims", None)) for name, item in chosen.items()} == {"n1": True, "n2": False}


def test_a_claim_left_from_an_earlier_attempt_is_in_the_way() -> None:
    subject = pod("p", gpus=1)
    owner = OwnerReference(kind="Pod", uid=subject.uid)
    left = replace(claim("p-extended-resources-1"), owners=(owner,), annotations=((ANNOTATION, "true"),))
    assert word(subject, left, gpus("n1", 1)) is Word.CLAIM_STALE
