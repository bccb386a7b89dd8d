"""Users of the verbs: each is a kube-scheduler that takes pods through filter, prioritize and bind, one by one.

Closed: the next pod when the last is done. Open: a pod each so many seconds (``--every``), done or not: what comes
while another is under way waits for its turn, and that is counted.
"""

import json
import random
import time
import urllib.request
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import gevent
from locust import FastHttpUser, constant, events

from loadtests.load.bodies import Who, binding, captured, made, window
from loadtests.load.budget import ALONE, Measured, exceeded

SHAPES = ("one", "four", "selector", "nic", "hopeless")
BATCH = 12
# What the extender says of a claim that its watch has not brought yet.
NOT_THERE = "there is no claim"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
TURNS = count()


def _arguments(parser: Any) -> None:  # noqa: ANN401 - locust's own parser has no type
    parser.add_argument("--api", required=True, help="the API server of the load tests")
    parser.add_argument("--names", type=int, default=500, help="nodes that each pod is offered")
    parser.add_argument(
        "--mix", default="one:8,four:3,selector:4,nic:3,hopeless:2", help="shapes of pods, with weights"
    )
    parser.add_argument("--every", type=float, default=0.0, help="seconds from pod to pod of each user; 0 is closed")
    parser.add_argument("--budgeted", action="store_true", help="fail beyond the budgets of loadtests/load/budget.py")
    parser.add_argument("--told", default="", help="file for what was measured")


def _judged(environment: Any, **_: object) -> None:  # noqa: ANN401 - locust's own environment has no type
    options, entries = environment.parsed_options, environment.stats.entries.values()
    found = {entry.name: _measured(entry) for entry in entries}
    said = exceeded(found, ALONE if options.budgeted else (), options.names)
    environment.process_exit_code = 1 if said or not found else 0
    if options.told:
        faults = {f"{error.name}: {error.error}": error.occurrences for error in environment.stats.errors.values()}
        Path(options.told).write_text(json.dumps({"verbs": found, "exceeded": said, "faults": faults}))


def _measured(entry: Any) -> Measured:  # noqa: ANN401 - locust's own statistics have no type
    at = entry.get_response_time_percentile
    return Measured(entry.num_requests, entry.num_failures, at(0.5), at(0.99), entry.total_rps)


def _learned(environment: Any, **_: object) -> None:  # noqa: ANN401 - locust's own environment has no type
    """Find out which nodes there are, once and before the clock runs: of 15,000 that takes a second."""
    Scheduler.nodes = json.loads(_asked(f"{environment.parsed_options.api}/load/names"))


def _asked(url: str, body: bytes | None = None) -> str:
    with DIRECT.open(urllib.request.Request(url, body), timeout=30) as response:  # noqa: S310 - our own address
        return str(response.read().decode())


events.init_command_line_parser.add_listener(_arguments)
events.init.add_listener(_learned)
events.quitting.add_listener(_judged)


class Scheduler(FastHttpUser):  # type: ignore[misc]  # locust is not where types are checked
    """One kube-scheduler."""

    wait_time = constant(0)
    nodes: Sequence[str] = ()

    def on_start(self) -> None:
        """Find out what is asked."""
        self.waiting: list[tuple[str, Who]] = []
        self.ended: list[str] = []
        self.options = self.environment.parsed_options
        weighed = (part.split(":") for part in self.options.mix.split(","))
        self.mix = [shape for shape, weight in weighed for _ in range(int(weight))]
        self.bodies = {shape: captured(shape, "filter") for shape in set(self.mix)}
        self.bound = captured("one", "bind")
        self.due = time.monotonic()

    def on_stop(self) -> None:
        """Leave nothing behind."""
        self._end(self.ended + [who.name for _, who in self.waiting])

    def pod(self) -> None:
        """Take one pod through its cycle, at its time."""
        if not self.waiting:
            self._renew()
        if self.options.every:
            self.due += self.options.every
            gevent.sleep(max(0.0, self.due - time.monotonic()))
        began, (shape, who) = time.perf_counter(), self.waiting.pop()
        self.ended.append(who.name)
        self._cycle(shape, who)
        late = max(0.0, time.monotonic() - self.due) if self.options.every else time.perf_counter() - began
        self.environment.events.request.fire(
            request_type="POD", name="pod", response_time=1000 * late, response_length=0, exception=None, context={}
        )

    tasks = (pod,)

    def _cycle(self, shape: str, who: Who) -> None:
        names = window(self.nodes, next(TURNS), min(self.options.names, len(self.nodes)))
        random.shuffle(names)
        told = self._call("filter", made(self.bodies[shape], who, names), shape)
        offered = told.get("NodeNames") if told else None
        if not offered:
            return
        if len(offered) > 1:
            scores = self._call("prioritize", made(self.bodies[shape], who, offered), shape) or []
            offered = [max(scores, key=lambda score: score["Score"])["Host"]] if scores else offered
        self._call("bind", binding(self.bound, who, offered[0]), shape)

    def _call(self, verb: str, body: bytes, shape: str) -> Any:  # noqa: ANN401 - whatever JSON says
        headers = {"Content-Type": "application/json"}
        with self.client.post(f"/{verb}", data=body, headers=headers, name=verb, catch_response=True) as response:
            told = json.loads(response.content) if response.status_code == 200 else None
            fault = f"status {response.status_code}" if told is None else _fault(verb, told, shape)
            if fault:
                response.failure(fault)
            else:
                response.success()
        return told

    def _renew(self) -> None:
        """Have pods made, and wait until the extender is shown the last one."""
        self._end(self.ended)
        self.ended = []
        shapes = [random.choice(self.mix) for _ in range(BATCH)]  # noqa: S311 - no secret depends on it
        raws = json.loads(_asked(f"{self.options.api}/load/pods?count={BATCH}&shapes={','.join(shapes)}"))
        people = (Who(*(raw["metadata"][key] for key in ("namespace", "name", "uid"))) for raw in raws)
        self.waiting = list(zip(shapes, people, strict=True))
        shape, who = self.waiting[-1]
        question = made(self.bodies[shape], who, self.nodes[:1])
        while NOT_THERE in _asked(f"{self.host}/filter", question):
            gevent.sleep(0.01)
        self.due = time.monotonic()

    def _end(self, names: list[str]) -> None:
        _asked(f"{self.options.api}/load/end", json.dumps(names).encode())


def _fault(verb: str, told: Any, shape: str) -> str:  # noqa: ANN401 - whatever JSON says
    """Say what is wrong with an answer: hopeless pods are to be rejected, and others are not."""
    if verb == "prioritize":
        return "" if told else "no scores"
    if told.get("Error"):
        return str(told["Error"])
    if verb == "filter" and bool(told.get("NodeNames")) == (shape == "hopeless"):
        return "offered though hopeless" if shape == "hopeless" else "rejected"
    return ""
