"""What does not go together is told once: by metric, log and event."""

import asyncio
import logging
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from extender.kube.freshness import Freshness
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.kube.resource import BOUND
from extender.kube.told import Seen
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.drift import Audit, Auditor, Kind
from extender.scheduling.steps import Refusal
from extender.service.auditing import EVERY_S, LAST_S, TOUCHED_AT_ONCE, Auditing
from extender.service.notices import AGAIN_S, Alarm, Notices
from extender.state.ledger import ClaimHold, Promise
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import claim, device, held
from tests.scheduling.test_drift import OTHER, POD, believing
from tests.telemetry.test_metrics import samples


def drift(metrics: Metrics, kind: str) -> float:
    return samples(metrics)["dra_extender_drift", frozenset({("kind", kind)})]


async def test_a_double_is_told_by_metric_log_and_event(caplog: pytest.LogCaptureFixture) -> None:
    belief = believing(
        held(claim("a"), device("n1", 0), by=POD), held(claim("b", version=2), device("n1", 0), by=OTHER)
    )
    nobody: Any = None  # events wait to be written; nobody writes them here
    metrics, notices = Metrics(), Notices(nobody, "one", 20)
    auditing = Auditing(Auditor(belief, patience_s=0.0), metrics, notices, lambda: 0.0, lambda: 0.0)
    with caplog.at_level(logging.ERROR):
        await auditing.round()
        await auditing.round()
    assert [drift(metrics, kind) for kind in ("ghost", "double", "leak")] == [0, 1, 0]
    assert [(vars(record)["claim"], vars(record)["pod"]) for record in caplog.records] == [("ns/b", "ns/q")]
    (alarm,) = alarms_of(notices)
    assert (alarm.subject.key, alarm.subject.uid, alarm.reason) == (OTHER.key, OTHER.uid, "DeviceGivenTwice")
    assert isinstance(alarm.subject, Pod)
    assert alarm.text == f"claim ns/b: {'/'.join(device('n1', 0))} is also in claim ns/a"


async def test_each_device_of_a_pod_that_is_given_twice_is_told_and_those_that_follow_too() -> None:
    mine, yours = (device("n1", 0), device("n1", 1)), (device("n1", 0), device("n1", 1), device("n1", 2))
    theirs = held(claim("b", version=2), *yours, by=OTHER)
    belief = believing(held(claim("a"), *mine, by=POD), theirs)
    nobody: Any = None  # as above
    notices = Notices(nobody, "one", 20)
    auditing = Auditing(Auditor(belief, patience_s=0.0), Metrics(), notices, lambda: 0.0, lambda: 7.0)
    await auditing.round()
    assert told_devices(notices) == ["/".join(item) for item in mine]
    belief.apply(Changed(held(claim("a", version=3), *yours, by=POD)))
    await auditing.round()
    assert told_devices(notices) == ["/".join(item) for item in yours]


async def test_what_lasts_is_told_again_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    belief = believing(held(claim("d"), device("n1", 1)))
    nobody: Any = None  # as above
    notices, wall = Notices(nobody, "one", 20), [0.0]
    auditing = Auditing(Auditor(belief, patience_s=0.0), Metrics(), notices, lambda: 0.0, lambda: wall[0])
    await auditing.round()
    key, _ = notices._waiting.first()
    assert len(notices._waiting) == 0
    await auditing.round()
    assert [words for words, _ in notices._again.values()] == [key[1]]
    notices._again.clear()
    notices._remember(*key, AGAIN_S)
    for wall[0], told in ((AGAIN_S - 1, 0), (AGAIN_S, 1)):
        await auditing.round()
        assert len(notices._again) == told
    assert len(caplog.records) == 1
    belief.apply(Gone(ResourceClaim, ObjectKey("ns", "d")))
    notices._again.clear()
    await auditing.round()
    assert (len(notices._again), len(notices._waiting)) == (0, 0)


