"""What was told of a pod is not told again; of a pod that waits no longer nothing is remembered."""

import asyncio
from contextlib import suppress

from extender.kube.answer import Json
from extender.kube.outcome import Done, Outcome
from extender.model.names import Uid
from extender.scheduling.decision import Decision
from extender.scheduling.decision import Outcome as Ending
from extender.service.notices import MOST_TOLD, Notices
from tests.scheduling.stage import N1, POD


class Events:
    """Stands in for writes: remembers the reasons of the events that it was to write."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.expected = 0
        self.are_written = asyncio.Event()

    async def create_event(self, _namespace: str, event: Json) -> Outcome:
        self.reasons.append(event["reason"])
        if len(self.reasons) == self.expected:
            self.are_written.set()
        return Done({})


def decided(outcome: Ending, reason: str) -> Decision:
    return Decision(pod=POD.key, uid=POD.uid, at=0.0, generation=1, outcome=outcome, reason=reason, node=N1)


async def told(notices: Notices, events: Events, *decisions: Decision) -> list[str]:
    """Put *decisions*; return the reasons that are written for them."""
    events.reasons.clear()
    events.are_written.clear()
    for decision in decisions:
        notices.put(decision)
    events.expected = len(notices._waiting)
    if not events.expected:
        return []
    task = asyncio.create_task(notices.run())
    await events.are_written.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return list(events.reasons)


async def test_the_same_is_told_once_until_the_pod_waits_no_longer() -> None:
    events = Events()
    notices = Notices(events, "one", 1e9)  # type: ignore[arg-type]  # only events are written
    first, second = decided(Ending.REJECTED, "InUse"), decided(Ending.REJECTED, "NoMatch")
    assert await told(notices, events, first, second) == ["InUse", "NoMatch"]
    assert await told(notices, events, first, second) == []
    notices.forget(POD.uid)
    assert not notices._told
    assert await told(notices, events, first) == ["InUse"]


async def test_nothing_is_remembered_of_a_pod_that_was_told_to_be_bound() -> None:
    events = Events()
    notices = Notices(events, "one", 1e9)  # type: ignore[arg-type]  # only events are written
    assert await told(notices, events, decided(Ending.BOUND, "DevicesAllocated")) == ["DevicesAllocated"]
    assert not notices._told


def test_of_one_pod_only_what_was_told_last_is_remembered() -> None:
    notices = Notices(Events(), "one", 1e9)  # type: ignore[arg-type]  # nothing is written
    for number in range(MOST_TOLD + 1):
        notices._remember(Uid("p"), str(number))
    assert len(notices._told[Uid("p")]) == MOST_TOLD
