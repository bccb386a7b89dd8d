"""Pods of kube-scheduler and extender, several of them, each on a machine of its own as far as names go."""

import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from types import MappingProxyType
from typing import Final

import yaml

from tests.controlplane.client import Client, Object, RefusedError, until
from tests.controlplane.plane import Plane, Scheduler
from tests.controlplane.probes import asked, until_ready
from tests.controlplane.processes import free_port, start, stop
from tests.e2e.world import CONFIGURATION, impatient
from tests.faults.proxy import Proxy
from tests.faults.scene import by_proxy

NAMESPACE: Final = "dra-extender"
# Short times in the same order as the usual ones: a lease runs out after 3 s.
LEADING: Final = {"enabled": True, "leaseSeconds": 3, "trustSeconds": 2.2, "renewSeconds": 0.4, "serverSeconds": 3}
LIMITS: Final = {"bindSeconds": 3, "timeoutSeconds": 1}
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
ELECTION: Final = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}


def lease(name: str) -> Object:
    """Return a Lease that somebody has given up."""
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"leaseTransitions": 1}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@dataclass
class Pod:
    """A kube-scheduler and the extender beside it, which *dies_after* a certain request (see ``mortal``).

    *proxy* is what the extender has between itself and the API server, if anything; *leading* how it elects otherwise.
    """

    host: str
    plane: Plane
    dies_after: str = ""
    proxy: Proxy | None = None
    leading: Mapping[str, object] = field(default_factory=dict)
    verbs: int = field(default_factory=free_port)
    probes: int = field(default_factory=free_port)
    extender: Popen[bytes] | None = None
    scheduler: Scheduler | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        # An extender is not ready before there is a Lease of the scheduler.
        await self.start_scheduler()
        await self.start_extender()

    async def start_extender(self) -> None:
        """Start the extender, and wait until it is ready, whoever leads."""
        direct = self.plane.kubeconfig("extender")
        kubeconfig = str(by_proxy(self.plane, self.proxy, self.host) if self.proxy else direct)
        settings = {
            "listen": {"verbs": f"127.0.0.1:{self.verbs}", "probes": f"127.0.0.1:{self.probes}"},
            "leading": {**LEADING, "host": self.host, **self.leading},
            "api": {**LIMITS, "kubeconfig": kubeconfig},
            "ownership": {"acceptUnpartitioned": True},
        }
        path = self.plane.folder / f"{self.host}.yaml"
        path.write_text(yaml.safe_dump(settings))
        command = ["extender", "serve", f"--config={path}"]
        if self.dies_after:
            ports = (str(self.verbs), str(self.probes))
            command = ["tests.e2e.mortal", kubeconfig, *ports, self.dies_after, str(path)]
        log = self.plane.log(f"extender-{self.host}")
        self.extender = start(Path(sys.executable), "-m", *command, log=log)
        await until_ready(self.extender, self.probes, log)

    async def start_scheduler(self) -> None:
        document = yaml.safe_load(CONFIGURATION.read_text())
        impatient(document)
        document["leaderElection"] |= ELECTION
        path = self.plane.folder / f"scheduler-of-{self.host}.yaml"
        path.write_text(yaml.safe_dump(document))
        running = self.plane.scheduler(path, extender=f"http://127.0.0.1:{self.verbs}", host=self.host)
        self.scheduler = await self.stack.enter_async_context(running)

    async def is_ready(self) -> bool:
        return (await asked(self.probes, "readyz"))[0] == 200

    async def is_dead(self) -> bool:
        return self.extender is not None and self.extender.poll() is not None

    async def leads(self) -> bool:
        return "dra_extender_leading 1.0" in (await asked(self.probes, "metrics"))[1]

    def signal_extender(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self.extender is not None
        self.extender.send_signal(number)
        if number is signal.SIGKILL:
            self.extender.wait()

    def signal_scheduler(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self.scheduler is not None
        self.scheduler.process.send_signal(number)

    async def end(self) -> None:
        for process in (self.extender, self.scheduler.process if self.scheduler else None):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
        if self.extender is not None:
            stop(self.extender)
        await self.stack.aclose()


@asynccontextmanager
async def two_pods(
    plane: Plane,
    admin: Client,
    dies_after: str = "",
    proxy: Proxy | None = None,
    leading: Mapping[str, object] = NOTHING,
) -> AsyncIterator[tuple[Pod, Pod]]:
    """Run two pods, of which the first leads; *dies_after*, *proxy* and *leading* are about its extender."""
    names = ("dra-extender", "dra-scheduler")
    for name in names:
        await admin.delete(lease(name))
    # Nobody leads, and nobody has: so nobody is waited for.
    await admin.create(lease("dra-extender"))
    a, b = Pod("pod-a", plane, dies_after, proxy, leading), Pod("pod-b", plane)
    try:
        await a.start()
        await until(a.leads, "the first to lead")
        await b.start()
        yield a, b
    finally:
        await a.end()
        await b.end()
        for name in names:
            with suppress(RefusedError):
                await admin.delete(lease(name))
