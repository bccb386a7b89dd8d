"""What was told is told again where it was lost, or after half an hour, and after all that is news."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from extender.kube.answer import Json
from extender.kube.fence import Fence
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.model.names import ObjectKey, Uid, is_dns_subdomain
from extender.scheduling.account import note_of
from extender.scheduling.decision import Decided, Decision
from extender.scheduling.steps import Later, Refusal
from extender.service.history import DOUBT
from extender.service.notices import AGAIN_S, MOST_CAUSES, MOST_TOLD, MOST_WAITING, RETRY_S, TRIES, Alarm, Notices
from tests.scheduling.stage import N1, POD
from tests.service.test_counted import PATIENCE_S, until


class Events:
    """Stands in for writes: remembers the reasons and names of the events that it was to write."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.names: list[str] = []
        self.outcome: RequestOutcome = Succeeded({})
        # What is answered before that.
        self.outcomes: list[RequestOutcome] = []
        self.expected = 0
        self.are_written = asyncio.Event()
        self.fence = Fence()

    async def create_event(self, _namespace: str, event: Json) -> RequestOutcome:
        self.reasons.append(event["reason"])
        self.names.append(event["metadata"]["name"])
        if len(self.reasons) == self.expected:
            self.are_written.set()
        return self.outcomes.pop(0) if self.outcomes else self.outcome


def noticing(events: Events) -> Notices:
    return Notices(events, "one", 1e9)  # type: ignore[arg-type]  # only events are written


def decided(outcome: Decided, reason: str, at: float = 0.0) -> Decision:
    return Decision(pod=POD.key, uid=POD.uid, at=at, generation=1, outcome=outcome, reason=reason, node=N1)


def refused(number: int, at: float = 0.0) -> Decision:
    """Refuse one of many pods."""
    name = f"p{number}"
    return replace(decided(Decided.REJECTED, "InUse", at), pod=ObjectKey("ns", name), uid=Uid(name))


async def told(notices: Notices, events: Events, *decisions: Decision, is_news: bool = True) -> list[str]:
    """Put *decisions*; return the reasons that are written for them."""
    for decision in decisions:
        notices.put(decision, is_news=is_news)
    return await written(notices, events)


async def written(notices: Notices, events: Events) -> list[str]:
    """Return the reasons that are written for all that waits."""
    count = len(notices._waiting) + len(notices._again)
    return await tried(notices, events, count) if count else []


async def tried(notices: Notices, events: Events, count: int) -> list[str]:
    """Return the reasons of the next *count* events that are tried."""
    events.reasons.clear()
    events.are_written.clear()
    events.expected = count
    notices._news.set()
    task = asyncio.create_task(notices.run())
    await events.are_written.wait()
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return list(events.reasons)


async def test_the_same_is_told_once_until_the_pod_waits_no_longer() -> None:
    events = Events()
    notices = noticing(events)
    first, second = decided(Decided.REJECTED, "InUse"), decided(Decided.REJECTED, "NoMatch")
    assert await told(notices, events, first, second) == ["InUse", "NoMatch"]
    assert await told(notices, events, first, second) == []
    notices.forget(POD.uid)
    assert not notices._told
    assert await told(notices, events, first) == ["InUse"]


async def test_of_pods_that_wait_no_longer_nothing_is_told_any_more_but_that_they_are_bound() -> None:
    events, dropped = Events(), list[str]()
    notices = replace(noticing(events), counted=dropped.append)
    for number in range(3):
        notices.put(refused(number))
    notices.put(replace(refused(1), outcome=Decided.BOUND, reason="DevicesAllocated"))
    for number in range(2):
        notices.forget(Uid(f"p{number}"))
    assert dropped == ["dropped"] * 2
    assert await written(notices, events) == ["InUse", "DevicesAllocated"]


def said(reason: str, detail: str, at: float = 0.0) -> Decision:
    """Refuse the pod, or fail to bind it, with *detail*."""
    outcome = Decided.FAILED if reason == "BindFailed" else Decided.REJECTED
    return replace(decided(outcome, reason, at), detail=detail)


