"""Nominations of ours behind which no promise is left are taken back, and nobody else's."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from extender.kube.outcome import RequestOutcome, Succeeded, Unknown
from extender.model.change import Changed, Gone
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.service.lapses import BATCH, LOOK_S, MOST, REST_S, Lapses
from extender.state.belief import Belief
from extender.state.domain import writer_of
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import OURS, belief_of, claim, gpus, node, planner_of, pod

if TYPE_CHECKING:
    from collections.abc import Callable

N1 = NodeName("n1")
US = writer_of((OURS,))
DONE = Succeeded({"metadata": {"resourceVersion": "9"}})


class Api:
    """Stands in for writes, and for a clock: pods as they are, and whose nomination was cleared in which version."""

    def __init__(self, *pods: Pod, leads: bool = True) -> None:
        self.belief = belief_of(node("n1"), gpus("n1", 8), claim("c"))
        self.now, self.leads, self.metrics = 0.0, leads, Metrics()
        self.managers = {item.uid: US for item in pods}
        self.stored = {item.key: item for item in pods}
        self.read = self.under_way = self.most = 0
        self.outcome: RequestOutcome = DONE
        self.meanwhile: Callable[[], None] = lambda: None
        self.cleared: list[tuple[str, str]] = []
        self.work = Lapses(self.belief, self, self.metrics, lambda: self.now, lambda: self.leads)  # type: ignore[arg-type]  # only what is used
        for item in pods:
            self.belief.apply(Changed(item))

    async def read_pod(self, key: ObjectKey) -> RequestOutcome:
        self.read += 1
        found = self.stored[key]
        self.meanwhile()
        return Succeeded(raw(found, self.managers[found.uid]))

    async def nominate(self, pod: Pod, node: NodeName | None) -> RequestOutcome:
        assert node is None
        self.cleared.append((pod.key.name, pod.resource_version))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return self.outcome

    async def after(self, seconds: float) -> list[tuple[str, str]]:
        """Let time pass; return whose nominations were cleared meanwhile."""
        before, until = len(self.cleared), self.now + seconds
        while self.now < until:
            self.now += LOOK_S
            await self.work.round()
        return self.cleared[before:]


def raw(item: Pod, manager: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:status": {"f:nominatedNodeName": {}}}
    metadata: dict[str, Any] = {"namespace": item.key.namespace, "name": item.key.name, "uid": item.uid}
    metadata |= {"resourceVersion": item.resource_version}
    metadata["managedFields"] = [{"manager": manager, "fieldsV1": fields}] if manager else None
    spec: dict[str, Any] = {"schedulerName": OURS, "containers": [], "nodeName": item.node_name}
    return {"metadata": metadata, "spec": spec, "status": {"nominatedNodeName": item.nominated_node}}


def nominated(name: str = "p", *claims: str) -> Pod:
    return replace(pod(name, *claims), nominated_node=N1)


def promised(belief: Belief, item: Pod) -> None:
    planner_of(belief).plan(item, None, 0.0, is_answer=False)
    assert belief.ledger.of_pod(item.uid) is not None


async def test_a_nomination_without_a_promise_is_taken_back_once() -> None:
    here = Api(nominated())
    assert await here.after(REST_S) == []
    assert await here.after(2 * LOOK_S) == [("p", "1")]
    assert b'nominations_ahead_total{result="unasked"} 1.0' in here.metrics.exposition()[0]
    assert here.belief.pods.current(nominated()).resource_version == "9"
    here.belief.apply(Changed(replace(nominated(), nominated_node=None, resource_version="9")))
    assert await here.after(3 * REST_S) == []


async def test_a_nomination_stands_as_long_as_its_promise() -> None:
    item = nominated("p", "c")
    here = Api(item)
    promised(here.belief, item)
    assert await here.after(3 * REST_S) == []
    planner_of(here.belief).withdraw(item.uid)
    assert await here.after(REST_S + 2 * LOOK_S) == [("p", "1")]


async def test_a_nomination_goes_with_the_promise_that_was_not_asked_for_in_time() -> None:
    item, other = nominated("p", "c"), nominated("q", "d")
    here = Api(item, other)
    here.belief.apply(Changed(claim("d")))
    promised(here.belief, item)
    here.work.unasked(item.uid)
    # Who was promised something since, and who is gone, are left alone.
    assert await here.after(LOOK_S) == []
    planner_of(here.belief).withdraw(item.uid)
    for uid in (item.uid, pod("gone").uid):
        here.work.unasked(uid)
    assert await here.after(LOOK_S) == [("p", "1")]


async def soon_cleared(here: Api, uid: Uid) -> None:
    """Say amid the work that nobody asked about *uid*, and wait for what is cleared before the next look."""
    running = asyncio.create_task(here.work.run())
    await asyncio.sleep(0)
    here.work.unasked(uid)
    async with asyncio.timeout(LOOK_S / 2):
        while not here.cleared:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
    running.cancel()


async def test_it_is_not_waited_for_the_next_look_then() -> None:
    item = nominated()
    here = Api(item)
    await soon_cleared(here, item.uid)


async def test_what_goes_wrong_with_one_keeps_nobody_from_the_next_round() -> None:
    item = nominated()
    here = Api(item)

    def failing() -> None:
        here.meanwhile = lambda: None
        here.work.unasked(item.uid)
        raise ArithmeticError

    here.meanwhile = failing
    await soon_cleared(here, item.uid)


@pytest.mark.parametrize("manager", ["kube-scheduler", ""], ids=["another's", "nobody's"])
async def test_what_we_did_not_write_is_left_alone(manager: str) -> None:
    here = Api(nominated())
    here.managers[nominated().uid] = manager
    assert await here.after(4 * REST_S) == []
    assert here.read == 1


async def test_a_pod_that_others_are_evicted_for_keeps_its_node_as_long_as_it_is_that_one() -> None:
    here = Api(nominated())
    await here.after(REST_S)
    here.work.evicting(nominated().uid)
    assert await here.after(4 * REST_S) == []
    assert here.read == 0
    moved = replace(nominated(), nominated_node=NodeName("n2"), resource_version="5")
    here.stored[moved.key] = moved
    here.belief.apply(Changed(moved))
    assert await here.after(REST_S + 2 * LOOK_S) == [("p", "5")]


async def test_of_who_is_not_nominated_nothing_is_kept_when_others_are_evicted_for_it() -> None:
    here = Api(pod("p"))
    here.work.evicting(pod("p").uid)
    here.stored[nominated().key] = nominated()
    here.belief.apply(Changed(nominated()))
    assert await here.after(REST_S + 2 * LOOK_S) == [("p", "1")]


@pytest.mark.parametrize("what", ["evicting", "promised", "moved", "bound"])
async def test_what_happens_while_the_pod_is_read_keeps_its_nomination(what: str) -> None:
    item = nominated("p", "c")
    here = Api(item)
    here.meanwhile = {
        "evicting": lambda: here.work.evicting(item.uid),
        "promised": lambda: promised(here.belief, item),
    }.get(what, lambda: None)
    fresh = {"moved": replace(item, nominated_node=NodeName("n2")), "bound": replace(item, node_name=N1)}
    here.stored[item.key] = fresh.get(what, item)
    assert await here.after(REST_S + 2 * LOOK_S) == []
    assert here.read == 1


async def test_who_others_are_evicted_for_before_its_turn_keeps_its_nomination() -> None:
    every = [nominated(f"p{number:02}") for number in range(BATCH + 1)]
    here = Api(*every)
    here.meanwhile = lambda: here.work.evicting(every[-1].uid)
    assert [name for name, _ in await here.after(REST_S + LOOK_S)] == [item.key.name for item in every[:-1]]


async def test_one_that_is_deleted_keeps_its_nomination() -> None:
    here = Api(replace(nominated(), is_deleting=True))
    assert await here.after(4 * REST_S) == []
    assert here.read == 0


async def test_who_is_nominated_for_another_node_has_its_time_from_then_on() -> None:
    here = Api(nominated())
    await here.after(REST_S - LOOK_S)
    moved = replace(nominated(), nominated_node=NodeName("n2"), resource_version="2")
    here.belief.apply(Changed(moved))
    here.stored[moved.key] = moved
    assert await here.after(REST_S) == []
    assert await here.after(LOOK_S) == [("p", "2")]


async def test_it_is_cleared_in_the_version_that_was_read() -> None:
    here = Api(nominated())
    here.stored[nominated().key] = replace(nominated(), resource_version="7")
    assert await here.after(REST_S + 2 * LOOK_S) == [("p", "7")]


async def test_without_an_answer_it_is_tried_again_no_sooner() -> None:
    here = Api(nominated())
    here.outcome = Unknown("late")
    assert await here.after(REST_S + LOOK_S) == [("p", "1")]
    assert await here.after(REST_S - LOOK_S) == []
    assert await here.after(LOOK_S) == [("p", "1")]


async def test_however_many_there_are_few_are_written_for_at_once() -> None:
    every = [nominated(f"p{number}") for number in range(MOST + 3)]
    here = Api(*every)
    assert await here.after(REST_S) == []
    assert len(await here.after(LOOK_S)) == MOST
    assert len(await here.after(LOOK_S)) == 3
    assert here.most == BATCH


async def test_who_does_not_lead_takes_nothing_back_and_counts_anew_when_it_does() -> None:
    here = Api(nominated())
    assert await here.after(REST_S - LOOK_S) == []
    here.leads = False
    assert await here.after(4 * REST_S) == []
    here.leads = True
    assert await here.after(REST_S) == []
    assert await here.after(LOOK_S) == [("p", "1")]


async def test_nothing_is_remembered_of_pods_that_wait_no_longer() -> None:
    here = Api(nominated("p"), nominated("q"))
    here.work.evicting(nominated("q").uid)
    await here.after(LOOK_S)
    assert here.work._left == {nominated("q").uid: N1}
    for name in ("p", "q"):
        here.belief.apply(Gone(Pod, ObjectKey("ns", name)))
    await here.after(LOOK_S)
    assert not here.work._left.keys() | here.work._bare.keys()


async def test_what_was_left_to_preemption_in_an_earlier_term_is_looked_at_anew() -> None:
    pod = nominated()
    api = Api(pod)
    api.managers[pod.uid] = "kube-scheduler"
    assert await api.after(2 * REST_S) == []
    # Another replica leads, the scheduler clears it, and that replica sends the pod to the same node.
    api.leads = False
    for item in (replace(pod, nominated_node=None, resource_version="5"), replace(pod, resource_version="6")):
        api.belief.apply(Changed(item))
        api.stored[pod.key] = item
        await api.after(10.0)
    api.managers[pod.uid], api.leads = US, True
    assert await api.after(10 * REST_S) != []
