"""What waits for the scheduler's answer is done in its order, whatever becomes of it, once the answer has left."""

import asyncio
import logging
from functools import partial

import pytest

from extender.service.afterwards import TURNS, Afterwards, in_turns
from extender.service.binds import Binds
from tests.service.door import opened


def test_without_an_event_loop_nothing_waits() -> None:
    done: list[int] = []
    Afterwards().put(partial(done.append, 1))
    assert done == [1]


async def test_what_waits_is_done_in_its_order_after_some_turns() -> None:
    waiting, done = in_turns(), list[int]()
    for number in range(3):
        waiting.put(partial(done.append, number))
    for _ in range(TURNS):
        await asyncio.sleep(0)
        assert not done
    await asyncio.sleep(0)
    assert done == [0, 1, 2]
    waiting.put(partial(done.append, 3))
    for _ in range(TURNS + 1):
        await asyncio.sleep(0)
    assert done == [0, 1, 2, 3]


async def test_what_is_put_by_what_waits_waits_no_longer_than_that_does() -> None:
    waiting, done = in_turns(), list[int]()
    waiting.put(lambda: waiting.put(partial(done.append, 1)))
    waiting.flush()
    assert done == [1]


async def test_what_crashes_is_told_and_keeps_nothing_else_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    waiting, done = in_turns(), list[float]()
    waiting.put(lambda: done.append(1 / 0))
    waiting.put(partial(done.append, 2))
    with caplog.at_level(logging.ERROR):
        waiting.flush()
    assert done == [2]
    assert [record.message for record in caplog.records] == ["a call crashed"]


async def test_a_decision_is_answered_before_it_is_remembered_and_told_to_who_asks_all_the_same() -> None:
    async with opened() as door:
        await door.pod("p")
        (pod,) = door.service.belief.pods
        journal = door.service.journal
        assert door.service.answers.filter(pod, ["n1"]).names
        assert journal.decisions.get(pod.key) is None
        assert journal.of(pod.key) is not None


async def test_what_was_answered_last_is_told_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    async with opened() as door:
        afterwards, leading = door.service.journal.afterwards, door.service.leading

        async def stop(_binds: Binds) -> None:
            afterwards.put(partial(done.append, "told"))

        async def end(_leading: object, _farewell_s: float) -> None:
            done.append("ended")

        monkeypatch.setattr(Binds, "stop", stop)
        monkeypatch.setattr(type(leading), "end", end)
    assert done == ["told", "ended"]
