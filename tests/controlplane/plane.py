"""A control plane on loopback: etcd, kube-apiserver and kube-controller-manager, and kube-schedulers beside them."""

import asyncio
import json
import secrets
import shutil
import ssl
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import PATIENCE_SECONDS, Client, until
from tests.controlplane.credentials import kubeconfig, signing_key, token_file
from tests.controlplane.probes import end_of
from tests.controlplane.processes import free_port, start, stop

# Whoever asks as admin may do everything; the others may do what they are granted, which at first is nothing.
USERS = ("admin", "extender", "scheduler", "stranger")
CONTROLLERS = (
    "resourceclaim-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
)
# What a minor version has, but not by default.
OPTIONS = {
    "1.36": ["--feature-gates=DRADeviceTaintRules=true", "--runtime-config=resource.k8s.io/v1beta2=true"],
}
# Without its controllers nobody would make accounts for pods, or declare nodes ready.
WITHOUT_ADMISSION = "ServiceAccount,TaintNodesByCondition"
# Off by default, on in some clusters: whoever makes something wait for its owner needs the right to finalize that.
STRICTER_ADMISSION = "OwnerReferencesPermissionEnforcement"
# As GKE is set up: a pod of these priorities is taken only where a quota of its namespace is about them.
CRITICAL = ["system-node-critical", "system-cluster-critical"]
LIMITED = {"scopeName": "PriorityClass", "operator": "In", "values": CRITICAL}
# Nothing here is to wait for a client's own limit.
RATES = ("--kube-api-qps=5000", "--kube-api-burst=5000")


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A running kube-scheduler."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]


