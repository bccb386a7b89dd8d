"""Texts are compiled when they are needed, one at a time, and remembered up to a bound."""

from collections.abc import Sequence
from typing import Any

import pytest

from extender.allocation.cel.syntax import parse
from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.formula import PIECE, Recent, formula_of
from extender.allocation.question import CHARACTERS, TEXTS, Question, Refusal, ask, compiled_anew
from extender.model.claim import ClaimSpec, RequestSlot, ResourceClaim
from extender.model.names import ObjectKey, Uid
from tests.allocation.small import CLASSES, cluster, device, node, published, request


def question(*requests: Sequence[str]) -> Question:
    slots = (RequestSlot(name=str(place), exactly=request(selectors=texts)) for place, texts in enumerate(requests))
    claim = ResourceClaim(key=ObjectKey("ns", "a"), uid=Uid("a"), spec=ClaimSpec(requests=tuple(slots)))
    return ask([claim], CLASSES, ALL)


def long(number: int) -> str:
    return "||".join(["1+1>2"] * 100) + f"||{number}>2"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that are compiled from now on."""
    texts: list[str] = []

    def counted(text: str) -> Any:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr("extender.allocation.cel.compile.parse", counted)
    return texts


def test_a_question_is_asked_without_compiling_anything(parsed: list[str]) -> None:
    question([f"{number} == 1001" for number in range(20)])
    assert not parsed


def test_no_piece_compiles_more_than_one_text_and_each_is_paid_for_before(parsed: list[str]) -> None:
    texts = [long(number) for number in range(20, 25)]
    built = cluster(node("n1"), published("n1", device("d1")))
    fitter, before = Fitter(question(texts)), 0
    for pieces, _ in enumerate(fitter.pieces(built.snapshot), 1):
        assert len(parsed) - before <= 1
        assert pieces >= sum(len(text) // PIECE for text in parsed)
        before = len(parsed)
    assert parsed == texts


def test_an_answer_that_is_wanted_soon_compiles_no_more_than_there_is_time_for(parsed: list[str]) -> None:
    texts = [long(number) for number in range(30, 40)]
    built = cluster(node("n1"), published("n1", device("d1")))
    fitter = Fitter(question(texts))
    assert fitter.fit_soon(built.snapshot, 3 * len(texts[0]) // PIECE) is None
    assert len(parsed) <= 3
    assert fitter.is_late


def test_whoever_asks_the_same_anew_compiles_nothing_however_many_texts_there_are(parsed: list[str]) -> None:
    built = cluster(node("n1"), published("n1", device("d1")))
    asked = question(*([f"{slot * 40 + number} >= 0" for number in range(40)] for slot in range(25)))
    Fitter(asked).fit(built.snapshot)
    assert len(parsed) == 1000
    again = Fitter(compiled_anew(asked))
    assert again.fit(built.snapshot).question is again.question
    assert len(parsed) == 1000


def test_a_text_that_nobody_asks_any_more_stays_compiled(parsed: list[str]) -> None:
    for _ in range(2):
        assert formula_of("1001 == 1002", is_selector=True).selector
    assert len(parsed) == 1


def test_one_text_is_another_as_an_attribute_than_as_a_selector() -> None:
    assert formula_of("1 + 1", is_selector=False).program
    assert formula_of("1 + 1", is_selector=True).selector is None
    assert "must evaluate to bool" in formula_of("1 + 1", is_selector=True).error


def test_a_question_of_more_texts_or_characters_than_there_is_room_for_is_refused(parsed: list[str]) -> None:
    few, many = [f"{number} > -1" for number in range(TEXTS)], [f"{number} > -2" for number in range(TEXTS)]
    assert len(question(few, few).asks) == 2
    with pytest.raises(Refusal, match=f"{2 * TEXTS} different expressions"):
        question(few, many)
    big = ["'" + str(number).zfill(CHARACTERS // 100 - 7) + "'<''" for number in range(101)]
    assert question(big[:98])
    with pytest.raises(Refusal, match=f"{TEXTS} with {CHARACTERS}"):
        question(big)
    assert not parsed


def test_of_the_recent_so_many_characters_stay() -> None:
    recent = Recent(most=10)
    for text in ("aaaa", "bbbb"):
        recent.put((text, True), text)
    assert recent.get(("aaaa", True)) == "aaaa"
    recent.put(("cccc", True), "c")
    assert [recent.get((text, True)) for text in ("aaaa", "bbbb", "cccc")] == ["aaaa", None, "c"]
    recent.put(("d" * 11, True), "d")
    assert recent.get(("d" * 11, True)) is None
    recent.put(("e" * 10, True), "e")
    assert recent.get(("e" * 10, True)) == "e"
