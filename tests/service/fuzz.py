"""Hostile calls through HTTP to a service in a cluster in memory: ``python -m tests.service.fuzz --seconds 60``."""

import argparse
import asyncio
import logging
import time

from extender.config.settings import Ownership, Settings
from tests.allocation.cel.expressions import seeded
from tests.service.door import opened
from tests.service.hostile import Noticed, good, struck
from tests.web.raw_client import connected

# An owner that has a taint says that it cannot be kept where no drivers are named.
UNTAINTED = Settings(ownership=Ownership(owner_taint=""))


async def calls(seed: int, seconds: float) -> int:
    """Call for *seconds*; return how often."""
    noticed, random, end, called = Noticed(), seeded(seed), time.monotonic() + seconds, 0
    logging.getLogger().handlers[:] = [noticed]
    async with opened(settings=UNTAINTED) as door, connected(door.service.server.ports[0]) as connection:
        door.leave_unattended()
        pod, victim = await door.pod("good", devices=0), await door.pod("victim")
        while not called or time.monotonic() < end:
            state = random.getstate()
            try:
                await struck(door, connection, random, victim)
                await good(door, connection, pod)
                assert noticed.crashes == []
            except BaseException:
                print(f"seed {seed}, call {called}, state {hash(state)}")  # noqa: T201 - a command line prints
                raise
            called += 1
    return called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    print(f"{asyncio.run(calls(arguments.seed, arguments.seconds))} hostile calls, no finding")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
