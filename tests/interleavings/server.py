"""The API server: requests lie before it until somebody decides what becomes of them; most of that is bad luck."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from extender.config.settings import Settings
from extender.demo.apiserver.failure import Failure, success
from extender.demo.apiserver.paths import Target, target_of
from extender.demo.apiserver.server import PATCHES, ApiServer
from extender.kube.answer import Answer, Unanswered
from extender.kube.request import Body, Query
from extender.state.domain import writer_of
from tests.interleavings.witness import Told, Witness

Json = dict[str, Any]
# How long a write can lie somewhere before it lands, whoever has given it up meanwhile.
LATE_S: Final = 30.0
TOUCHED: Final = "dra-extender.x-k8s.io/touched"
# Whoever speaks here is one of us: what others do, they do behind its back.
US: Final = writer_of(Settings().schedulers)
CONTENT: Final = {"content-type": "application/json"}


@dataclass(eq=False, slots=True)
class Request:
    """One request; *answer* is cancelled once nobody waits for it."""

    method: str
    path: str
    body: Body | None
    sent_at: float
    answer: "asyncio.Future[Answer | Unanswered]"
    sender: "Line"
    # What had been told when each binding began that its sender carries out, by pod.
    told: Mapping[str, Told] = field(default_factory=dict)
    # Whether it may lie for ever: who leads has seen to it that it changes nothing any more.
    is_outlived: bool = False

    @property
    def is_awaited(self) -> bool:
        return not self.answer.done()

    @property
    def gives_devices(self) -> bool:
        """Tell whether devices are given to a claim, which it had not."""
        steps = self.body.content if self.body else None
        return isinstance(steps, list) and any(
            step["path"] == "/status/allocation" and step.get("value") is not None for step in steps
        )

    @property
    def is_touch(self) -> bool:
        """Tell whether nothing is changed but the version."""
        content = self.body.content if self.body else None
        return isinstance(content, dict) and TOUCHED in (content.get("metadata") or {}).get("annotations", ())

    @property
    def is_write(self) -> bool:
        """Tell whether more is changed than the version."""
        return self.method != "GET" and not self.is_touch

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def told(status: int, content: Json, **headers: str) -> Answer:
    return Answer(status, {**CONTENT, **headers}, orjson.dumps(content))


def refusal(code: int, reason: str = "", **details: object) -> Answer:
    """Spell a refusal; a 429 names the pause that it asks for."""
    failure = Failure(code, "as the director wants it", reason=reason, details=details or None)
    return told(code, failure.status(), **({"retry-after": "1"} if code == 429 else {}))


@dataclass(slots=True)
class Desk:
    """Where requests lie, of every process that ever was."""

    api: ApiServer
    moment: Callable[[], float]
    happened: Counter[str]
    open: list[Request] = field(default_factory=list)
    # Those that have lain too long, unless who follows has seen to it that they change nothing.
    asleep: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    # Pods for whom others were evicted: once it is known that this does not help they may be sent elsewhere.
    excused: set[str] = field(default_factory=set)
    # Who knows what each binding was told, where that matters.
    witness: Witness | None = None
    # Tells whether who speaks by a line goes on no more.
    is_gone: Callable[["Line"], bool] = lambda _line: False
    # Says why a request must not arrive any more, or must not have been done.
    forbidden: Callable[[Request, bool], str] = lambda _request, _is_done: ""

    def perform(self, request: Request) -> Answer:
        """Have *request* done as the API server does it."""
        try:
            target = target_of(request.path, self.api.kinds)
            answer = self._performed(request, target)
        except Failure as failure:
            answer = told(failure.code, failure.status())
        if why := self.forbidden(request, answer.is_success):
            self.complaints.append(f"{request} arrives, and {why}")
        return answer

    def _performed(self, request: Request, target: Target) -> Answer:
        registry, content = self.api.registry, _plain(request.body)
        match request.method, target.part:
            case "GET", _:
                return told(200, registry.get(target.kind, target.key))
            case "POST", "binding":
                registry.bind(target.kind, target.key, content)
                return told(201, success())
            case "POST", _:
                return told(201, registry.create(target.kind, target.namespace, content))
            case "PUT", part:
                return told(200, registry.update(target.kind, target.key, part, lambda _old: content, manager=US))
            case "DELETE", _:
                return told(200, registry.delete(target.kind, target.key, content or {}))
        assert request.body is not None
        before = registry.get(target.kind, target.key)
        patch = PATCHES[request.body.content_type]
        made = registry.update(
            target.kind, target.key, target.part, lambda old: patch(old, content), is_patch=True, manager=US
        )
        self._note(before, made)
        if self.witness and target.kind.name == "ResourceClaim":
            self.complaints += self.witness.objections(request.told, request.sender.preferred, before, made)
        return told(200, made)

    def _note(self, before: Json, after: Json) -> None:
        """Count nominations and what is taken back of them; what is overwritten or taken back has to be our own."""
        was, node = _nominated(before), _nominated(after)
        if was == node:
            return
        self.happened["nominated" if node else "nomination taken back"] += 1
        managers = {entry["manager"] for entry in before["metadata"].get("managedFields") or ()}
        is_excused = node is not None and before["metadata"]["uid"] in self.excused
        if was and US not in managers and not is_excused:
            self.complaints.append(f"the nomination of {before['metadata']['name']} by somebody else is lost")

    def land(self, request: Request, *, is_heard: bool = True) -> None:
        """Do what *request* asks for; whoever waits for it may hear of it."""
        self.open.remove(request)
        answer = self.perform(request)
        if request.is_awaited:
            request.answer.set_result(answer if is_heard else Unanswered(was_sent=True, why="the answer was lost"))

    def refuse(self, request: Request, answer: Answer | Unanswered) -> None:
        """Answer *request* without doing anything."""
        self.open.remove(request)
        if request.is_awaited:
            request.answer.set_result(answer)

    def forget(self, request: Request) -> None:
        """Lose *request*: it never arrives, and nobody hears of it."""
        self.open.remove(request)

    def too_late(self) -> None:
        """Drop what has lain too long; what was sent by who goes on no more may lie until it is known who follows."""
        old = [each for each in self.open if self.moment() - each.sent_at > LATE_S and not each.is_outlived]
        self.open = [each for each in self.open if each not in old]
        self.asleep = [each for each in (*self.asleep, *old) if self.is_gone(each.sender)]


def _nominated(item: Json) -> str | None:
    return (item.get("status") or {}).get("nominatedNodeName")


def _plain(body: Body | None) -> Any:
    """Return what is sent as it arrives: bytes, read anew."""
    return None if body is None else orjson.loads(orjson.dumps(body.content))


class Line:
    """One process's line to the API server, in the place of ``kube.api.Api``; a dead process sends nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.is_dead = False
        # The placement documents of the process, one after the other.
        self.preferred: list[Json | None] = []

    async def call(
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = 10.0
    ) -> Answer | Unanswered:
        """Lay a request before the server, and wait."""
        del query
        if self.is_dead:
            raise asyncio.CancelledError
        if body and (why_not := body.why_not()):
            return Unanswered(was_sent=False, why=why_not)
        answer: asyncio.Future[Answer | Unanswered] = asyncio.get_running_loop().create_future()
        told = self._desk.witness.told(self) if self._desk.witness else {}
        self._desk.open.append(Request(method, path, body, self._desk.moment(), answer, self, told))
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            return Unanswered(was_sent=True, why=f"no answer within {timeout_s:g} s")

    async def read_as(self, _content_type: str, _path: str, *, timeout_s: float) -> Answer:
        """Answer at once in JSON, as whoever knows no other encoding: so a patch stays refused."""
        del timeout_s
        return Answer(200, {}, b"{}")
