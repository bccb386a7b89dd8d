"""Pods in the order in which kube-scheduler takes them."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.service.ahead_queue import CROWD, REMEMBERED, AheadQueue
from tests.scheduling.cast import pod

CLAIM, OTHER = ObjectKey("ns", "c"), ObjectKey("ns", "d")


def taken(queue: AheadQueue) -> list[Uid]:
    return [queue.take().pod for _ in range(len(queue))]


def queued(came: Iterable[Pod], joined: Iterable[Pod]) -> AheadQueue:
    queue = AheadQueue()
    for each in came:
        queue.came(each.uid)
    for each in joined:
        queue.join(each)
    return queue


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_of_equals_who_came_first_is_taken_first_whoever_joined_first(came: list[int], joined: list[int]) -> None:
    pods = [pod(f"p{number}") for number in range(6)]
    queue = queued((pods[number] for number in came), (pods[number] for number in joined))
    assert taken(queue) == [pods[number].uid for number in came]


def test_before_that_come_priority_and_age() -> None:
    first, old, important = pod("first"), pod("old"), pod("important")
    first = replace(first, created="2026-01-02T00:00:00Z")
    important = replace(important, created="2026-01-03T00:00:00Z", priority=1)
    pods = (first, old, important)
    assert taken(queued(pods, pods)) == [important.uid, old.uid, first.uid]


def test_who_leaves_for_a_claim_comes_back_to_where_it_stood() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    queue = queued(pods, pods[:2])
    queue.leave(queue.take(), [CLAIM, OTHER])
    assert [queue.has_had(each.uid) for each in pods] == [False, True, False]
    queue.join(pods[2])
    assert queue.back(CLAIM) == (pods[0].uid,)
    assert queue.back(CLAIM) == ()
    assert queue.back(OTHER) == (pods[0].uid,)
    queue.join(pods[0])
    assert taken(queue) == [each.uid for each in pods]


def test_who_leaves_for_a_claim_twice_comes_back_for_it_once() -> None:
    one = pod("one")
    queue = queued([one], [one])
    queue.leave(queue.take(), [CLAIM, OTHER])
    assert queue.back(OTHER) == (one.uid,)
    queue.join(one)
    queue.leave(queue.take(), [CLAIM])
    assert queue.back(CLAIM) == (one.uid,)


def test_however_many_were_asked_about_since_who_came_before_keeps_its_place() -> None:
    first, second = pod("first"), pod("second")
    queue = queued([first], [])
    for number in range(REMEMBERED):
        queue.came(Uid(f"asked-{number}"))
        queue.asked(Uid(f"asked-{number}"))
    for each in (second, first):
        queue.came(each.uid)
        queue.join(each)
    assert taken(queue) == [first.uid, second.uid]


def test_who_was_asked_about_waits_for_no_claim() -> None:
    one = pod("one")
    queue = queued([one], [one])
    place = queue.take()
    queue.asked(one.uid)
    queue.leave(place, [CLAIM])
    assert queue.was_asked(one.uid)
    assert queue.back(CLAIM) == ()


def test_no_more_wait_for_a_claim_than_can_use_it() -> None:
    pods = [pod(f"p{number}") for number in range(CROWD + 1)]
    queue = queued(pods, pods)
    for _ in pods:
        queue.leave(queue.take(), [CLAIM])
    queue.join(pods[1])
    queue.leave(queue.take(), [CLAIM])
    assert queue.back(CLAIM) == (*(each.uid for each in pods[2:]), pods[1].uid)


def test_who_was_asked_about_has_had_its_turn() -> None:
    queue, never, asked = AheadQueue(), pod("never"), pod("asked")
    queue.came(never.uid)
    queue.came(asked.uid)
    queue.asked(asked.uid)
    assert [queue.has_had(each.uid) for each in (never, asked)] == [False, True]
    assert [queue.was_asked(each.uid) for each in (never, asked)] == [False, True]


def test_who_has_joined_has_a_turn_and_was_not_asked_about() -> None:
    one = pod("one")
    queue = queued([one], [one])
    assert queue.has_had(one.uid)
    assert not queue.was_asked(one.uid)


def test_nothing_is_remembered_of_who_waits_no_longer() -> None:
    queue, came, joined = AheadQueue(), pod("came"), pod("joined")
    for each in (came, joined):
        queue.came(each.uid)
    queue.join(joined)
    for each in (came, joined):
        queue.forget(each.uid)
    assert not queue.has_had(joined.uid)
    assert not queue._came
    assert not queue._had


def test_of_many_that_never_join_the_last_are_remembered() -> None:
    queue = queued([], [])
    for number in range(REMEMBERED + 10):
        queue.came(Uid(f"u{number}"))
    assert len(queue._came) == REMEMBERED
    assert Uid("u0") not in queue._came
