"""A control plane that keeps everything in a database behind kine, as k3s does with several servers."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_port, start, stop

# Built from its own repository, with cgo: of what it can keep things in, SQLite needs nothing else to run.
PROGRAM = os.environ.get("KINE", "")


class OnKine(Plane):
    """Each API server has a kine of its own, and these have one database, at which each looks once a second."""

    @asynccontextmanager
    async def second(self) -> AsyncIterator[str]:
        """Run one more API server, with a kine of its own; give its address."""
        name, url = "kine-2", f"http://127.0.0.1:{free_port()}"
        self._store(name, url)
        try:
            async with self.second_server(url) as (address, _process):
                yield address
        finally:
            stop(self.running.pop(name))

    def _store(self, name: str, url: str) -> None:
        # As k3s has it, but for the wait for the disk.
        database = f"sqlite://{self.folder / 'kine.db'}?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate"
        listen = f"--listen-address=tcp://{url.removeprefix('http://')}"
        arguments = (f"--endpoint={database}", listen, "--metrics-bind-address=0")
        self.running[name] = start(Path(PROGRAM), *arguments, log=self.log(name))
