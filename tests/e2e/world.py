"""A cluster with our scheduler in it: what tests create there, and what they wait for."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

from extender.config.settings import Settings
from extender.kube.credentials import credentials
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.endings import NotBound, Order, Result
from extender.scheduling.planner import Plan, Planner
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Address, Options
from tests.accepting import accepting
from tests.controlplane.client import Client, Object, until
from tests.controlplane.plane import Plane

SCHEDULER = "dra-scheduler"
DRIVER = "gpu.example.com"
CONFIGURATION = Path(__file__).parents[2] / "scheduler-config" / "base" / "scheduler.yaml"
NUMBERS = count()


class Asked(NamedTuple):
    """A question of the scheduler's filter: for which pod, and which nodes."""

    pod: str
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Heard:
    """A planner that notes what the scheduler asks."""

    planner: Planner
    asked: list[Asked] = field(default_factory=list)
    ended: list[tuple[str, str]] = field(default_factory=list)

    def plan(self, pod: Pod, names: Sequence[NodeName] | None, now: float, *, is_answer: bool = True) -> Plan:
        self.asked.append(Asked(pod.key.name, tuple(names or ())))
        return self.planner.plan(pod, names, now, is_answer=is_answer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.planner, name)


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster with kube-scheduler and us in it."""

    plane: Plane
    admin: Client
    service: Service
    heard: Heard

    @property
    def server_port(self) -> int:
        return self.service.server.ports[0]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    async def decided(self, pod: Object) -> Object:
        """Return what is remembered of *pod*, as people ask for it."""
        metadata = pod["metadata"]
        path = f"{self.url}/v1/decisions/{metadata['namespace']}/{metadata['name']}"
        async with aiohttp.ClientSession() as session, session.get(path) as response:
            found: Object = await response.json()
            return found

    def counted(self, name: str, **labels: str) -> float:
        """Return what one of our metrics says, over all labels that are not named."""
        text = self.service.journal.metrics.exposition()[0].decode()
        total = 0.0
        for line in text.splitlines():
            if line.startswith(f"dra_extender_{name}") and all(
                f'{key}="{value}"' in line for key, value in labels.items()
            ):
                total += float(line.rpartition(" ")[2])
        return total

    async def post(self, verb: str, body: object) -> tuple[int, str]:
        """Call a verb as the scheduler does; return status and body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/{verb}", data=data) as response:
            return response.status, await response.text()


