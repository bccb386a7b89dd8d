"""A binding that a bug ends: whoever waits is told, and whoever has an interest hears of it even if nobody waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from extender.kube.writes import Writes
from extender.model.names import ObjectKey, Uid
from extender.scheduling.endings import Bound, Ending, NotBound, Order, Result
from extender.service.binds import CROWDED, UNDER_WAY, Binds
from extender.service.seats import Seats
from extender.state.ledger import Phase
from extender.telemetry.keys import ERROR_ID
from tests.scheduling.stage import N1, N2, POD
from tests.service.door import opened
from tests.service.test_counted import until

ORDER = Order(POD.key, POD.uid, N1)


class Scripted:
    """Stands in for who decides and for who carries it out: ends as it is told to, when it may."""

    def __init__(self, end: Result | Exception) -> None:
        self.end, self.may = end, asyncio.Event()
        self.begun: list[object] = []
        self.told = list[tuple[float, float]]()

    def bind(self, order: Order) -> Order:
        return order

    def now(self) -> float:
        return 0.0

    async def carry(self, work: object, deadline: float, undone_by: float) -> Result:
        self.begun.append(work)
        self.told.append((deadline, undone_by))
        await self.may.wait()
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def binds(scripted: Any, *ended: Any) -> Binds:
    return Binds(scripted, scripted, 0.01, ended)


def crashes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what callers are told of the bugs in the log."""
    ids = [record.__dict__[ERROR_ID] for record in caplog.records if record.message == "a call crashed"]
    return [f"internal error {number}, see the extender's log" for number in ids]


async def test_of_a_bug_that_nobody_waited_for_the_log_tells_and_all_who_want_to_know(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Result] = []
    scripted = Scripted(RuntimeError("a bug"))
    under_way = binds(scripted, lambda _order, result: heard.append(result))
    assert await under_way.bind(ORDER) == UNDER_WAY
    scripted.may.set()
    await under_way.stop()
    assert under_way.is_idle
    # What was sent last may arrive yet.
    assert heard == [NotBound(text, is_waiting=True, is_open=True) for text in crashes(caplog)]
    assert len(heard) == 1


async def test_a_pod_whose_turn_does_not_come_is_refused_before_anything_of_it_is_written() -> None:
    heard: list[tuple[Order, Result]] = []
    scripted = Scripted(Bound(POD))
    crowded = binds(scripted, lambda order, result: heard.append((order, result)))
    crowded.seats = Seats(1)
    second = Order(ObjectKey(POD.key.namespace, "second"), Uid("second"), N1)
    assert await crowded.bind(ORDER) == UNDER_WAY
    await crowded.bind(second)
    await until(lambda: bool(heard))
    assert heard == [(second, NotBound(CROWDED, is_unbegun=True))]
    assert scripted.begun == [ORDER]
    scripted.may.set()
    await crowded.stop()
    assert heard[1:] == [(ORDER, Bound(POD))]


async def test_of_the_time_of_a_caller_a_quarter_is_for_taking_back_and_of_the_rest_one_for_the_seat() -> None:
    class Patient(Seats):
        @asynccontextmanager
        async def one(self, of: str, patience_s: float) -> AsyncIterator[None]:
            patience.append((of, patience_s))
            yield

    patience = list[tuple[str, float]]()
    scripted = Scripted(Bound(POD))
    scripted.may.set()
    under_way = binds(scripted)
    under_way.limit_s, under_way.seats = 16.0, Patient()
    assert await under_way.bind(ORDER) == ""
    assert (patience, scripted.told) == ([(POD.key.namespace, 3.0)], [(12.0, 16.0)])


async def test_who_wants_a_pod_bound_elsewhere_than_it_is_being_bound_does_not_hear_how_that_ends() -> None:
    scripted = Scripted(Bound(POD))
    under_way = binds(scripted)
    under_way.limit_s = 10.0
    first = asyncio.create_task(under_way.bind(ORDER))
    again = asyncio.create_task(under_way.bind(ORDER))
    await asyncio.sleep(0)
    assert await under_way.bind(replace(ORDER, node=N2)) == f"{UNDER_WAY}, to node n1"
    scripted.may.set()
    assert (await first, await again) == ("", "")
    assert scripted.begun == [ORDER]


async def test_a_bug_of_one_who_hears_of_a_binding_is_kept_from_the_others_and_from_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_order: Order, _result: Result) -> None:
        raise RuntimeError("a bug")

    heard: list[Result] = []
    scripted = Scripted(Bound(POD))
    scripted.may.set()
    assert await binds(scripted, broken, lambda _order, result: heard.append(result)).bind(ORDER) == ""
    assert heard == [Bound(POD)]
    assert len(crashes(caplog)) == 1


async def test_after_a_bug_devices_are_held_until_it_is_known_whether_they_were_given(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_args: object) -> None:
        raise RuntimeError("a bug")

    async with opened() as door:
        ledger, binds = door.service.belief.ledger, door.service.answers.binds
        phases: list[Phase] = []

        def noted(_order: Order, _result: Result) -> None:
            phases.extend(hold.phase for promise in ledger for hold in promise.claims)

        binds.ended = *binds.ended, noted
        pod = await door.pod("p")
        await door.filter(pod, ["n1"])
        with monkeypatch.context() as bug:
            bug.setattr(Writes, "write_allocation", broken)
            told = await door.bind(pod, "n1")
        assert crashes(caplog) == [told]
        assert 'verb_duration_seconds_count{result="crash",verb="bind"} 1.0' in await door.scrape()
        assert phases == [Phase.UNKNOWN]
        decision = door.service.journal.decisions.get(ObjectKey("default", "p"))
        assert decision is not None
        assert (decision.reason, decision.detail) == (Ending.UNKNOWN, told)
        await until(lambda: not list(ledger))
        await door.filter(pod, ["n1"])
        assert await door.bind(pod, "n1") == ""
