"""Devices are counted beside: no scrape waits for a class that was made to be slow, nor does anybody else."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.cel import Program
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.members import Members
from extender.allocation.work import Work
from extender.model.change import Changed, Gone
from extender.model.claim import DeviceClass, Selector
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import ClassName, ObjectKey
from extender.service import device_counts as module
from extender.service.device_counts import DeviceCounts
from extender.service.gauges import Gauges
from extender.state.belief import Belief
from extender.telemetry.scraped import DeviceCount
from tests.allocation.test_spent import slice_of
from tests.scheduling.cast import DRIVER, belief_of, claim, device, given, gpus, held, node
from tests.service.door import Door, opened
from tests.service.test_counted import until
from tests.service.test_slow_claims import SLOW


def fleet(nodes: Iterable[int]) -> list[Any]:
    """Return nodes with four devices each, of which each has a number of its own."""
    return [item for number in nodes for item in (node(f"n{number}"), numbered(number))]


def numbered(number: int) -> ResourceSlice:
    published = gpus(f"n{number}", 4)
    devices = (replace(each, attributes=(("index", Attribute("int", number * 4 + place)),))
               for place, each in enumerate(published.devices))  # fmt: skip
    return replace(published, devices=tuple(devices))


def of_class(name: str, *expressions: str) -> DeviceClass:
    return DeviceClass(name=ClassName(name), selectors=tuple(map(Selector, expressions)))


LATE = of_class("late", "device.attributes['gpu.example.com'].index >= 6")


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Return what is evaluated, each time that it is."""
    found: list[Program] = []
    real = Program.evaluate

    def noted(program: Program, *given: Any) -> Any:
        found.append(program)
        return real(program, *given)

    monkeypatch.setattr(Program, "evaluate", noted)
    return found


@asynccontextmanager
async def counted(belief: Belief) -> AsyncIterator[DeviceCounts]:
    counting = DeviceCounts(belief, time.monotonic)
    task = asyncio.create_task(counting.run())
    try:
        yield counting
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def rested(counting: DeviceCounts) -> None:
    """Wait until nothing is left to be counted of what was asked for."""
    await until(lambda: not counting._asked.is_set() and all(not each.work for each in counting._classes.values()))


def told(name: str, free: int, used: int = 0, blocked: int = 0) -> DeviceCount:
    return DeviceCount(DRIVER, name, free, used, blocked)


async def test_a_scrape_evaluates_nothing(evaluated: list[Program]) -> None:
    nobody: Any = None
    gauges = Gauges(belief_of(*fleet(range(10)), of_class("slow", SLOW)), nobody, nobody, time.monotonic)
    evaluated.clear()
    assert list(gauges.devices()) == []
    assert evaluated == []


async def test_what_is_counted_is_told_at_the_next_scrape_and_counts_what_is_used_then() -> None:
    belief = belief_of(*fleet(range(3)), LATE, of_class("broken", "device.", "true"), of_class("none", "false"))
    async with counted(belief) as counting:
        assert counting.counts() == []
        await rested(counting)
        assert [each for each in counting.counts() if each.device_class != "gpu"] == [told("late", 6)]
        belief.apply(Changed(replace(claim("c"), allocation=given(device("n2", 0)))))
        assert told("late", 5, 1) in counting.counts()


async def test_a_slice_that_changes_has_only_its_own_devices_evaluated(evaluated: list[Program]) -> None:
    belief = belief_of(*fleet(range(3)), LATE)
    async with counted(belief) as counting:
        counting.counts()
        await rested(counting)
        evaluated.clear()
        belief.apply(Changed(numbered(3)))
        # What was counted before is told until all is counted anew.
        assert told("late", 6) in counting.counts()
        await rested(counting)
        assert told("late", 10) in counting.counts()
    assert len(evaluated) == 4


async def test_nothing_is_counted_anew_unless_somebody_asks(evaluated: list[Program]) -> None:
    belief = belief_of(*fleet(range(3)), LATE)
    async with counted(belief) as counting:
        await asyncio.sleep(0.05)
        assert evaluated == []
        counting.counts()
        await rested(counting)
        evaluated.clear()
        belief.apply(Changed(numbered(3)))
        await asyncio.sleep(0.05)
        assert evaluated == []


async def test_a_slow_class_keeps_no_other_from_being_counted_and_goes_on_where_slices_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TURN", 3)
    monkeypatch.setattr(module, "SHARE", 1.0)
    belief = belief_of(*fleet(range(2)), of_class("a", SLOW), LATE)
    async with counted(belief) as counting:
        counting.counts()
        await until(lambda: told("late", 2) in counting.counts())
        slow = counting._classes[ClassName("a")]
        assert slow.work
        work, number = slow.work, 2
        while not slow.counts:
            belief.apply(Changed(numbered(number % 7)))
            counting.counts()
            assert slow.work in {work, None} or slow.counts
            number += 1
            await asyncio.sleep(0.01)