class Plane:
    """The programs, their users and their state, all below one folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self.tokens = {user: secrets.token_hex(16) for user in USERS}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.url = f"https://127.0.0.1:{free_port()}"

    @property
    def authority(self) -> Path:
        """The file with which clients verify the API server."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def version(self) -> str:
        """The version of the API server: "1.37.1"."""
        said = subprocess.run([self.programs / "kube-apiserver", "--version"], stdout=subprocess.PIPE, check=True)
        return said.stdout.decode().split()[-1].removeprefix("v")

    @property
    def minor(self) -> str:
        """The minor version of the API server: "1.37"."""
        return self.version.rpartition(".")[0]

    def client(self, user: str = "admin", *, token: str | None = None) -> Client:
        """Return what speaks to the API server as one of USERS, or with a token of somebody else."""
        return Client(self.url, token or self.tokens[user], self.authority)

    def kubeconfig(self, user: str, url: str = "") -> Path:
        """Return a file with which programs are one of USERS; *url* is that of another API server than the first."""
        path = self.folder / f"{user}{url.rpartition(':')[2]}.kubeconfig"
        path.write_text(json.dumps(kubeconfig(url or self.url, self.authority, self.tokens[user])))
        return path

    def start(self) -> None:
        """Start everything but schedulers, and wait until the API server is ready."""
        (self.folder / "tokens.csv").write_text(token_file(self.tokens))
        (self.folder / "accounts.key").write_text(signing_key())
        (self.folder / "admission.json").write_text(json.dumps(_admission()))
        etcd = f"http://127.0.0.1:{free_port()}"
        self._store("etcd", etcd)
        self._run("kube-apiserver", *self._api_server(etcd), *OPTIONS.get(self.minor, []))
        _until_ready(self)
        self._run("kube-controller-manager", *self._controllers(), *OPTIONS.get(self.minor, [])[:1])

    def stop(self) -> None:
        """Stop everything, the last one first; whatever had ended already is an error."""
        ended = [name for name, process in self.running.items() if process.poll() is not None]
        while self.running:
            _, process = self.running.popitem()
            stop(process)
        if ended:
            raise RuntimeError(f"ended before its time: {', '.join(map(self.told, ended))}")

    def restart(self, name: str) -> None:
        """Kill a program, and start it with the same arguments."""
        self._run(name, *self._killed(name))

    def back_up(self) -> Path:
        """Copy what is stored, and return where that is. etcd is away meanwhile."""
        backup = self.folder / f"backup-{secrets.token_hex(4)}"
        etcd = self._killed("etcd")
        shutil.copytree(self.folder / "etcd", backup)
        self._run("etcd", *etcd)
        _until_ready(self)
        return backup

    def restore(self, backup: Path) -> None:
        """Have everything that is stored be as it was then; schedulers and extenders run on."""
        names = ("etcd", "kube-apiserver", "kube-controller-manager")
        arguments = {name: self._killed(name) for name in names}
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(backup, self.folder / "etcd")
        self._run("etcd", *arguments["etcd"])
        self._run("kube-apiserver", *arguments["kube-apiserver"])
        _until_ready(self)
        self._run("kube-controller-manager", *arguments["kube-controller-manager"])

    @asynccontextmanager
    async def second_server(
        self, etcd: str = "", gates: str = ""
    ) -> AsyncIterator[tuple[str, subprocess.Popen[bytes]]]:
        """Run one more API server, on the same etcd if no other is named; give its address, and its process.

        *gates* are set for it, beside those of the first.
        """
        name, url = "kube-apiserver-2", f"https://127.0.0.1:{free_port()}"
        changed = {"--secure-port": url.rpartition(":")[2], **({"--etcd-servers": etcd} if etcd else {})}
        kept = [each for each in self._arguments("kube-apiserver") if each.partition("=")[0] not in changed]
        kept += [f"--feature-gates={gates}"] if gates else []
        self._run(name, *kept, *(f"{key}={value}" for key, value in changed.items()), program="kube-apiserver")
        process = self.running[name]
        try:
            await until(lambda: asyncio.to_thread(_answers, f"{url}/readyz", self.authority), f"{name} to be ready")
            yield url, process
        finally:
            # It would wait for its watches to end, if it was not stopped.
            process.kill()
            self.running.pop(name).wait()

    def told(self, name: str) -> str:
        """Return the end of a program's log, with its name."""
        return end_of(self.log(name))

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    @asynccontextmanager
    async def scheduler(
        self, configuration: Path, *, extender: str | None = None, host: str = ""
    ) -> AsyncIterator[Scheduler]:
        """Run kube-scheduler by a file that people apply; changed are its credentials and the extender's address.

        *host* is what it takes the machine's name for, by which it calls itself in its Lease.
        """
        name = f"scheduler-{secrets.token_hex(4)}"
        port = free_port()
        substituted = self.folder / f"{name}.yaml"
        substituted.write_text(json.dumps(self._substituted(configuration, extender)))
        self._run(name, *self._scheduler(substituted, port), program="kube-scheduler", host=host)
        try:
            await self._until_scheduling(name, port)
            yield Scheduler(f"https://127.0.0.1:{port}", self.log(name), self.running[name])
        finally:
            await asyncio.to_thread(stop, self.running.pop(name))

    def _store(self, name: str, url: str) -> None:
        """Start what the API server keeps everything in."""
        self._run(name, *_etcd(self.folder, url))

    def _run(self, name: str, *arguments: str, program: str = "", host: str = "") -> None:
        self.running[name] = start(self.programs / (program or name), *arguments, log=self.log(name), host=host)

    def _killed(self, name: str) -> list[str]:
        """Kill a program, and return what it was started with."""
        arguments, process = self._arguments(name), self.running.pop(name)
        process.kill()
        process.wait()
        return arguments

    def _arguments(self, name: str) -> list[str]:
        """Return what a program was started with."""
        process = self.running[name]
        assert isinstance(process.args, list)
        return process.args[process.args.index(str(self.programs / name)) + 1 :]

    def _api_server(self, etcd: str) -> list[str]:
        key = self.folder / "accounts.key"
        return [
            f"--etcd-servers={etcd}",
            f"--cert-dir={self.authority.parent}",
            f"--secure-port={self.url.rpartition(':')[2]}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-issuer={self.url}/",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--disable-admission-plugins={WITHOUT_ADMISSION}",
            f"--enable-admission-plugins={STRICTER_ADMISSION}",
            f"--admission-control-config-file={self.folder / 'admission.json'}",
        ]

    def _controllers(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            *RATES,
        ]

    def _scheduler(self, configuration: Path, port: int) -> list[str]:
        credentials = self.kubeconfig("scheduler")
        return [
            f"--config={configuration}",
            f"--authentication-kubeconfig={credentials}",
            f"--authorization-kubeconfig={credentials}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *OPTIONS.get(self.minor, [])[:1],
        ]

    def _substituted(self, configuration: Path, extender: str | None) -> dict[str, Any]:
        document: dict[str, Any] = yaml.safe_load(configuration.read_text())
        document.setdefault("clientConnection", {})["kubeconfig"] = str(self.kubeconfig("scheduler"))
        for each in document.get("extenders", []) if extender else []:
            each["urlPrefix"] = extender
        return document

    async def _until_scheduling(self, name: str, port: int) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        # Its certificate is made at its start and known to nobody.
        while not await asyncio.to_thread(_answers, f"https://127.0.0.1:{port}/readyz"):
            if self.running[name].poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"not ready: {self.told(name)}")
            await asyncio.sleep(0.1)


def _etcd(folder: Path, url: str) -> list[str]:
    peers = f"http://127.0.0.1:{free_port()}"
    addresses = [f"--listen-client-urls={url}", f"--advertise-client-urls={url}", f"--listen-peer-urls={peers}"]
    # Nobody reads it after the run.
    return [f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", *addresses]


def _until_ready(plane: Plane) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not (plane.authority.exists() and _answers(f"{plane.url}/readyz", plane.authority)):
        ended = [name for name, process in plane.running.items() if process.poll() is not None]
        if ended or time.monotonic() > end:
            raise RuntimeError(f"not ready: {', '.join(map(plane.told, ended or plane.running))}")
        time.sleep(0.1)


def _answers(url: str, authority: Path | None = None) -> bool:
    try:
        context = ssl.create_default_context(cafile=authority)
        if authority is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        https = urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
        with opener.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _admission() -> dict[str, Any]:
    version = "apiserver.config.k8s.io/v1"
    limited = [{"resource": "pods", "matchScopes": [LIMITED]}]
    quota = {"apiVersion": version, "kind": "ResourceQuotaConfiguration", "limitedResources": limited}
    plugins = [{"name": "ResourceQuota", "configuration": quota}]
    return {"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": plugins}
