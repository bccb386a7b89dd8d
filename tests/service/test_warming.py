"""New questions are answered in pieces before anybody asks."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.fit import Fitter
from extender.allocation.snapshot import Snapshot
from extender.allocation.verdict import Fit
from extender.allocation.work import Work
from extender.model.change import Gone
from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.service.warming import Warming
from extender.state.belief import Belief
from extender.state.questions import Questions
from loadtests.bench.fit import CLASSES
from loadtests.bench.plan import SPECS, belief, pod
from tests.service.test_ahead import turned


def claim_of_a_new_pod(known: Belief) -> ResourceClaim:
    owner = pod(known, SPECS["4 with one numa"])
    return next(claim for claim in known.cluster.claims if claim.key.name == owner.claims[0].claim_name)


async def test_a_new_question_is_answered_while_others_have_their_turns() -> None:
    known = belief(300)
    claim = claim_of_a_new_pod(known)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await Warming(known)._answer(claim)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert turns > 3
    snapshot = known.seen_by()
    fitter = known.questions.fitter([claim], snapshot.classes)
    assert fitter.fit(snapshot) is fitter._last
    assert fitter._last.mask.any()


async def test_a_question_that_is_known_or_makes_no_sense_is_passed_over() -> None:
    known = belief(1)
    claim = claim_of_a_new_pod(known)
    warming = Warming(known)
    await warming._answer(claim)
    await warming._answer(claim)
    assert len(known.questions) == 1
    for name in CLASSES:
        known.apply(Gone(DeviceClass, ObjectKey("", name)))
    await warming._answer(claim)
    assert len(known.questions) == 1


async def test_what_is_worked_out_beside_makes_others_give_room_as_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    known = belief(300)
    claim, looks = claim_of_a_new_pod(known), 0
    make_room = Questions.make_room

    def counted(questions: Questions) -> None:
        nonlocal looks
        looks += 1
        make_room(questions)

    monkeypatch.setattr(Questions, "make_room", counted)
    monkeypatch.setattr("extender.service.warming.LOOK_EVERY", 2)
    await Warming(known)._answer(claim)
    assert looks > 2


def test_of_claims_that_ask_for_the_same_the_first_is_looked_at_until_classes_change() -> None:
    known = belief(1)
    claim = claim_of_a_new_pod(known)
    again = replace(claim, uid=Uid("another"))
    warming = Warming(known)
    warming.shown(claim)
    warming.shown(again)
    assert list(warming._fresh) == [claim]
    known.apply(Gone(DeviceClass, ObjectKey("", next(iter(CLASSES)))))
    warming.shown(again)
    assert list(warming._fresh) == [claim, again]


async def test_a_claim_that_cannot_be_looked_at_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = belief(1)
    claim = claim_of_a_new_pod(known)
    usual = Questions.is_known

    def broken(questions: Questions, claims: list[ResourceClaim], *rest: Any) -> bool:
        if claims[0].key.name == "bad":
            raise KeyError("something that nobody thought of")
        return usual(questions, claims, *rest)

    monkeypatch.setattr(Questions, "is_known", broken)
    warming = Warming(known)
    warming.shown(replace(claim, key=ObjectKey("ns", "bad"), spec=replace(claim.spec, constraints=())))
    warming.shown(claim)
    await turned(warming.run, lambda: bool(warming._fresh))
    assert len(known.questions) == 1
    assert [record.__dict__["claim"] for record in caplog.records] == ["ns/bad"]


async def test_a_question_that_cannot_be_gone_on_with_is_left_to_who_asks_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_fitter: Fitter, _snapshot: Snapshot) -> Work[Fit]:
        raise KeyError("something that nobody thought of")

    known = belief(1)
    claim = claim_of_a_new_pod(known)
    fitter = known.questions.fitter([claim], known.cluster.snapshot.classes)
    fitter.is_late = True
    monkeypatch.setattr(Fitter, "pieces", broken)
    await Warming(known)._catch_up(fitter)
    assert known.questions.late() == []
    assert [record.getMessage() for record in caplog.records] == ["looking at a claim failed"]
