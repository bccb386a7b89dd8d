"""What the load tests start: an API server that answers at once, the extender on it, and servers beside it."""

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.verbs import world
from loadtests.verbs.program import built
from loadtests.verbs.timed import BLOCKS
from tests.controlplane.processes import free_port, start, stop

Json = dict[str, Any]
PATIENCE_S = 120
LOOK_S = 0.01
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Handled(NamedTuple):
    """What a handler took, what it worked of that, and what it waited for claims before, in milliseconds."""

    took: float
    worked: float
    waited: float


@dataclass(frozen=True, slots=True)
class Extender:
    """A running extender, how long it took to be ready, and the file of its calls."""

    url: str
    probes: int
    process: subprocess.Popen[bytes]
    ready_s: float
    calls: Path

    def resident_mb(self, what: str = "VmRSS") -> float:
        """Return its resident memory, or with VmHWM the most that it ever had."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(what)) * 1024 / 1e6

    def blocks(self) -> int:
        """Return how many blocks of memory it has in use."""
        known = len(self._counted())
        self.process.send_signal(signal.SIGUSR2)
        end = time.monotonic() + PATIENCE_S
        while len(counted := self._counted()) == known:
            if time.monotonic() > end:
                raise RuntimeError("the extender does not count its blocks of memory")
            time.sleep(LOOK_S)
        return counted[-1]

    def _counted(self) -> list[int]:
        calls = (line.split() for line in self.calls.read_text().splitlines(keepends=True) if line.endswith("\n"))
        return [int(call[2]) for call in calls if call[1] == BLOCKS]

    def handled(self, verb: str, began: float, ended: float) -> list[Handled]:
        """Return what its handlers took from *began* to *ended*."""
        self.blocks()  # with which all of them are written
        calls = (line.split() for line in self.calls.read_text().splitlines())
        return [
            Handled(*(1000 * float(seconds) for seconds in call[3:]))
            for call in calls
            if call[1] == verb and began <= float(call[0]) <= ended
        ]


@dataclass(frozen=True, slots=True)
class Stand:
    """A running API server with a cluster in it."""

    folder: Path
    written: int
    url: str
    safe_url: str
    authority: Path

    @contextmanager
    def extender(self, *flags: str, tls: bool = False) -> Iterator[Extender]:
        """Run the extender as people do, and wait until it is ready; with *tls* that is how it speaks to the server."""
        port, probes = free_port(), free_port()
        calls = self.folder / f"calls-{port}"
        arguments = [
            *("-m", "loadtests.verbs.timed", str(calls), "serve", f"--api-kubeconfig={self._kubeconfig(tls=tls)}"),
            *(f"--listen-verbs=127.0.0.1:{port}", f"--listen-probes=127.0.0.1:{probes}"),
            "--ownership-accept-unpartitioned=true",
        ]
        began = time.monotonic()
        with _running(Path(sys.executable), *arguments, *flags, log=self.folder / "extender.log") as process:
            _await(f"http://127.0.0.1:{probes}/readyz", process)
            yield Extender(f"http://127.0.0.1:{port}", probes, process, time.monotonic() - began, calls)

    @contextmanager
    def static(self, names: int = 8) -> Iterator[str]:
        """Run the server that answers the same always, and makes the same writes."""
        port = free_port()
        arguments = ["-m", "loadtests.verbs.static", f"--api={self.url}", f"--port={port}", f"--names={names}"]
        with _running(Path(sys.executable), *arguments, log=self.folder / "static.log") as process:
            _await(f"http://127.0.0.1:{port}/prioritize", process)
            yield f"http://127.0.0.1:{port}"

    def cycle(self, extender: str, *flags: str) -> Json:
        """Take pods through filter, prioritize and bind; return what that took."""
        command = [str(built()), "cycle", f"-extender={extender}", f"-api={self.url}", *flags]
        ran = subprocess.run(command, capture_output=True, check=False)
        if ran.returncode:
            raise RuntimeError(ran.stderr.decode()[-2000:])
        told: Json = json.loads(ran.stdout)
        return told

    def ask(self, path: str) -> Any:  # noqa: ANN401 - whatever JSON says
        """Ask the API server for what no other has."""
        with DIRECT.open(f"{self.url}{path}", timeout=PATIENCE_S) as response:
            return json.load(response)

    def _kubeconfig(self, *, tls: bool) -> Path:
        safe = {"server": self.safe_url, "certificate-authority": str(self.authority)}
        cluster = safe if tls else {"server": self.url}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "load",
            "contexts": [{"name": "load", "context": {"cluster": "load", "user": "load"}}],
            "clusters": [{"name": "load", "cluster": cluster}],
            "users": [{"name": "load", "user": {"token": "load"}}],
        }
        path = self.folder / f"kubeconfig-{free_port()}"
        path.write_text(json.dumps(document))
        return path


@contextmanager
def stand(size: world.Size) -> Iterator[Stand]:
    """Write a cluster, and run the API server that has it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "objects").mkdir()
        written = world.write(folder / "objects", size)
        with served(folder, written) as made:
            yield made


@contextmanager
def served(folder: Path, written: int) -> Iterator[Stand]:
    """Run an API server for the cluster in *folder*; another one there has the same and goes its own way."""
    port, safe = free_port(), free_port()
    authority = folder / f"authority-{safe}.pem"
    arguments = [f"-folder={folder / 'objects'}", f"-port={port}", f"-tls={safe}", f"-authority={authority}"]
    with _running(built(), "apiserver", *arguments, log=folder / f"apiserver-{port}.log") as process:
        url = f"http://127.0.0.1:{port}"
        _await(f"{url}/apis", process)
        yield Stand(folder, written, url, f"https://127.0.0.1:{safe}", authority)


@contextmanager
def _running(program: Path, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = start(program, *arguments, log=log)
    try:
        yield process
    except BaseException:
        sys.stderr.write(log.read_text(errors="replace")[-2000:])
        raise
    finally:
        stop(process)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until *url* is answered with a success."""
    end = time.monotonic() + PATIENCE_S
    while not _answers(url):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{url} does not answer")
        time.sleep(LOOK_S)


def _answers(url: str) -> bool:
    try:
        with DIRECT.open(url, timeout=PATIENCE_S):
            return True
    except OSError:
        return False
