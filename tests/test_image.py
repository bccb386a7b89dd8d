"""What the image promises: it serves as anybody, writes nothing, and needs no other program."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from extender.demo.apiserver.server import ApiServer
from tests.controlplane.processes import free_port
from tests.service.door import furnish
from tests.tree import ROOT
from tests.web.raw_client import connected

# Ends the process at the first thing that an image with a read-only root and no other programs could not do.
GUARD = """
import os, runpy, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
NAMES = "mkdir remove rename rmdir chmod chown link symlink truncate utime"
CHANGING = {f"os.{name}" for name in NAMES.split()}
def hook(event, arguments):
    is_writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
    is_running = event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
    if is_writing or is_running or event in CHANGING or event.startswith("tempfile."):
        os.write(2, f"GUARD {event} {arguments[:2]}\\n".encode())
        os._exit(70)
sys.addaudithook(hook)
PLANTED
sys.argv[:] = ["extender", *sys.argv[1:]]
runpy.run_module("extender", run_name="__main__")
"""
BARE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT), "PATH": "/nonexistent", "HOME": "/nonexistent"}


@asynccontextmanager
async def flags(folder: Path) -> AsyncIterator[tuple[list[str], int, int]]:
    """Run an API server; give the flags of a service for it, and the ports on which that answers."""
    server = ApiServer()
    furnish(server, ["n1"])
    cluster = {"name": "c", "cluster": {"server": await server.start()}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    whole = {"clusters": [cluster], "users": [{"name": "u", "user": {}}], "contexts": [context], "current-context": "c"}
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **whole}))
    verbs, probes = free_port(), free_port()
    listening = [f"--listen-verbs=127.0.0.1:{verbs}", f"--listen-probes=127.0.0.1:{probes}"]
    try:
        yield ["serve", f"--api-kubeconfig={path}", "--ownership-drivers=gpu.example.com", *listening], verbs, probes
    finally:
        await server.stop()


async def served(command: list[str], environment: Mapping[str, str], verbs: int, probes: int) -> tuple[int | None, str]:
    """Run the service until it is ready, ask it everything once, and end it; return its status and what it said."""
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd="/", stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        await ready(process, probes)
        if process.returncode is None:
            pod = {
                "metadata": {"name": "p", "namespace": "default", "uid": "u"},
                "spec": {"schedulerName": "dra-scheduler"},
            }
            async with connected(verbs) as connection:
                for verb in ("filter", "prioritize", "preempt"):
                    body = orjson.dumps({"Pod": pod, "NodeNames": ["n1"], "NodeNameToMetaVictims": {}})
                    assert (await connection.post(f"/{verb}", body)).status == 200
                body = orjson.dumps({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n1"})
                assert b"not found" in (await connection.post("/bind", body)).body
            async with connected(probes) as connection:
                assert (await connection.send(b"GET /metrics HTTP/1.1\r\nHost: e\r\n\r\n")).status == 200
            process.send_signal(signal.SIGTERM)
    finally:
        if process.returncode is None and sys.exc_info()[0]:
            process.kill()
        _, said = await process.communicate()
    return process.returncode, said.decode()


async def ready(process: asyncio.subprocess.Process, probes: int) -> None:
    """Wait until the service is ready, or has ended."""
    async with asyncio.timeout(60):
        while process.returncode is None:
            try:
                async with connected(probes) as connection:
                    if (await connection.send(b"GET /readyz HTTP/1.1\r\nHost: e\r\n\r\n")).status == 200:
                        return
            except (OSError, EOFError):
                pass
            await asyncio.sleep(0.05)


async def test_serving_writes_no_file_and_runs_no_program(tmp_path: Path) -> None:
    async with flags(tmp_path) as (arguments, verbs, probes):
        command = [sys.executable, "-c", GUARD.replace("PLANTED", ""), *arguments]
        status, said = await served(command, BARE, verbs, probes)
    assert (status, "GUARD" in said, "Traceback" in said) == (0, False, False), said


@pytest.mark.parametrize(
    "planted",
    [
        "open(sys.argv[2].partition('=')[2] + '.new', 'w')",
        "import subprocess; subprocess.run(['true'])",
        "import tempfile; tempfile.mkdtemp()",
        "os.mkdir('/x')",
    ],
)
async def test_what_an_image_could_not_do_is_noticed(tmp_path: Path, planted: str) -> None:
    async with flags(tmp_path) as (arguments, verbs, probes):
        command = [sys.executable, "-c", GUARD.replace("PLANTED", planted), *arguments]
        status, said = await served(command, BARE, verbs, probes)
    assert (status, "GUARD" in said) == (70, True), said


async def test_it_serves_where_the_root_can_only_be_read(tmp_path: Path) -> None:
    isolated = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    only_read = 'mount -o remount,ro,bind / && ! (: > /written) 2>/dev/null && exec "$@"'
    command = [*isolated, "sh", "-c", only_read, "sh"]
    if shutil.which("unshare") is None or await status_of(*command, "true") != 0:
        pytest.skip("no mount namespace can be had")
    async with flags(tmp_path) as (arguments, verbs, probes):
        environment = {**BARE, "PATH": os.environ["PATH"]}
        status, said = await served(
            [*command, sys.executable, "-m", "extender", *arguments], environment, verbs, probes
        )
    assert (status, "Traceback" in said) == (0, False), said


async def status_of(*command: str) -> int:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()


def test_the_image_has_compiled_what_it_runs_and_starts_no_shell() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    _, _, last = dockerfile.rpartition("\nFROM ")
    assert not re.search(r"^RUN ", last, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["/', last, re.MULTILINE)
    assert not re.search(r"^(ENTRYPOINT|CMD) [^\[]", last, re.MULTILINE)
    assert "PYTHONDONTWRITEBYTECODE=1" in last
    assert "compileall" in dockerfile
    user = re.search(r"^USER (\d+):(\d+)$", last, re.MULTILINE)
    assert user
    assert all(int(number) >= 1000 for number in user.groups())
