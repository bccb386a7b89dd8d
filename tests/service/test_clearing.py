"""What was sent before us is kept from landing: everything that it could change is touched, however often it takes."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from extender.kube.freshness import Freshness
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.kube.pace import Pace
from extender.kube.resource import CLAIMS, PODS
from extender.kube.told import Seen
from extender.model.change import Change, Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.scheduling.steps import Later, Refusal
from extender.service.clearing import AT_ONCE, ERRORS, Clearing
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, pod

WAITING = pod("p", "held")
HELD = held(claim("held"), device("n1", 0), by=WAITING)


def done(version: int) -> Succeeded:
    return Succeeded({"metadata": {"resourceVersion": str(version)}})


def refused(kind: Refusal) -> Refused:
    return Refused(kind=kind, status=400, reason="So", message="said so")


class Api:
    """Stands in for writes: answers as it is told, and then that it is done in the next version."""

    def __init__(self, *answers: RequestOutcome) -> None:
        self.answers = list(answers)
        self.touched: list[str] = []
        self.marks: set[str] = set()
        self.version = 100
        self.at_once = self.most = 0

    async def touch_claim(self, claim: ResourceClaim, mark: str) -> RequestOutcome:
        return await self._touched(claim.key.name, mark)

    async def touch_pod(self, pod: Pod, mark: str) -> RequestOutcome:
        return await self._touched(pod.key.name, mark)

    async def _touched(self, name: str, mark: str) -> RequestOutcome:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.touched.append(name)
        self.marks.add(mark)
        self.version += 1
        return self.answers.pop(0) if self.answers else done(self.version)


class Stage:
    """Claims and pods, and a watch that shows what is written when it is told to."""

    def __init__(self, api: Api, items: Iterable[ResourceClaim | Pod] = (claim("free"),)) -> None:
        self.api, self.slept = api, list[float]()
        self.freshness = Freshness((CLAIMS, PODS))
        self.shows = True
        self.show(0)
        writes: Any = api
        belief = belief_of(node("n1"), gpus("n1", 2), *items)
        self.work = Clearing(belief, writes, self.freshness, Pace(sleep=self.sleep))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.shows:
            self.show(self.api.version)
        await asyncio.sleep(0)

    def show(self, version: int) -> None:
        for resource in (CLAIMS, PODS):
            self.freshness.note(Seen(resource, str(version), 0.0))


async def test_claims_that_can_be_given_or_freed_and_pods_that_can_be_bound_are_moved_on() -> None:
    stage = Stage(Api(), (claim("free"), HELD, WAITING))
    assert await stage.work.done()
    assert sorted(stage.api.touched) == ["free", "held", "p"]
    assert len(stage.api.marks) == 1


async def test_each_takeover_leaves_another_mark() -> None:
    stage = Stage(Api())
    assert await stage.work.done()
    assert await stage.work.done()
    assert len(stage.api.marks) == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Unknown("no answer"), id="no answer"),
        pytest.param(Later(3.0), id="not now"),
        pytest.param(refused(Refusal.UNSENT), id="not sent"),
        pytest.param(refused(Refusal.CONFLICT), id="a conflict, which may be said of anything"),
    ],
)
async def test_what_nobody_has_decided_is_tried_again(answer: RequestOutcome) -> None:
    stage = Stage(Api(answer, answer))
    assert await stage.work.done()
    assert stage.api.touched == ["free"] * 3
    assert stage.slept[:2] == [3.0 if isinstance(answer, Later) else 0.5] * 2


async def test_a_conflict_about_a_pod_that_waits_proves_nothing() -> None:
    stage = Stage(Api(done(101), *[refused(Refusal.CONFLICT)] * 3), (HELD, WAITING))
    assert await stage.work.done()
    assert stage.api.touched.count("p") == 4


async def test_what_is_answered_with_errors_again_and_again_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    down = Unknown("500 InternalError: failed calling webhook", is_answered=True)
    stage = Stage(Api(*[down] * (4 * ERRORS)), [claim("one"), claim("two")])
    assert await stage.work.done()
    (told,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert vars(told)["error"] in {f"ns/{name}: {down}" for name in ("one", "two")}


@pytest.mark.parametrize(
    ("answer", "times"),
    [(Unknown("no answer"), 3 * ERRORS), (Unknown("500", is_answered=True), ERRORS - 1)],
    ids=["none", "errors, but few"],
)
async def test_what_passes_is_not_told(answer: RequestOutcome, times: int, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Api(*[answer] * times))
    assert await stage.work.done()
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


async def test_what_is_gone_is_left_alone() -> None:
    stage = Stage(Api(refused(Refusal.NOT_FOUND)))
    assert await stage.work.done()
    assert stage.api.touched == ["free"]


@pytest.mark.parametrize(
    ("item", "now"),
    [
        pytest.param(claim("free"), Changed(replace(claim("free"), uid=Uid("another"))), id="a claim made anew"),
        pytest.param(WAITING, Changed(replace(WAITING, uid=Uid("another"))), id="a pod made anew"),
        pytest.param(WAITING, Gone(Pod, WAITING.key), id="a pod that waits no longer"),
    ],
)
async def test_what_the_watch_shows_to_be_gone_is_left_alone_though_its_name_answers(
    item: ResourceClaim | Pod, now: Change
) -> None:
    items = (item,) if isinstance(item, ResourceClaim) else (HELD, item)
    stage = Stage(Api(*[done(101)] * (len(items) - 1), *[refused(Refusal.CONFLICT)] * 3), items)
    working = asyncio.create_task(stage.work.done())
    await asyncio.sleep(0)
    stage.work.belief.apply(now)
    assert await asyncio.wait_for(working, 10)
    assert stage.api.touched.count(item.key.name) == 1


async def test_a_waiting_pod_that_cannot_be_read_any_more_is_not_gone() -> None:
    stage = Stage(Api(done(101), *[refused(Refusal.CONFLICT)] * 3), (HELD, WAITING))
    working = asyncio.create_task(stage.work.done())
    await asyncio.sleep(0)
    stage.work.belief.apply(Changed(Problem(Pod.__name__, WAITING.key, "spec", "is no object")))
    assert await asyncio.wait_for(working, 10)
    assert stage.api.touched.count("p") == 4


@pytest.mark.parametrize("kind", [Refusal.FORBIDDEN, Refusal.INVALID, Refusal.REJECTED, Refusal.IN_VAIN])
async def test_where_something_cannot_be_moved_on_that_is_said_and_the_rest_is_left(
    kind: Refusal, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(Api(refused(kind)), [claim(f"c{number}") for number in range(3 * AT_ONCE)])
    assert not await stage.work.done()
    assert len(stage.api.touched) == AT_ONCE
    (told,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert vars(told)["error"].endswith(": 400 So: said so")


async def test_many_are_moved_on_at_once_but_not_all() -> None:
    stage = Stage(Api(), [claim(f"c{number}") for number in range(3 * AT_ONCE)])
    assert await stage.work.done()
    assert (len(stage.api.touched), stage.api.most) == (3 * AT_ONCE, AT_ONCE)


async def waits_still(working: asyncio.Task[bool]) -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    assert not working.done()


async def test_nobody_goes_on_before_the_watches_show_what_was_moved_on() -> None:
    stage = Stage(Api(), (claim("free"), HELD, WAITING))
    stage.shows = False
    working = asyncio.create_task(stage.work.done())
    for version in (100, 102):
        stage.show(version)
        await waits_still(working)
    stage.show(103)
    assert await working


async def test_the_last_version_of_those_that_were_moved_on_is_waited_for_however_they_are_answered() -> None:
    stage = Stage(Api(done(104), done(106), done(105)), (claim("one"), claim("two"), claim("three")))
    stage.shows = False
    working = asyncio.create_task(stage.work.done())
    stage.show(105)
    await waits_still(working)
    stage.show(106)
    assert await asyncio.wait_for(working, 10)


async def test_of_a_pod_that_waits_still_the_version_is_waited_for() -> None:
    waits = Succeeded({"metadata": {"name": "p", "uid": WAITING.uid, "resourceVersion": "103"}, "spec": {}})
    stage = Stage(Api(done(101), waits), (HELD, WAITING))
    stage.shows = False
    working = asyncio.create_task(stage.work.done())
    stage.show(102)
    await waits_still(working)
    stage.show(103)
    assert await asyncio.wait_for(working, 10)


async def test_of_a_pod_that_was_bound_meanwhile_its_going_is_waited_for_and_no_version() -> None:
    bound = Succeeded(
        {"metadata": {"name": "p", "uid": WAITING.uid, "resourceVersion": "999"}, "spec": {"nodeName": "n1"}}
    )
    stage = Stage(Api(), (HELD, WAITING))
    stage.api.answers = [done(101), bound]
    stage.shows = False
    working = asyncio.create_task(stage.work.done())
    stage.show(101)
    await waits_still(working)
    stage.work.belief.apply(Gone(Pod, WAITING.key))
    assert await asyncio.wait_for(working, 10)