async def test_what_is_held_for_a_claim_that_is_gone_is_told_on_the_pod() -> None:
    belief = believing()
    belief.ledger.reserve(Promise(POD.uid, NodeName("n1"), (ClaimHold(Uid("gone"), (), version=1),)))
    nobody: Any = None  # as above
    notices = Notices(nobody, "one", 20)
    await Auditing(Auditor(belief, patience_s=0.0), Metrics(), notices, lambda: 0.0, lambda: 7.0).round()
    (alarm,) = alarms_of(notices)
    assert (alarm.subject.key, alarm.text) == (POD.key, "0 devices on n1 are held, reserved, and the claim is gone")


def alarms_of(notices: Notices) -> list[Alarm]:
    """Return what waits to be told: nothing but alarms."""
    alarms = [item for item in notices._waiting._items.values() if isinstance(item, Alarm)]
    assert len(alarms) == len(notices._waiting)
    return alarms


def told_devices(notices: Notices) -> list[str]:
    """Return the devices that OTHER is told of."""
    return [alarm.text.split()[2] for alarm in alarms_of(notices) if alarm.subject.uid == OTHER.uid]


async def test_what_is_wrong_is_told_on_the_claim_where_no_pod_is_there() -> None:
    belief = believing(held(claim("a"), device("n1", 0), by=POD), held(claim("d"), device("n1", 1)), claim("c"))
    belief.ledger.reserve(Promise(Uid("gone"), NodeName("n1"), (ClaimHold(claim("c").uid, (), version=1),)))
    belief.ledger.reserve(Promise(Uid("too"), NodeName("n1"), (ClaimHold(Uid("gone"), (), version=1),)))
    belief.apply(Gone(Pod, POD.key))
    nobody: Any = None  # as above
    notices = Notices(nobody, "one", 20)
    auditing = Auditing(Auditor(belief, patience_s=0.0), Metrics(), notices, lambda: 0.0, lambda: 7.0)
    await auditing.round()
    alarms = alarms_of(notices)
    assert {(alarm.subject.key.name, alarm.reason, alarm.text, alarm.at) for alarm in alarms} == {
        ("a", "DevicesUnused", "its devices are reserved for pods that are gone", 7.0),
        ("d", "DevicesUnused", "its devices are reserved for nobody", 7.0),
        ("c", "DevicesHeldInVain", "0 devices on n1 are held, reserved, and the pod is gone", 7.0),
    }
    assert all(isinstance(alarm.subject, ResourceClaim) for alarm in alarms)


async def test_a_bound_pod_without_its_devices_is_told_on_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    belief = believing()
    belief.apply(Listed(ResourceClaim, ()))
    bound = Footprint(key=POD.key, uid=POD.uid, node=NodeName("n1"), amounts=(("pods", 1),), claims="a")
    belief.apply(Changed(replace(bound, scheduler=POD.scheduler)))
    nobody: Any = None  # as above
    metrics, notices = Metrics(), Notices(nobody, "one", 20)
    await Auditing(Auditor(belief, patience_s=0.0), metrics, notices, lambda: 0.0, lambda: 7.0).round()
    (alarm,) = alarms_of(notices)
    assert (alarm.subject.key, alarm.subject.uid, alarm.reason) == (POD.key, POD.uid, "DevicesMissing")
    assert alarm.text == "claim ns/a: there is no such claim, and the pod is bound with it"
    assert [vars(record)["reason"] for record in caplog.records] == ["DevicesMissing"]
    assert drift(metrics, "bare") == 1


async def test_who_leads_no_longer_shows_no_drift_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = believing(held(claim("a"), device("n1", 0)), pods=())
    nobody: Any = None  # as above
    metrics, notices, now = Metrics(), Notices(nobody, "one", 20), [0.0]
    auditing = Auditing(Auditor(belief), metrics, notices, lambda: now[0], lambda: 0.0)
    shown, leading = list[float](), [True, True, False, False, True, True]

    async def sleep(seconds: float) -> None:
        now[0] += 3 * seconds
        if seconds == EVERY_S:
            shown.append(drift(metrics, "leak"))
            leading.pop(0)
        if not leading:
            raise EndedError

    monkeypatch.setattr("extender.service.auditing.asyncio.sleep", sleep)
    with pytest.raises(EndedError):
        await auditing.run(lambda: leading[0])
    assert shown == [0, 1, 0, 0, 0, 1]


