"""What a leader does first and last."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.kube.freshness import Freshness
from extender.kube.resource import NODES
from extender.kube.told import Seen
from extender.service import reign as module
from extender.service.accession import Accession
from extender.service.health import Health
from extender.service.reign import Reign
from extender.state.tenure import Wish
from extender.telemetry.metrics import Metrics


class Election:
    """Stands in for the election: who leads is said by the test."""

    def __init__(self) -> None:
        self.tenure, self.term, self.served = self, 1, 0
        self.wish, self.obstacle = Wish.LEAD, ""
        self.is_hindered = False

    @property
    def is_alone(self) -> bool:
        return not self.obstacle

    def cleared(self) -> None:
        self.is_hindered = False

    def why_not(self) -> str:
        return self.obstacle

    def hindrance(self) -> str:
        return self.obstacle


class Rounds:
    """Stands in for looking after pods: notes what happens, and may have a bug."""

    def __init__(self, noted: list[str], *, is_broken: bool = False) -> None:
        self.noted, self.is_broken = noted, is_broken
        self.can_move, self.moves = True, asyncio.Event()
        self.moves.set()
        self.stirred = asyncio.Event()
        self.lasts_s = 0.2

    async def renew(self) -> None:
        self.noted.append("listed anew")

    async def done(self) -> bool:
        await self.moves.wait()
        self.noted.append("moved on" if self.can_move else "not moved on")
        return self.can_move

    def stir(self) -> None:
        self.stirred.set()

    async def run(self, begun: Callable[[], None], _synced: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        if self.is_broken:
            raise RuntimeError("a bug")
        self.noted.append("mended")
        begun()
        self.stirred.clear()
        while not is_over():
            await self.stirred.wait()
            self.stirred.clear()
        await asyncio.sleep(self.lasts_s)
        self.noted.append("ended")


def reign(*, is_broken: bool = False) -> tuple[Reign, Any, list[str]]:
    ruling, election, rounds = ruled(is_broken=is_broken)
    return ruling, election, rounds.noted


def ruled(*, is_broken: bool = False) -> tuple[Reign, Any, Rounds]:
    election, rounds = Election(), Rounds([], is_broken=is_broken)
    freshness = Freshness((NODES,))
    freshness.note(Seen(NODES, "1", 0.0))
    leading: Any = election
    others: Any = rounds
    health = Health(freshness, 90.0, lambda: 0.0)
    accession = Accession(leading, others, others, freshness)
    return Reign(leading, accession, others, health, Metrics()), election, rounds


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


async def test_a_round_that_does_not_end_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND_S", 0.1)
    ruling, election, rounds = ruled()
    rounds.lasts_s = 3600.0
    running = asyncio.create_task(ruling.run())
    await until(lambda: election.served == 1)
    election.obstacle = "not leading"
    await until(lambda: not ruling.is_busy)
    assert (election.served, rounds.noted) == (0, ["listed anew", "mended"])
    running.cancel()
    await asyncio.wait({running})


async def test_nobody_leads_who_does_not_know_the_cluster() -> None:
    ruling, election, rounds = ruled()
    freshness = ruling.accession.freshness = Freshness((NODES,))
    running = asyncio.create_task(ruling.run())
    await asyncio.sleep(0.2)
    assert (ruling.is_busy, rounds.noted) == (False, [])
    freshness.note(Seen(NODES, "1", 0.0))
    await until(lambda: election.served == 1)
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


@asynccontextmanager
async def hindered() -> AsyncIterator[tuple[Reign, Any, Rounds]]:
    """Have somebody lead whose predecessor has not said that nothing of it is on its way."""
    ruling, election, rounds = ruled()
    ruling.accession.freshness.note(Seen(NODES, "2", float("inf")))
    election.is_hindered, election.served = True, 0
    running = asyncio.create_task(ruling.run())
    try:
        yield ruling, election, rounds
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_what_an_earlier_leader_has_sent_is_moved_past_before_anything_is_mended() -> None:
    async with hindered() as (_, election, rounds):
        await until(lambda: election.served == 1)
        assert rounds.noted == ["listed anew", "moved on", "mended"]


async def test_what_cannot_be_moved_past_is_waited_for_and_all_is_listed_once_more_then() -> None:
    async with hindered() as (_, election, rounds):
        rounds.can_move = False
        await until(lambda: "not moved on" in rounds.noted)
        await asyncio.sleep(0.3)
        assert (election.served, rounds.noted) == (0, ["listed anew", "not moved on"])
        election.cleared()
        await until(lambda: election.served == 1)
        assert rounds.noted[2:] == ["listed anew", "mended"]


async def test_where_moving_past_it_takes_longer_than_waiting_for_it_nobody_goes_on_with_that() -> None:
    async with hindered() as (_, election, rounds):
        rounds.moves.clear()
        await until(lambda: rounds.noted == ["listed anew"])
        election.cleared()
        await until(lambda: election.served == 1)
        assert rounds.noted == ["listed anew", "listed anew", "mended"]


async def test_who_loses_the_lease_meanwhile_has_moved_past_nothing() -> None:
    async with hindered() as (ruling, election, rounds):
        rounds.moves.clear()
        await until(lambda: rounds.noted == ["listed anew"])
        election.obstacle, election.is_hindered = "not leading", False
        await until(lambda: not ruling.is_busy)
        election.obstacle, election.term, election.is_hindered = "", 2, True
        rounds.moves.set()
        await until(lambda: election.served == 2)
        assert rounds.noted[-3:] == ["listed anew", "moved on", "mended"]


async def test_who_has_lost_the_lease_unseen_moves_past_it_anew_in_the_next_term() -> None:
    async with hindered() as (_, election, rounds):
        rounds.moves.clear()
        await until(lambda: rounds.noted == ["listed anew"])
        election.term = 2
        await until(lambda: rounds.noted.count("listed anew") > 1)
        rounds.moves.set()
        await until(lambda: election.served == 2)
        assert rounds.noted[-3:] == ["listed anew", "moved on", "mended"]


async def test_who_loses_the_lease_waits_for_no_list_any_more() -> None:
    ruling, election, noted = reign()
    election.is_hindered = True
    running = asyncio.create_task(ruling.run())
    await until(lambda: noted == ["listed anew"])
    election.obstacle, election.is_hindered = "not leading", False
    await until(lambda: not ruling.is_busy)
    running.cancel()
    await asyncio.wait({running})


async def test_who_is_to_hand_over_moves_past_it_first_and_can_be_followed_at_once_then() -> None:
    async with hindered() as (ruling, election, rounds):
        election.wish = Wish.YIELD
        await until(lambda: not (election.is_hindered or ruling.is_busy))
        assert rounds.noted == ["listed anew", "moved on"]
