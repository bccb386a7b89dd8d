"""Bodies as a real kube-scheduler sends them, overheard on a real control plane.

``python -m tests.web.overhear`` writes tests/web/overheard anew. One pod is placed on free nodes, another one would
need the place of a third; each time the scheduler sends names, and then whole nodes.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web

from extender.model.node import Pod
from extender.scheduling.endings import Order
from extender.telemetry.metrics import Metrics
from extender.web.listener import Listener, ListenerLimits
from extender.web.routes import Routes
from extender.web.verbs import Filtered
from tests.controlplane.client import Client, until
from tests.controlplane.manifests import SCHEDULER, grant
from tests.controlplane.objects import claim, device_class, node, pod
from tests.controlplane.plane import Plane
from tests.controlplane.programs import plane as programs
from tests.web.standin import StandIn

OVERHEARD = Path(__file__).parent / "overheard"
VERBS = frozenset({"filter", "prioritize", "preempt", "bind"})
NODES = ("worker-1", "worker-2", "worker-3")


class Binder(StandIn):
    """Lets two nodes pass, so that they are scored, and binds."""

    def __init__(self, admin: Client) -> None:
        super().__init__()
        self.admin = admin

    def filter(self, _pod: Pod, names: Sequence[str]) -> Filtered:
        return Filtered(names=sorted(names)[:2])

    async def bind(self, order: Order) -> str:
        target = {"apiVersion": "v1", "kind": "Node", "name": order.node}
        body = {"metadata": {"name": order.pod.name, "uid": order.uid}, "target": target}
        path = f"/api/v1/namespaces/{order.pod.namespace}/pods/{order.pod.name}/binding"
        return (await self.admin.call("POST", path, {"apiVersion": "v1", "kind": "Binding", **body})).message


@asynccontextmanager
async def listening(admin: Client, heard: dict[str, bytes]) -> AsyncIterator[str]:
    """Answer, and keep the first body of every verb."""
    routes = Routes(Binder(admin), Metrics())

    async def answer(request: web.BaseRequest, body: bytes) -> web.Response:
        verb = request.path[1:]
        heard.setdefault(verb, body)
        status, told, _ = await routes.answer(verb, body)
        return web.Response(status=status, body=told, content_type="application/json")

    listener = Listener(answer, ListenerLimits())
    port = await listener.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await listener.stop()


async def overhear(running: Plane, admin: Client, mode: str) -> dict[str, bytes]:
    """Let a scheduler ask everything, by names or with whole nodes."""
    configuration = yaml.safe_load(SCHEDULER.read_text())
    configuration["extenders"][0]["nodeCacheCapable"] = mode == "names"
    configuration["leaderElection"]["leaderElect"] = False
    changed = running.folder / f"{mode}.yaml"
    changed.write_text(yaml.safe_dump(configuration))
    heard: dict[str, bytes] = {}
    async with listening(admin, heard) as url, running.scheduler(changed, extender=url):
        made = [pod(f"placed-{mode}", claims=["shared"], cpu="1")]
        await admin.create(made[0])
        await until(lambda: heard_of(heard, "bind"), "bind")
        for name in NODES:
            low = pod(f"low-{mode}-{name}", cpu="63")
            low["spec"]["nodeName"] = name
            made.append(await admin.create(low))
        high = pod(f"high-{mode}", cpu="60")
        high["spec"]["priorityClassName"] = "urgent"
        made.append(await admin.create(high))
        await until(lambda: heard_of(heard, "preempt"), "preempt")
    for each in made:
        await admin.delete(each)
    return heard


async def heard_of(heard: dict[str, bytes], verb: str) -> bool:
    return verb in heard


async def main(running: Plane) -> None:
    OVERHEARD.mkdir(exist_ok=True)
    async with running.client() as admin:
        await grant(admin)
        await admin.create(device_class())
        await admin.create(claim("shared"))
        urgent = {"metadata": {"name": "urgent"}, "value": 1000}
        await admin.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **urgent})
        for name in NODES:
            await admin.patch(await admin.create(node(name)), {"status": node(name)["status"]}, "status")
        for mode in ("names", "nodes"):
            for verb, body in (await overhear(running, admin, mode)).items():
                (OVERHEARD / f"{verb}-{mode}.json").write_bytes(body)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        control_plane = Plane(programs(), Path(folder))
        control_plane.start()
        try:
            asyncio.run(main(control_plane))
        finally:
            control_plane.stop()