@pytest.mark.parametrize(
    ("reason", "first", "second"),
    [
        (
            "InvalidRequest",
            "claim a, request gpu: there is no class h100",
            "claim b, request gpu: there is no class a100",
        ),
        ("InvalidRequest", "claim a: there is no class h100", "class h100, selector 0 on device d/p/x: undefined"),
        (
            "UnknownField",
            "claim a: spec.x: this field is not known here",
            "claim a: spec.y: this field is not known here",
        ),
        (
            "NodeError",
            "class gpu, selector 0 on device d/p/x: no such key",
            "class gpu, selector 0 on device d/p/x: too costly",
        ),
        ("PolicyNotAllowed", "claim a names linked", "claim a names one-numa"),
        ("NotOurs", "claim a asks for class nic", "claim a asks for class fpga"),
        ("BindFailed", 'claims "a" is forbidden: no right', 'admission webhook "x" denied the request: exceeded quota'),
    ],
)
async def test_another_cause_of_the_same_reason_is_told_at_once(reason: str, first: str, second: str) -> None:
    events = Events()
    notices = noticing(events)
    for at, detail in enumerate((first, second)):
        assert await told(notices, events, said(reason, detail, at)) == [reason]
    assert await told(notices, events, said(reason, first, 2.0), said(reason, second, 3.0)) == []


@pytest.mark.parametrize(
    ("reason", "first", "second"),
    [
        ("InUse", "claim a needs 8 devices, has 2: 6 in use", "claim a needs 8 devices, has 3: 5 are tainted"),
        ("OnlyOtherNodes", "devices are free on alpha", "devices are free on beta"),
        ("InvalidRequest", "selector 0 on device d/p/x: undefined", "selector 0 on device d/q/y: undefined"),
        ("NodeError", "pool d/p is invalid: device x twice", "pool d/q is invalid: device y twice"),
        (
            "BindFailed",
            'webhook "x" denied the request: 7 of 8 are used',
            'webhook "x" denied the request: 6 of 8 are used',
        ),
        ("BindFailed", 'resourceclaims "p-b" is forbidden', 'resourceclaims "p-c" is forbidden'),
        ("BindFailed", "claim p-extended-resources-xkcdb is gone", "claim p-extended-resources-bqrst is gone"),
        ("BindFailed", "read tcp 10.0.0.1:5011: connection reset", "read tcp 10.0.0.1:5012: connection reset"),
        ("BindFailed", "claim a: the earlier claim ns/b holds d/p/x", "claim a: the earlier claim ns/c holds d/p/y"),
    ],
)
async def test_other_numbers_names_and_devices_of_the_same_cause_are_no_news(
    reason: str, first: str, second: str
) -> None:
    events = Events()
    notices = noticing(events)
    assert await told(notices, events, said(reason, first)) == [reason]
    assert await told(notices, events, said(reason, second, 1.0)) == []


@pytest.mark.parametrize("is_written", [True, False], ids=["one after another", "all at once"])
async def test_a_cause_that_reads_otherwise_at_each_attempt_is_told_a_few_times(*, is_written: bool) -> None:
    events = Events()
    notices, count = noticing(events), 0
    for at, letters in enumerate(product("abc", repeat=3)):
        notices.put(said("BindFailed", f"request {''.join(letters)} was denied", at))
        count += len(await written(notices, events)) if is_written else 0
    assert count + len(await written(notices, events)) == MOST_CAUSES + 1


@pytest.mark.parametrize("is_news", [True, False], ids=["other numbers", "no news"])
async def test_the_same_is_told_again_before_the_api_server_has_forgotten_it(*, is_news: bool) -> None:
    events = Events()
    notices = noticing(events)
    assert await told(notices, events, decided(Decided.REJECTED, "InUse", 7.0)) == ["InUse"]
    for at, reasons in ((AGAIN_S + 6.9, []), (AGAIN_S + 7.0, ["InUse"]), (AGAIN_S + 7.1, []), (0.0, ["InUse"])):
        assert await told(notices, events, decided(Decided.REJECTED, "InUse", at), is_news=is_news) == reasons


