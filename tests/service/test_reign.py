"""What a leader does first and last."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.kube.freshness import Freshness
from extender.kube.resource import NODES
from extender.kube.told import Seen
from extender.service.health import Health
from extender.service.reign import Reign
from extender.state.tenure import Wish
from extender.telemetry.metrics import Metrics


class Election:
    """Stands in for the election: who leads is said by the test."""

    def __init__(self) -> None:
        self.tenure, self.term, self.served = self, 1, 0
        self.wish, self.obstacle = Wish.LEAD, ""

    def why_not(self) -> str:
        return self.obstacle

    def hindrance(self) -> str:
        return self.obstacle


class Rounds:
    """Stands in for looking after pods: notes what happens, and may have a bug."""

    def __init__(self, noted: list[str], *, is_broken: bool = False) -> None:
        self.noted, self.is_broken = noted, is_broken

    async def renew(self) -> None:
        self.noted.append("listed anew")

    def stir(self) -> None:
        """Change nothing."""

    async def run(self, begun: Callable[[], None], _synced: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        if self.is_broken:
            raise RuntimeError("a bug")
        self.noted.append("mended")
        begun()
        while not is_over():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        self.noted.append("ended")


def reign(*, is_broken: bool = False) -> tuple[Reign, Any, list[str]]:
    noted: list[str] = []
    election, rounds = Election(), Rounds(noted, is_broken=is_broken)
    freshness = Freshness((NODES,))
    freshness.note(Seen(NODES, "1", 0.0))
    leading: Any = election
    others: Any = rounds
    health = Health(freshness, 90.0, lambda: 0.0)
    return Reign(leading, others, others, freshness, health, Metrics()), election, noted


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def test_each_term_begins_with_a_list_and_mending_and_ends_with_the_round_that_is_under_way() -> None:
    ruling, election, noted = reign()
    running = asyncio.create_task(ruling.run())
    await until(lambda: election.served == 1)
    assert noted == ["listed anew", "mended"]
    election.obstacle = "not leading"
    await until(lambda: not ruling.is_busy)
    assert (election.served, noted[2:]) == (0, ["ended"])
    election.obstacle, election.term = "", 2
    await until(lambda: election.served == 2)
    assert noted[3:] == ["listed anew", "mended"]
    running.cancel()
    await asyncio.wait({running})


async def test_a_lapse_that_nobody_saw_is_a_new_term_all_the_same() -> None:
    ruling, election, noted = reign()
    running = asyncio.create_task(ruling.run())
    await until(lambda: election.served == 1)
    election.term = 2
    await until(lambda: election.served == 2)
    assert noted == ["listed anew", "mended", "ended", "listed anew", "mended"]
    running.cancel()
    await asyncio.wait({running})


async def test_what_is_wrong_with_looking_after_pods_is_raised() -> None:
    ruling, _, _ = reign(is_broken=True)
    with pytest.raises(RuntimeError, match="a bug"):
        await ruling.run()