async def test_who_ceases_to_lead_while_an_audit_rests_shows_no_drift_and_touches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, leading = Left("c"), [True]
    await left.audited()
    assert drift(left.auditing.metrics, "leak") == 1

    async def sleep(seconds: float) -> None:
        leading[0] = False
        if seconds == EVERY_S:
            raise EndedError

    monkeypatch.setattr("extender.service.auditing.asyncio.sleep", sleep)
    with pytest.raises(EndedError):
        await left.auditing.run(lambda: leading[0])
    assert (drift(left.auditing.metrics, "leak"), left.touched) == (0, [])


async def test_who_has_never_led_shows_of_each_kind_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = believing(held(claim("a"), device("n1", 0)), pods=())
    nobody: Any = None  # as above
    metrics = Metrics()
    auditing = Auditing(Auditor(belief), metrics, Notices(nobody, "one", 20), lambda: 0.0, lambda: 0.0)

    async def sleep(_seconds: float) -> None:
        raise EndedError

    monkeypatch.setattr("extender.service.auditing.asyncio.sleep", sleep)
    with pytest.raises(EndedError):
        await auditing.run(lambda: False)
    drifting = {labels: value for (name, labels), value in samples(metrics).items() if name == "dra_extender_drift"}
    assert drifting == {frozenset({("kind", kind)}): 0.0 for kind in Kind}


class EndedError(Exception):
    """It has been watched for long enough."""


async def test_what_is_left_to_a_pod_that_is_gone_is_touched_ever_more_rarely() -> None:
    ours = replace(held(claim("a"), device("n1", 0), by=POD), writers=("dra-extender.ours",))
    theirs = replace(held(claim("b"), device("n1", 1), by=OTHER), writers=("kube-scheduler",))
    belief = believing(ours, theirs)
    belief.ownership.domain = replace(belief.ownership.domain, writer="dra-extender.ours")
    for pod in (POD, OTHER):
        belief.apply(Gone(Pod, pod.key))
    belief.apply(Listed(Footprint, ()))
    now, touched, nobody = [0.0], list[tuple[float, str]](), cast("Any", None)

    class Touches:
        async def touch_claim(self, claim: ResourceClaim, _mark: str) -> None:
            touched.append((now[0], claim.key.name))

    notices = Notices(nobody, "one", 20)
    auditing = Auditing(Auditor(belief), Metrics(), notices, lambda: now[0], lambda: 0.0, cast("Any", Touches()))
    while now[0] < 10 * LAST_S:
        await auditing.round()
        now[0] += EVERY_S
    assert {name for _, name in touched} == {"a"}
    spans = [later - earlier for (earlier, _), (later, _) in pairwise(touched)]
    assert spans[:7] == [20, 40, 80, 160, 320, LAST_S, LAST_S]
    belief.apply(Gone(ResourceClaim, ours.key))
    await auditing.round()
    assert auditing._touched == {}


async def test_who_leads_again_begins_anew_with_what_is_left_over() -> None:
    left = Left("c")
    await left.audited(times=4)
    assert left.touched == ["c", "c"]
    left.auditing._rest()
    await left.audited(times=3)
    assert left.touched == ["c", "c", "c", "c"]


async def test_where_nothing_may_be_written_nothing_is_touched() -> None:
    left = Left("c", is_written=False)
    await left.audited(times=3)
    assert left.touched == []


