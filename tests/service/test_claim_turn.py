"""Pods that share a claim reserve it one after the other; those of other claims are not kept waiting."""

import asyncio
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from extender.kube import outcome as kube
from extender.model.claim import ResourceClaim
from extender.scheduling.claiming import consumer_of
from extender.scheduling.steps import (
    Done,
    Outcome,
    Pause,
    ReadClaim,
    Refusal,
    Refused,
    Reserve,
    Step,
    TouchClaim,
    Unknown,
)
from extender.service.carrier import NO_TIME, Carrier
from tests.scheduling.cast import claim, pod


class Slow:
    """Writes that end when they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may = asyncio.Semaphore(0)

    async def reserve_shared(self, claim: ResourceClaim, consumer: Any) -> kube.RequestOutcome:
        self.begun.append(f"{consumer.name} {claim.key.name}")
        await self.may.acquire()
        return kube.Unknown("nobody knows")

    async def touch_claim(self, *_of: object) -> kube.RequestOutcome:
        self.begun.append("touch")
        await self.may.acquire()
        return kube.Unknown("nobody knows")

    async def read_claim(self, _key: object) -> kube.RequestOutcome:
        self.begun.append("read")
        return kube.Unknown("nobody knows")


def reserving(name: str, *claims: str, is_read: bool = False) -> Generator[Step, Outcome, Outcome]:
    outcome: Outcome = Done()
    for each in claims:
        outcome = yield Reserve(claim(each), consumer_of(pod(name)))
        if is_read:
            yield ReadClaim(claim(each).key)
            outcome = yield Reserve(claim(each), consumer_of(pod(name)))
    return outcome


class Stage:
    def __init__(self) -> None:
        self.writes: Any = Slow()
        self.carrier = Carrier(self.writes, None, asyncio.get_running_loop().time)  # type: ignore[arg-type]  # no feed

    def begin(self, work: Generator[Step, Outcome, Outcome], within_s: float = 60) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.carrier.carry(work, self.carrier.now() + within_s))

    async def seen(self, *begun: str) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        assert self.writes.begun == list(begun)


async def test_who_shares_a_claim_reserves_it_after_the_one_before() -> None:
    stage = Stage()
    first, second = stage.begin(reserving("p", "a")), stage.begin(reserving("q", "a"))
    await stage.seen("p a")
    stage.writes.may.release()
    await first
    await stage.seen("p a", "q a")
    stage.writes.may.release()
    assert await second == Unknown("nobody knows")
    assert not stage.carrier.queues


async def test_another_claim_is_reserved_at_once() -> None:
    stage = Stage()
    works = stage.begin(reserving("p", "a")), stage.begin(reserving("q", "b"))
    await stage.seen("p a", "q b")
    for work in works:
        work.cancel()


async def test_a_turn_lasts_until_all_is_found_out_and_ends_with_the_next_claim() -> None:
    stage = Stage()
    works = stage.begin(reserving("p", "a", "b", is_read=True)), stage.begin(reserving("q", "a"))
    await stage.seen("p a")
    stage.writes.may.release()
    await stage.seen("p a", "read", "p a")
    stage.writes.may.release()
    await stage.seen("p a", "read", "p a", "p b", "q a")
    for work in works:
        work.cancel()


async def test_a_turn_ends_with_the_next_write_that_is_no_reservation() -> None:
    def work() -> Generator[Step, Outcome, Outcome]:
        yield Reserve(claim("a"), consumer_of(pod("p")))
        return (yield TouchClaim(claim("a")))

    stage = Stage()
    works = stage.begin(work()), stage.begin(reserving("q", "a"))
    await stage.seen("p a")
    stage.writes.may.release()
    await stage.seen("p a", "touch", "q a")
    for each in works:
        each.cancel()


async def test_who_is_to_come_back_later_keeps_its_turn() -> None:
    def work() -> Generator[Step, Outcome, Outcome]:
        reserve = Reserve(claim("a"), consumer_of(pod("p")))
        yield reserve
        yield Pause(0.0, reserve)
        return (yield reserve)

    stage = Stage()
    works = stage.begin(work()), stage.begin(reserving("q", "a"))
    await stage.seen("p a")
    stage.writes.may.release()
    await stage.seen("p a", "p a")
    for each in works:
        each.cancel()


async def test_a_turn_that_does_not_come_in_time_is_none() -> None:
    stage = Stage()
    first = stage.begin(reserving("p", "a"))
    await stage.seen("p a")
    assert await stage.begin(reserving("q", "a"), within_s=0.01) == Refused(Refusal.UNSENT, NO_TIME)
    stage.writes.may.release()
    await first
    await stage.seen("p a")


@pytest.mark.parametrize("dropped", [0, 1])
async def test_who_is_dropped_holds_up_nobody(dropped: int) -> None:
    stage = Stage()
    works = [stage.begin(reserving(name, "a")) for name in "pqr"]
    await stage.seen("p a")
    works[dropped].cancel()
    with suppress(asyncio.CancelledError):
        await works[dropped]
    stage.writes.may.release()
    stage.writes.may.release()
    for work in works[:dropped] + works[dropped + 1 :]:
        assert await work == Unknown("nobody knows")
    assert not stage.carrier.queues
