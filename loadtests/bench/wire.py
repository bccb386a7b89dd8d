"""What reading and writing the scheduler's calls costs, beside the plain way: JSON and a string for everything.

Each time is that of warm caches; another, in brackets, follows a walk through 96 MB, as between two calls of a
scheduler that is busy itself.
"""

import asyncio
import statistics
import sys
from collections.abc import Callable
from random import Random
from time import perf_counter

import numpy as np
import orjson
from aiohttp import web

from extender.web.name_table import NameTable
from extender.web.names import Names
from extender.web.reply import bind_reply, filter_reply, prioritize_reply
from extender.web.request import QUICK_FROM, Candidates, binding_of, candidates_of
from extender.web.verbs import Filtered
from loadtests.bench.report import Report, median_ms
from tests.web.raw_client import connected
from tests.web.record import POD, recorded
from tests.web.standin import StandIn, serving

SIZES = (500, 5_000, 15_000)
ROUNDS, COLD_ROUNDS = 60, 15
TEXT = "no device of the class is free"
# As large as pods are: their images, volumes, tolerations and environment.
LARGE = {
    **POD,
    "spec": {**POD["spec"], "tolerations": [{"key": f"example.com/{n}", "effect": "No"} for n in range(60)]},
}
WALK = np.zeros(96 << 20, np.uint8)

Work = Callable[[], object]


def times(work: Work) -> str:
    cold = []
    for _ in range(COLD_ROUNDS):
        WALK[::64] += 1
        started = perf_counter()
        work()
        cold.append(1e6 * (perf_counter() - started))
    return f"{1000 * median_ms(work, ROUNDS):.0f} us ({statistics.median(cold):.0f})"


class Calls:
    """Calls that name *count* nodes, each time in another order."""

    def __init__(self, count: int) -> None:
        self.nodes = [f"worker-{node:05}.rack-{node % 40:02}.example.com"[node % 3 :] for node in range(count)]
        orders = (Random(seed).sample(self.nodes, count) for seed in range(4))  # noqa: S311 - no secret
        self.bodies = [orjson.dumps({"Pod": LARGE, "Nodes": None, "NodeNames": order}) for order in orders]
        self.row_of = {name: row for row, name in enumerate(self.nodes)}
        self.table = NameTable(self.nodes)
        self._next = 0

    def read(self, *, is_fast: bool) -> Candidates:
        self._next += 1
        return candidates_of(self.bodies[self._next % len(self.bodies)], QUICK_FROM if is_fast else sys.maxsize)

    def looked_up(self, *, is_fast: bool) -> object:
        names = self.read(is_fast=is_fast).names
        if is_fast:
            return self.table.rows(names)
        return np.fromiter((self.row_of.get(name, -1) for name in names), np.int32, len(names))

    def plain(self) -> Candidates:
        """Read names that carry nothing but their strings."""
        asked = self.read(is_fast=False)
        return Candidates(asked.pod, Names(asked.names.json, asked.names.decoded))


def measure(count: int, report: Report) -> None:
    calls = Calls(count)
    fast, plain = calls.read(is_fast=True), calls.plain()
    names = plain.names.decoded
    shortlist, half, scores = names[:8], names[::2], [number % 11 for number in range(count)]
    memory, none = fast.names.json, Filtered(text=TEXT)

    def add(what: str, work: Work, beside: Work) -> None:
        report.add(f"{count} names: {what}", times(work), "", times(beside))

    add("body to names", lambda: calls.read(is_fast=True), lambda: calls.read(is_fast=False))
    add("body to rows", lambda: calls.looked_up(is_fast=True), lambda: calls.looked_up(is_fast=False))
    add("all pass", lambda: filter_reply(fast, Filtered(names=fast.names)), lambda: orjson.dumps(names))
    add("none passes", lambda: filter_reply(fast, none), lambda: filter_reply(plain, none))
    add("half pass", lambda: filter_reply(fast, Filtered(names=half)), lambda: orjson.dumps(half))
    add("8 pass", lambda: filter_reply(fast, Filtered(names=shortlist)), lambda: orjson.dumps(shortlist))
    add("scores", lambda: prioritize_reply(fast, scores), lambda: prioritize_reply(plain, scores))
    add("names known by their bytes", lambda: fast.names.json == memory[:], lambda: calls.read(is_fast=True))


async def over_sockets(report: Report) -> None:
    """Compare aiohttp's server as we use it with its application: routing, and everything around it."""
    application = web.Application()
    application.router.add_post("/bind", bound)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with serving(StandIn()) as server:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(await called(server.ports[0]))
            theirs.append(await called(site.port))
    await runner.cleanup()
    report.add("bind over a socket", f"{statistics.median(ours):.0f} us", "", f"{statistics.median(theirs):.0f} us")


async def bound(request: web.Request) -> web.Response:
    return web.Response(body=bind_reply("" if binding_of(await request.read()).uid else "no uid"))


async def called(port: int) -> float:
    """Return the median of some calls on one connection, in microseconds."""
    spent = []
    async with connected(port) as connection:
        for _ in range(ROUNDS):
            started = perf_counter()
            await connection.post("/bind", recorded("bind"))
            spent.append(1e6 * (perf_counter() - started))
    return statistics.median(spent)


if __name__ == "__main__":
    kept = Report("wire")
    for size in SIZES:
        measure(size, kept)
    started = perf_counter()
    NameTable([f"node-{number}" for number in range(SIZES[-1])])
    kept.add(f"a table of {SIZES[-1]} names", f"{1000 * (perf_counter() - started):.0f} ms")
    asyncio.run(over_sockets(kept))
    kept.keep()
