"""Bodies of the real kube-scheduler for each shape of pods, heard by a proxy before the extender.

``python -m loadtests.load.capture`` writes loadtests/load/bodies anew: a real control plane, the extender, and three
nodes with devices. The bodies are as they were sent; nothing in them is anybody's.
"""

import asyncio
import gzip
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import orjson
from aiohttp import web

from extender.web.listener import Listener, ListenerLimits
from loadtests.endtoend.rig import OURS, OWNED, Rig, node, pod, rig, template
from loadtests.load.bodies import BODIES, VERBS, who_in
from loadtests.verbs.world import NIC_DRIVER, SHAPES
from tests import fleet
from tests.controlplane.manifests import SCHEDULER, grant
from tests.controlplane.processes import free_port, start, stop
from tests.controlplane.programs import plane

NODES = 3
PATIENCE_S = 60


class Proxy:
    """Passes on what it is asked, and keeps the first body of each pod and verb."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.session = url, session
        self.heard: dict[tuple[str, str], bytes] = {}
        self.news = asyncio.Event()

    async def answer(self, request: web.BaseRequest, body: bytes) -> web.Response:
        verb = request.path[1:]
        name = orjson.loads(body)["PodName"] if verb == "bind" else who_in(body).name
        self.heard.setdefault((name, verb), body)
        self.news.set()
        async with self.session.post(f"{self.url}{request.path}", data=body) as reply:
            return web.Response(status=reply.status, body=await reply.read(), content_type="application/json")

    async def until(self, name: str, verbs: tuple[str, ...]) -> None:
        """Wait until a pod was asked about in all *verbs*."""
        async with asyncio.timeout(PATIENCE_S):
            while not all((name, verb) in self.heard for verb in verbs):
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def proxied(here: Rig) -> AsyncIterator[Proxy]:
    """Run the extender, the proxy before it and kube-scheduler before that."""
    port, probes = free_port(), free_port()
    flags = [
        f"--listen-verbs=127.0.0.1:{port}",
        f"--listen-probes=127.0.0.1:{probes}",
        f"--api-kubeconfig={here.plane.kubeconfig('extender')}",
        f"--ownership-drivers={','.join(OWNED)}",
        "--answer-policy=shortlist",  # or nobody would ask prioritize
    ]
    process = start(Path(sys.executable), "-m", "extender", "serve", *flags, log=here.plane.folder / "extender.log")
    async with aiohttp.ClientSession(trust_env=False) as session:
        proxy = Proxy(f"http://127.0.0.1:{port}", session)
        listener = Listener(proxy.answer, ListenerLimits())
        heard = await listener.start("127.0.0.1", 0)
        try:
            await ready(session, f"http://127.0.0.1:{probes}/readyz")
            async with here.plane.scheduler(SCHEDULER, extender=f"http://127.0.0.1:{heard}"):
                yield proxy
        finally:
            await listener.stop()
            await asyncio.to_thread(stop, process)


async def ready(session: aiohttp.ClientSession, url: str) -> None:
    """Wait until *url* is answered with a success."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as reply:
                    if reply.ok:
                        return
            await asyncio.sleep(0.1)


async def fill(here: Rig) -> None:
    """Create nodes, their devices, classes and templates."""
    nic = {"selectors": [{"cel": {"expression": f"device.driver == '{NIC_DRIVER}'"}}]}
    gpu = fleet.classes()[0]
    await here.create([gpu, {**gpu, "metadata": {"name": "nic"}, "spec": nic}])
    for number in range(NODES):
        await here.admin.create(node(fleet.node_name(number)))
        raw = fleet.node_slice(number, 8, number)
        for item in (raw, nics(raw)):
            item["metadata"] = {"name": item["metadata"]["name"]}
            await here.admin.create(item)
    for shape, devices in SHAPES.items():
        await here.admin.create(template(shape, devices))


def nics(raw: fleet.Json) -> fleet.Json:
    """Return the NICs of a node: one for each PCIe root."""
    root = "resource.kubernetes.io/pcieRoot"
    listed = [{"name": f"nic-{at}", "attributes": {root: {"string": f"pci0000:{at:02x}"}}} for at in range(4)]
    name = f"{raw['spec']['nodeName']}-nics"
    inside = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {**raw["spec"], "driver": NIC_DRIVER, "pool": inside, "devices": listed}
    return {**raw, "metadata": {"name": name}, "spec": spec}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await fill(here)
            async with proxied(here) as proxy:
                for shape in SHAPES:
                    await here.admin.create(pod(f"captured-{shape}", OURS, shape))
                    await proxy.until(f"captured-{shape}", VERBS[:1] if shape == "hopeless" else VERBS)
            heard = proxy.heard
    BODIES.mkdir(exist_ok=True)
    for (name, verb), body in heard.items():
        # Without the time, a body that is the same is the same file.
        (BODIES / f"{name.removeprefix('captured-')}-{verb}.json.gz").write_bytes(gzip.compress(body, mtime=0))


if __name__ == "__main__":
    asyncio.run(main())