@pytest.mark.parametrize(("takes_s", "touched_at_once"), [(0.0, TOUCHED_AT_ONCE), (10.0, 1), (0.9, 3)])
async def test_the_next_audit_does_not_wait_until_all_that_is_left_over_was_touched(
    takes_s: float, touched_at_once: int
) -> None:
    belief, numbers = believing(), range(2 * TOUCHED_AT_ONCE)
    belief.ownership.domain = replace(belief.ownership.domain, writer="dra-extender.ours")
    for number in numbers:
        left = held(claim(f"c{number}"), device("n1", number), by=POD)
        belief.apply(Changed(replace(left, writers=("dra-extender.ours",))))
    belief.apply(Gone(Pod, POD.key))
    belief.apply(Listed(Footprint, ()))
    now, touched, nobody = [0.0], list[str](), cast("Any", None)

    class Touches:
        async def touch_claim(self, claim: ResourceClaim, _mark: str) -> None:
            touched.append(claim.key.name)
            now[0] += takes_s

    notices = Notices(nobody, "one", 20)
    auditor = Auditor(belief, patience_s=0.0)
    auditing = Auditing(auditor, Metrics(), notices, lambda: now[0], lambda: 0.0, cast("Any", Touches()))
    for count in (0, 1, 2):  # of what was not there before it is not known yet whether it lasts
        await auditing.round()
        # Each in its turn.
        assert len(touched) == len(set(touched)) == count * touched_at_once
        now[0] += EVERY_S


async def test_what_is_left_over_where_touching_hangs_is_touched_after_that_of_other_namespaces() -> None:
    belief, numbers = believing(), range(8)
    belief.ownership.domain = replace(belief.ownership.domain, writer="dra-extender.ours")
    for number in numbers:
        left = held(claim(f"c{number}"), device("n1", number), by=POD)
        key = ObjectKey("slow" if number < len(numbers) - 1 else "other", left.key.name)
        belief.apply(Changed(replace(left, key=key, writers=("dra-extender.ours",))))
    belief.apply(Gone(Pod, POD.key))
    belief.apply(Listed(Footprint, ()))
    now, touched, nobody = [0.0], list[str](), cast("Any", None)

    class Touches:
        async def touch_claim(self, claim: ResourceClaim, _mark: str) -> None:
            touched.append(claim.key.namespace)
            now[0] += 10.0 if claim.key.namespace == "slow" else 0.0

    notices = Notices(nobody, "one", 20)
    auditor = Auditor(belief, patience_s=0.0)
    auditing = Auditing(auditor, Metrics(), notices, lambda: now[0], lambda: 0.0, cast("Any", Touches()))
    for _ in range(3):
        await auditing.round()
        now[0] += EVERY_S
    assert touched == ["slow", "other", "slow"]


class Left:
    """Claims that are left to a pod that is gone; *takes_s*: how long it takes to touch one in a namespace."""

    def __init__(self, *names: str, is_written: bool = True, freshness: Freshness | None = None) -> None:
        self.belief, self.now, self.touched = believing(), 0.0, list[str]()
        self.takes_s, self.outcome = Counter[str](), cast("RequestOutcome | None", None)
        self.belief.ownership.domain = replace(self.belief.ownership.domain, writer="dra-extender.ours")
        for number, name in enumerate(names):
            left = held(claim(name), device("n1", number), by=POD)
            key = ObjectKey(name.partition("-")[0], name)
            self.belief.apply(Changed(replace(left, key=key, writers=("dra-extender.ours",))))
        self.belief.apply(Gone(Pod, POD.key))
        self.belief.apply(Listed(Footprint, ()))
        nobody: Any = None  # as above
        parts = Metrics(), Notices(nobody, "one", 20), lambda: self.now, lambda: 0.0
        writes = cast("Any", self) if is_written else None
        self.auditing = Auditing(Auditor(self.belief, patience_s=0.0), *parts, writes, freshness)

    async def touch_claim(self, claim: ResourceClaim, _mark: str) -> RequestOutcome | None:
        self.touched.append(claim.key.name)
        self.now += self.takes_s[claim.key.namespace]
        return self.outcome

    async def audited(self, times: int = 1) -> None:
        for _ in range(times):
            await self.auditing.round()
            self.now += EVERY_S


