"""A list is read to its end, whatever becomes of a page on the way."""

from collections import deque
from dataclasses import dataclass, field

import pytest

from extender.kube.api import MOST_BYTES, Api
from extender.kube.listing import PAGE_RETRIES, Listing, PageSize
from extender.kube.pace import Pace, Turns
from extender.kube.resource import NODES, Served
from extender.kube.setback import Remedy, Setback
from extender.model.node import Node
from tests.kube.scripted import failure, page, response, scripted

FIRST, LAST = page("10", ["a"], "more"), page("10", ["b"])
BUSY = failure(429, "TooManyRequests", "Retry-After: 7")
BROKEN = failure(500, "InternalError")


@dataclass
class Reading:
    """A list that is read: what came of it, how long was waited in between, and what was told."""

    version: str | Setback = ""
    names: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    told: list[Setback] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def read(api: Api, size: PageSize | None = None) -> Reading:
    reading = Reading()
    listing = Listing(api, Served(NODES, "v1"), Turns(), size or PageSize(250))
    reading.version = await listing.read(Pace(sleep=reading.sleep, chance=lambda: 0.0), reading.told.append)
    reading.names = [item.name for item in listing.items if isinstance(item, Node)]
    return reading


@pytest.mark.parametrize(
    ("fault", "pause_s"),
    [
        pytest.param(BUSY, 7.0, id="429"),
        pytest.param(BROKEN, 0.25, id="500"),
        pytest.param(failure(503, "ServiceUnavailable", "Retry-After: 3"), 3.0, id="503"),
        pytest.param(response(b"<html>of a proxy</html>", kind="text/html"), 0.25, id="html"),
        pytest.param(LAST[:-9], 0.25, id="cut-off"),
    ],
)
async def test_a_page_that_did_not_come_is_asked_for_again_and_what_came_before_is_kept(
    fault: bytes, pause_s: float
) -> None:
    async with scripted() as (script, api):
        script.add("list", FIRST, fault, LAST)
        reading = await read(api)
    assert (reading.version, reading.names, reading.slept) == ("10", ["a", "b"], [pause_s])
    assert len(reading.told) == 1
    # The same token twice.
    assert [target.partition("continue=")[2] for target in script.asked][-2:] == ["more", "more"]


async def test_each_page_is_asked_for_again_by_itself() -> None:
    broken = [BROKEN] * PAGE_RETRIES
    async with scripted() as (script, api):
        script.add("list", FIRST, *broken, page("10", ["c"], "most"), *broken, LAST)
        reading = await read(api)
    assert reading.names == ["a", "c", "b"]
    assert reading.slept == [0.25, 0.5, 1.0, 2.0, 4.0] * 2


async def test_a_page_that_does_not_come_ends_the_list_after_some_tries() -> None:
    async with scripted() as (script, api):
        script.add("list", FIRST, BROKEN)
        reading = await read(api)
    assert isinstance(reading.version, Setback)
    assert len(script.asked) == 2 + PAGE_RETRIES


@pytest.mark.parametrize(
    ("code", "reason", "remedy"), [(403, "Forbidden", Remedy.AGAIN), (404, "NotFound", Remedy.REDISCOVER)]
)
async def test_a_page_that_is_refused_for_good_is_not_asked_for_again(code: int, reason: str, remedy: Remedy) -> None:
    async with scripted() as (script, api):
        script.add("list", FIRST, failure(code, reason))
        reading = await read(api)
    assert isinstance(reading.version, Setback)
    assert (reading.version.remedy, reading.slept, len(script.asked)) == (remedy, [], 2)


async def test_a_list_that_does_not_begin_is_left_to_whoever_asked_for_it() -> None:
    async with scripted() as (script, api):
        script.add("list", BUSY, LAST)
        reading = await read(api)
    assert isinstance(reading.version, Setback)
    assert (reading.slept, len(script.asked)) == ([], 1)


async def test_a_token_that_expires_while_a_page_is_waited_for_begins_the_list_anew_with_larger_pages() -> None:
    async with scripted() as (script, api):
        script.add("list", FIRST, BUSY, failure(410, "Expired"), page("20", ["c"]))
        reading = await read(api)
    assert (reading.version, reading.names) == ("20", ["c"])
    assert "limit=1000" in script.asked[-1]


async def test_pages_that_have_grown_shrink_again_where_they_do_not_come() -> None:
    size = PageSize(250)
    async with scripted() as (script, api):
        script.add("list", FIRST, failure(410, "Expired"), BROKEN, BROKEN, LAST)
        readings = [await read(api, size) for _ in range(3)]
    assert readings[-1].names == ["b"]
    assert [limit_of(target) for target in script.asked] == ["250", "250", "1000", "250", "250"]


async def test_pages_that_are_too_large_to_be_read_in_one_go_have_fewer_objects_down_to_one() -> None:
    large, size = response(b"x" * (MOST_BYTES + 1)), PageSize(250)
    async with scripted() as (script, api):
        script.add("list", large, large, FIRST, large, LAST)
        reading = await read(api, size)
        script.answers["list"] = deque([large])
        again = await read(api, size)
    assert (reading.version, reading.names, reading.told) == ("10", ["a", "b"], [])
    assert [limit_of(target) for target in script.asked] == ["250", "62", "15", "15", "3", "3", "1"]
    assert [target.partition("continue=")[2] for target in script.asked[:5]] == ["", "", "", "more", "more"]
    assert isinstance(again.version, Setback)
    assert "longer" in again.version.why
    size.shrink()
    assert size.items == 1
    size.reset()
    assert size.items == 250


def limit_of(target: str) -> str:
    return target.partition("limit=")[2].partition("&")[0]
