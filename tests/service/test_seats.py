"""So many bindings go on at a time: whoever waits has written nothing, and no namespace keeps all others out."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.service.seats import Crowded, Seats

LONG_S, AT_ONCE_S = 3600.0, 0.0


async def settled() -> None:
    """Let everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Crowd:
    """Those who want seats, each of whom leaves when told to."""

    def __init__(self, seats: Seats) -> None:
        self.seats = seats
        self.seated: list[tuple[str, asyncio.Event]] = []
        self.left = asyncio.Event()

    def come(self, group: str, patience_s: float = LONG_S) -> asyncio.Task[None]:
        return asyncio.create_task(self._sit(group, patience_s))

    async def _sit(self, group: str, patience_s: float) -> None:
        async with self.seats.one(group, patience_s):
            here = group, asyncio.Event()
            self.seated.append(here)
            try:
                await here[1].wait()
            finally:
                self.seated.remove(here)
                self.left.set()

    def counted(self) -> Counter[str]:
        return Counter(group for group, _ in self.seated)

    async def leave(self, group: str) -> None:
        next(event for name, event in self.seated if name == group and not event.is_set()).set()
        await settled()


async def test_no_group_keeps_all_others_out() -> None:
    crowd = Crowd(Seats(8))
    tasks = [crowd.come(group) for group in ("hung", "slow", "quick") for _ in range(20)]
    await settled()
    assert crowd.counted() == {"hung": 4, "slow": 2, "quick": 1}
    for task in tasks:
        task.cancel()


async def test_many_groups_that_hang_leave_little_until_their_first_have_left_and_then_an_equal_part() -> None:
    crowd, hung = Crowd(Seats(128)), [f"hung-{number}" for number in range(7)]
    tasks = [crowd.come(group) for group in hung for _ in range(200)]
    await settled()
    assert crowd.counted() == dict(zip(hung, (64, 32, 16, 8, 4, 2, 1), strict=True))
    for group in hung[0], hung[1]:
        for _ in range(crowd.counted()[group]):
            await crowd.leave(group)
    assert crowd.counted() == dict.fromkeys(hung, 16) | {hung[0]: 17}
    tasks += [crowd.come("quick") for _ in range(200)]
    await settled()
    assert crowd.counted()["quick"] == 8
    for task in tasks:
        task.cancel()


async def test_whoever_came_first_is_next() -> None:
    crowd = Crowd(Seats(1))
    tasks = [crowd.come(group) for group in ("first", "second", "third")]
    await settled()
    order: list[str] = []
    for _ in tasks:
        order += crowd.counted()
        await crowd.leave(order[-1])
    assert order == ["first", "second", "third"]


async def test_one_who_waited_in_vain_has_taken_no_seat() -> None:
    crowd = Crowd(Seats(1))
    crowd.come("a")
    await settled()
    with pytest.raises(Crowded):
        await crowd.come("a", AT_ONCE_S)
    late = crowd.come("a")
    await crowd.leave("a")
    await settled()
    assert crowd.counted() == {"a": 1}
    await crowd.leave("a")
    await late


@pytest.mark.parametrize("is_given", [True, False], ids=["given in that moment", "gone a moment before"])
async def test_the_seat_of_one_who_goes_before_he_sits_is_had_by_the_next(*, is_given: bool) -> None:
    crowd = Crowd(Seats(1))
    crowd.come("a")
    await settled()
    going, staying = crowd.come("a"), crowd.come("b")
    await settled()
    crowd.seated[0][1].set()
    if is_given:
        await crowd.left.wait()
    going.cancel()
    await settled()
    assert going.cancelled()
    assert crowd.counted() == {"b": 1}
    assert not staying.done()
    await crowd.leave("b")
    assert not crowd.seats.groups


async def test_one_who_has_gone_takes_no_seat_from_those_who_came_to_his_group_a_moment_before() -> None:
    crowd = Crowd(Seats(1))
    crowd.come("a")
    await settled()
    going = crowd.come("a")
    await settled()
    # All in one turn of the loop: the last of the group leaves, another comes, and who waited hears that he has gone.
    crowd.seated[0][1].set()
    staying = crowd.come("a")
    going.cancel()
    await settled()
    crowd.come("b")
    await settled()
    assert crowd.counted() == {"a": 1}
    await crowd.leave("a")
    assert staying.done()
    assert crowd.counted() == {"b": 1}
    await crowd.leave("b")
    assert not crowd.seats.groups


async def test_an_error_within_a_seat_is_not_taken_for_a_crowd_and_gives_the_seat_back() -> None:
    seats = Seats(1)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with seats.one("a", LONG_S):
                raise TimeoutError


STEPS = st.lists(st.tuples(st.sampled_from(["come", "leave", "cancel"]), st.sampled_from("abc")), max_size=60)


@given(st.integers(1, 9), STEPS)
def test_never_more_sit_than_there_are_seats_and_whoever_has_room_sits(most: int, steps: list[tuple[str, str]]) -> None:
    async def played() -> None:
        crowd = Crowd(Seats(most))
        tasks: list[tuple[str, asyncio.Task[None]]] = []
        for step, group in steps:
            if step == "come":
                tasks.append((group, crowd.come(group)))
            elif step == "leave" and crowd.counted()[group]:
                await crowd.leave(group)
            elif step == "cancel" and (task := next((task for name, task in tasks if name == group), None)):
                task.cancel()
            await settled()
            tasks = [each for each in tasks if not each[1].done()]
            sitting, wanting = crowd.counted(), Counter(name for name, _ in tasks)
            free = most - sitting.total()
            assert free >= 0
            assert all(sitting[name] == wanting[name] or sitting[name] >= free for name in wanting)
        for _, task in tasks:
            task.cancel()
        await settled()
        assert not crowd.seats.groups

    asyncio.run(played())


async def test_who_waits_gets_its_seat_though_another_of_its_group_has_given_up() -> None:
    crowd = Crowd(Seats(1))
    tasks = [crowd.come(group) for group in ("a", "b", "b")]
    await settled()
    tasks[1].cancel()
    await settled()
    await crowd.leave("a")
    assert crowd.counted() == {"b": 1}
    tasks[2].cancel()


async def test_who_has_a_seat_is_counted_though_another_of_its_group_has_left() -> None:
    crowd = Crowd(Seats(3))
    tasks = [crowd.come("a") for _ in range(2)]
    await settled()
    await crowd.leave("a")
    tasks += [crowd.come("b") for _ in range(4)]
    await settled()
    assert crowd.counted() == {"a": 1, "b": 1}
    for task in tasks:
        task.cancel()


async def test_nothing_is_kept_of_a_group_of_which_all_have_given_up() -> None:
    crowd = Crowd(Seats(1))
    first = crowd.come("a")
    await settled()
    with pytest.raises(Crowded):
        await crowd.come("b", AT_ONCE_S)
    assert set(crowd.seats.groups) == {"a"}
    first.cancel()