async def test_a_namespace_is_last_until_it_is_slow_no_more_and_forgotten_with_its_claims() -> None:
    left = Left("a-1", "b-1")
    left.takes_s["a"] = 3
    await left.audited(times=2)
    assert left.touched == ["a-1"]
    left.takes_s.clear()
    await left.audited(times=2)
    assert left.touched[1:] == ["b-1", "a-1", "b-1"]
    left.now += LAST_S
    await left.audited()
    assert left.touched[4:] == ["a-1", "b-1"]
    left.takes_s["a"] = 3
    left.now += LAST_S
    await left.audited()
    assert left.auditing._slow == {"a"}
    left.belief.apply(Gone(ResourceClaim, ObjectKey("a", "a-1")))
    await left.audited()
    assert left.auditing._slow == set()


@pytest.mark.parametrize(
    ("outcome", "is_told"),
    [
        (Refused(Refusal.FORBIDDEN, "no", 403), True),
        (Refused(Refusal.NOT_FOUND, "gone", 404), False),
        (Refused(Refusal.UNSENT, "another leads"), False),
        (Unknown("no answer"), False),
        (Succeeded({}), False),
    ],
    ids=["refused", "gone", "unsent", "unheard", "done"],
)
async def test_that_what_is_left_over_may_not_be_touched_is_told(
    outcome: RequestOutcome, caplog: pytest.LogCaptureFixture, *, is_told: bool
) -> None:
    left = Left("c")
    left.outcome = outcome
    with caplog.at_level(logging.WARNING):
        await left.audited(times=2)
    assert left.touched == ["c"]
    told = [vars(record)["claim"] for record in caplog.records if record.levelno == logging.WARNING]
    assert told == (["c/c"] if is_told else [])


async def test_who_may_have_been_bound_since_bound_pods_were_seen_last_has_left_nothing_over() -> None:
    freshness = Freshness((BOUND,))
    left = Left("c", freshness=freshness)
    await left.audited(times=3)
    assert left.touched == []
    freshness.note(Seen(BOUND, "1", left.now))
    await left.audited()
    assert left.touched == ["c"]


async def test_others_run_while_everything_is_compared() -> None:
    auditing, turns = Left("c").auditing, list[int]()

    async def other() -> None:
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await auditing.round()
    beside.cancel()
    assert turns


async def test_the_log_names_claim_and_pod_as_far_as_they_are_known(caplog: pytest.LogCaptureFixture) -> None:
    belief = believing(claim("c"))
    belief.ledger.reserve(Promise(Uid("uid-gone"), NodeName("n1"), (ClaimHold(claim("c").uid, (), version=1),)))
    belief.ledger.reserve(Promise(POD.uid, NodeName("n1"), (ClaimHold(Uid("gone"), (), version=1),)))
    nobody: Any = None  # as above
    notices = Notices(nobody, "one", 20)
    await Auditing(Auditor(belief, patience_s=0.0), Metrics(), notices, lambda: 0.0, lambda: 0.0).round()
    lines = {(vars(record)["claim"], vars(record)["pod"]) for record in caplog.records}
    assert lines == {("ns/c", "uid-gone"), ("", "ns/p")}


async def test_others_have_many_turns_between_two_pieces_of_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, seen = 0, list[int]()
    auditor = Auditor(believing(), patience_s=0.0)

    def pieces(*_arguments: object) -> Generator[None, None, Audit]:
        for _ in range(5):
            seen.append(turns)
            yield
        return Audit(frozenset(), frozenset())

    async def busy() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Auditor, "audit", pieces)
    nobody: Any = None  # as above
    other = asyncio.create_task(busy())
    await Auditing(auditor, Metrics(), Notices(nobody, "one", 20), lambda: 0.0, lambda: 0.0).round()
    other.cancel()
    # An answer takes some ten. On a busy machine the time may be over after few of them, but not each time.
    assert max(after - before for before, after in pairwise(seen)) > 10
