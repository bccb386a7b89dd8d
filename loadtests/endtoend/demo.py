"""The demonstration on a real control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""

import asyncio
import sys
import tempfile
from pathlib import Path

from extender.demo.cluster import NAMESPACE, PLACES
from extender.demo.stage import SETTINGS
from extender.demo.story import Story
from extender.kube.api import Api
from extender.kube.credentials import credentials
from extender.kube.request import Body
from extender.service.assembly import running
from extender.web.server import Address, Options
from loadtests.endtoend.rig import rig
from tests.controlplane.manifests import SCHEDULER, grant
from tests.controlplane.programs import plane

NODES, PODS, PAUSE_S = 3, 14, 0.1


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            tell(f"kube-apiserver {here.plane.version}")
            api = Api(await credentials(str(here.plane.kubeconfig("admin"))))
            access = await credentials(str(here.plane.kubeconfig("extender")))
            options = Options(verbs=Address("127.0.0.1", 0), probes=Address("127.0.0.1", 0))
            async with running(SETTINGS, access, options) as service:
                await service.ready()
                async with here.plane.scheduler(SCHEDULER, extender=f"http://127.0.0.1:{service.server.ports[0]}"):
                    story = Story(api, service, tell)
                    await api.call("POST", PLACES["Namespace"], body=Body({"metadata": {"name": NAMESPACE}}))
                    await story.furnish(NODES)
                    placed = await story.play(PODS, PAUSE_S)
                    tell(f"{placed} of {PODS} pods were placed")
            await api.close()


if __name__ == "__main__":
    asyncio.run(main())
