"""Steps carried out at the API server."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from extender.kube.resource import CLAIMS, Resource
from extender.model.names import ObjectKey, Uid
from extender.scheduling.steps import AwaitShown, Done, Outcome, ReadClaim, Step
from extender.service import carrier
from extender.service.carrier import Carrier

CLAIM = ObjectKey("default", "c")


class Broken:
    """Writes with a bug."""

    async def read_claim(self, key: ObjectKey) -> Any:
        raise RuntimeError(str(key))


async def test_work_that_a_bug_ends_in_the_middle_is_closed_at_once() -> None:
    ended: list[str] = []

    def work() -> Generator[Step, Outcome, None]:
        try:
            yield ReadClaim(CLAIM)
        finally:
            ended.append("closed")

    writes: Any = Broken()
    feed: Any = None
    begun = work()
    with pytest.raises(RuntimeError):
        await Carrier(writes, feed, lambda: 0.0).carry(begun, deadline=1.0)
    assert ended == ["closed"]


class Claims:
    """A view of claims, and the watch that brings it: which shows nothing, or nothing before there is another."""

    def __init__(self, *, is_behind: bool) -> None:
        self.is_behind = is_behind
        self.ended: list[tuple[Resource, float]] = []
        self._is_anew = asyncio.Event()

    async def shown(self, _claim: Uid, _version: int) -> None:
        if self.is_behind:
            await self._is_anew.wait()

    def end(self, resource: Resource, before: float, _why: str) -> None:
        self.ended.append((resource, before))
        self._is_anew.set()


@pytest.mark.parametrize(("is_behind", "ended"), [(True, [(CLAIMS, 3.0)]), (False, [])])
async def test_what_is_not_shown_for_long_is_waited_for_on_another_watch(
    monkeypatch: pytest.MonkeyPatch, ended: list[tuple[Resource, float]], *, is_behind: bool
) -> None:
    monkeypatch.setattr(carrier, "BEHIND_S", 0.02)

    def work() -> Generator[Step, Outcome, Outcome]:
        return (yield AwaitShown(Uid("c"), 7))

    writes: Any = None
    claims: Any = Claims(is_behind=is_behind)
    assert await Carrier(writes, claims, lambda: 3.0, watches=claims).carry(work(), deadline=20.0) == Done()
    await asyncio.sleep(0.05)  # a watch that is ended too late is one that should not be
    assert claims.ended == ended
