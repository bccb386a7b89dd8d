"""Pauses grow and differ; turns are short and one at a time."""

import asyncio
from collections.abc import Iterator

from extender.kube.pace import Backoff, Pace, Turns, stirred


async def test_news_are_waited_for_and_taken_note_of_once() -> None:
    news = asyncio.Event()
    waiting = asyncio.create_task(stirred(news, 3600.0))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    news.set()
    await waiting
    assert not news.is_set()


async def test_without_news_who_waits_goes_on_all_the_same() -> None:
    await stirred(asyncio.Event(), 0.0)


async def pauses(chance: float, count: int, at_least_s: float = 0.0, *, is_reset: bool = False) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    backoff = Backoff(Pace(sleep=sleep, chance=lambda: chance), first_s=1.0, last_s=8.0)
    for _ in range(count):
        await backoff.wait(at_least_s)
        if is_reset:
            backoff.reset()
    return slept


async def test_pauses_double_up_to_a_limit_and_are_half_chance() -> None:
    assert await pauses(0.0, 6) == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert await pauses(1.0, 6) == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


async def test_after_a_success_the_pauses_begin_anew() -> None:
    assert await pauses(0.0, 3, is_reset=True) == [0.5, 0.5, 0.5]


async def test_what_the_server_asks_for_is_the_least() -> None:
    assert await pauses(0.0, 1, at_least_s=7.0) == [7.0]
    assert await pauses(1.0, 1, at_least_s=7.0) == [14.0]


class Counted:
    """A clock that moves by one with each step of work."""

    def __init__(self) -> None:
        self.time = 0.0
        self.order: list[str] = []

    def steps(self, name: str, count: int) -> Iterator[None]:
        for _ in range(count):
            self.time += 1.0
            self.order.append(name)
            yield


async def done_by_turn(steps: int, turn_s: float, others_s: float) -> list[int]:
    """Tell how many of *steps* are done after each turn, where others take *others_s* before the next."""
    clock, done = Counted(), []
    turns = Turns(turn_s, clock=lambda: clock.time)
    task = asyncio.create_task(turns.take(clock.steps("work", steps)))
    while not task.done():
        await asyncio.sleep(0)
        clock.time += others_s
        done.append(len(clock.order))
    return done


async def test_work_is_cut_into_turns_between_which_others_run() -> None:
    assert (await done_by_turn(7, turn_s=3.0, others_s=0.0))[:3] == [3, 6, 7]


async def test_work_that_others_hold_up_has_longer_turns_up_to_a_limit() -> None:
    assert (await done_by_turn(99, turn_s=2.0, others_s=32.0))[:6] == [2, 6, 14, 26, 42, 58]


async def test_two_share_the_turns() -> None:
    clock = Counted()
    turns = Turns(turn_s=2.0, clock=lambda: clock.time)
    await asyncio.gather(turns.take(clock.steps("a", 4)), turns.take(clock.steps("b", 4)))
    assert "".join(clock.order) == "aabbaabb"


async def test_who_is_cancelled_leaves_the_turn_to_others() -> None:
    clock = Counted()
    turns = Turns(turn_s=2.0, clock=lambda: clock.time)
    first = asyncio.create_task(turns.take(clock.steps("a", 100)))
    await asyncio.sleep(0)
    first.cancel()
    await turns.take(clock.steps("b", 4))
    assert clock.order.count("b") == 4
