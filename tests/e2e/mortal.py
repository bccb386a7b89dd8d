"""The service as a program that dies as soon as the API server has answered a certain request, before it is read.

    python -m tests.e2e.mortal KUBECONFIG PORT PROBES PATTERN [CONFIGURATION]

PATTERN is searched in the method and the path: "PATCH .*/status$".
"""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from extender.config.load import load
from extender.config.settings import Settings
from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.credentials import credentials
from extender.kube.request import Body, Query
from extender.service import assembly
from extender.web.server import Address, Options
from tests.accepting import accepting


class Mortal(Api):
    """The API server as the last thing that it hears."""

    async def call(
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = 10.0
    ) -> Answer | Unanswered:
        answer = await super().call(method, path, query=query, body=body, timeout_s=timeout_s)
        if re.search(sys.argv[4], f"{method} {path}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


async def main() -> None:
    options = Options(verbs=Address("127.0.0.1", int(sys.argv[2])), probes=Address("127.0.0.1", int(sys.argv[3])))
    settings = accepting(load(Path(sys.argv[5])) if sys.argv[5:] else Settings())
    async with assembly.running(settings, await credentials(sys.argv[1]), options):
        await asyncio.Event().wait()


if __name__ == "__main__":
    assembly.Api = Mortal  # type: ignore[attr-defined]  # the same, until it dies
    asyncio.run(main())
