"""Replicas of the service at one API server in memory, each with a line of its own that can be cut."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import aiohttp

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
from extender.scheduling.endings import Order
from extender.scheduling.steps import Refusal
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Address, Options
from tests import kube_objects

Json = dict[str, Any]
HERE = Address("127.0.0.1", 0)
NAMESPACE = "dra-extender"
PATIENCE_S = 30
QUICK = Leading(enabled=True, lease_seconds=5, trust_seconds=4, renew_seconds=0.2, server_seconds=0.5)
OURS = Ownership(drivers=("gpu.example.com",))
RULE = ("", "dra-extender-owned-gpu.example.com")
LIMITS = Limits(timeout_seconds=1, bind_seconds=2)
# On a busy machine a second runs out before what was written is shown.
PATIENT = Limits(timeout_seconds=PATIENCE_S, bind_seconds=PATIENCE_S)
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

    def give(self, pod: Pod, device: str, manager: str = "") -> None:
        """Have *device* be given to the claim of *pod*, by who calls itself so."""
        user = [{"resource": "pods", "name": pod.key.name, "uid": pod.uid}]
        status = {"allocation": kube_objects.allocation(device), "reservedFor": user}
        self.server.registry.update(
            self.kind("resourceclaims"), pod.key, "status", lambda old: {**old, "status": status}, manager=manager
        )

    def scheduler_leads(self, host: str) -> None:
        """Have the scheduler of *host* lead."""
        key, spec = (NAMESPACE, "dra-scheduler"), {"holderIdentity": f"{host}_1", "leaseDurationSeconds": 15}
        if self.server.store.get(LEASE, key) is None:
            self.server.registry.create(LEASE, NAMESPACE, {"metadata": {"name": "dra-scheduler"}, "spec": spec})
        else:
            self.server.registry.update(LEASE, key, "", lambda old: {**old, "spec": spec})

    @property
    def identity(self) -> str:
        """What the process calls itself that has the extender's Lease."""
        lease = self.server.store.get(LEASE, (NAMESPACE, "dra-extender")) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", ""))

    @property
    def holder(self) -> str:
        return self.identity.partition("_")[0]

    async def start(
        self, host: str, leading: Leading = QUICK, limits: Limits = LIMITS, *, is_awaited: bool = True
    ) -> Replica:
        stack, before, line = AsyncExitStack(), asyncio.all_tasks(), Line(self.server.url)
        settings = Settings(leading=replace(leading, host=host), api=limits, ownership=OURS)
        service = await stack.enter_async_context(running(settings, line, Options(verbs=HERE, probes=HERE)))
        if is_awaited:
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
    filtered = answers.filter(pod, ["n"])
    if filtered.error or not filtered.names:
        return filtered.error or filtered.text
    return await answers.bind(Order(pod.key, pod.uid, NodeName("n")))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another part of this process
            await asyncio.sleep(0.02)


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
    given_up = {"metadata": {"name": "dra-extender"}, "spec": {"leaseTransitions": 1}}
    cluster.server.registry.create(LEASE, NAMESPACE, given_up)
    cluster.scheduler_leads("a")
    a, b = await cluster.start("a", leading), await cluster.start("b", leading)
    await until(lambda: a.leads)
    return a, b


class Known(NamedTuple):
    """What somebody knew of a pod that waits with a device, *given*, and of one without, *free*."""

    pods: dict[str, Pod]
    claims: dict[str, ResourceClaim]


def known_of(cluster: Cluster) -> Known:
    """Have two such pods come, and return what is known of them now."""
    pods = {name: cluster.pod(name) for name in ("given", "free")}
    cluster.give(pods["given"], "gpu-3")
    return Known(pods, {name: claim_of(cluster, name) for name in pods})


async def assert_in_vain(cluster: Cluster, known: Known) -> None:
    """Have all be sent that somebody may have sent who knew that, and nothing since: it has to be in vain."""
    (given, free), pods = (known.claims[name] for name in ("given", "free")), known.pods
    allocation, consumer = given.allocation, Consumer(resource="pods", name="free", uid=pods["free"].uid)
    assert allocation is not None
    async with late(cluster) as writes:
        for outcome in (
            await writes.write_allocation(free, allocation, consumer),
            await writes.release(given, pods["given"].uid, deallocate=True),
            await writes.bind_pod(pods["given"], NodeName("n")),
            await writes.delete_claim(free.key, free.uid, free.resource_version),
        ):
            assert isinstance(outcome, Refused)
            assert outcome.kind is Refusal.CONFLICT


async def forbidden(*_asked: object) -> Refused:
    """Answer as an API server that does not let us write."""
    return Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="not you")