async def test_classes_that_change_are_counted_anew_and_those_that_go_are_told_no_more() -> None:
    belief = belief_of(*fleet(range(3)), LATE)
    async with counted(belief) as counting:
        counting.counts()
        await rested(counting)
        first = counting._classes[LATE.name]
        # The same selectors, in an object that was listed anew, have nothing forgotten.
        belief.apply(Changed(replace(LATE, created="2026-01-01T00:00:00Z")))
        counting.counts()
        await rested(counting)
        assert counting._classes[LATE.name] is first
        belief.apply(Changed(of_class("late", "device.attributes['gpu.example.com'].index >= 7")))
        assert told("late", 6) in counting.counts()
        await rested(counting)
        assert told("late", 5) in counting.counts()
        belief.apply(Gone(DeviceClass, ObjectKey("", "late")))
        assert all(each.device_class != "late" for each in counting.counts())


async def test_what_classes_remember_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 2000)
    belief = belief_of(*fleet(range(3)), *(replace(LATE, name=ClassName(f"late-{number}")) for number in range(5)))
    async with counted(belief) as counting:
        counting.counts()
        await rested(counting)
        assert 0 < sum(each.members.size for each in counting._classes.values()) <= 2000
        assert [told(f"late-{number}", 6) in counting.counts() for number in range(5)] == [True] * 5


async def test_a_class_that_cannot_be_counted_leaves_the_others_and_is_tried_again_when_devices_change(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual = Members.among

    def broken(members: Members, inventory: Inventory) -> Work[Flags]:
        if not members.selectors:
            raise KeyError("something that nobody thought of")
        return (yield from usual(members, inventory))

    monkeypatch.setattr(Members, "among", broken)
    belief = belief_of(*fleet(range(3)), of_class("a"), LATE)
    async with counted(belief) as counting:
        for tried in (1, 2):
            for _ in range(2):
                counting.counts()
                await rested(counting)
            assert [record.__dict__["deviceClass"] for record in caplog.records] == ["a"] * tried
            belief.apply(Changed(numbered(3)))
        assert told("late", 10) in counting.counts()
        assert all(each.device_class != "a" for each in counting.counts())


async def test_slices_that_a_driver_has_published_anew_are_counted_once() -> None:
    before, stays = gpus("n1", 4), gpus("n2", 2)
    after = replace(before, name="n1-later", generation=before.generation + 1)
    belief = belief_of(node("n1"), node("n2"), before, stays)
    async with counted(belief) as counting:
        counting.counts()
        await rested(counting)
        assert counting.counts() == [told("gpu", 6)]
        for change in (Changed(after), Gone(ResourceSlice, ObjectKey("", before.name))):
            belief.apply(change)
            counting.counts()
            await rested(counting)
            assert counting.counts() == [told("gpu", 6)]


async def test_of_a_device_taken_whole_the_partitions_are_not_free() -> None:
    whole, part = ({"x": {"slices": amount}} for amount in ("7", "1"))
    cut = {"x": {"slices": "7"}, "y": {"slices": "7"}}
    belief = belief_of(node("n1"), slice_of("n1", cut, whole, part, part, {"y": {"slices": "1"}}))
    async with counted(belief) as counting:
        counting.counts()
        await rested(counting)
        assert counting.counts() == [told("gpu", 4)]
        belief.apply(Changed(held(claim("c"), device("n1", 0))))
        assert counting.counts() == [told("gpu", 1, 1, 2)]
        belief.apply(Changed(claim("c", version=2)))
        belief.apply(Changed(held(claim("d"), device("n1", 1))))
        assert counting.counts() == [told("gpu", 2, 1, 1)]


async def test_metrics_show_the_devices_of_a_service_and_a_slow_class_holds_up_nobody() -> None:
    async with opened() as door:
        slow = {"metadata": {"name": "slow"}, "spec": {"selectors": [{"cel": {"expression": SLOW}}]}}
        door.server.registry.create(door.kind("deviceclasses"), "", slow)
        await until(lambda: ClassName("slow") in door.service.belief.cluster.snapshot.classes)
        free = 'dra_extender_devices{device_class="gpu.example.com",driver="gpu.example.com",state="free"} 12.0'
        async with asyncio.timeout(20):
            while free not in await scraped(door):
                assert await door.scrape("/livez") == "ok"


async def scraped(door: Door) -> str:
    # What was written is kept for a moment.
    door.service.server._scrapes._until = 0
    return await door.scrape()
