"""The control plane of the tests is what a cluster has, and ends with its run."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.controlplane.client import until
from tests.controlplane.plane import Plane

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
