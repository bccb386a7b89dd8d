"""Pods in the order in which kube-scheduler takes them."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import Uid
from extender.model.node import Pod
from extender.service.line import REMEMBERED, Line
from tests.scheduling.cast import pod


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


def test_who_is_put_back_stands_where_it_stood() -> None:
    pods = [pod("a"), pod("b")]
    line = lined_up(pods, pods)
    line.put_back(line.take())
    assert taken(line) == [each.uid for each in pods]


def test_who_leaves_has_had_no_turn_and_comes_back_to_where_it_stood() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    line = lined_up(pods, pods[:2])
    line.leave(line.take())
    assert [line.has_had(each.uid) for each in pods] == [False, True, False]
    assert line.outside(9) == (pods[0].uid,)
    line.join(pods[2])
    line.join(pods[0])
    assert line.outside(9) == ()
    assert taken(line) == [each.uid for each in pods]


def test_who_was_asked_about_does_not_come_back() -> None:
    one = pod("one")
    line = lined_up([one], [one])
    place = line.take()
    line.asked(one.uid)
    line.leave(place)
    assert line.was_asked(one.uid)
    assert not line.is_waited_for


def test_of_those_that_wait_for_claims_others_are_looked_at_first_next_time() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    line = lined_up(pods, [])
    for each in pods:
        line.wait(each.uid)
        line.wait(each.uid)
    assert line.outside(2) == (pods[0].uid, pods[1].uid)
    line.step_aside(pods[0].uid, is_gone=False)
    line.step_aside(pods[1].uid, is_gone=True)
    assert line.outside(9) == (pods[2].uid, pods[0].uid)


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


def test_of_many_that_never_join_the_last_are_remembered() -> None:
    line = lined_up([], [])
    for number in range(REMEMBERED + 10):
        line.came(Uid(f"u{number}"))
    assert len(line._came) == REMEMBERED
    assert Uid("u0") not in line._came
