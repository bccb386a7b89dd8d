"""What was sent before us is moved past, or waited for and listed anew."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.kube.resource import NODES
from extender.kube.told import Seen
from extender.service.accession import Accession


class Part:
    """Stands in for all that an accession has to do with: time passes by its sleeping."""

    def __init__(self, lasts_s: float = 90.0) -> None:
        self.clock, self.until, self.noted = 0.0, lasts_s, list[str]()
        self.mover: Callable[[], bool] | None = None
        self.freshness = Freshness((NODES,))
        others: Any = self
        self.it = Accession(others, others, others, self.freshness, Pace(now=lambda: self.clock, sleep=self.sleep))

    async def sleep(self, seconds: float) -> None:
        self.clock += seconds
        self.freshness.note(Seen(NODES, "1", self.clock))
        await asyncio.sleep(0)

    @property
    def is_hindered(self) -> bool:
        return self.clock < self.until

    def cleared(self) -> None:
        self.noted.append("cleared")

    async def renew(self) -> None:
        self.noted.append("listed anew")

    async def done(self) -> bool:
        if self.mover is None:
            await asyncio.Event().wait()
        assert self.mover
        return self.mover()


def broken() -> bool:
    raise RuntimeError("a bug")


async def test_what_is_moved_past_is_not_waited_for() -> None:
    part = Part()
    part.mover = lambda: True
    assert await part.it.unhindered(0.0) == 0.0
    assert part.noted == ["cleared"]
    assert part.clock < 1


@pytest.mark.parametrize("mover", [None, lambda: False, broken], ids=["for ever", "in vain", "by a bug"])
async def test_what_cannot_be_moved_past_is_waited_for_and_all_is_listed_anew_then(
    mover: Callable[[], bool] | None,
) -> None:
    part = Part()
    part.mover = mover
    assert await part.it.unhindered(0.0) >= 90
    assert part.noted == ["listed anew"]


async def test_who_comes_so_late_that_nothing_can_land_lists_all_the_same_what_has_landed() -> None:
    part = Part(lasts_s=0.0)
    await part.it.unhindered(float("-inf"))
    assert part.noted == ["listed anew"]


async def test_nothing_is_moved_before_all_is_listed() -> None:
    part = Part()
    moved_at: list[float] = []

    def mover() -> bool:
        moved_at.append(part.clock)
        return True

    part.mover = mover
    assert await part.it.unhindered(5.0) == 5.0
    assert moved_at
    assert moved_at[0] >= 5


async def test_what_was_moved_past_while_the_lease_was_lost_allows_nothing() -> None:
    """Another may have led since it was listed, and have sent something."""
    part, lost = Part(), list[bool]()

    def mover() -> bool:
        lost.append(True)
        return True

    part.mover = mover
    await part.it.unhindered(0.0, lambda: bool(lost))
    assert part.noted == ["listed anew"]
    assert part.clock < 1