@dataclass(slots=True)
class World:
    """One part of a real cluster: its own nodes, devices and classes."""

    stage: Stage
    name: str = field(default_factory=lambda: f"t{next(NUMBERS)}")
    made: list[Object] = field(default_factory=list)
    namespace: str = "default"

    @property
    def admin(self) -> Client:
        return self.stage.admin

    @property
    def service(self) -> Service:
        return self.stage.service

    def full(self, name: str) -> str:
        return f"{self.name}-{name}"

    async def create(self, item: Object) -> Object:
        created = await self.admin.create(item)
        self.made.append(item)
        return created

    async def node(self, name: str, cpus: int = 32, **plugins: str) -> None:
        """Create a node that is ready, with what device *plugins* serve there."""
        item = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.full(name),
                "labels": {"world": self.name, "kubernetes.io/hostname": self.full(name)},
            },
        }
        created = await self.create(item)
        amounts = {"cpu": str(cpus), "memory": "64Gi", "pods": "200", **plugins}
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
        }
        await self.admin.patch(created, {"status": status}, "status")

    async def slice(self, node: str, devices: list[Object] | None, **spec: Any) -> Object:
        """Publish *devices* of a node."""
        name = f"{self.name}-{node}"
        item: Object = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{len(self.made)}"},
            "spec": {
                "driver": self.driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
                **spec,
            },
        }
        item["spec"] = {key: value for key, value in item["spec"].items() if value is not None}
        return await self.create(item)

    @property
    def driver(self) -> str:
        return f"{self.name}.{DRIVER}"

    async def device_class(self, name: str = "gpu", **spec: Any) -> None:
        selectors = [{"cel": {"expression": f"device.driver == '{self.driver}'"}}]
        item = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": f"{self.name}-{name}"},
            "spec": {"selectors": selectors, **spec},
        }
        await self.create(item)

    async def taint_rule(self, key: str, effect: str = "NoSchedule", **selector: str) -> Object:
        """Taint all devices of this world, or those that *selector* is about."""
        name = f"{self.name}-{next(NUMBERS)}"
        version = "v1" if self.stage.plane.minor != "1.36" else "v1beta2"
        return await self.create(
            {
                "apiVersion": f"resource.k8s.io/{version}",
                "kind": "DeviceTaintRule",
                "metadata": {"name": name},
                "spec": {
                    "deviceSelector": {"driver": self.driver, **selector},
                    "taint": {"key": key, "effect": effect},
                },
            }
        )

    def request(self, name: str = "gpu", device_class: str = "gpu", **exactly: Any) -> Object:
        return {"name": name, "exactly": {"deviceClassName": f"{self.name}-{device_class}", **exactly}}

    async def claim(self, name: str, *requests: Object, **devices: Any) -> Object:
        return await self.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"{self.name}-{name}", "namespace": self.namespace},
                "spec": {"devices": {"requests": list(requests), **devices}},
            }
        )

    async def template(self, name: str, *requests: Object, **devices: Any) -> Object:
        return await self.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": f"{self.name}-{name}", "namespace": self.namespace},
                "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
            }
        )

    async def pod(
        self,
        name: str,
        *,
        claims: tuple[str, ...] = (),
        templates: tuple[str, ...] = (),
        metadata: Object | None = None,
        **spec: Any,
    ) -> Object:
        """Create a pod of our scheduler that runs on the nodes of this world only."""
        entries = [
            {"name": f"c{index}", "resourceClaimName": f"{self.name}-{item}"} for index, item in enumerate(claims)
        ]
        entries += [
            {"name": f"t{index}", "resourceClaimTemplateName": f"{self.name}-{item}"}
            for index, item in enumerate(templates)
        ]
        container = {
            "name": "main",
            "image": "none",
            "resources": {"claims": [{"name": entry["name"]} for entry in entries]},
        }
        return await self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{self.name}-{name}", "namespace": self.namespace, **(metadata or {})},
                "spec": {
                    "schedulerName": SCHEDULER,
                    "nodeSelector": {"world": self.name},
                    "containers": [container],
                    "resourceClaims": entries,
                    **spec,
                },
            }
        )

    async def bound(self, pod: Object) -> str:
        """Wait until *pod* has a node, and return it without our prefix."""

        async def node() -> str | None:
            found: str | None = (await self.admin.read(pod))["spec"].get("nodeName")
            return found

        return (await until(node, f"pod {pod['metadata']['name']} to be bound")).removeprefix(f"{self.name}-")

    async def refused(self, pod: Object, text: str) -> str:
        """Wait until the condition of *pod* says *text*, and return all that it says."""

        async def message() -> str | None:
            conditions = (await self.admin.read(pod))["status"].get("conditions", [])
            said = next((item.get("message", "") for item in conditions if item["type"] == "PodScheduled"), "")
            return said if text in said else None

        return await until(message, f"the condition of {pod['metadata']['name']} to say {text!r}")

    async def devices(self, claim: Object) -> list[str]:
        """Return the devices of a claim as node/device."""
        return self.given(await self.admin.read(claim))

    def given(self, claim: Object) -> list[str]:
        """Return the devices of a claim that was read as node/device; none where it has none."""
        results = (claim.get("status", {}).get("allocation") or {}).get("devices", {}).get("results", [])
        return [f"{item['pool'].removeprefix(self.name + '-')}/{item['device']}" for item in results]

    def holds(self, claim: Object, device: str) -> bool:
        return device in self.given(claim)

    async def claim_of(self, pod: Object, entry: int = 0) -> Object:
        """Return the claim that was made for *pod* from a template."""
        status = (await self.admin.read(pod))["status"]["resourceClaimStatuses"][entry]
        return self.claim_named(status["resourceClaimName"])

    async def own_namespace(self, **labels: str) -> None:
        """Put what is created from now on into a namespace with *labels*."""
        name = f"{self.name}-{next(NUMBERS)}"
        metadata = {"name": name, "labels": labels}
        await self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.namespace = name

    async def unbound(self, pod: Object) -> bool:
        """Tell whether *pod* has no node."""
        return not (await self.admin.read(pod))["spec"].get("nodeName")

    async def left(self, pods: Sequence[Object], count: int) -> list[Object]:
        """Wait until so many of *pods* have no node, and return these."""

        async def waiting() -> list[Object] | None:
            found = [pod for pod in pods if await self.unbound(pod)]
            return found if len(found) == count else None

        return await until(waiting, f"{count} of {len(pods)} pods to be left")

    async def notes(self, pod: Object, reason: str, count: int = 1) -> list[str]:
        """Wait for *count* events of ours on *pod* for *reason*, and return what they say."""
        uid = (await self.admin.read(pod))["metadata"]["uid"]

        async def said() -> list[str] | None:
            events = await self.admin.list(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
            found = [
                event["note"]
                for event in events
                if event.get("reportingController") == "dra-extender.x-k8s.io/extender"
                and event["regarding"].get("uid") == uid
                and event["reason"] == reason
            ]
            return found if len(found) >= count else None

        return await until(said, f"{count} events {reason} on {pod['metadata']['name']}")

    async def when(self, item: Object, holds: Callable[[Object], object], what: str = "") -> Object:
        """Wait until *item* is so, and return it."""

        async def found() -> Object | None:
            read = await self.admin.read(item)
            return read if holds(read) else None

        return await until(found, what or f"{item['kind']} {item['metadata']['name']} to change")

    async def allocated(self, claim: Object) -> Object:
        """Wait until *claim* has devices, and return it."""
        return await self.when(claim, lambda read: read.get("status", {}).get("allocation"), "an allocation")

    async def freed(self, claim: Object) -> Object:
        """Wait until *claim* has no devices and nobody reserves it, and return it."""
        return await self.when(
            claim,
            lambda read: not read.get("status", {}).get("allocation") and not read.get("status", {}).get("reservedFor"),
            f"claim {claim['metadata']['name']} to be freed",
        )

    async def gone(self, item: Object) -> None:
        """Wait until there is no *item* any more."""

        async def is_gone() -> bool:
            return (await self.admin.call("GET", await self.admin.path(item))).status == 404

        await until(is_gone, f"{item['kind']} {item['metadata']['name']} to go")

    def refusals(self) -> list[str]:
        """Return what was said of each bind of a pod of this world that failed."""
        return [said for pod, said in self.stage.heard.ended if said and pod.startswith(f"{self.name}-")]

    def asked(self, pod: Object) -> list[tuple[str, ...]]:
        """Return the nodes of each filter call for *pod*."""
        return [item.nodes for item in self.stage.heard.asked if item.pod == pod["metadata"]["name"]]

    async def until_asked(self, pod: Object, times: int) -> None:
        """Wait until filter was asked about *pod* so often."""

        async def enough() -> bool:
            return len(self.asked(pod)) >= times

        await until(enough, f"{times} filter calls for {pod['metadata']['name']}")

    async def hidden_claim_of(self, pod: Object) -> Object:
        """Return the claim that was made for the extended resources of *pod*."""
        status = (await self.admin.read(pod))["status"]["extendedResourceClaimStatus"]
        return self.claim_named(status["resourceClaimName"])

    def claim_named(self, name: str) -> Object:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}

    async def allocate(self, claim: Object, pool: str, device: str, **query: str) -> None:
        """Give a device to *claim*, as another allocator would; reserve it for nobody."""
        result = {"request": "gpu", "driver": self.driver, "pool": pool, "device": device}
        here = {"key": "metadata.name", "operator": "In", "values": [pool]}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
        await self.admin.patch(claim, {"status": {"allocation": allocation}}, "status", **query)

    async def claims(self) -> list[Object]:
        """Return every claim of this world."""
        found = await self.admin.list(f"/apis/resource.k8s.io/v1/namespaces/{self.namespace}/resourceclaims")
        return [claim for claim in found if claim["metadata"]["name"].startswith(f"{self.name}-")]

    async def hidden_claim(self, pod: Object) -> Object:
        """Make a claim for the extended resources of *pod*, as an attempt that ended half-way leaves it."""
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        item = self.claim_named(f"{pod['metadata']['name']}-extended-resources-stale")
        item["metadata"] |= {
            "ownerReferences": [owner],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        }
        exactly = {"deviceClassName": self.full("gpu"), "allocationMode": "ExactCount", "count": 1}
        item["spec"] = {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
        return await self.create(item)

    async def bar_bindings(self, node: str) -> None:
        """Have the API server refuse every Binding to *node*, as an admission policy of a cluster may."""
        name = f"{self.name}-{next(NUMBERS)}"
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods/binding"],
            "operations": ["CREATE"],
        }
        policy = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"object.target.name != '{self.full(node)}'"}],
        }
        api = "admissionregistration.k8s.io/v1"
        kind = "ValidatingAdmissionPolicy"
        await self.create({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": policy})
        spec = {"policyName": name, "validationActions": ["Deny"]}
        await self.create({"apiVersion": api, "kind": f"{kind}Binding", "metadata": {"name": name}, "spec": spec})
        pod = await self.pod(f"barred-{node}", schedulingGates=[], schedulerName="nobody")
        target = {"target": {"apiVersion": "v1", "kind": "Node", "name": self.full(node)}}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}, **target}

        async def is_refused() -> bool:
            path = f"{await self.admin.path(pod)}/binding"
            return (await self.admin.call("POST", path, binding, dryRun="All")).status >= 400

        await until(is_refused, f"Bindings to {node} to be refused")

    async def break_claims(self) -> Object:
        """Have a webhook of this namespace asked about each status of a claim, which is down; return what names it."""
        claim = await self.claim("broken", self.request())
        rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"]}
        hook = {
            "name": "claims.example.com",
            "clientConfig": {"url": "https://127.0.0.1:9/validate"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            "rules": [rule | {"resources": ["resourceclaims/status"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        api, name = "admissionregistration.k8s.io/v1", f"{self.name}-{next(NUMBERS)}"
        kind = {"apiVersion": api, "kind": "ValidatingWebhookConfiguration"}
        made = await self.create({**kind, "metadata": {"name": name}, "webhooks": [hook]})

        async def is_down() -> bool:
            path = f"{await self.admin.path(claim)}/status"
            read = await self.admin.read(claim)
            return (await self.admin.call("PUT", path, read, dryRun="All")).status >= 500

        await until(is_down, "writes to be answered with errors")
        return made

    def on(self, node: str) -> dict[str, str]:
        """Return the selector of *node* alone."""
        return {"kubernetes.io/hostname": self.full(node)}

    async def leave(self, claim: Object, pod: Object) -> None:
        """Delete *pod*, and have *claim* stay as it was allocated, reserved by nobody."""
        allocation = (await self.admin.read(claim))["status"]["allocation"]
        await self.admin.delete(pod)
        await self.freed(claim)
        await self.admin.patch(claim, {"status": {"allocation": allocation}}, "status")

    async def priority(self, name: str, value: int, **more: str) -> None:
        """Create a class of priority, and wait until pods of it are admitted: that goes by a watch of its own."""
        metadata = {"name": self.full(name)}
        version, kind = "scheduling.k8s.io/v1", "PriorityClass"
        await self.create({"apiVersion": version, "kind": kind, "metadata": metadata, "value": value, **more})
        spec = {"containers": [{"name": "c", "image": "none"}], "priorityClassName": self.full(name)}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        path = await self.admin.path(pod, name=False)

        async def is_known() -> bool:
            return (await self.admin.call("POST", path, pod, dryRun="All")).status == 201

        await until(is_known, f"the class {self.full(name)} to be known")

    async def succeed(self, pod: Object) -> None:
        """Let *pod* end well, as its kubelet reports."""
        await self.admin.patch(pod, {"status": {"phase": "Succeeded"}}, "status")

    async def finish(self, pod: Object) -> None:
        await self.admin.delete(pod)

    async def clear(self) -> None:
        nodes = [item for item in self.made if item["kind"] == "Node"]
        for item in reversed([item for item in self.made if item["kind"] != "Node"]):
            await self.admin.delete(item)
        await asyncio.gather(*map(self.admin.delete, nodes))

    async def forgotten(self) -> None:
        """Wait until we know that it is gone: what is short is told of the whole cluster, and so of the next world."""

        async def seen() -> bool:
            snapshot = self.service.belief.cluster.snapshot
            return not any(name.startswith(f"{self.name}-") for name in snapshot.nodes) and not any(
                published.driver == self.driver for published in snapshot.inventory.slices
            )

        await until(seen, "the extender to see that the world is gone")


@asynccontextmanager
async def staged(
    plane: Plane,
    settings: Settings | None = None,
    *,
    port: int = 0,
    changed: Callable[[Object], None] | None = None,
    url: str = "",
) -> AsyncIterator[Stage]:
    """Run the service and kube-scheduler, its configuration *changed*, against *plane*.

    *url*: of the API server that the service speaks to, if it is not the first.
    """
    async with served(plane, settings, port=port, url=url) as made, behind(plane, made.server_port, changed):
        yield made


@asynccontextmanager
async def behind(plane: Plane, port: int, changed: Callable[[Object], None] | None = None) -> AsyncIterator[None]:
    """Run kube-scheduler, its configuration *changed*, before whoever serves *port*."""
    async with plane.scheduler(_configuration(plane, changed), extender=f"http://127.0.0.1:{port}"):
        yield


@asynccontextmanager
async def unserved(plane: Plane) -> AsyncIterator[Stage]:
    """Give a cluster in which nobody schedules yet."""
    nobody: Any = None
    async with plane.client() as admin:
        yield Stage(plane, admin, nobody, nobody)


def impatient(configuration: Object) -> None:
    """Have pods tried again every second or two, rather than after up to ten."""
    configuration["podMaxBackoffSeconds"] = 1


@asynccontextmanager
async def served(
    plane: Plane, settings: Settings | None = None, *, port: int = 0, url: str = ""
) -> AsyncIterator[Stage]:
    """Run the service alone."""
    options = Options(verbs=Address("127.0.0.1", port), probes=Address("127.0.0.1", 0))
    access = await credentials(str(plane.kubeconfig("extender", url)))
    async with running(accepting(settings or Settings()), access, options) as service, plane.client() as admin:
        heard = Heard(service.answers.planner)
        service.answers.planner = heard  # type: ignore[assignment]  # it answers the same
        _overhear(service, heard)
        async with asyncio.timeout(30):
            await service.ready()
        yield Stage(plane, admin, service, heard)


def _overhear(service: Service, heard: Heard) -> None:
    """Note how each bind ends, beside what else is done with it."""

    def noted(order: Order, result: Result) -> None:
        heard.ended.append((order.pod.name, result.message if isinstance(result, NotBound) else ""))

    service.answers.binds.ended = noted, *service.answers.binds.ended


@asynccontextmanager
async def stock(plane: Plane) -> AsyncIterator[None]:
    """Run the cluster's own kube-scheduler beside ours."""
    path = plane.folder / f"stock-{next(NUMBERS)}.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    path.write_text(yaml.safe_dump(document))
    # It may do what the cluster's own scheduler may: ours has less, for it allocates nothing.
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": path.stem},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-scheduler"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "scheduler"}],
    }
    async with plane.client() as admin:
        await admin.create(rights)
        async with plane.scheduler(path):
            yield
        await admin.delete(rights)


def _configuration(plane: Plane, changed: Callable[[Object], None] | None) -> Path:
    if changed is None:
        return CONFIGURATION
    document = yaml.safe_load(CONFIGURATION.read_text())
    changed(document)
    path = plane.folder / f"configuration-{next(NUMBERS)}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@asynccontextmanager
async def world_on(stage: Stage, name: str = "") -> AsyncIterator[World]:
    """Give a part of the cluster of *stage*, and clear it at the end."""
    made = World(stage, name) if name else World(stage)
    try:
        yield made
    finally:
        await made.clear()
    if stage.service is not None:  # otherwise a process of its own
        await made.forgotten()


@asynccontextmanager
async def world(plane: Plane, settings: Settings | None = None) -> AsyncIterator[World]:
    """Run the service and kube-scheduler against *plane*, for one world."""
    async with staged(plane, settings) as stage, world_on(stage) as made:
        yield made
