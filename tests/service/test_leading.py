"""Two services at one API server in memory: one leads, dies, ends or is cut off, and the other goes on."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest

from extender.config.settings import Api as Limits
from extender.config.settings import Leading, Ownership, Settings
from extender.demo.apiserver.kinds import DRA, LEASE, NODE, POD
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access
from extender.kube.api import Api
from extender.kube.outcome import Refused
from extender.kube.resource import CLAIMS, Served
from extender.kube.writes import Writes
from extender.model.claim import Consumer, ResourceClaim
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.model.parse import parse_claim, parse_pod
from extender.scheduling.steps import Refusal
from extender.service import assembly, keeping, remaking
from extender.service.assembly import Service, running
from extender.web.server import Address, Options
from extender.web.verbs import BindRequest, FilterRequest
from tests import kube_objects

Json = dict[str, Any]
HERE = Address("127.0.0.1", 0)
NAMESPACE = "dra-extender"
PATIENCE_S = 30
QUICK = Leading(enabled=True, lease_seconds=5, trust_seconds=4, renew_seconds=0.2, server_seconds=0.5)
OURS = Ownership(drivers=("gpu.example.com",))
RULE = ("", "dra-extender-owned-gpu.example.com")
LIMITS = Limits(timeout_seconds=1, bind_seconds=2)
# With it nobody leads before a test gives up who has to wait until the Lease runs out, or for what was sent before.
SLOW = replace(QUICK, lease_seconds=10 * PATIENCE_S)
LASTING = replace(QUICK, server_seconds=10 * PATIENCE_S)


@dataclass
class Line:
    """The line from one replica to the API server, which can be cut."""

    url: str
    is_cut: bool = False

    async def access(self) -> Access:
        if self.is_cut:
            raise ConnectionError("cut")
        return Access(server=self.url)

    async def renew(self, refused: Access | None = None) -> None:
        """Have nothing else."""


@dataclass
class Replica:
    """A service, its line, and all that runs in it."""

    service: Service
    line: Line
    tasks: set[asyncio.Task[Any]]
    stack: AsyncExitStack

    @property
    def leads(self) -> bool:
        return self.service.leading.leads()

    def cut(self) -> None:
        self.line.is_cut = True

    def kill(self) -> None:
        """End all at once that it does unasked; nothing of it reaches the API server any more."""
        self.line.is_cut = True
        names = {"election", "reign", "follows", "events"}
        for task in self.tasks:
            if task.get_name() in names:
                task.cancel()

    async def told_of(self, pod: str) -> str:
        """Return what is said to whoever asks what was decided about *pod*."""
        url = f"http://127.0.0.1:{self.service.server.ports[0]}/v1/decisions/default/{pod}"
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(url) as response:
            return await response.text()

    async def readiness(self) -> int:
        url = f"http://127.0.0.1:{self.service.server.ports[1]}/readyz"
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(url) as response:
            return response.status

    def metric(self, name: str, label: str = "") -> float:
        lines = self.service.journal.metrics.exposition()[0].decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(f"dra_extender_{name}") and label in line
        )

    def writes(self) -> set[str]:
        """Name the kinds that it has written, but for its Lease and questions about its rights."""
        lines = self.service.journal.metrics.exposition()[0].decode().splitlines()
        asked = [re.findall(r'(\w+)="([^"]*)"', line) for line in lines if line.startswith("dra_extender_api_")]
        kinds = {of["resource"] for of in map(dict, asked) if of.get("verb", "GET") != "GET"}
        return kinds - {"leases", "selfsubjectaccessreviews"}


@dataclass
class Cluster:
    """An API server in memory with a node, its devices and claims for them."""

    server: ApiServer
    replicas: dict[str, Replica] = field(default_factory=dict)

    def kind(self, plural: str) -> Any:
        return self.server.kinds[DRA, "v1", plural]

    def furnish(self) -> None:
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts}
        self.server.registry.create(NODE, "", {"metadata": {"name": "n"}, "status": status})
        created = self.server.registry.create
        created(self.kind("deviceclasses"), "", {"metadata": {"name": "gpu.example.com"}, "spec": {}})
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(8)]
        spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": devices}
        created(self.kind("resourceslices"), "", {"metadata": {"name": "s"}, "spec": spec})

    def pod(self, name: str) -> Pod:
        """Create a pod with a claim for one device."""
        self.server.registry.create(self.kind("resourceclaims"), "default", kube_objects.claim(name))
        claims = [{"name": "c", "resourceClaimName": name}]
        raw = kube_objects.pod(name, schedulerName="dra-scheduler", resourceClaims=claims)
        made = parse_pod(self.server.registry.create(POD, "default", raw))
        assert isinstance(made, Pod)
        return made

    def pod_without_its_claim(self, name: str) -> None:
        """Create a pod whose claim was made from a template, and is gone."""
        entry = {"name": "c", "resourceClaimTemplateName": "t"}
        raw = kube_objects.pod(name, schedulerName="dra-scheduler", resourceClaims=[entry])
        self.server.registry.create(POD, "default", raw)
        status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "gone"}]}
        self.server.registry.update(
            POD, ("default", name), "status", lambda old: {**old, "status": {**old["status"], **status}}
        )

    def scheduler_leads(self, host: str) -> None:
        """Have the scheduler of *host* lead."""
        key, spec = (NAMESPACE, "dra-scheduler"), {"holderIdentity": f"{host}_1", "leaseDurationSeconds": 15}
        if self.server.store.get(LEASE, key) is None:
            self.server.registry.create(LEASE, NAMESPACE, {"metadata": {"name": "dra-scheduler"}, "spec": spec})
        else:
            self.server.registry.update(LEASE, key, "", lambda old: {**old, "spec": spec})

    @property
    def holder(self) -> str:
        lease = self.server.store.get(LEASE, (NAMESPACE, "dra-extender")) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", "")).partition("_")[0]

    async def start(self, host: str, leading: Leading = QUICK) -> Replica:
        stack, before, line = AsyncExitStack(), asyncio.all_tasks(), Line(self.server.url)
        settings = Settings(leading=replace(leading, host=host), api=LIMITS, ownership=OURS)
        service = await stack.enter_async_context(running(settings, line, Options(verbs=HERE, probes=HERE)))
        await service.ready()
        self.replicas[host] = Replica(service, line, asyncio.all_tasks() - before, stack)
        return self.replicas[host]

    async def bound(self, replica: Replica, name: str) -> str:
        """Have a new pod bound, as a scheduler that tries again does; return the last error where it is refused."""
        pod = self.pod(name)
        belief = replica.service.belief
        await until(lambda: belief.pods.with_uid(pod.uid) is not None)
        return await asked(replica, pod)

    def devices(self) -> list[str]:
        claims: Sequence[Json] = self.server.store.all(self.kind("resourceclaims"))
        found = [claim["status"].get("allocation", {}).get("devices", {}).get("results", []) for claim in claims]
        return sorted(item["device"] for results in found for item in results)


def claim_of(cluster: Cluster, name: str) -> ResourceClaim:
    found = parse_claim(cluster.server.registry.get(cluster.kind("resourceclaims"), ("default", name)), "v1")
    assert isinstance(found, ResourceClaim)
    return found


@asynccontextmanager
async def late(cluster: Cluster) -> AsyncIterator[Writes]:
    """Have what was written before arrive now."""
    api = Api(Line(cluster.server.url))
    try:
        yield Writes(api, lambda: Served(CLAIMS, "v1"))
    finally:
        await api.close()


async def asked(replica: Replica, pod: Pod) -> str:
    answers = replica.service.answers
    filtered = answers.filter(FilterRequest(pod, ["n"]))
    if filtered.error or not filtered.names:
        return filtered.error or filtered.text
    return await answers.bind(BindRequest(pod.key, pod.uid, NodeName("n")))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another part of this process
            await asyncio.sleep(0.02)


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setattr(assembly, "FAREWELL_S", 0.5)
    async with on_loopback() as made:
        yield made


@asynccontextmanager
async def on_loopback() -> AsyncIterator[Cluster]:
    server = ApiServer()
    await server.start()
    made = Cluster(server)
    made.furnish()
    try:
        yield made
    finally:
        for replica in made.replicas.values():
            await replica.stack.aclose()
        await server.stop()


async def pair(cluster: Cluster, leading: Leading = QUICK) -> tuple[Replica, Replica]:
    """Start replicas a and b; a leads, after a predecessor that had given the Lease up."""
    cluster.server.registry.create(LEASE, NAMESPACE, {"metadata": {"name": "dra-extender"}, "spec": {}})
    cluster.scheduler_leads("a")
    a, b = await cluster.start("a", leading), await cluster.start("b", leading)
    await until(lambda: a.leads)
    return a, b


async def test_one_leads_and_the_other_is_ready_and_says_who(cluster: Cluster) -> None:
    a, b = await pair(cluster)
    assert await cluster.bound(a, "p") == ""
    await until(lambda: b.service.leading.hindrance() == "not leading: a leads")
    assert await cluster.bound(b, "q") == "not leading: a leads"
    assert await b.service.answers.bind(BindRequest(cluster.pod("r").key, "u", NodeName("n"))) == "not leading: a leads"  # type: ignore[arg-type]  # any uid
    assert await a.told_of("q") == "nothing is remembered of default/q"
    assert await b.told_of("q") == "nothing is remembered of default/q; not leading: a leads"
    assert (await a.readiness(), await b.readiness()) == (200, 200)
    assert (a.metric("leading"), b.metric("leading")) == (1, 0)
    assert (a.metric("takeovers_total"), b.metric("takeovers_total")) == (1, 0)


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
    given, free = cluster.pod("given"), cluster.pod("free")
    user = [{"resource": "pods", "name": "given", "uid": given.uid}]
    status = {"allocation": kube_objects.allocation("gpu-3"), "reservedFor": user}
    kind = cluster.kind("resourceclaims")
    cluster.server.registry.update(kind, ("default", "given"), "status", lambda old: {**old, "status": status})
    claims = {name: claim_of(cluster, name) for name in ("given", "free")}
    a.kill()
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    async with late(cluster) as writes:
        allocation, consumer = claims["given"].allocation, Consumer(resource="pods", name="free", uid=free.uid)
        assert allocation is not None
        for outcome in (
            await writes.write_allocation(claims["free"], allocation, consumer),
            await writes.release(claims["given"], given.uid, deallocate=True),
            await writes.bind_pod(given, NodeName("n")),
            await writes.delete_claim(claims["free"].key, claims["free"].uid, claims["free"].resource_version),
        ):
            assert isinstance(outcome, Refused)
            assert outcome.kind is Refusal.CONFLICT


async def test_where_nothing_can_be_moved_on_what_was_sent_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_asked: object) -> Refused:
        return Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="not you")

    monkeypatch.setattr(Writes, "touch_claim", refuse)
    a, b = await pair(cluster)
    cluster.pod("waits")
    loop = asyncio.get_running_loop()
    a.kill()
    died = loop.time()
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    assert loop.time() - died >= QUICK.lease_seconds + LIMITS.bind_seconds + QUICK.server_seconds - 0.5


async def test_a_leader_that_ends_is_followed_at_once(cluster: Cluster) -> None:
    a, b = await pair(cluster, SLOW)
    await a.stack.aclose()
    assert cluster.holder == ""
    cluster.scheduler_leads("b")
    await until(lambda: b.leads)
    assert await cluster.bound(b, "p") == ""


async def test_o1_a_leader_whose_scheduler_no_longer_leads_hands_over_at_once(cluster: Cluster) -> None:
    a, b = await pair(cluster, SLOW)
    cluster.scheduler_leads("b")
    await until(lambda: b.leads and a.service.leading.hindrance() == "not leading: b leads")
    assert await cluster.bound(a, "p") == "not leading: b leads"
    assert await cluster.bound(b, "q") == ""
    cluster.scheduler_leads("a")
    await until(lambda: a.leads)
    assert await cluster.bound(a, "r") == ""


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
