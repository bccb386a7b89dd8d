"""Kueue beside us: it holds pods back by a gate for as long as its quota has no room."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import Object, until
from tests.controlplane.processes import free_port, start, stop
from tests.e2e.world import World

# Where its repository lies, and in it what `go build -o kueue ./cmd/kueue` makes.
HOME = Path(os.environ.get("KUEUE", ""))
PROGRAM = HOME / "kueue"
DEFINITIONS, WEBHOOKS = HOME / "config/components/crd/bases", HOME / "config/components/webhook/manifests.yaml"
API = "kueue.x-k8s.io/v1beta2"
NAMESPACE, DEVICES = "kueue-system", "gpus"
CERTIFICATES: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "kueue-webhook-server-cert", "namespace": NAMESPACE},
}


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue for pods of one world, whose quota is of devices."""

    here: World
    name: str
    pods: list[Object] = field(default_factory=list)

    async def pod(self, name: str, *templates: str, labels: Object | None = None, **spec: Any) -> Object:
        """Create a pod that Kueue admits."""
        marks = {"kueue.x-k8s.io/queue-name": self.name, **(labels or {})}
        self.pods.append(await self.here.pod(name, templates=templates, metadata={"labels": marks}, **spec))
        return self.pods[-1]

    async def held_back(self, pod: Object, why: str) -> Object:
        """Wait until Kueue says why it holds *pod* back, and return the pod."""

        async def is_said() -> bool:
            found = await self.here.admin.list(f"/apis/{API}/namespaces/{self.here.namespace}/workloads")
            return any(why in said for each in found if _owner(each) == pod["metadata"]["uid"] for said in _says(each))

        await until(is_said, f"the workload of {pod['metadata']['name']} to say {why!r}")
        return await self.here.admin.read(pod)


@asynccontextmanager
async def queue(here: World, name: str, quota: int) -> AsyncIterator[Queue]:
    """Have Kueue admit pods as long as they use at most so many devices; what was made of them goes at the end."""
    devices = {"coveredResources": [DEVICES], "flavors": [_flavor(here, quota)]}
    preemption = {"withinClusterQueue": "LowerPriority"}
    full = here.full(name)
    await _created(here, "ClusterQueue", full, namespaceSelector={}, resourceGroups=[devices], preemption=preemption)
    await _created(here, "LocalQueue", name, clusterQueue=full)
    made = Queue(here, name)
    try:
        yield made
    finally:
        for pod in made.pods:
            await here.finish(pod)
        for pod in made.pods:
            await here.gone(pod)


@asynccontextmanager
async def kueueing(here: World) -> AsyncIterator[None]:
    """Run Kueue for a namespace of this world and its class."""
    await here.own_namespace(world=here.name)
    plane, port = here.stage.plane, free_port()
    await _prepared(here, port)
    folder = plane.folder / f"{here.name}-kueue"
    folder.mkdir()
    settings = folder / "configuration.json"
    settings.write_text(json.dumps(_configuration(here, folder, port)))
    # What it shows of its queues would be an API server of its own.
    flags = (f"--config={settings}", "--feature-gates=VisibilityOnDemand=false")
    environment = f"KUBECONFIG={plane.kubeconfig('admin')}"
    process = start(Path("/usr/bin/env"), environment, str(PROGRAM), *flags, log=plane.log("kueue"))
    try:
        await _mounted(here, folder)
        await _created(here, "ResourceFlavor", here.name, nodeLabels={"world": here.name})
        yield
        # Its finalizers go while it runs.
        await here.clear()
    finally:
        await asyncio.to_thread(stop, process)


async def _prepared(here: World, port: int) -> None:
    """Create what its installation brings, and a Service that leads to a process of this machine."""
    service = {"namespace": NAMESPACE, "name": "kueue-webhook-service", "port": port}
    await here.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    leading = {"type": "ExternalName", "externalName": "localhost"}
    metadata = {"name": service["name"], "namespace": NAMESPACE}
    await here.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": leading})
    await here.create(CERTIFICATES)
    definitions = [each for path in sorted(DEFINITIONS.glob("*.yaml")) for each in _documents(path)]
    client = {"service": {**service, "path": "/convert"}}
    converted = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    for each in definitions:
        each["spec"]["conversion"] = converted
    await asyncio.gather(*map(here.create, [*definitions, *_webhooks(here, service)]))


def _documents(path: Path) -> Iterator[Object]:
    yield from (each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each)


def _webhooks(here: World, service: Object) -> Iterator[Object]:
    """Give its webhooks that are of pods, of this world's alone, and of what is its own."""
    for configuration in _documents(WEBHOOKS):
        kept = [each for each in configuration["webhooks"] if _group(each) in {"", "kueue.x-k8s.io"}]
        for each in kept:
            each["clientConfig"]["service"] |= service
            if not _group(each):
                each["namespaceSelector"] = {"matchLabels": {"world": here.name}}
        metadata = {"name": f"kueue-{configuration['metadata']['name']}"}
        yield {**configuration, "metadata": metadata, "webhooks": kept}


def _configuration(here: World, certificates: Path, port: int) -> Object:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": port, "host": "127.0.0.1", "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": ["pod"]},
        "managedJobsNamespaceSelector": {"matchLabels": {"world": here.name}},
        "resources": {"deviceClassMappings": [{"name": DEVICES, "deviceClassNames": [here.full("gpu")]}]},
    }


async def _mounted(here: World, folder: Path) -> None:
    """Put the certificates that it makes where it looks for them, as a kubelet does."""
    made = await here.when(CERTIFICATES, lambda read: "tls.crt" in read.get("data", {}), "its certificates")
    for name, data in made["data"].items():
        (folder / name).write_bytes(base64.b64decode(data))


def _flavor(here: World, quota: int) -> Object:
    return {"name": here.name, "resources": [{"name": DEVICES, "nominalQuota": quota}]}


async def _created(here: World, kind: str, name: str, **spec: Any) -> None:
    """Create one of its objects as soon as its webhook answers."""
    space = {"namespace": here.namespace} if kind == "LocalQueue" else {}
    item = {"apiVersion": API, "kind": kind, "metadata": {"name": name, **space}, "spec": spec}
    path = f"/apis/{API}" + "".join(f"/namespaces/{each}" for each in space.values()) + f"/{kind.lower()}s"

    async def is_taken() -> bool:
        return (await here.admin.call("POST", path, item)).status == 201

    await until(is_taken, f"the {kind} to be taken")
    here.made.append(item)


def _group(webhook: Object) -> str:
    group: str = webhook["rules"][0]["apiGroups"][0]
    return group


def _owner(workload: Object) -> str:
    return next((each["uid"] for each in workload["metadata"].get("ownerReferences", [])), "")


def _says(workload: Object) -> list[str]:
    return [each["message"] for each in workload.get("status", {}).get("conditions", [])]