async def test_what_was_not_written_is_told_again_though_it_is_no_news() -> None:
    events = Events()
    notices = noticing(events)
    events.outcome = Unknown("no answer")
    await told(notices, events, decided(Decided.FAILED, "BindFailed"))
    events.outcome = Succeeded({})
    assert await told(notices, events, decided(Decided.FAILED, "BindFailed", RETRY_S - 1), is_news=False) == []
    assert await told(notices, events, decided(Decided.FAILED, "BindFailed", RETRY_S), is_news=False) == ["BindFailed"]


async def test_what_there_was_no_room_for_is_told_again_though_it_is_no_news() -> None:
    events = Events()
    notices, dropped = noticing(events), list[str]()
    notices.counted = dropped.append
    for number in range(MOST_WAITING + 1):
        notices.put(refused(number))
    assert dropped == ["dropped"]
    assert len(await written(notices, events)) == MOST_WAITING
    assert await told(notices, events, refused(0), refused(1), is_news=False) == ["InUse"]


async def test_what_is_no_news_never_takes_the_place_of_news() -> None:
    events = Events()
    notices, dropped = noticing(events), list[str]()
    notices.counted = dropped.append
    for number in range(3 * MOST_WAITING):
        notices.put(refused(number), is_news=False)
    assert (len(notices._again), dropped) == (MOST_WAITING, [])
    reasons = await told(notices, events, decided(Decided.BOUND, "DevicesAllocated"))
    assert (reasons[0], len(reasons)) == ("DevicesAllocated", MOST_WAITING + 1)


@pytest.mark.parametrize("ending", ["parted", "bound", "otherwise"])
async def test_what_is_so_no_longer_is_not_told_again(ending: str) -> None:
    events = Events()
    notices = noticing(events)
    notices.put(decided(Decided.REJECTED, "InUse"), is_news=False)
    if ending == "parted":
        notices.forget(POD.uid)
    elif ending == "bound":
        notices.put(decided(Decided.BOUND, "DevicesAllocated"))
    else:
        notices.put(decided(Decided.REJECTED, "NoMatch"), is_news=False)
    expected = {"parted": [], "bound": ["DevicesAllocated"], "otherwise": ["NoMatch"]}[ending]
    assert await written(notices, events) == expected


async def test_what_is_put_again_while_it_is_written_is_not_written_twice() -> None:
    events = Events()
    notices, again = noticing(events), decided(Decided.REJECTED, "InUse", 1.0)
    key = POD.uid, "InUse@n1"
    assert await notices._write(key, decided(Decided.REJECTED, "InUse"))
    assert await notices._write(key, again)
    assert events.reasons == ["InUse"]


async def test_alarms_of_one_subject_are_told_again_one_after_another() -> None:
    events = Events()
    notices = noticing(events)
    for at, expected in ((0.0, 2), (AGAIN_S, 1), (AGAIN_S + 20, 1), (AGAIN_S + 40, 0)):
        for text in ("first", "second"):
            notices.raise_alarm(Alarm(subject=POD, reason="Twice", text=text, at=at), is_news=at == 0.0)
        assert await written(notices, events) == ["Twice"] * expected


async def test_nothing_is_remembered_of_a_pod_that_was_told_to_be_bound() -> None:
    events = Events()
    notices = noticing(events)
    assert await told(notices, events, decided(Decided.BOUND, "DevicesAllocated")) == ["DevicesAllocated"]
    assert not notices._told


def test_of_one_pod_only_what_was_told_last_is_remembered() -> None:
    notices = noticing(Events())
    for number in range(MOST_TOLD + 1):
        notices._remember(Uid("p"), str(number), 0.0)
    assert list(notices._told[Uid("p")]) == [str(number) for number in range(1, MOST_TOLD + 1)]


async def paused(
    monkeypatch: pytest.MonkeyPatch, events: Events, count: int, then: Callable[[int], None] = lambda _count: None
) -> list[float]:
    """Let twenty events be written; return the first pauses in between."""
    pauses, notices = list[float](), Notices(events, "one", 20)  # type: ignore[arg-type]  # only events are written

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        then(len(pauses))
        if len(pauses) == count:
            raise asyncio.CancelledError

    monkeypatch.setattr("extender.service.notices.asyncio.sleep", sleep)
    for number in range(20):
        notices.put(refused(number))
    with pytest.raises(asyncio.CancelledError):
        await notices.run()
    return pauses


