"""Who was promised devices of which nobody was told leaves them to somebody more important that is asked about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.solve import BEST, Manner
from extender.model.change import Changed
from extender.model.claim import Selector
from extender.model.device import Attribute
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling import yielding
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Plan, Planner, Rejection, Trouble
from extender.scheduling.survey import Unfinished, survey
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import belief_of, claim, gpus, names, node, planner_of, pod

HIGH = pod("high", "ch", priority=10)
NODES = names("n1", "n2")


def planner(*others: Pod, devices: int = 1, wanted: int = 1) -> Planner:
    """Return who plans for a pod, and for others, on two nodes."""
    belief = belief_of(*(item for name in NODES for item in (node(name), gpus(name, devices))), claim("ch", wanted))
    for other in others:
        belief.apply(Changed(claim(f"c-{other.key.name}")))
        belief.apply(Changed(other))
    belief.apply(Changed(HIGH))
    return planner_of(belief)


def low(name: str, priority: int = 0) -> Pod:
    return pod(name, f"c-{name}", priority=priority)


def sent(planner: Planner, *pods: Pod, at: float = 0.0) -> list[NodeName]:
    """Promise devices to pods about whom nobody has asked; return where."""
    plans = [planner.plan(item, None, at, is_answer=False) for item in pods]
    return [plan.placement.node for plan in plans if isinstance(plan, Offer)]


def asked(planner: Planner, on: Sequence[NodeName] = NODES, subject: Pod = HIGH) -> Plan:
    return planner.plan(subject, on, 1.0)


def promised(planner: Planner) -> set[str]:
    return {promise.pod for promise in planner.belief.ledger}


def test_a_more_important_pod_has_what_nobody_was_told_of() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    first, second = sent(here, *others)
    plan = asked(here, [second])
    assert isinstance(plan, Offer)
    assert plan.placement.node == second != first
    assert promised(here) == {HIGH.uid, others[0].uid}


def test_so_it_does_where_it_was_found_to_fit_nowhere_when_nobody_had_asked_about_it() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    sent(here, *others)
    assert isinstance(here.plan(HIGH, None, 0.5, is_answer=False), Rejection)
    assert isinstance(asked(here), Offer)


@pytest.mark.parametrize("priority", [10, 11])
def test_who_is_as_important_keeps_what_it_was_promised(priority: int) -> None:
    others = low("a", priority), low("b", priority)
    here = planner(*others)
    sent(here, *others)
    assert isinstance(asked(here), Rejection)
    assert promised(here) == {other.uid for other in others}


def test_what_the_scheduler_was_told_of_is_kept() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    for other in others:
        assert isinstance(here.plan(other, NODES, 0.0), Offer)
    assert isinstance(asked(here), Rejection)
    assert promised(here) == {other.uid for other in others}


def test_what_the_scheduler_was_told_of_since_is_kept_although_nothing_else_has_changed() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    first, _ = sent(here, *others)
    assert isinstance(asked(here, names("n3")), Rejection)
    assert isinstance(here.plan(others[0], [first], 1.0), Offer)
    assert isinstance(asked(here, [first]), Rejection)
    assert promised(here) == {other.uid for other in others}


def test_what_is_in_vain_for_a_pod_may_be_had_by_a_more_important_one_that_asks_the_same() -> None:
    middle = pod("middle", "c-middle", priority=5)
    belief = belief_of(node("n1"), gpus("n1", 2), claim("ch", 2), claim("c-middle", 2), claim("c-a"), claim("c-b"))
    for item in (others := (low("a"), low("b", 7))) + (middle, HIGH):
        belief.apply(Changed(item))
    here = planner_of(belief)
    assert sent(here, *others) == names("n1", "n1")
    assert isinstance(asked(here, subject=middle), Rejection)
    assert isinstance(asked(here), Offer)


def test_what_is_being_written_is_kept() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    sent(here, *others)
    for promise in tuple(here.belief.ledger):
        assert here.belief.ledger.reserve(promise)
    assert isinstance(asked(here), Rejection)
    assert promised(here) == {other.uid for other in others}


def test_nobody_who_is_unasked_takes_from_others() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    sent(here, *others)
    assert sent(here, HIGH) == []


def test_nothing_is_taken_back_where_that_would_not_do() -> None:
    others = low("a"), low("b")
    here = planner(*others, wanted=2)
    sent(here, *others)
    assert isinstance(asked(here), Rejection)
    assert promised(here) == {other.uid for other in others}


def test_nothing_is_taken_back_elsewhere_than_the_scheduler_asks_about() -> None:
    here = planner(low("a"), low("told"))
    (there,) = sent(here, low("a"))
    (other,) = (name for name in NODES if name != there)
    assert isinstance(here.plan(low("told"), [other], 0.0), Offer)
    plan = asked(here, [other])
    assert isinstance(plan, Rejection)
    assert plan.word is Word.IN_USE
    assert low("a").uid in promised(here)


def test_no_more_goes_than_it_takes_the_least_important_and_the_last_first() -> None:
    others = low("a", 2), low("b", 1), low("c", 1), low("d", 3)
    here = planner(*others, devices=4, wanted=2)
    for at, other in enumerate(others):
        assert isinstance(here.plan(other, ["n1"], at, is_answer=False), Offer)
    assert isinstance(asked(here, [NodeName("n1")]), Offer)
    assert promised(here) == {HIGH.uid, "uid-a", "uid-d"}


def test_who_has_left_its_devices_is_planned_anew_when_it_is_asked_about() -> None:
    others = low("a"), low("b")
    here = planner(*others)
    (first, _) = sent(here, *others)
    assert isinstance(asked(here, [first]), Offer)
    plan = asked(here, NODES, others[0])
    assert isinstance(plan, Rejection)
    assert not isinstance(plan, Trouble)


def test_who_would_not_do_alone_but_could_keep_its_devices_keeps_them() -> None:
    small, large = low("a", 0), low("b", 1)
    here = planner(devices=5, wanted=4)
    for item, count in ((small, 1), (large, 4)):
        here.belief.apply(Changed(claim(f"c-{item.key.name}", count)))
        here.belief.apply(Changed(item))
        assert isinstance(here.plan(item, ["n1"], 0.0, is_answer=False), Offer)
    assert isinstance(asked(here, [NodeName("n1")]), Offer)
    assert promised(here) == {HIGH.uid, small.uid}


def test_where_it_was_in_vain_nothing_is_looked_for_again_until_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others, same = (low("a"), low("b")), pod("same", "cs", priority=10)
    here = planner(*others, wanted=2)
    here.belief.apply(Changed(claim("cs", 2)))
    here.belief.apply(Changed(same))
    sent(here, *others)
    looked: list[object] = []

    def surveyed(*given: Any) -> object:
        looked.append(given)
        return survey(*given)

    monkeypatch.setattr(yielding, "survey", surveyed)
    for subject in (HIGH, HIGH, same, HIGH):
        assert isinstance(asked(here, NODES, subject), Rejection)
    assert len(looked) == 1
    here.belief.apply(Changed(gpus("n1", 3)))
    assert isinstance(asked(here), Offer)


def test_nobody_leaves_anything_for_a_pod_that_is_refused_all_the_same() -> None:
    strict = Manner(BEST.preference, is_lenient=False, steps=BEST.steps)
    model = "gpu.example.com/model"
    (told,) = gpus("n1", 1).devices
    spoken = replace(gpus("n1", 1), devices=(replace(told, attributes=((model, Attribute("string", "a")),)),))
    wanted = claim("ch")
    (slot,) = wanted.spec.requests
    assert slot.exactly is not None
    selector = Selector('device.attributes["gpu.example.com"].model == "a"')
    slot = replace(slot, exactly=replace(slot.exactly, selectors=(selector,)))
    wanted = replace(wanted, spec=replace(wanted.spec, requests=(slot,)))
    belief = belief_of(
        node("n1"), spoken, node("n2"), gpus("n2", 1), claim("c-a"), wanted, low("a"), HIGH, manner=strict
    )
    here = Planner(belief, Chooser(belief, lambda: "share", strict))
    assert isinstance(here.plan(low("a"), ["n1"], 0.0, is_answer=False), Offer)
    plan = asked(here, [NodeName("n1")])
    assert isinstance(plan, Rejection)
    assert plan.word is Word.NODE_ERROR
    assert promised(here) == {"uid-a"}


def test_what_was_not_found_out_yet_is_looked_for_when_the_pod_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = low("a"), low("b")
    here = planner(*others)
    sent(here, *others)

    def unfinished(*_: object) -> object:
        raise Unfinished(is_search=True)

    with monkeypatch.context() as patched:
        patched.setattr(yielding, "survey", unfinished)
        assert isinstance(asked(here), Rejection)
    assert isinstance(asked(here), Offer)
