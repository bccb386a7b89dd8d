"""The scheduler's four verbs: read the body, ask, write the answer; and nothing that goes wrong gets past here."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Final, NamedTuple

from extender.model.problem import Problem
from extender.telemetry.keys import PROBLEM, REASON, VERB
from extender.telemetry.metrics import Metrics
from extender.web.crash import reported
from extender.web.reply import bind_reply, error_reply, filter_reply, preempt_reply, prioritize_reply, said
from extender.web.request import QUICK_FROM, Known, Unreadable, binding_of, candidates_of, eviction_of, nobody
from extender.web.verbs import Failed, Verbs

LOG: Final = logging.getLogger(__name__)

# For how long the scheduler waits for an answer that takes several turns; then it asks again after a second or more.
TURNS_S: Final = 1.0
OK, ERROR, REFUSED, CRASH = "ok", "error", "refused", "crash"


class Reply(NamedTuple):
    """What goes out: only a 200 is an answer, the body of anything else is for people with a trace."""

    status: int
    body: bytes
    result: str = OK


Answering = Callable[[bytes], Awaitable[Reply]]


class Routes:
    """Answers the verbs by name."""

    def __init__(self, verbs: Verbs, metrics: Metrics, *, is_fast: bool = True, known: Known = nobody) -> None:
        self._verbs, self._metrics, self._known = verbs, metrics, known
        self._quick_from = QUICK_FROM if is_fast else sys.maxsize
        self.by_verb: Mapping[str, Answering] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }

    async def answer(self, verb: str, body: bytes) -> Reply:
        """Answer one call, whatever happens."""
        started = perf_counter()
        try:
            reply = await self.by_verb[verb](body)
        except Unreadable as error:
            LOG.warning("a request could not be read", extra={VERB: verb, REASON: str(error)})
            reply = Reply(400, said(str(error)).encode(), REFUSED)
        except Exception as error:  # noqa: BLE001 - the scheduler is to hear of any bug, and the next call to be answered
            reply = _crash(verb, error)
        self._metrics.verb(verb, reply.result, perf_counter() - started)
        return reply

    async def _filter(self, body: bytes) -> Reply:
        asked = candidates_of(body, self._quick_from, self._known)
        self._metrics.named("filter", len(asked.names))
        if isinstance(asked.pod, Problem):
            return _error(_unreadable("filter", asked.pod))
        await self._verbs.hear(asked.pod)
        begun, answer = perf_counter(), self._verbs.filter(asked.pod, asked.names)
        while answer.goes_on and perf_counter() - begun < TURNS_S:
            # Others are answered in between.
            await asyncio.sleep(0)
            answer = self._verbs.filter(asked.pod, asked.names)
        return Reply(200, filter_reply(asked, answer), ERROR if answer.error else OK)

    async def _prioritize(self, body: bytes) -> Reply:
        asked = candidates_of(body, self._quick_from, self._known)
        self._metrics.named("prioritize", len(asked.names))
        if isinstance(asked.pod, Problem):
            return _failure(_unreadable("prioritize", asked.pod))
        return Reply(200, prioritize_reply(asked, self._verbs.prioritize(asked.pod, asked.names)))

    async def _preempt(self, body: bytes) -> Reply:
        asked = eviction_of(body)
        self._metrics.named("preempt", len(asked.victims))
        if isinstance(asked.pod, Problem):
            return _failure(_unreadable("preempt", asked.pod))
        accepted = self._verbs.preempt(asked.pod, asked.victims)
        return _failure(accepted.text) if isinstance(accepted, Failed) else Reply(200, preempt_reply(accepted))

    async def _bind(self, body: bytes) -> Reply:
        error = await self._verbs.bind(binding_of(body))
        return Reply(200, bind_reply(error), ERROR if error else OK)


def _unreadable(verb: str, problem: Problem) -> str:
    LOG.warning("a pod could not be read", extra={VERB: verb, PROBLEM: str(problem)})
    return str(problem)


def _error(text: str) -> Reply:
    return Reply(200, error_reply(text), ERROR)


def _failure(text: str) -> Reply:
    """Fail a verb whose answer has no field for an error."""
    return Reply(500, said(text).encode(), ERROR)


def _crash(verb: str, error: Exception) -> Reply:
    text = reported(error, f"/{verb}")
    return (_error(text) if verb in {"filter", "bind"} else _failure(text))._replace(result=CRASH)
