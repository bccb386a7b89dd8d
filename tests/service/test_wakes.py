"""Pods are woken where they are to go, and what preemption has begun for them is left alone."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.model.change import Gone
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.steps import Refusal
from extender.scheduling.survey import Unfinished
from extender.scheduling.waking import Waker
from extender.service import wakes
from extender.service.attention import Attention
from extender.service.evictions import Evictions
from extender.service.habits import Habits
from extender.state.domain import writer_of
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import OURS, belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.scheduling.test_r7_conditions import START
from tests.service.test_lapses import raw

if TYPE_CHECKING:
    from collections.abc import Callable

N1, N2 = NodeName("n1"), NodeName("n2")
US, SCHEDULER = writer_of((OURS,)), "kube-scheduler"
OUTDATED = Refused(kind=Refusal.CONFLICT, status=409, reason="Conflict", message="the object has been modified")
P, VICTIM, STRANGER = pod("p", "c"), pod("victim", "v"), pod("stranger", "v")


class Api:
    """Stands in for writes: the pod as it is, who has nominated it, and what was asked for."""

    def __init__(self, stored: Pod, manager: str = SCHEDULER) -> None:
        self.stored, self.manager = stored, manager
        self.asked: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.answer: RequestOutcome = Succeeded({})

    async def read_pod(self, key: ObjectKey) -> RequestOutcome:
        assert key == self.stored.key
        self.asked.append("read")
        read = raw(self.stored, self.manager)
        read["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
        self.meanwhile()
        return Succeeded(read)

    async def nominate(self, pod: Pod, node: NodeName) -> RequestOutcome:
        is_current = pod.resource_version == self.stored.resource_version
        self.asked.append(f"nominated {node}" if is_current else "outdated")
        return self.answer if is_current else OUTDATED

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> RequestOutcome:
        del pod, annotation, value
        self.asked.append("annotated")
        return self.answer


def here(api: Api, shown: Pod | None = None, by: Pod = VICTIM) -> Attention:
    """Return who looks after the pod: the device of n1 is free, that of n2 is in use."""
    fleet = node("n1"), gpus("n1", 1), node("n2"), gpus("n2", 1)
    taken = held(claim("v"), device("n2", 0), by=by)
    belief = belief_of(*fleet, claim("c"), taken, shown or api.stored)
    parts = belief, Waker(belief, planner_of(belief)), api, None, Metrics()
    habits = Habits(wakes_per_second=1e9)
    return Attention(*parts, habits, lambda: 0.0, lambda: START)  # type: ignore[arg-type]  # only what is used


def evicting(work: Attention) -> None:
    """Have preemption let VICTIM go on n2 for the pod."""
    evictions = Evictions(lambda: 0.0)
    evictions.put(P.uid, {N2: (VICTIM.uid,)})
    work.wakes.victims = evictions.victims


def nominated(item: Pod, version: str = "1") -> Pod:
    return replace(item, nominated_node=N2, resource_version=version)


async def woken(work: Attention) -> None:
    work._steers[P.uid] = False
    await work._steer()


async def test_a_pod_that_was_refused_is_sent_elsewhere_with_one_write() -> None:
    api = Api(P)
    await woken(here(api))
    assert api.asked == ["nominated n1"]


@pytest.mark.parametrize("manager", [SCHEDULER, US])
async def test_a_pod_for_which_others_are_evicted_keeps_its_node_and_is_woken_all_the_same(manager: str) -> None:
    # Where it was sent to the same node by us before, the nomination is still ours by name.
    api = Api(nominated(P), manager)
    work = here(api)
    evicting(work)
    await woken(work)
    assert api.asked == ["read", "annotated"]


async def test_a_pod_that_cannot_have_its_devices_where_others_were_evicted_for_it_is_sent_elsewhere() -> None:
    api = Api(nominated(P))
    work = here(api, by=STRANGER)
    evicting(work)
    await woken(work)
    assert api.asked == ["read", "nominated n1"]


@pytest.mark.parametrize(("manager", "asked"), [(US, "nominated n1"), (SCHEDULER, "annotated")])
async def test_a_nomination_is_replaced_where_it_is_ours_and_nobody_is_known_to_go(manager: str, asked: str) -> None:
    api = Api(nominated(P), manager)
    await woken(here(api))
    assert api.asked == ["read", asked]


async def test_what_is_nominated_meanwhile_is_not_overwritten() -> None:
    api = Api(nominated(P, "2"))
    work = here(api, shown=P)
    await woken(work)
    assert api.asked == ["outdated", "read", "annotated"]


async def test_a_pod_that_has_changed_is_sent_elsewhere_as_it_is_now() -> None:
    api = Api(replace(P, resource_version="2"))
    await woken(here(api, shown=P))
    assert api.asked == ["outdated", "read", "nominated n1"]


@pytest.mark.parametrize("change", [{"uid": Uid("another")}, {"node_name": N2}], ids=["replaced", "bound"])
async def test_a_pod_that_waits_no_longer_is_not_nominated(change: dict[str, object]) -> None:
    api = Api(replace(P, resource_version="9", **change))  # type: ignore[arg-type]  # of a pod
    await here(api, P).wakes.wake(P, N1)
    assert api.asked == ["outdated", "read", "annotated"]


async def test_a_pod_that_keeps_changing_is_annotated() -> None:
    api = Api(replace(P, resource_version="2"))

    def change() -> None:
        api.stored = replace(P, resource_version="3")

    api.meanwhile = change
    work = here(api, shown=P)
    await woken(work)
    assert api.asked == ["outdated", "read", "outdated", "annotated"]


async def test_a_pod_of_which_nothing_can_be_read_is_woken_in_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(nominated(P), US)
    work = here(api)

    async def silent(_key: ObjectKey) -> RequestOutcome:
        return Unknown("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(api, "read_pod", silent)
        await woken(work)
    assert api.asked == []
    await work._steer()
    assert api.asked == ["read", "nominated n1"]


@pytest.mark.parametrize("kind", [Refusal.FORBIDDEN, Refusal.INVALID, Refusal.REJECTED])
async def test_where_we_may_not_nominate_a_pod_is_woken_by_an_annotation(kind: Refusal) -> None:
    api = Api(P)
    api.answer = Refused(kind=kind, status=403, reason="Forbidden", message="nominations are the scheduler's")
    await woken(here(api))
    assert api.asked == ["nominated n1", "annotated"]


async def test_a_pod_that_is_gone_is_not_counted_among_those_that_wait() -> None:
    work = here(Api(P))
    work.waker.put(P.uid)
    work.belief.apply(Gone(Pod, P.key))
    assert len(work.waker) == 0


async def test_a_pod_is_sent_elsewhere_as_we_have_written_it_before_that_is_shown() -> None:
    api = Api(replace(P, resource_version="2"))
    work = here(api, shown=P)
    work.belief.pods.moved(P, "2")
    await woken(work)
    assert api.asked == ["nominated n1"]


async def test_a_pod_that_is_nominated_for_the_node_already_is_annotated_alone() -> None:
    api = Api(nominated(P), US)
    await here(api).wakes.wake(nominated(P), N2)
    assert api.asked == ["annotated"]
    api = Api(nominated(P, "2"), US)
    await here(api, shown=P).wakes.wake(P, N2)
    assert api.asked == ["outdated", "read", "annotated"]


async def test_as_long_as_it_is_not_known_whether_it_would_have_its_devices_a_nomination_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unfinished(*_of: object) -> None:
        raise Unfinished

    api = Api(nominated(P), US)
    work = here(api, by=STRANGER)
    evicting(work)
    monkeypatch.setattr(wakes, "helped", unfinished)
    await woken(work)
    assert api.asked == ["read", "annotated"]


async def test_after_each_wake_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    work = here(Api(P))
    work.wakes.pause_s = 0.25
    monkeypatch.setattr(asyncio, "sleep", sleep)
    for target in (N1, None):
        await work.wakes.wake(P, target)
    assert slept == [0.25, 0.25]
