"""Pods that ask the same share one question."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.question import Refusal
from extender.model.claim import (
    ClaimSpec,
    DeviceClass,
    DeviceConfig,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.names import ClassName, ObjectKey, Uid
from extender.state.questions import LOOK_EVERY, ROOM, Questions

GPU = ClassName("gpu")
CLASSES = {GPU: DeviceClass(name=GPU)}


def claim(name: str, count: int = 1, **spec: object) -> ResourceClaim:
    request = DeviceRequest(name="r", class_name=GPU, mode="ExactCount", count=count)
    asked = replace(ClaimSpec(requests=(RequestSlot(name="r", exactly=request),)), **spec)  # type: ignore[arg-type]  # fields of a spec
    return ResourceClaim(key=ObjectKey("ns", name), uid=Uid(name), spec=asked)


def test_claims_that_say_the_same_ask_one_question_whatever_they_are_called() -> None:
    questions = Questions(Features())
    assert questions.fitter([claim("a")], CLASSES) is questions.fitter([claim("b")], CLASSES)
    assert questions.fitter([claim("a", count=2)], CLASSES) is not questions.fitter([claim("a")], CLASSES)


def test_a_claim_that_names_a_controller_is_refused_though_others_ask_the_same() -> None:
    questions = Questions(Features())
    questions.fitter([claim("a")], CLASSES)
    with pytest.raises(Refusal):
        questions.fitter([replace(claim("b"), is_classic=True)], CLASSES)


def test_each_who_asks_a_shared_question_is_refused_by_its_own_claims_names() -> None:
    questions = Questions(Features())
    request = DeviceRequest(name="r", class_name=ClassName("absent"), mode="ExactCount", count=1)
    for name in ("b", "d"):
        nowhere = claim(name, requests=(RequestSlot(name="r", exactly=request),))
        with pytest.raises(Refusal, match=f"claim {name}, request r"):
            questions.question([claim("a"), nowhere], CLASSES)


def test_a_question_is_known_once_anybody_has_asked_it() -> None:
    questions = Questions(Features())
    assert not questions.is_known([claim("a")], CLASSES)
    questions.fitter([claim("a")], CLASSES)
    assert questions.is_known([claim("b")], CLASSES)
    assert not questions.is_known([claim("b", count=2)], CLASSES)


def test_configuration_for_drivers_makes_no_other_question() -> None:
    questions = Questions(Features())
    config = (DeviceConfig(opaque={"driver": "d", "parameters": {"a": [1]}}),)
    assert questions.fitter([claim("a", config=config)], CLASSES) is questions.fitter([claim("a")], CLASSES)


def test_a_changed_class_makes_another_question_and_one_that_is_not_named_does_not() -> None:
    questions = Questions(Features())
    first = questions.fitter([claim("a")], CLASSES)
    other = ClassName("other")
    assert questions.fitter([claim("a")], {**CLASSES, other: DeviceClass(name=other)}) is first
    changed = {GPU: DeviceClass(name=GPU, selectors=(Selector("false"),))}
    assert questions.fitter([claim("a")], changed) is not first


def test_the_least_recently_asked_question_is_forgotten_first() -> None:
    questions = Questions(Features(), most=2)
    one, two = claim("a", count=1), claim("a", count=2)
    first = questions.fitter([one], CLASSES)
    questions.fitter([two], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    questions.fitter([claim("a", count=3)], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    assert len(questions) == 2


def test_the_largest_questions_make_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = (1, 4, 2, 3)
    monkeypatch.setattr(Fitter, "size", property(lambda fitter: 100 * next(iter(fitter.question.asks.values())).count))
    questions = Questions(Features(), room=700)
    for count in counts:
        questions.fitter([claim("a", count=count)], CLASSES)
    assert [questions.is_known([claim("b", count=count)], CLASSES) for count in counts] == [True, False, True, True]


def test_a_question_that_is_asked_is_not_forgotten_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fitter, "size", ROOM + 1)
    questions = Questions(Features())
    first = questions.fitter([claim("a")], CLASSES)
    questions.fitter([claim("b", count=2)], CLASSES)
    assert not questions.is_known([claim("a")], CLASSES)
    again = questions.fitter([claim("a")], CLASSES)
    assert again is not first
    assert all(questions.fitter([claim("a")], CLASSES) is again for _ in range(2 * LOOK_EVERY))


def test_a_question_that_was_forgotten_is_not_late_for_ever() -> None:
    questions, slow = Questions(Features(), most=1), claim("slow")
    questions.asked([slow], CLASSES)[1].is_late = True
    questions.fitter([claim("other", count=2)], CLASSES)
    assert not questions.is_known([slow], CLASSES)
    _, again = questions.asked([slow], CLASSES)
    assert not again.is_late


def test_asking_again_what_was_asked_last_keeps_it_from_being_forgotten() -> None:
    questions, one = Questions(Features(), most=2), claim("a", count=1)
    _, first = questions.asked([one], CLASSES)
    for count in (2, 3, 4):
        questions.fitter([claim("other", count=count)], CLASSES)
        questions.asked([one], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    assert len(questions) == 2


def test_a_question_that_makes_no_sense_is_refused_and_not_remembered() -> None:
    questions = Questions(Features())
    with pytest.raises(Refusal, match="there is no class gpu"):
        questions.fitter([claim("a")], {})
    assert len(questions) == 0
