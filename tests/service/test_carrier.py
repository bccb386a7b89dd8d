"""Steps carried out at the API server."""

import asyncio
from collections.abc import Generator
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from extender.allocation.extended import Hidden
from extender.kube import outcome as kube
from extender.kube.resource import CLAIMS, Resource, Served
from extender.model.names import NodeName, ObjectKey, Uid
from extender.scheduling.claiming import patiently, release
from extender.scheduling.steps import (
    AddFinalizer,
    AwaitShown,
    BindPod,
    CreateClaim,
    DeleteClaim,
    Done,
    Later,
    MapExtended,
    Outcome,
    ReadClaim,
    Refusal,
    Release,
    Reserve,
    Step,
    TouchClaim,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.service import carrier
from extender.service.carrier import NO_TIME, Carrier
from tests import kube_objects
from tests.scheduling.cast import claim, consumer, device, given, held, pod

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


class Busy:
    """Writes of a busy API server, which looks at nothing before it was asked so often."""

    def __init__(self, times: int) -> None:
        self.times, self.sent = times, 0

    async def release(self, _claim: object, _pod: Uid, *, deallocate: bool) -> kube.RequestOutcome:
        assert deallocate
        return await self.bind_pod()

    async def bind_pod(self, *_of: object) -> kube.RequestOutcome:
        self.sent += 1
        return Later(0.01, "too many requests") if self.sent <= self.times else kube.Succeeded(kube_objects.claim("a"))

    def claims(self) -> Served:
        return Served(CLAIMS, "v1")


@pytest.mark.parametrize(("undone_by", "sent", "is_done"), [(60.0, 3, True), (-1.0, 1, False)], ids=["time", "none"])
async def test_what_undoes_waits_as_long_as_a_busy_server_says_while_there_is_time(
    undone_by: float, sent: int, *, is_done: bool
) -> None:
    writes: Any = Busy(2)
    feed: Any = None
    now = asyncio.get_running_loop().time
    taking_back = release(held(claim("a"), device("n1", 0), by=pod("p")), pod("p"), is_ours=True)
    began = now()
    assert await Carrier(writes, feed, now).carry(taking_back, began - 1, began + undone_by) is is_done
    assert writes.sent == sent


async def test_what_goes_forward_waits_no_longer_than_it_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    writes: Any = Busy(9)
    feed: Any = None
    bound = await Carrier(writes, feed, lambda: 0.0).carry(patiently(BindPod(pod("p"), NodeName("n"))), 0.005, 60.0)
    assert (bound, set(waited)) == (Later(0.01, "too many requests"), {0.005})


async def test_past_the_deadline_nothing_goes_forward_and_what_undoes_or_finds_out_still_does() -> None:
    one, subject = claim("a"), pod("p")
    steps = (
        AddFinalizer(one),
        WriteAllocation(one, given(device("n1", 0)), consumer(subject)),
        Reserve(one, consumer(subject)),
        CreateClaim(subject, Mock(Hidden)),
        MapExtended(subject, "c", None),
        BindPod(subject, NodeName("n")),
    )
    writes, feed, ended = AsyncMock(), AsyncMock(), list[Outcome]()

    def work() -> Generator[Step, Outcome, None]:
        for step in steps:
            ended.append((yield step))
        yield ReadClaim(one.key)
        yield TouchClaim(one)

    for each in (writes.read_claim, writes.touch_claim):
        each.return_value = kube.Refused(Refusal.NOT_FOUND)
    await Carrier(writes, feed, lambda: 1.0).carry(work(), deadline=1.0)
    assert ended == [kube.Refused(Refusal.UNSENT, NO_TIME)] * len(steps)
    assert [called[0] for called in writes.method_calls] == ["read_claim", "touch_claim"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (TouchClaim(claim("a")), Unknown("success, but what came back is of kind None")),
        (TouchPod(pod("p")), Unknown("success, but what came back is of kind None")),
        (BindPod(pod("p"), NodeName("n")), Done()),
    ],
    ids=["claim", "pod", "binding"],
)
async def test_a_success_that_says_nothing_of_what_was_written_leaves_it_unknown(step: Step, expected: Outcome) -> None:
    def work() -> Generator[Step, Outcome, Outcome]:
        return (yield step)

    writes, feed = AsyncMock(), AsyncMock()
    for each in (writes.touch_claim, writes.touch_pod, writes.bind_pod):
        each.return_value = kube.Succeeded({"ok": True})
    assert await Carrier(writes, feed, lambda: 0.0).carry(work(), deadline=1.0) == expected


def one(step: Step) -> Generator[Step, Outcome, Outcome]:
    return (yield step)


async def test_what_the_watch_does_not_show_in_time_is_unknown() -> None:
    writes: Any = None
    claims: Any = Claims(is_behind=True)
    shown = Carrier(writes, claims, lambda: 3.0, watches=claims).carry(one(AwaitShown(Uid("c"), 7)), deadline=3.02)
    assert await shown == Unknown("the watch did not show it in time")


async def test_a_claim_is_deleted_in_the_version_that_is_known() -> None:
    writes, feed, made = AsyncMock(), AsyncMock(), claim("a")
    writes.delete_claim.return_value = kube.Succeeded({})
    assert await Carrier(writes, feed, lambda: 0.0).carry(one(DeleteClaim(made)), deadline=1.0) == Done()
    writes.delete_claim.assert_awaited_once_with(made.key, made.uid, made.resource_version)


async def test_a_success_of_which_nothing_can_be_read_leaves_it_unknown() -> None:
    writes, feed = AsyncMock(), AsyncMock()
    writes.touch_pod.return_value = kube.Succeeded({"kind": "Pod", "metadata": "none"})
    outcome = await Carrier(writes, feed, lambda: 0.0).carry(one(TouchPod(pod("p"))), deadline=1.0)
    assert isinstance(outcome, Unknown)
    assert outcome.why.startswith("what came back is unreadable: ")


@pytest.mark.parametrize(
    "step",
    [
        Release(claim("a"), Uid("p"), deallocate=True),
        DeleteClaim(claim("a")),
        TouchClaim(claim("a")),
        TouchPod(pod("p")),
    ],
    ids=lambda step: type(step).__name__,
)
async def test_that_something_cannot_be_taken_back_is_told(step: Step, caplog: pytest.LogCaptureFixture) -> None:
    writes, feed, no = AsyncMock(), AsyncMock(), kube.Refused(kind=Refusal.FORBIDDEN, message="denied by a policy")
    for each in (writes.release, writes.delete_claim, writes.touch_claim, writes.touch_pod):
        each.return_value = no
    assert await Carrier(writes, feed, lambda: 0.0).carry(one(step), deadline=1.0) == no
    assert len(caplog.records) == 1
