"""Writes of ours that go wrong on their way to a real API server."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from extender.kube.answer import Answer, Unanswered
from extender.kube.request import Body, Query
from extender.kube.writes import Writes
from tests.controlplane.client import Object
from tests.e2e.world import Stage

Call = Callable[[], Awaitable[Answer | Unanswered]]
Fault = Callable[[Call], Awaitable[Answer | Unanswered]]


class Unreliable:
    """An API server's connection on which the first request that *concerns* somebody has a *fault*."""

    def __init__(self, real: Any, concerns: Callable[[str, str], bool], fault: Fault) -> None:
        self.real, self.concerns, self.fault = real, concerns, fault
        self.is_over = False

    async def call(
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = 10.0
    ) -> Answer | Unanswered:
        def real() -> Awaitable[Answer | Unanswered]:
            found: Awaitable[Answer | Unanswered] = self.real.call(
                method, path, query=query, body=body, timeout_s=timeout_s
            )
            return found

        if self.is_over or not self.concerns(method, path):
            return await real()
        self.is_over = True
        return await self.fault(real)


@contextmanager
def faulty(stage: Stage, concerns: Callable[[str, str], bool], fault: Fault) -> Iterator[None]:
    """Have one of our writes go wrong."""
    binds = stage.service.answers.binds
    carrier = binds.carrier
    api: Any = Unreliable(carrier.writes.api, concerns, fault)
    binds.carrier = replace(carrier, writes=Writes(api, carrier.writes.claims, carrier.writes.timeout_s))
    try:
        yield
    finally:
        binds.carrier = carrier


def allocation_of(claim: Object) -> Callable[[str, str], bool]:
    """Return whether a request writes devices into *claim*."""
    return lambda method, path: method == "PATCH" and path.endswith(f"/{claim['metadata']['name']}/status")


def binding(method: str, path: str) -> bool:
    return method == "POST" and path.endswith("/binding")


class Late:
    """A fault: no answer, while the request is on its way still."""

    def __init__(self) -> None:
        self.outcome: Answer | Unanswered | None = None
        self.call: Call | None = None

    async def __call__(self, call: Call) -> Unanswered:
        self.call = call
        return Unanswered(was_sent=True, why="a test")

    async def arrive(self) -> Answer:
        """Let the request arrive, and return its answer."""
        assert self.call is not None
        answer = await self.call()
        assert isinstance(answer, Answer)
        return answer