async def test_as_long_as_nobody_answers_less_and_less_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events()
    events.outcome = Unknown("no answer")

    def then(count: int) -> None:
        events.outcome = Succeeded({}) if count >= 13 else events.outcome

    pauses = await paused(monkeypatch, events, 15, then)
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[10:] == [RETRY_S, RETRY_S, RETRY_S, 0.05, 0.05]


BUSY = Later(7.0)
TERMINATING = Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="is being terminated")
UNSENT = Refused(kind=Refusal.UNSENT, status=0, reason="", message="no way there")


STRANGER = Refused(kind=Refusal.FORBIDDEN, status=401, reason="Unauthorized", message="Unauthorized")


@pytest.mark.parametrize(
    "outcome",
    [Unknown("no answer"), Unknown("500"), BUSY, UNSENT, STRANGER],
    ids=["unheard", "500", "429", "unsent", "401"],
)
async def test_what_was_not_written_is_tried_again_after_other_news_and_under_the_same_name(
    outcome: RequestOutcome,
) -> None:
    events, counted = Events(), list[str]()
    notices = noticing(events)
    notices.counted = counted.append
    events.outcomes, events.outcome = [outcome], Succeeded({})
    await told(notices, events, decided(Decided.BOUND, "DevicesAllocated"))
    assert (events.names[1:], counted) == ([], [])
    notices.put(decided(Decided.FAILED, "BindFailed"))
    assert await tried(notices, events, 2) == ["BindFailed", "DevicesAllocated"]
    assert events.names[0] == events.names[2]
    assert counted == ["written", "written"]


async def test_an_event_that_had_landed_unheard_counts_as_written(caplog: pytest.LogCaptureFixture) -> None:
    events, counted = Events(), list[str]()
    notices = noticing(events)
    notices.counted = counted.append
    exists = Refused(kind=Refusal.EXISTS, status=409, reason="AlreadyExists", message="")
    events.outcomes = [Unknown("no answer"), exists]
    notices.put(refused(0))
    notices.put(refused(1))
    assert len(set(await tried(notices, events, 3))) == 1
    assert (len(set(events.names)), counted, caplog.records) == (2, ["written", "written"], [])


@pytest.mark.parametrize("unheard", [Unknown("no answer"), STRANGER], ids=["unheard", "401"])
async def test_an_event_is_given_up_after_some_tries_and_told_then(
    unheard: RequestOutcome, caplog: pytest.LogCaptureFixture
) -> None:
    events, counted = Events(), list[str]()
    notices = noticing(events)
    notices.counted = counted.append
    events.outcomes = [unheard, Succeeded({}), *[unheard] * (TRIES - 1)]
    notices.put(refused(0))
    notices.put(refused(1))
    await tried(notices, events, TRIES + 1)
    assert [events.names.count(name) for name in dict.fromkeys(events.names)] == [TRIES, 1]
    assert counted == ["written", "failed"]
    assert [record.message for record in caplog.records] == ["an event was not written"]


async def test_what_is_refused_is_not_tried_again() -> None:
    events = Events()
    notices = noticing(events)
    events.outcomes = [TERMINATING]
    notices.put(refused(0))
    notices.put(refused(1))
    await tried(notices, events, 2)
    assert len(set(events.names)) == 2
    assert not notices._unheard


async def test_who_leads_no_longer_tries_nothing_again() -> None:
    events = Events()
    notices = noticing(events)
    events.outcomes = [Unknown("no answer")]
    await told(notices, events, refused(0))
    events.fence = Fence(lambda: "not leading")
    task = asyncio.create_task(notices.run())
    notices.put(refused(1))
    await until(lambda: not notices._waiting)
    task.cancel()
    assert not notices._unheard


async def test_an_api_server_that_is_busy_is_left_alone_for_as_long_as_it_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = Events()
    events.outcomes = [BUSY, Unknown("no answer")]
    assert await paused(monkeypatch, events, 4) == [7.0, 14.0, 0.05, 0.05]


