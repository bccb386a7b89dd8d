"""Pods in the order in which kube-scheduler takes them."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.service.line import CROWD, REMEMBERED, Line
from tests.scheduling.cast import pod

CLAIM, OTHER = ObjectKey("ns", "c"), ObjectKey("ns", "d")


def taken(line: Line) -> list[Uid]:
    return [line.take().pod for _ in range(len(line))]


def lined_up(came: Iterable[Pod], joined: Iterable[Pod]) -> Line:
    line = Line()
    for each in came:
        line.came(each.uid)
    for each in joined:
        line.join(each)
    return line


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_of_equals_who_came_first_is_taken_first_whoever_joined_first(came: list[int], joined: list[int]) -> None:
    pods = [pod(f"p{number}") for number in range(6)]
    line = lined_up((pods[number] for number in came), (pods[number] for number in joined))
    assert taken(line) == [pods[number].uid for number in came]


def test_before_that_come_priority_and_age() -> None:
    first, old, important = pod("first"), pod("old"), pod("important")
    first = replace(first, created="2026-01-02T00:00:00Z")
    important = replace(important, created="2026-01-03T00:00:00Z", priority=1)
    pods = (first, old, important)
    assert taken(lined_up(pods, pods)) == [important.uid, old.uid, first.uid]


def test_who_leaves_for_a_claim_comes_back_to_where_it_stood() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    line = lined_up(pods, pods[:2])
    line.leave(line.take(), [CLAIM, OTHER])
    assert [line.has_had(each.uid) for each in pods] == [False, True, False]
    line.join(pods[2])
    assert line.back(CLAIM) == (pods[0].uid,)
    assert line.back(CLAIM) == ()
    assert line.back(OTHER) == (pods[0].uid,)
    line.join(pods[0])
    assert taken(line) == [each.uid for each in pods]


def test_who_was_asked_about_waits_for_no_claim() -> None:
    one = pod("one")
    line = lined_up([one], [one])
    place = line.take()
    line.asked(one.uid)
    line.leave(place, [CLAIM])
    assert line.was_asked(one.uid)
    assert line.back(CLAIM) == ()


def test_no_more_wait_for_a_claim_than_can_use_it() -> None:
    pods = [pod(f"p{number}") for number in range(CROWD + 1)]
    line = lined_up(pods, pods)
    for _ in pods:
        line.leave(line.take(), [CLAIM])
    line.join(pods[1])
    line.leave(line.take(), [CLAIM])
    assert line.back(CLAIM) == (*(each.uid for each in pods[2:]), pods[1].uid)


def test_who_was_asked_about_has_had_its_turn() -> None:
    line, never, asked = Line(), pod("never"), pod("asked")
    line.came(never.uid)
    line.came(asked.uid)
    line.asked(asked.uid)
    assert [line.has_had(each.uid) for each in (never, asked)] == [False, True]
    assert [line.was_asked(each.uid) for each in (never, asked)] == [False, True]


def test_who_has_joined_has_a_turn_and_was_not_asked_about() -> None:
    one = pod("one")
    line = lined_up([one], [one])
    assert line.has_had(one.uid)
    assert not line.was_asked(one.uid)


def test_nothing_is_remembered_of_who_waits_no_longer() -> None:
    line, came, joined = Line(), pod("came"), pod("joined")
    for each in (came, joined):
        line.came(each.uid)
    line.join(joined)
    for each in (came, joined):
        line.forget(each.uid)
    assert not line.has_had(joined.uid)
    assert not line._came
    assert not line._had


def test_of_many_that_never_join_the_last_are_remembered() -> None:
    line = lined_up([], [])
    for number in range(REMEMBERED + 10):
        line.came(Uid(f"u{number}"))
    assert len(line._came) == REMEMBERED
    assert Uid("u0") not in line._came
