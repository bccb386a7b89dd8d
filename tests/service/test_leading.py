"""Two services at one API server in memory: one leads, dies, ends or is cut off, and the other goes on."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from extender.config.settings import Settings
from extender.demo.apiserver.kinds import LEASE, POD
from extender.demo.apiserver.server import ApiServer
from extender.kube.writes import Writes
from extender.model.names import NodeName
from extender.scheduling.endings import Order
from extender.scheduling.unasked import WAITS
from extender.service import assembly, keeping, remaking
from extender.service.leading import Leading, leading_of
from tests.service.replicas import (
    LASTING,
    LIMITS,
    NAMESPACE,
    PATIENCE_S,
    QUICK,
    RULE,
    SLOW,
    Cluster,
    Replica,
    asked,
    assert_in_vain,
    forbidden,
    known_of,
    on_loopback,
    pair,
    until,
)


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setattr(assembly, "FAREWELL_S", 0.5)
    async with on_loopback() as made:
        yield made


async def test_one_leads_and_the_other_is_ready_and_says_who(cluster: Cluster) -> None:
    a, b = await pair(cluster)
    assert await cluster.bound(a, "p") == ""
    await until(lambda: b.service.leading.hindrance() == "not leading: a leads")
    assert await cluster.bound(b, "q") == "not leading: a leads"
    assert await b.service.answers.bind(Order(cluster.pod("r").key, "u", NodeName("n"))) == "not leading: a leads"  # type: ignore[arg-type]  # any uid
    b.service.answers.missing = lambda: ["nodes not listed yet"]
    assert b.service.answers.hindrance() == "not leading: a leads; not ready: nodes not listed yet"
    b.service.answers.missing = list
    assert await a.told_of("q") == f"nothing is remembered of default/q; {WAITS}"
    assert await b.told_of("q") == "nothing is remembered of default/q; not leading: a leads"
    assert (await a.readiness(), await b.readiness()) == (200, 200)
    assert (a.metric("leading"), b.metric("leading")) == (1, 0)
    assert (a.metric("takeovers_total"), b.metric("takeovers_total")) == (1, 0)


@pytest.mark.parametrize(("trust_s", "answer_s", "waited_s"), [(4.0, 10.0, 2.0), (4.0, 1.0, 1.0)])
def test_a_renewal_that_is_not_answered_leaves_the_time_for_another(
    trust_s: float, answer_s: float, waited_s: float
) -> None:
    told, limits = replace(QUICK, trust_seconds=trust_s), replace(LIMITS, timeout_seconds=answer_s)
    nobody: Any = None
    leading = leading_of(Settings(leading=told, api=limits), nobody, lambda: True)
    assert isinstance(leading, Leading)
    assert leading.leases.timeout_s == waited_s


async def test_a_standby_writes_nothing_whatever_there_is_to_do(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((keeping, "TICK_S"), (remaking, "LOOK_S"), (remaking, "REMADE_WITHIN_S")):
        monkeypatch.setattr(module, name, 0.05)
    cluster.pod_without_its_claim("lacking")
    a, b = await pair(cluster)
    rules, store = cluster.kind("devicetaintrules"), cluster.server.store
    for _ in range(2):
        await until(lambda: store.get(rules, RULE) is not None)
        cluster.server.registry.delete(rules, RULE, {})
    await until(lambda: a.metric("owner_taint_writes_total", "put back") >= 2)
    await until(lambda: a.metric("wakes_total", "claims gone") > 0)
    assert await cluster.bound(a, "p") == ""
    assert a.writes() >= {"devicetaintrules", "pods", "resourceclaims"}
    assert b.writes() == set()
    assert b.service.health.warnings() == []


@pytest.mark.parametrize("end", [Replica.kill, Replica.cut], ids=["killed", "cut off"])
async def test_a_dead_leader_is_followed_by_the_other_once_its_lease_has_run_out(
    cluster: Cluster, end: Callable[[Replica], None]
) -> None:
    a, b = await pair(cluster, LASTING)
    assert await cluster.bound(a, "p") == ""
    loop = asyncio.get_running_loop()
    end(a)
    died = loop.time()
    cluster.scheduler_leads("b")
    await until(lambda: not a.leads)
    pod = cluster.pod("late")
    assert "not leading" in await asked(a, pod)
    await until(lambda: b.leads)
    assert loop.time() - died >= QUICK.lease_seconds - 0.5
    assert await asked(b, pod) == ""
    assert cluster.devices() == ["gpu-0", "gpu-1"]
    assert b.metric("watch_lists_total", "resourceclaims") == 2


async def test_what_a_dead_leader_has_sent_lands_nowhere_once_the_other_leads(cluster: Cluster) -> None:
    a, b = await pair(cluster, LASTING)
    known = known_of(cluster)
    a.kill()
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    await assert_in_vain(cluster, known)


async def test_where_nothing_can_be_moved_on_what_was_sent_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writes, "touch_claim", forbidden)
    a, b = await pair(cluster)
    cluster.pod("waits")
    loop = asyncio.get_running_loop()
    a.kill()
    died = loop.time()
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    assert loop.time() - died >= QUICK.lease_seconds + LIMITS.bind_seconds + QUICK.server_seconds - 0.5


async def test_a_leader_that_is_started_again_in_its_pod_waits_for_no_lease(cluster: Cluster) -> None:
    here = replace(SLOW, pod="a-pod")
    a, _ = await pair(cluster, here)
    known = known_of(cluster)
    a.kill()
    before = cluster.identity
    again = await cluster.start("a", here)
    await until(lambda: again.leads)
    assert cluster.identity.rpartition(".")[0] == before.rpartition(".")[0] == "a_a-pod"
    assert cluster.identity != before
    await assert_in_vain(cluster, known)
    await a.stack.aclose()


async def test_another_pod_of_the_same_name_waits_for_the_lease(cluster: Cluster) -> None:
    a, _ = await pair(cluster, replace(SLOW, pod="a-pod"))
    a.kill()
    again = await cluster.start("a", replace(SLOW, pod="another"))
    await until(lambda: again.service.leading.hindrance() == "not leading: a leads")
    await asyncio.sleep(3 * QUICK.renew_seconds)
    assert not again.leads
    await a.stack.aclose()


@pytest.mark.parametrize("left", ["", "gone"], ids=["no Lease", "one that is left over"])
async def test_a_scheduler_that_does_not_elect_is_told(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, left: str
) -> None:
    if left:
        cluster.scheduler_leads(left)
    a = await cluster.start("a")
    await until(lambda: "nobody renews the scheduler's Lease dra-extender/dra-scheduler" in a.service.health.missing())
    assert await a.readiness() == 503
    await asyncio.sleep(3 * QUICK.renew_seconds)
    caplog.set_level(logging.INFO)
    (told,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (told.getMessage(), vars(told)["holder"]) == ("nobody renews the scheduler's Lease", left and f"{left}_1")
    cluster.scheduler_leads("a")
    await until(lambda: a.service.health.missing() == [])
    assert [record.message for record in caplog.records].count("the scheduler's Lease is renewed") == 1


async def test_a_leader_that_ends_is_followed_at_once(cluster: Cluster) -> None:
    a, b = await pair(cluster, SLOW)
    await a.stack.aclose()
    assert cluster.holder == ""
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    assert await cluster.bound(b, "p") == ""


async def test_a_leader_goes_on_whose_renewals_land_and_are_answered_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "FAREWELL_S", 0.5)
    answer, is_slow, landed = ApiServer._answer, asyncio.Event(), list[web.BaseRequest]()

    async def late(server: ApiServer, request: web.BaseRequest) -> web.StreamResponse:
        answered = await answer(server, request)
        if is_slow.is_set() and request.method == "PUT" and request.path.endswith("/leases/dra-extender"):
            landed.append(request)
            await asyncio.sleep(1.3 * LIMITS.timeout_seconds)
        return answered

    monkeypatch.setattr(ApiServer, "_answer", late)
    async with asyncio.timeout(PATIENCE_S), on_loopback() as cluster:
        a, b = await pair(cluster)
        is_slow.set()
        while len(landed) < 5:
            assert a.leads
            await asyncio.sleep(0.02)
        assert (cluster.holder, a.metric("takeovers_total"), b.leads) == ("a", 1, False)


async def test_o1_a_leader_whose_scheduler_no_longer_leads_hands_over_at_once(cluster: Cluster) -> None:
    a, b = await pair(cluster, SLOW)
    cluster.scheduler_leads("b")
    await until(lambda: b.leads and a.service.leading.hindrance() == "not leading: b leads")
    assert await cluster.bound(a, "p") == "not leading: b leads"
    assert await cluster.bound(b, "q") == ""
    cluster.scheduler_leads("a")
    await until(lambda: a.leads)
    assert await cluster.bound(a, "r") == ""


async def test_o1_what_a_former_leader_has_offered_is_not_counted_any_more(cluster: Cluster) -> None:
    a, b = await pair(cluster, SLOW)
    pod, belief = cluster.pod("p"), a.service.belief
    await until(lambda: belief.pods.with_uid(pod.uid) is not None)
    assert a.service.answers.filter(pod, ["n"]).names == ("n",)
    assert a.metric("holds", 'phase="offered"') == 1
    cluster.scheduler_leads("b")
    await until(lambda: b.leads and not a.leads)
    assert a.metric("holds", 'phase="offered"') == 0


async def test_o1_nobody_contends_whose_scheduler_does_not_lead(cluster: Cluster) -> None:
    cluster.scheduler_leads("elsewhere")
    b = await cluster.start("b")
    await asyncio.sleep(3 * QUICK.renew_seconds)
    assert (cluster.holder, b.leads) == ("", False)
    assert await b.readiness() == 200


async def test_where_there_is_no_lease_somebody_may_have_deleted_it_under_a_leader(cluster: Cluster) -> None:
    cluster.scheduler_leads("a")
    began = asyncio.get_running_loop().time()
    a = await cluster.start("a")
    await until(lambda: a.leads)
    waited = asyncio.get_running_loop().time() - began
    assert waited >= QUICK.lease_seconds


async def test_a_deleted_lease_ends_the_term(cluster: Cluster) -> None:
    a, _ = await pair(cluster)
    cluster.server.registry.delete(LEASE, (NAMESPACE, "dra-extender"), {})
    await until(lambda: not a.leads)
    assert await cluster.bound(a, "p") == "not leading: what an earlier leader wrote may still arrive"
    await until(lambda: a.leads)


async def test_what_was_half_written_is_mended_before_anybody_is_answered(cluster: Cluster) -> None:
    a, b = await pair(cluster)
    a.kill()
    pod = cluster.pod("half")
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "gpu-3"}
    here = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    status = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": selector},
        "reservedFor": [{"resource": "pods", "name": "half", "uid": pod.uid}],
    }
    cluster.server.registry.update(
        cluster.kind("resourceclaims"), ("default", "half"), "status", lambda old: {**old, "status": status}
    )
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    known = cluster.server.registry.get(POD, ("default", "half"))
    assert known["status"]["nominatedNodeName"] == "n"
    assert await asked(b, pod) == ""
    assert cluster.devices() == ["gpu-3"]


async def test_a_lease_that_cannot_be_read_keeps_a_replica_from_being_ready_and_is_told_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    _, b = await pair(cluster)
    b.cut()
    await until(lambda: bool(b.service.health.missing()))
    assert await b.readiness() == 503
    # It is tried again several times a second here.
    await asyncio.sleep(2)
    told = [record.getMessage() for record in caplog.records if "Lease was not" in record.getMessage()]
    assert sorted(told) == ["the Lease was not reached", "the scheduler's Lease was not read"]


async def test_that_the_leases_are_reached_again_is_told_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    _, b = await pair(cluster)
    b.cut()
    await until(lambda: bool(b.service.health.missing()))
    b.line.is_cut = False
    await until(lambda: not b.service.health.missing())
    await asyncio.sleep(3 * QUICK.renew_seconds)
    assert [record.message for record in caplog.records].count("the Leases are reached again") == 1
