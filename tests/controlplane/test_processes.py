"""What runs beside the tests has ports of its own, and says why it is not ready."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.probes import until_ready
from tests.controlplane.processes import BLOCK, PORTS, free_port, start

MANY = 2 * BLOCK
OTHER = f"from tests.controlplane.processes import free_port; print(*(free_port() for _ in range({MANY}))); input()"


def test_no_port_is_given_twice_whichever_process_asks() -> None:
    command = [sys.executable, "-c", OTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = [int(port) for port in other.stdout.readline().split()]
        ours = [free_port() for _ in range(MANY)]
        other.communicate("\n")
    assert len({*theirs, *ours}) == 2 * MANY


def test_ports_of_a_block_that_is_used_up_are_held_still() -> None:
    # Programs are started again on the port that they had.
    given = [free_port() for _ in range(MANY)]
    blocks = {port - (port - PORTS.start) % BLOCK for port in given}
    for block in blocks:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", block))


async def test_a_program_that_ends_before_it_is_ready_is_told_with_what_it_said(tmp_path: Path) -> None:
    log = tmp_path / "short.log"
    process = start(Path(sys.executable), "-c", "raise SystemExit('no such luck')", log=log)
    with pytest.raises(RuntimeError, match="it has ended: short: no such luck"):
        await until_ready(process, free_port(), log)