async def test_what_one_namespace_refuses_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events()
    events.outcome = TERMINATING
    assert await paused(monkeypatch, events, 15) == [0.05] * 15


async def test_who_leads_no_longer_keeps_nothing_to_tell_when_it_leads_again() -> None:
    events = Events()
    notices, events.fence = noticing(events), Fence(lambda: "not leading")
    for number in range(3):
        notices.put(refused(number))
    task = asyncio.create_task(notices.run())
    await until(lambda: not notices._waiting)
    task.cancel()
    assert events.reasons == []
    events.fence = Fence()
    assert await told(notices, events, refused(1)) == ["InUse"]


async def test_what_waits_while_it_is_in_doubt_where_the_cluster_is_is_told_after_that() -> None:
    events, asked = Events(), asyncio.Event()
    notices = noticing(events)

    def doubt() -> str:
        asked.set()
        return DOUBT

    events.fence = Fence(doubt)
    notices.put(refused(0))
    task = asyncio.create_task(notices.run())
    await asked.wait()
    task.cancel()
    assert events.reasons == []
    events.fence = Fence()
    assert await told(notices, events, refused(1)) == ["InUse", "InUse"]


async def test_names_are_in_the_order_of_what_they_tell() -> None:
    events = Events()
    notices = noticing(events)
    moments = [1_795_372_114.073475, 1_795_372_114.5, 1_795_372_483.0]
    for reason, at in zip(("InUse", "NoMatch", "PoolClosed"), moments, strict=True):
        await told(notices, events, decided(Decided.REJECTED, reason, at))
    assert events.names == sorted(events.names)
    # So they are among those of kube-scheduler: a nanosecond in hexadecimal digits.
    assert [round(int(name.rpartition(".")[2][:16], 16) / 1e9, 6) for name in events.names] == moments


async def test_what_is_told_of_one_moment_has_names_of_its_own() -> None:
    events = Events()
    await told(noticing(events), events, decided(Decided.REJECTED, "InUse"), decided(Decided.REJECTED, "NoMatch"))
    assert len(set(events.names)) == 2


@pytest.mark.parametrize("name", ["p" * 253, "p" * 199 + "-" + "p" * 53, "p" * 199 + "." + "p" * 53])
async def test_a_long_name_is_cut_off_to_a_name(name: str) -> None:
    events = Events()
    await told(noticing(events), events, replace(decided(Decided.REJECTED, "InUse"), pod=ObjectKey("ns", name)))
    assert is_dns_subdomain(events.names[0])


async def test_what_one_namespace_refuses_is_told_once_until_it_takes_events_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = Events()
    notices = noticing(events)
    forbidden = Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="")
    for outcome, lines in ((forbidden, 1), (Succeeded({}), 0), (forbidden, 1)):
        caplog.clear()
        for number in range(9):
            # The API server names the event in what it says.
            events.outcome = replace(outcome, message=f"p{number}") if isinstance(outcome, Refused) else outcome
            notices.forget(Uid(f"p{number}"))
            await told(notices, events, refused(number))
        assert len(caplog.records) == lines


async def test_one_that_cannot_be_told_leaves_the_others_to_be_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events, results, usual = Events(), list[str](), note_of
    notices = noticing(events)
    notices.counted = results.append

    def told_but_one(decision: Decision) -> str:
        if decision.pod.name == "p0":
            raise KeyError("something that nobody thought of")
        return usual(decision)

    monkeypatch.setattr("extender.service.notices.note_of", told_but_one)
    for number in range(3):
        notices.put(refused(number))
    async with asyncio.timeout(PATIENCE_S):
        assert await tried(notices, events, 2) == ["InUse", "InUse"]
    assert sorted(results) == ["failed", "written", "written"]
    assert [record.__dict__["pod"] for record in caplog.records] == ["p0"]
    # It is tried again after a while, as what had no answer is.
    notices.put(refused(0, RETRY_S - 1))
    assert not notices._again
    notices.put(refused(0, RETRY_S))
    assert notices._again
