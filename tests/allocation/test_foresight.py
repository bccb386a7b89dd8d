"""The law of foresight: what it leaves out cannot succeed, so the first solution stays the first one."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.allocation.attempt import Attempt, Pick, Undo
from extender.allocation.board import board_of
from extender.allocation.eligibility import Met, judge_of
from extender.allocation.foresight import Foresight, can_foresee
from extender.allocation.pools import Unreadable
from extender.allocation.preference import Tightest, Turn, in_order, turns_of
from extender.allocation.question import Ask, At, Refusal, ask
from extender.allocation.search import Exhausted, Search
from extender.allocation.situation import Situation, examining
from extender.allocation.solve import STEPS, _found
from extender.allocation.values import Values
from extender.allocation.work import finished
from extender.cli.case import case_of
from tests.allocation.clusters import question
from tests.allocation.hostile import DRIVER, Json, questions
from tests.allocation.hostile import situation as hostile
from tests.allocation.rash import question as rash

PATIENCE = 5000


def situations(raw: Json) -> Iterator[Situation]:
    """Yield the question before each node, where a search can have foresight."""
    case = case_of(raw)
    try:
        asked = ask([claim for claim in case.claims if not claim.allocation], case.classes, case.features)
        for node in case.nodes:
            board = board_of(node, case.slices, case.tainting, case.features)
            usages = tuple(case.usage_of(candidate.key) for candidate in board.candidates)
            found = finished(examining(asked, board, usages, case.usage_of, judge_of(board)))
            if can_foresee(found):
                yield found
    except (Refusal, Met, Unreadable):
        return


def outcome(search: Search) -> tuple[Pick, ...] | str | None:
    """Return what a search finds, or what it meets."""
    try:
        return search.run()
    except Met as met:
        return str(met)


def compare(found: Situation) -> bool:
    """Search blindly and with foresight; tell whether both came to an end."""
    blind, foreseeing = Search(found, PATIENCE), Search(found, 10 * PATIENCE, Foresight(found))
    try:
        expected = outcome(blind)
    except Exhausted:
        return False
    assert outcome(foreseeing) == expected
    return True


def compare_ordered(found: Situation) -> None:
    """Search likewise where sets are ordered, and asks choose in another order than that of the question."""
    turns = turns_of(found, BACKWARDS)
    try:
        expected = Search(found, PATIENCE, preference=BACKWARDS).run()
    except Exhausted:
        return
    assert Search(found, PATIENCE, Foresight(found, turns), BACKWARDS).run() == expected


class Backwards(Tightest):
    """Has the last ask choose first."""

    def order(self, situation: Situation) -> list[Turn]:
        return in_order(situation)[::-1]


BACKWARDS = Backwards()


@given(st.integers(0, 1 << 30))
@settings(max_examples=300)
def test_foresight_finds_the_first_solution_in_drawn_clusters(seed: int) -> None:
    for found in situations(question(f"foresight {seed}")):
        compare(found)
        compare_ordered(found)


@given(questions())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_foresight_finds_the_first_solution_of_hard_questions(raw: Json) -> None:
    try:
        found = hostile(raw)
    except Met:
        return
    if can_foresee(found):
        compare(found)
        compare_ordered(found)


@given(st.integers(0, 1 << 30))
@settings(max_examples=400)
def test_foresight_leaves_out_no_error(seed: int) -> None:
    for found in situations(rash(seed)):
        compare(found)
        compare_ordered(found)


def erring_last(devices: int) -> Situation:
    """Ask seven times for three devices, and then for three by a selector that errs on all."""
    raw = crowded(devices=devices, requests=8, alternatives=1, constraints=0, count=3)
    last = raw["claims"][0]["spec"]["devices"]["requests"][-1]["firstAvailable"][0]
    last["selectors"] = [{"cel": {"expression": f"device.attributes['{DRIVER}'].nothing"}}]
    return hostile(raw)


def test_what_errs_is_not_come_to_where_what_is_asked_before_cannot_be_had() -> None:
    assert finished(_found(erring_last(20), STEPS)) is None
    with pytest.raises(Exhausted):
        Search(erring_last(20), STEPS).run()
    with pytest.raises(Met, match="no such key: nothing"):
        finished(_found(erring_last(22), STEPS))


def test_nothing_is_foreseen_where_a_claim_may_have_too_many_results_and_something_errs() -> None:
    # Then no other device is tried before, and what would have erred is not come to.
    raw = crowded(devices=24, requests=5, alternatives=1, constraints=0, count=6)
    requests = raw["claims"][0]["spec"]["devices"]["requests"]
    requests[4]["firstAvailable"].append({"name": "few"} | requests[4]["firstAvailable"][0] | {"count": 9})
    assert can_foresee(hostile(raw))
    requests[0]["firstAvailable"][0]["selectors"] = [{"cel": {"expression": f"device.attributes['{DRIVER}'].a0 < 9"}}]
    assert not can_foresee(hostile(raw))


def test_what_foresight_knows_is_worked_out_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: Counter[tuple[str, int]] = Counter()
    look_up = Values.at

    def counted(values: Values, asking: Ask, place: int) -> int | None:
        looked_up[values.rule.attribute, place] += 1
        return look_up(values, asking, place)

    found = hostile(crowded(devices=24, requests=32, alternatives=8, constraints=32))
    monkeypatch.setattr(Values, "at", counted)
    Foresight(found)
    assert len(looked_up) == 24 * 32
    assert set(looked_up.values()) == {1}


def test_a_question_with_many_requests_is_decided_where_counting_decides_it() -> None:
    # Two devices have each value, and each request wants three: all that matters is seen at the first look.
    raw = crowded(devices=24, requests=8, alternatives=4, constraints=8, count=3)
    search = Search(found := hostile(raw), STEPS, Foresight(found))
    assert search.run() is None


def test_who_needs_nothing_agrees_with_everybody() -> None:
    # Seven devices have one value and thirteen the other; nobody has what the last request is bound by.
    raw = crowded(devices=20, requests=3, alternatives=1, constraints=1, count=4)
    for place, published in enumerate(raw["slices"][0]["spec"]["devices"]):
        published["attributes"] = {"a0": {"int": int(place < 7)}}
    spec = raw["claims"][0]["spec"]["devices"]
    spec["requests"][2]["firstAvailable"][0]["count"] = 0
    names = [request["name"] for request in spec["requests"]]
    spec["constraints"] = [
        {"matchAttribute": f"{DRIVER}/a0", "requests": names[:2]},
        {"matchAttribute": f"{DRIVER}/nothing", "requests": names[2:]},
    ]
    found = hostile(raw)
    picks = Search(found, STEPS, Foresight(found)).run()
    assert picks is not None
    assert {pick.place for pick in picks} == set(range(7, 15))


def crowded(*, devices: int, requests: int, alternatives: int, constraints: int, count: int = 1) -> Json:
    """Ask as much of one node as a claim can ask."""
    attributes = [f"a{index}" for index in range(constraints)]
    published = [
        {"name": f"d{place}", "attributes": {name: {"int": place // 2} for name in attributes}}
        for place in range(devices)
    ]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": published}
    body = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    asked = [
        {"name": f"r{index}", "firstAvailable": [{"name": f"s{choice}"} | body for choice in range(alternatives)]}
        for index in range(requests)
    ]
    rules = [{"matchAttribute": f"{DRIVER}/{name}"} for name in attributes]
    claim = {
        "metadata": {"namespace": "ns", "name": "c"},
        "spec": {"devices": {"requests": asked, "constraints": rules}},
    }
    return {
        "name": "crowded",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [claim],
    }


def test_foresight_tries_far_fewer_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, given = [0, 0], 0
    give = Attempt.give

    def counted(attempt: Attempt, at: At, asking: Ask, place: int) -> Undo | None:
        nonlocal given
        given += 1
        return give(attempt, at, asking, place)

    monkeypatch.setattr(Attempt, "give", counted)
    for number in range(400):
        for found in situations(question(number)):
            for index, foresight in enumerate((None, Foresight(found))):
                given = 0
                with suppress(Exhausted, Met):
                    Search(found, PATIENCE, foresight).run()
                tried[index] += given
    assert 2 * tried[1] < tried[0]
