"""The control plane of the tests is what a cluster has, and ends with its run."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.client import until
from tests.controlplane.plane import Plane
from tests.controlplane.programs import PLANE

KILLED = """
import sys, time
from pathlib import Path
from tests.controlplane.plane import Plane
plane = Plane(Path(sys.argv[1]), Path(sys.argv[2]))
plane.start()
print(*(process.pid for process in plane.running.values()), flush=True)
time.sleep(1000)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody waits for after its end does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def broken(tmp_path: Path) -> Plane:
    """Return a plane whose programs say their version, and otherwise complain and end."""
    for name in PLANE:
        (tmp_path / name).write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo Kubernetes v1.37.1\necho no disk\n')
        (tmp_path / name).chmod(0o755)
    return Plane(tmp_path, tmp_path)


def test_a_program_that_ends_at_its_start_is_quoted(broken: Plane) -> None:
    with pytest.raises(RuntimeError, match=r"not ready: .*no disk"):
        broken.start()
    with pytest.raises(RuntimeError, match=r"ended before its time: .*no disk"):
        broken.stop()
    assert broken.running == {}


async def test_the_processes_of_a_killed_run_end(control_plane: Plane, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(control_plane.programs), str(tmp_path)]
    run = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert run.stdout is not None
    pids = [int(pid) for pid in (await run.stdout.readline()).split()]
    assert len(pids) == 3
    assert all(map(alive, pids))
    run.kill()
    await run.wait()

    async def ended() -> bool:
        return not any(map(alive, pids))

    await until(ended)


async def test_the_extender_may_read_pods_and_a_stranger_may_not(control_plane: Plane) -> None:
    async with control_plane.client("extender") as extender, control_plane.client("stranger") as stranger:
        assert (await extender.call("GET", "/api/v1/pods")).status == 200
        assert (await stranger.call("GET", "/api/v1/pods")).status == 403
