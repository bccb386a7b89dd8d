"""Damaged calls for the scheduler's door: ``python -m tests.web.fuzz --seconds 60``."""

import argparse
import asyncio
import json
import logging
import time
from contextlib import suppress
from random import Random
from typing import Any

from extender.telemetry.metrics import Metrics
from extender.web.request import Unreadable, candidates_of
from extender.web.routes import CRASH, Reply, Routes
from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import damage
from tests.web.record import BODIES, recorded
from tests.web.standin import StandIn

# Answers that say what is wrong: only the two verbs without a field for it may fail with a 500.
STATUSES = {"filter": {200, 400}, "bind": {200, 400}, "prioritize": {200, 400, 500}, "preempt": {200, 400, 500}}


def damaged(random: Random) -> bytes:
    """Return a recorded body, damaged in up to four places of its JSON and then perhaps in one of its bytes."""
    raw: Any = json.loads(recorded(random.choice(sorted(BODIES))))
    for _ in range(random.randint(0, 4)):
        damage(random, raw)
    body = bytearray(json.dumps(raw, separators=(",", ":")).encode(errors="surrogatepass"))
    if random.random() < 0.5:
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body)


async def call(routes: Routes, random: Random) -> None:
    """Make one damaged call of every verb."""
    try:
        body = damaged(random)
    except ValueError:
        return  # a number that Python does not write in one piece
    with suppress(Unreadable):
        candidates_of(body, quick_from=0)
    for verb, statuses in STATUSES.items():
        reply: Reply = await routes.answer(verb, body)
        assert reply.result != CRASH, (verb, body)
        assert reply.status in statuses, (verb, body, reply)
        assert reply.status != 200 or json.loads(reply.body) is not None


async def calls(random: Random, seconds: float) -> int:
    """Call for *seconds*; return how often."""
    routes, end, called = Routes(StandIn(), Metrics()), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await call(routes, random)
        called += 1
    return called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    logging.disable()
    called = asyncio.run(calls(seeded(arguments.seed), arguments.seconds))
    print(f"{called} damaged calls, no finding")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
