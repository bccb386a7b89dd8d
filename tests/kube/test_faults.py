"""Following through everything that a network and an API server do."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import pytest

from extender.kube.access import Access, Fixed
from extender.kube.api import Api
from extender.kube.follow import LOOK_AGAIN_S, LOOK_S, Rhythm, follow
from extender.kube.pace import Pace
from extender.kube.reached import BEHIND_S
from extender.kube.resource import CLAIMS, NODES, PODS, RULES, Resource
from extender.kube.stream import is_newer, is_older
from extender.kube.told import Reverted, Seen, Told, Trouble, Unserved
from extender.kube.versions import GONE_S, GONE_TIMES, MISSED_PAUSE_S, Versions
from extender.model.change import Changed, Gone, Listed
from extender.model.names import NodeName
from extender.model.node import Node
from extender.model.problem import Problem
from tests.kube.scripted import (
    HANGING,
    Json,
    Script,
    error,
    event,
    failure,
    groups,
    kind_of,
    page,
    resources,
    response,
    scripted,
    stream,
)

LIST = page("10", ["a"])
NOBODY = "http://127.0.0.1:1"  # a port that only root can listen on, and nothing does
QUIET = stream()[:-5] + HANGING


@dataclass
class Watcher:
    """A sink, a clock that only sleeping moves, and what was told as short words."""

    told: list[Told] = field(default_factory=list)
    at: list[float] = field(default_factory=list)  # when each was told
    slept: list[float] = field(default_factory=list)
    time: float = 0.0

    @property
    def pace(self) -> Pace:
        return Pace(now=lambda: self.time, sleep=self.sleep, chance=lambda: 0.0)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    @property
    def words(self) -> list[str]:
        return [word_of(told) for told in self.told if not isinstance(told, Seen | Trouble)]

    @property
    def troubles(self) -> list[str]:
        return [told.why for told in self.told if isinstance(told, Trouble)]

    @property
    def seen(self) -> list[str]:
        return [told.version for told in self.told if isinstance(told, Seen)]


def word_of(told: Told) -> str:
    match told:
        case Listed(_, items):
            return "listed " + " ".join(item.name for item in items if isinstance(item, Node))
        case Changed(what):
            return f"problem {what.key}" if isinstance(what, Problem) else f"changed {getattr(what, 'name', '')}"
        case Gone(_, key):
            return f"gone {key}"
        case _:
            return type(told).__name__


async def followed(
    api: Api,
    until: Callable[[Watcher], bool],
    resource: Resource = NODES,
    rhythm: Rhythm | None = None,
    versions: Versions | None = None,
) -> Watcher:
    """Follow *resource* until what was told is enough."""
    watcher = Watcher()
    enough = asyncio.Event()

    def sink(told: Told) -> None:
        watcher.told.append(told)
        watcher.at.append(watcher.time)
        if until(watcher):
            enough.set()

    used = rhythm or Rhythm(pace=watcher.pace)
    task = asyncio.create_task(follow(api, versions or Versions(api, watcher.pace, sink), resource, sink, used))
    async with asyncio.timeout(20):
        await asyncio.wait({task, asyncio.create_task(enough.wait())}, return_when=asyncio.FIRST_COMPLETED)
    assert enough.is_set(), task
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return watcher


def watches(script: Script) -> list[str]:
    """Return the versions from which was watched."""
    targets = [target for target in script.asked if "watch=true" in target]
    return [target.partition("resourceVersion=")[2].partition("&")[0] for target in targets]


def last_change(name: str) -> Callable[[Watcher], bool]:
    return lambda watcher: watcher.words[-1:] == [f"changed {name}"]


async def test_what_is_read_at_a_glance_is_told_in_place_of_the_whole_in_lists_and_watches() -> None:
    def glance(resource: Resource, raw: Any) -> Node | None:
        name = raw["metadata"]["name"]
        return Node(name=NodeName(f"{resource} {name}")) if name != "b" else None

    async with scripted() as (script, api):
        script.add("list", page("10", ["a", "b"]))
        script.add("watch", stream(event("ADDED", 11, "c"), event("MODIFIED", 12, "b")), QUIET)
        watcher = await followed(api, last_change("b"), rhythm=Rhythm(glance=glance))
    assert watcher.words == ["listed nodes a b", "changed nodes c", "changed b"]


async def test_a_stream_that_ends_is_resumed_at_once_from_the_last_version() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", stream(event("ADDED", 11, "b")), stream(event("ADDED", 12, "c")), QUIET)
        watcher = await followed(api, last_change("c"))
    assert watcher.words == ["listed a", "changed b", "changed c"]
    assert watches(script)[:2] == ["10", "11"]
    assert watcher.slept == []


async def test_a_stream_that_ends_again_and_again_without_an_event_backs_off() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", *[stream()] * 6, stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"))
    assert watcher.slept == [0.05, 0.1, 0.2, 0.4, 0.8]
    assert set(watches(script)[:7]) == {"10"}


async def test_after_a_watch_that_has_brought_something_pauses_are_short_again() -> None:
    fault = failure(500, "InternalError")
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", fault, fault, fault, stream(event("ADDED", 11, "b")), fault)
        script.add("watch", stream(event("ADDED", 12, "c")))
        watcher = await followed(api, last_change("c"))
    assert watcher.slept[:4] == [0.05, 0.1, 0.2, 0.05]


async def test_watches_that_last_and_bring_nothing_are_no_trouble() -> None:
    async with scripted() as (script, api):
        pace = Pace(now=lambda: 300.0 * len(watches(script)), sleep=Watcher().sleep)
        script.add("list", LIST)
        script.add("watch", *[stream()] * 4, stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"), rhythm=Rhythm(pace=pace, quiet_s=1e6))
    assert watcher.troubles == []


async def test_watches_end_by_themselves_at_different_times() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", QUIET)
        for chance in (0.0, 0.5):
            rhythm = Rhythm(pace=Pace(now=lambda: 0.0, chance=repeat(chance).__next__), quiet_s=0.001)
            await followed(api, lambda watcher: len(watcher.seen) == 2, rhythm=rhythm)
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target] == ["300", "450"]


async def test_what_nobody_waits_for_rests_after_what_a_watch_has_brought() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", stream(event("BOOKMARK", 11)), stream(event("BOOKMARK", 12)), QUIET)
        watcher = await followed(api, lambda watcher: "12" in watcher.seen, resource=PODS)
    assert watcher.slept[:1] == [PODS.rest_s]


async def test_half_a_line_at_the_end_of_a_stream_is_not_an_event() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        whole, half = event("ADDED", 11, "b"), event("ADDED", 12, "c")[:40]
        script.add("watch", stream(whole, half), stream(event("ADDED", 12, "c")), QUIET)
        watcher = await followed(api, last_change("c"))
    assert watcher.words == ["listed a", "changed b", "changed c"]
    assert watches(script)[:2] == ["10", "11"]


async def test_a_connection_that_breaks_inside_a_line_is_resumed() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        broken = stream(event("ADDED", 11, "b"), event("ADDED", 12, "c")[:40], is_cut=True)
        script.add("watch", broken, stream(event("ADDED", 12, "c")), QUIET)
        watcher = await followed(api, last_change("c"))
    assert watcher.words == ["listed a", "changed b", "changed c"]
    assert len(watcher.troubles) == 1


@pytest.mark.parametrize("cut", [1, 7, 100])
async def test_lines_may_be_cut_anywhere(cut: int) -> None:
    raw = b"".join(event("ADDED", 11 + number, f"n{number}") for number in range(5))
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(*(raw[at : at + cut] for at in range(0, len(raw), cut))), QUIET)
        watcher = await followed(api, last_change("n4"))
    assert watcher.words[1:] == [f"changed n{number}" for number in range(5)]


async def test_a_line_may_be_of_any_length() -> None:
    long = event("ADDED", 11, "b", spec={"x": "y" * (20 << 20)})
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(long, event("ADDED", 12, "c")), QUIET)
        watcher = await followed(api, last_change("c"))
    assert watcher.words == ["listed a", "changed b", "changed c"]


@pytest.mark.parametrize(
    "expired", [failure(410, "Expired"), stream(error(410, "Expired")), stream(error(410, "Gone"))]
)
async def test_a_version_that_has_expired_is_listed_anew(expired: bytes) -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]))
        script.add("watch", stream(event("ADDED", 11, "x")), expired, QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert watcher.words == ["listed a", "changed x", "listed b"]
    assert watcher.seen == ["10", "11", "20"]


def limits(script: Script) -> list[str]:
    """Return how many objects each page was to have, but for questions how far the cluster is."""
    targets = [target for target in script.asked if kind_of(target) == "list"]
    return [target.partition("limit=")[2].partition("&")[0] for target in targets]


EXPIRIES = [failure(410, "Expired"), stream(error(410, "Expired"))]


@pytest.mark.parametrize("expired", EXPIRIES)
async def test_a_list_that_is_too_old_for_its_watch_is_followed_by_one_with_larger_pages(expired: bytes) -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]), page("30", ["c"]))
        script.add("watch", expired, expired, QUIET)
        watcher = await followed(api, lambda watcher: "30" in watcher.seen)
    assert watcher.words == ["listed a", "listed b", "listed c"]
    assert limits(script) == ["250", "1000", "4000"]
    # After a list nobody is asked how far the cluster is.
    assert "probe" not in map(kind_of, script.asked)


@pytest.mark.parametrize("expired", EXPIRIES)
async def test_pages_are_as_usual_again_once_a_watch_has_brought_something(expired: bytes) -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]), page("30", ["c"]))
        script.add("watch", expired, stream(event("BOOKMARK", 21)), expired, QUIET)
        await followed(api, lambda watcher: "30" in watcher.seen)
    assert limits(script) == ["250", "1000", "250"]


async def test_pages_grow_up_to_what_one_list_may_grow_to() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", *[EXPIRIES[0]] * 7, QUIET)
        await followed(api, lambda watcher: len(watcher.seen) == 8)
    assert limits(script)[4:] == ["64000"] * 4


async def test_a_watch_that_fails_otherwise_leaves_pages_as_they_are() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]))
        script.add("watch", stream(error(500, "InternalError")), QUIET)
        await followed(api, lambda watcher: "20" in watcher.seen)
    assert limits(script) == ["250", "250"]


async def test_an_error_in_a_stream_means_a_new_list() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]))
        script.add("watch", stream(error(500, "InternalError")), QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert watcher.troubles == ["500 InternalError told InternalError"]


async def test_pages_are_told_as_one_list() -> None:
    async with scripted() as (script, api):
        script.add("list", page("10", ["a", "b"], "more"), page("10", ["c"], "most"), page("10", ["d"]))
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: "10" in watcher.seen)
    assert watcher.words == ["listed a b c d"]
    assert [("continue" in target) for target in script.asked[:3]] == [False, True, True]


async def test_a_list_whose_token_expires_is_begun_anew_with_larger_pages() -> None:
    async with scripted() as (script, api):
        script.add("list", page("10", ["a"], "more"), failure(410, "Expired"), page("20", ["a", "b"]))
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: "20" in watcher.seen)
    assert watcher.words == ["listed a b"]
    assert "limit=1000" in script.asked[2]


async def test_a_page_that_is_asked_for_again_is_told_as_trouble_and_is_no_gap() -> None:
    async with scripted() as (script, api):
        script.add("list", page("10", ["a"], "more"), failure(500, "InternalError"), page("10", ["b"]))
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: "10" in watcher.seen)
    assert watcher.words == ["listed a b"]
    assert watcher.troubles == ["500 InternalError told InternalError"]


@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        pytest.param(response(b"<html>of a proxy</html>", kind="text/html"), 0.05, id="html-200"),
        pytest.param(response(b"<html>of a proxy</html>", 502, kind="text/html"), 0.05, id="html-502"),
        pytest.param(failure(429, "TooManyRequests", "Retry-After: 7"), 7.0, id="429"),
        pytest.param(failure(503, "ServiceUnavailable", "Retry-After: 3"), 3.0, id="503"),
        pytest.param(failure(500, "InternalError"), 0.05, id="500"),
        pytest.param(failure(403, "Forbidden"), 0.05, id="403"),
        pytest.param(b"not HTTP at all\r\n\r\n", 0.05, id="not-http"),
    ],
)
@pytest.mark.parametrize("place", ["list", "watch"])
async def test_a_fault_is_told_and_tried_again(place: str, fault: bytes, pause: float) -> None:
    async with scripted() as (script, api):
        script.add("list", *([fault] if place == "list" else []), LIST, page("10", ["a"]))
        script.add("watch", *([fault] if place == "watch" else []), stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"))
    assert watcher.words[-1] == "changed b"
    assert watcher.slept[:1] == [pause]
    assert len(watcher.troubles) == 1


@pytest.mark.parametrize(
    "content", [{"kind": "NodeList", "items": []}, {"metadata": {"resourceVersion": "1"}, "items": 3}]
)
async def test_what_is_no_list_is_asked_for_again(content: Json) -> None:
    async with scripted() as (script, api):
        script.add("list", response(content), LIST)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen))
    assert watcher.words == ["listed a"]
    assert watcher.slept == [0.05]


async def test_duplicate_and_backward_events_are_not_told() -> None:
    versions = [11, 12, 12, 11, 9, 13]
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(*(event("MODIFIED", version, f"at{version}") for version in versions)), QUIET)
        watcher = await followed(api, last_change("at13"))
    assert watcher.words == ["listed a", "changed at11", "changed at12", "changed at13"]


async def test_a_bookmark_moves_the_version_on_and_tells_nothing_else() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("51", ["a"]))
        script.add("watch", stream(event("BOOKMARK", 50)), stream(event("ADDED", 51, "b")), QUIET)
        watcher = await followed(api, last_change("b"))
    assert watcher.words == ["listed a", "changed b"]
    assert watches(script)[:2] == ["10", "50"]


async def test_a_bookmark_of_the_past_means_a_new_list() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("7", ["b"]))
        script.add("watch", stream(event("BOOKMARK", 6)), QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert watcher.seen[0] == "10"


async def test_an_object_that_goes_is_gone_by_its_key_even_where_it_cannot_be_read() -> None:
    broken = event("DELETED", 12, "b", spec="nonsense")
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(event("ADDED", 11, "b", spec="nonsense"), broken, event("ADDED", 13, "c")), QUIET)
        watcher = await followed(api, last_change("c"))
    assert watcher.words == ["listed a", "problem b", "gone b", "changed c"]


@pytest.mark.parametrize("line", [b"<html>\n", b"[]\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":{}}\n'])
async def test_what_is_no_event_ends_the_watch_and_means_a_new_list(line: bytes) -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("20", ["b"]))
        script.add("watch", stream(line), QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert len(watcher.troubles) == 1


def hasty(watcher: Watcher) -> Rhythm:
    """Return a rhythm in which every stream is quiet at once."""
    return Rhythm(pace=watcher.pace, quiet_s=0.001)


async def test_a_quiet_stream_is_current_where_the_cluster_has_not_moved_on() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: len(watcher.seen) == 3, rhythm=hasty(Watcher()))
    assert watcher.words == ["listed a"]
    assert watcher.seen == ["10", "10", "10"]
    assert len(watches(script)) == 1


async def test_what_is_told_is_known_to_be_current_as_of_when_it_came() -> None:
    watcher = Watcher()

    def slowly(told: Watcher) -> bool:
        watcher.time += isinstance(told.told[-1], Changed)
        return told.seen == ["10", "11"]

    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(event("ADDED", 11, "b")), QUIET)
        told = await followed(api, slowly, rhythm=Rhythm(pace=watcher.pace))
    assert [item.at for item in told.told if isinstance(item, Seen)] == [0.0, 0.0]


async def test_a_quiet_stream_is_current_as_of_when_that_was_asked() -> None:
    async with scripted() as (script, api):
        pace = Pace(now=lambda: float(sum(kind_of(target) == "probe" for target in script.asked)))
        script.add("list", LIST)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: len(watcher.seen) == 3, rhythm=Rhythm(pace=pace, quiet_s=0.001))
    assert [item.at for item in watcher.told if isinstance(item, Seen)] == [0.0, 0.0, 1.0]


async def test_a_quiet_stream_that_has_lost_events_is_replaced() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("12", ["a"]))
        script.add("watch", QUIET, stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"), rhythm=hasty(Watcher()))
    assert watcher.words == ["listed a", "changed b"]
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target][:2] == ["300", "3"]
    assert watches(script)[:2] == ["10", "10"]


async def test_a_stream_that_brings_bookmarks_without_news_is_asked_about_and_they_end_no_doubt() -> None:
    old = stream(event("BOOKMARK", 10), event("BOOKMARK", 10))
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", old[:-5] + HANGING, old, stream(event("BOOKMARK", 12)), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen[-1:] == ["12"], rhythm=hasty(Watcher()))
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target][:3] == ["300", "3", "3"]
    assert watcher.seen == ["10", "12"]


async def test_a_watch_that_is_ended_for_being_behind_is_followed_by_another_without_a_list() -> None:
    rhythm = Rhythm(pace=Watcher().pace)

    def ended(watcher: Watcher) -> bool:
        if last_change("b")(watcher):
            rhythm.watches.end(NODES, before=0.0, why="it is behind")
        return last_change("c")(watcher)

    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", stream(event("ADDED", 11, "b"))[:-5] + HANGING, stream(event("ADDED", 12, "c")), QUIET)
        watcher = await followed(api, ended, rhythm=rhythm)
    assert (watcher.words, watches(script)[:2]) == (["listed a", "changed b", "changed c"], ["10", "11"])
    assert watcher.troubles == ["it is behind"]


async def test_a_watch_that_was_opened_since_is_not_ended() -> None:
    rhythm = Rhythm(pace=Pace(now=lambda: 7.0))

    def ended(watcher: Watcher) -> bool:
        rhythm.watches.end(NODES, before=6.9, why="it is behind")
        return last_change("c")(watcher)

    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(event("ADDED", 11, "b"), event("ADDED", 12, "c"))[:-5] + HANGING)
        watcher = await followed(api, ended, rhythm=rhythm)
    assert (watcher.troubles, watches(script)) == ([], ["10"])


async def test_a_cluster_that_was_set_back_is_listed_anew() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["a"]), page("5", ["b"]))
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"], rhythm=hasty(Watcher()))
    assert watcher.troubles[0] == "the cluster is at 5, after 10"
    assert watcher.seen[:2] == ["10", "5"]


async def test_a_cluster_that_was_set_back_is_told_as_such_before_it_is_listed_anew() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["b"]))
        script.add("probe", page("4", ["b"]))
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"], rhythm=hasty(Watcher()))
    assert watcher.words == ["listed a", "Reverted", "listed b"]
    assert [told for told in watcher.told if isinstance(told, Reverted)] == [Reverted(NODES, known="10", version="5")]


@pytest.mark.parametrize(
    "ended", [stream(is_cut=True), stream(), failure(500, "InternalError"), stream(error(410, "Expired"))]
)
async def test_after_a_watch_that_ended_early_it_is_found_out_at_once_that_the_cluster_was_set_back(
    ended: bytes,
) -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["b"]))
        script.add("probe", page("5", ["b"]))
        script.add("watch", ended, QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert watcher.words == ["listed a", "Reverted", "listed b"]
    assert set(watches(script)[1:]) <= {"5"}


async def test_a_server_that_is_behind_for_a_moment_is_waited_for_and_nothing_was_set_back() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("12", ["b"]))
        script.add("probe", page("7", ["x"]), page("9", ["x"]), page("12", ["b"]))
        script.add("watch", stream(is_cut=True), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen == ["10", "12"])
    assert watcher.words == ["listed a", "listed b"]
    assert [told.is_behind for told in watcher.told if isinstance(told, Trouble)] == [False, True, True]


async def test_a_list_that_is_behind_for_a_moment_is_not_told_of() -> None:
    rhythm = Rhythm(pace=Watcher().pace)
    async with scripted() as (script, api):
        script.add("list", LIST, page("7", ["x"]), page("12", ["b"]))
        script.add("watch", QUIET)
        await followed(api, lambda watcher: watcher.seen == ["10"], rhythm=rhythm)
        second = await followed(api, lambda watcher: watcher.seen == ["12"], rhythm=rhythm)
    assert (second.words, second.troubles) == (["listed b"], ["the cluster is at 7, after 10"])


def slow(script: Script) -> Rhythm:
    """Have each list take longer than a cluster may be behind."""
    watcher = Watcher()

    def now() -> float:
        return watcher.time + (BEHIND_S + 1.0) * sum("limit=250" in target for target in script.asked)

    return Rhythm(pace=Pace(now=now, sleep=watcher.sleep, chance=lambda: 0.0))


async def test_one_list_that_is_behind_decides_nothing_however_long_it_takes() -> None:
    async with scripted() as (script, api):
        rhythm = slow(script)
        script.add("list", LIST, page("7", ["x"]), page("12", ["b"]))
        script.add("watch", QUIET)
        await followed(api, lambda watcher: watcher.seen == ["10"], rhythm=rhythm)
        second = await followed(api, lambda watcher: watcher.seen == ["12"], rhythm=rhythm)
    assert (second.words, second.troubles) == (["listed b"], ["the cluster is at 7, after 10"])


async def test_two_lists_that_are_behind_decide_even_if_each_takes_long() -> None:
    async with scripted() as (script, api):
        rhythm = slow(script)
        script.add("list", LIST, page("7", ["x"]), page("8", ["b"]))
        script.add("watch", QUIET)
        await followed(api, lambda watcher: watcher.seen == ["10"], rhythm=rhythm)
        second = await followed(api, lambda watcher: watcher.seen == ["8"], rhythm=rhythm)
    assert (second.words, second.troubles) == (["Reverted", "listed b"], ["the cluster is at 7, after 10"])


async def test_only_a_cluster_that_stays_behind_was_set_back() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["b"]))
        script.add("watch", stream(is_cut=True), QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    told = zip(watcher.told, watcher.at, strict=True)
    behind = [at for each, at in told if isinstance(each, Trouble) and each.is_behind]
    assert (len(behind), behind[-1] - behind[0] >= BEHIND_S - LOOK_S) == (10, True)
    assert watcher.words == ["listed a", "Reverted", "listed b"]


async def test_a_server_that_is_behind_again_after_nobody_answered_for_long_is_waited_for_again() -> None:
    away = failure(503, "ServiceUnavailable", "Retry-After: 9")
    async with scripted() as (script, api):
        script.add("list", LIST, page("8", ["x"]), page("12", ["b"]))
        script.add("probe", page("7", ["x"]), away, page("12", ["b"]))
        script.add("watch", stream(is_cut=True), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen == ["10", "12"])
    assert watcher.words == ["listed a", "listed b"]


async def test_a_list_that_takes_long_decides_by_when_it_was_asked_for() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["b"]))
        script.add("probe", page("5", ["b"]))
        script.add("watch", stream(is_cut=True), QUIET)
        told = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"], rhythm=slow(script))
    assert told.words == ["listed a", "Reverted", "listed b"]
    assert sum("limit=250" in target for target in script.asked) == 2


async def test_how_far_one_resource_is_says_nothing_about_another_that_may_be_stored_elsewhere() -> None:
    rhythm = Rhythm(pace=Watcher().pace)
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["p"]))
        script.add("watch", QUIET)
        await followed(api, lambda watcher: watcher.seen == ["10"], rhythm=rhythm)
        second = await followed(api, lambda watcher: watcher.seen == ["5"], resource=PODS, rhythm=rhythm)
    assert second.troubles == []
    assert not [told for told in second.told if isinstance(told, Reverted)]


@pytest.mark.parametrize("version", ["a", "9a", "\u00b2", "-1", ""])
@pytest.mark.parametrize("position", ["10", "b", "\u00b3"])
def test_versions_that_are_no_numbers_are_neither_before_nor_after_for_certain(version: str, position: str) -> None:
    assert not is_older(version, position)
    assert is_newer(version, position)


def test_versions_may_be_numbers_of_any_length() -> None:
    assert is_older("9" * 40, "1" + "0" * 40)
    assert not is_older("1" + "0" * 40, "9" * 40)


@pytest.mark.parametrize(("lived_s", "asked"), [(298.6, 0), (298.4, 1)])
async def test_a_watch_that_ended_before_its_time_is_asked_about_and_one_that_lasted_is_not(
    lived_s: float, asked: int
) -> None:
    watcher = Watcher()

    def lasting(told: Watcher) -> bool:
        watcher.time = lived_s * (len(told.words) > 1)
        return last_change("c")(told)

    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", stream(event("ADDED", 11, "b")), stream(event("ADDED", 12, "c")), QUIET)
        await followed(api, lasting, rhythm=Rhythm(pace=watcher.pace))
    assert len([target for target in script.asked if target.endswith("?limit=1")]) == asked


async def test_a_quiet_stream_that_was_asked_about_is_not_asked_about_again_when_it_is_replaced() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", QUIET, stream(event("ADDED", 11, "b")), QUIET)
        await followed(api, last_change("b"), rhythm=hasty(Watcher()))
    kinds = [kind_of(target) for target in script.asked]
    assert kinds[:4] == ["list", "watch", "probe", "watch"]


def cutting(script: Script, lived_s: float = 20.0) -> Rhythm:
    """Return a rhythm for watches that are cut after so long each, and would be asked about half as long after that."""
    pace = Pace(now=lambda: lived_s * len(watches(script)), sleep=Watcher().sleep, chance=lambda: 0.0)
    return Rhythm(pace=pace, quiet_s=1.5 * lived_s)


async def test_a_quiet_resource_is_asked_about_though_each_watch_is_cut_before_that() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", *[stream(is_cut=True)] * 2, stream(event("BOOKMARK", 12)), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen[1:] == ["12"], rhythm=cutting(script))
    assert watcher.words == ["listed a"]
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target][:3] == ["300", "300", "3"]


async def test_how_long_a_resource_is_quiet_counts_from_before_its_last_watch_was_cut() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", stream(is_cut=True), QUIET, stream(event("BOOKMARK", 12)), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen[1:] == ["12"], rhythm=cutting(script, 200.0))
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target][:3] == ["300", "300", "3"]
    assert len(watcher.troubles) == 1


async def test_a_quiet_resource_whose_watches_are_cut_is_current_where_the_cluster_has_not_moved_on() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(is_cut=True))
        watcher = await followed(api, lambda watcher: len(watcher.troubles) == 5, rhythm=cutting(script))
    assert [told.at for told in watcher.told if isinstance(told, Seen)] == [0.0, 40.0, 80.0]


async def test_whoever_follows_anew_finds_out_too_that_the_cluster_was_set_back() -> None:
    rhythm = Rhythm(pace=Watcher().pace)
    async with scripted() as (script, api):
        script.add("list", LIST, page("5", ["b"]))
        script.add("watch", QUIET)
        first = await followed(api, lambda watcher: watcher.seen == ["10"], rhythm=rhythm)
        second = await followed(api, lambda watcher: watcher.seen == ["5"], rhythm=rhythm)
    assert (first.words, second.words) == (["listed a"], ["Reverted", "listed b"])


async def test_a_list_that_is_as_far_as_the_one_before_tells_of_nothing_that_was_set_back() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("10", ["b"]))
        script.add("watch", stream(error(410, "Expired")), QUIET)
        watcher = await followed(api, lambda watcher: watcher.words[-1:] == ["listed b"])
    assert watcher.words == ["listed a", "listed b"]


async def test_after_a_watch_that_lasted_its_time_nobody_is_asked_how_far_the_cluster_is() -> None:
    watcher = Watcher()

    def lasting(told: Watcher) -> bool:
        watcher.time += 300.0
        return last_change("c")(told)

    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", stream(event("ADDED", 11, "b")), stream(event("ADDED", 12, "c")), QUIET)
        told = await followed(api, lasting, rhythm=Rhythm(pace=watcher.pace))
    assert told.words == ["listed a", "changed b", "changed c"]
    assert not [target for target in script.asked if target.endswith("?limit=1")]


async def test_doubt_lasts_until_a_bookmark_or_an_event() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, page("12", ["a"]))
        script.add("watch", QUIET, stream(), stream(), stream(event("BOOKMARK", 12)), QUIET)
        watcher = await followed(api, lambda watcher: "12" in watcher.seen, rhythm=hasty(Watcher()))
    assert watcher.words == ["listed a"]
    assert [target.rpartition("=")[2] for target in script.asked if "watch" in target][:4] == ["300", "3", "3", "3"]


async def test_brief_watches_that_end_again_and_again_without_an_event_back_off() -> None:
    watcher = Watcher()
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("probe", page("12", ["a"]))
        script.add("watch", QUIET, *[stream()] * 5, stream(event("BOOKMARK", 12)), QUIET)
        await followed(api, lambda watcher: "12" in watcher.seen, rhythm=hasty(watcher))
    assert watcher.slept == [0.05, 0.1, 0.2, 0.4]


async def test_a_quiet_stream_of_a_server_that_does_not_answer_is_given_up() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST, failure(500, "InternalError"), page("10", ["a"]))
        script.add("watch", QUIET, stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"), rhythm=hasty(Watcher()))
    assert watcher.words == ["listed a", "changed b"]
    assert watcher.troubles[0] == "500 InternalError told InternalError"


async def test_a_server_that_is_not_there_is_tried_again_with_growing_pauses() -> None:
    api = Api(Fixed(Access(server=NOBODY)))
    watcher = await followed(api, lambda watcher: len(watcher.troubles) == 11)
    await api.close()
    assert watcher.slept[:10] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0]
    assert set(watcher.words) == set()


EMPTY = response({"metadata": {"resourceVersion": "10"}, "items": []})
GROUP = "/apis/resource.k8s.io"


NOT_FOUND = failure(404, "NotFound")


@pytest.mark.parametrize(
    ("absent", "listed"),
    [
        (groups(), NOT_FOUND),
        (groups("v1"), resources("resourceclaims")),
        (response({"groups": []}), NOT_FOUND),
        (response({"groups": [{"name": "resource.k8s.io", "versions": 3}]}), NOT_FOUND),
        (groups(), failure(403, "Forbidden")),
    ],
)
async def test_a_resource_that_is_not_served_is_told_as_such_and_looked_for_again(absent: bytes, listed: bytes) -> None:
    async with scripted() as (script, api):
        script.add("/apis", absent, groups("v1", "v1beta2"))
        script.add(f"{GROUP}/v1", listed, resources("resourceclaims"))
        script.add(f"{GROUP}/v1beta2", NOT_FOUND, resources("devicetaintrules"))
        script.add(f"{GROUP}/v1alpha3", failure(403, "Forbidden"))
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed ", "Unserved", "listed "]
    assert isinstance(watcher.told[1], Unserved)
    assert [told.is_served for told in watcher.told if isinstance(told, Listed)] == [False, True]
    assert watcher.slept == [LOOK_AGAIN_S]
    assert any(target.startswith(f"{GROUP}/v1beta2/devicetaintrules?limit") for target in script.asked)


async def test_what_is_not_served_still_is_not_listed_again_though_it_is_said_each_time() -> None:
    async with scripted() as (script, api):
        script.add("/apis", *[groups()] * 4, groups("v1"))
        script.add(f"{GROUP}/v1", NOT_FOUND, *[NOT_FOUND] * 3, resources("devicetaintrules"))
        for version in ("v1beta2", "v1alpha3"):
            script.add(f"{GROUP}/{version}", NOT_FOUND)
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed ", *["Unserved"] * 4, "listed "]
    assert watcher.slept == [LOOK_AGAIN_S] * 4


async def test_whoever_has_all_listed_anew_is_not_told_what_was_not_served_before() -> None:
    async with scripted() as (script, api):
        script.add("/apis", groups(), groups("v1"))
        script.add(f"{GROUP}/v1", NOT_FOUND, resources("devicetaintrules"))
        for version in ("v1beta2", "v1alpha3"):
            script.add(f"{GROUP}/{version}", NOT_FOUND)
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        versions = Versions(api, Pace(), lambda _: None)
        assert await versions.find(RULES) is None
        again = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES, versions=versions)
    assert again.words == ["listed "]


async def test_what_others_find_to_be_gone_while_it_is_watched_is_listed_once_it_is_there_again() -> None:
    none, served = resources("resourceclaims"), resources("resourceclaims", "devicetaintrules")
    async with scripted() as (script, api):
        script.add("/apis", groups("v1"))
        script.add(f"{GROUP}/v1", served, *[none] * (1 + int(GONE_S / MISSED_PAUSE_S)), served)
        for version in ("v1beta2", "v1alpha3"):
            script.add(f"{GROUP}/{version}", NOT_FOUND)
        script.add("list", EMPTY)
        script.add("watch", stream(), QUIET)
        versions = Versions(api, Watcher().pace, lambda _: None)

        def forgotten(watcher: Watcher) -> bool:
            versions.forget(RULES)
            return "Unserved" in watcher.words and len(watcher.seen) > 1

        watcher = await followed(api, forgotten, resource=RULES, versions=versions)
    assert re.fullmatch("(listed ){2}(Unserved)+listed ", "".join(watcher.words))


async def test_a_server_that_lists_its_groups_only_later_serves_them_all_the_same() -> None:
    async with scripted() as (script, api):
        script.add("/apis", response({"groups": [{"name": "apiregistration.k8s.io", "versions": [{"version": "v1"}]}]}))
        script.add(f"{GROUP}/v1", resources("resourceclaims", "devicetaintrules"))
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed "]
    assert watcher.slept == []


def with_rules_until_the_watch_ends(script: Script, *listed: bytes) -> None:
    """Have rules served at first; after that *listed* is what version v1 has."""
    script.add("/apis", groups("v1"))
    script.add(f"{GROUP}/v1", resources("resourceclaims", "devicetaintrules"), *listed)
    for version in ("v1beta2", "v1alpha3"):
        script.add(f"{GROUP}/{version}", NOT_FOUND)
    script.add("list", EMPTY)
    script.add("watch", NOT_FOUND, QUIET)


async def test_what_was_served_is_kept_where_another_api_server_does_not_list_it() -> None:
    older, newer = resources("resourceclaims"), resources("resourceclaims", "devicetaintrules")
    async with scripted() as (script, api):
        with_rules_until_the_watch_ends(script, *[older] * 3, failure(500, "InternalError"), older, newer)
        watcher = await followed(api, lambda watcher: len(watcher.seen) == 2, resource=RULES)
        asked_again = [head for head in script.headers if "GET /apis" in head and "?" not in head][2:]
    assert watcher.words == ["listed ", "listed "]
    assert [told.is_absent for told in watcher.told if isinstance(told, Trouble)] == [
        False,
        True,
        True,
        True,
        False,
        True,
    ]
    # Who stands behind the address that we have is asked again only on another connection.
    assert asked_again
    assert all("Connection: close" in head for head in asked_again)


async def test_what_was_served_is_gone_where_that_is_found_for_long() -> None:
    async with scripted() as (script, api):
        with_rules_until_the_watch_ends(script, resources("resourceclaims"))
        watcher = await followed(api, lambda watcher: "Unserved" in watcher.words, resource=RULES)
    assert watcher.words[:3] == ["listed ", "listed ", "Unserved"]
    told = list(zip(watcher.told, watcher.at, strict=True))
    missed, gone = ([at for each, at in told if isinstance(each, kind)] for kind in (Trouble, Unserved))
    assert len(missed) > GONE_TIMES
    assert gone[0] - missed[0] >= GONE_S


async def test_what_comes_to_be_served_and_is_gone_again_is_told_so_again() -> None:
    async with scripted() as (script, api):
        script.add("/apis", groups(), groups("v1"))
        served, gone = resources("resourceclaims", "devicetaintrules"), resources("resourceclaims")
        script.add(f"{GROUP}/v1", NOT_FOUND, served, gone)
        for version in ("v1beta2", "v1alpha3"):
            script.add(f"{GROUP}/{version}", NOT_FOUND)
        script.add("list", EMPTY)
        script.add("watch", NOT_FOUND)
        watcher = await followed(api, lambda watcher: watcher.words.count("Unserved") == 2, resource=RULES)
    assert watcher.words == ["listed ", "Unserved", "listed ", "listed ", "Unserved"]


async def test_a_version_that_lists_nothing_does_not_make_a_resource_unserved() -> None:
    async with scripted() as (script, api):
        script.add("/apis", groups("v1"))
        script.add(f"{GROUP}/v1", resources(), resources("resourceclaims", "devicetaintrules"))
        for version in ("v1beta2", "v1alpha3"):
            script.add(f"{GROUP}/{version}", NOT_FOUND)
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed "]


async def test_as_long_as_a_version_is_looked_for_again_the_last_one_is_written() -> None:
    watcher = Watcher()
    async with scripted() as (script, api):
        script.add("/apis", groups("v1beta1"))
        script.add(f"{GROUP}/v1beta1", resources("resourceclaims"))
        versions = Versions(api, watcher.pace, watcher.told.append)
        await versions.find(CLAIMS)
        versions.forget(CLAIMS)
        assert versions.known(CLAIMS).version == "v1beta1"


async def test_discovery_is_tried_until_it_answers() -> None:
    html = response(b"<html>", kind="text/html")
    async with scripted() as (script, api):
        script.add("/apis", html, failure(503, "ServiceUnavailable"), groups("v1"))
        script.add(f"{GROUP}/v1", failure(403, "Forbidden"), resources("devicetaintrules"))
        script.add("list", EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed "]
    assert watcher.slept == [0.05, 0.1, 0.2]


@pytest.mark.parametrize("code", [404, 403, 200])
async def test_what_a_proxy_says_does_not_make_a_resource_unserved(code: int) -> None:
    html = response(b"<html>", code, kind="text/html")
    async with scripted() as (script, api):
        script.add("/apis", html, groups("v1"))
        script.add(f"{GROUP}/v1", html, resources("resourceclaims"))
        script.add("list", html, EMPTY)
        script.add("watch", html, stream(event("BOOKMARK", 11)), QUIET)
        watcher = await followed(api, lambda watcher: watcher.seen[-1:] == ["11"], resource=CLAIMS)
    assert "Unserved" not in watcher.words


async def test_a_version_that_is_no_longer_served_is_found_in_another() -> None:
    async with scripted() as (script, api):
        script.add("/apis", groups("v1"), groups("v1beta2"))
        for version in ("v1", "v1beta2"):
            script.add(f"{GROUP}/{version}", resources("devicetaintrules"))
        script.add("list", failure(404, "NotFound"), EMPTY)
        script.add("watch", QUIET)
        watcher = await followed(api, lambda watcher: bool(watcher.seen), resource=RULES)
    assert watcher.words == ["listed "]
    assert [target.partition("?")[0] for target in script.asked if "limit" in target] == [
        f"{GROUP}/v1/devicetaintrules",
        f"{GROUP}/v1beta2/devicetaintrules",
    ]


async def test_bookmarks_alone_do_not_keep_a_watch_from_backing_off() -> None:
    async with scripted() as (script, api):
        script.add("list", LIST)
        script.add("watch", *[stream(event("BOOKMARK", 10))] * 4, stream(event("ADDED", 11, "b")), QUIET)
        watcher = await followed(api, last_change("b"))
    assert watcher.slept == [0.05, 0.1, 0.2]
    # What has the version that we have says nothing of now.
    assert watcher.seen[:2] == ["10", "11"]
