"""Programs in the background that never outlive this one, and ports for them."""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")
# Below those that the kernel gives to outgoing connections: nobody takes one between our look and its use.
PORTS = range(20_000, 32_000)
BLOCK = 60
PATIENCE_SECONDS = 10


def start(program: Path, *arguments: str, log: Path, host: str = "") -> subprocess.Popen[bytes]:
    """Start *program*, on a machine called *host*; it is killed when this process ends, even when that is killed."""
    named = [f"--host={host}"] if host else []
    command = [sys.executable, "-I", str(LEASH), str(os.getpid()), *named, str(program), *arguments]
    # Nothing on loopback goes through a proxy.
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    with log.open("ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and wait for it: politely, then not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def can_name_hosts() -> bool:
    """Tell whether programs may be started on machines so called: the kernel lets not everybody."""
    return (
        subprocess.run(
            [sys.executable, "-I", str(LEASH), str(os.getpid()), "--host=test", "/bin/true"],
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
        == 0
    )


def free_port() -> int:
    """Return a port on loopback that nobody listens on, and that nobody is given again."""
    for port in _GIVEN:
        if (held := _held(port)) is not None:
            held.close()
            return port
    raise RuntimeError("all ports are given")


def _ports() -> Iterator[int]:
    """Go through blocks of ports; whoever holds the first port of one, for as long as it lives, has all of it."""
    with ExitStack() as holders:
        for block in random.sample(PORTS[::BLOCK], len(PORTS[::BLOCK])):
            if (held := _held(block)) is not None:
                holders.enter_context(held)
                yield from range(block + 1, block + BLOCK)


def _held(port: int) -> socket.socket | None:
    """Hold a port, without listening to it; None where it is somebody's."""
    holder = socket.socket()
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return None
    return holder


_GIVEN = _ports()
