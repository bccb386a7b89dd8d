"""Calls that no scheduler would make, and what must hold after each of them."""

import json
import logging
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any, Final, cast

import orjson

from tests.model.parse.damage import RUBBISH, damage
from tests.service.door import Door, Json, binding
from tests.web.raw_client import Answer, Connection

MILLION: Final = 1_000_000
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
# Only the verbs whose answers have no field for an error may fail, and only by saying what is wrong.
STATUSES: Final = {"filter": {200}, "bind": {200}, "prioritize": {200, 500}, "preempt": {200, 500}}
REFUSED: Final = frozenset((400, 413))
MAX_INT64: Final = 2**63 - 1


def asked(verb: str, pod: Json, names: list[str]) -> Json:
    """Return a body as the scheduler sends it."""
    if verb == "bind":
        return binding(pod, names[0])
    if verb == "preempt":
        victims = {name: {"Pods": [{"UID": f"victim-{name}"}], "NumPDBViolations": 0} for name in names}
        return {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    return {"Pod": pod, "Nodes": None, "NodeNames": names}


def places(raw: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of everything inside."""
    inside = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    return [place for key, value in inside for place in ((*path, key), *places(value, (*path, key)))]


def replaced(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy in which *value* stands at *path*."""
    whole = deepcopy(raw)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return whole


def spelt(raw: Any) -> bytes:
    """Write JSON, lone surrogates with it; a number that Python does not write in one piece alone."""
    try:
        return json.dumps(raw, separators=(",", ":")).encode(errors="surrogatepass")
    except ValueError:
        return b"9" * 5001


def broken(random: Random, raw: Json) -> bytes:
    """Damage the JSON in up to four places."""
    raw = deepcopy(raw)
    for _ in range(random.randint(1, 4)):
        damage(random, raw)
    return spelt(raw)


def one_replaced(random: Random, raw: Json) -> bytes:
    return spelt(replaced(raw, random.choice(places(raw)), deepcopy(random.choice(RUBBISH))))


def long_text(random: Random, raw: Json) -> bytes:
    texts = [place for place in places(raw) if isinstance(_at(raw, place), str)]
    letters = random.choice(("x", "\0", "é", '"', "\\", "\ud800", "𝄞", "1", "/"))
    return spelt(replaced(raw, random.choice(texts), letters * random.choice((300, 70_000, MILLION // 4))))


def twice(random: Random, raw: Json) -> bytes:
    """Say one thing twice, the second time differently."""
    key = random.choice(list(raw))
    return spelt(raw)[:-1] + b"," + spelt(key) + b":" + spelt(random.choice((None, [], {}, "x", 1))) + b"}"


def cut(random: Random, raw: Json) -> bytes:
    body = spelt(raw)
    return body[: random.randrange(len(body))]


def flipped(random: Random, raw: Json) -> bytes:
    body = bytearray(spelt(raw))
    for _ in range(random.randint(1, 5)):
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body)


def nested(random: Random, _raw: Json) -> bytes:
    depth = random.choice((100, 1000, 100_000))
    opening, closing = random.choice(((b"[", b"]"), (b'{"Pod":', b"}"), (b'{"NodeNames":[', b"]}")))
    return opening * depth + random.choice((b"", closing * depth))


def other(random: Random, raw: Json) -> bytes:
    """Say something else altogether, before or after, or instead."""
    body = spelt(raw)
    return random.choice(
        (*OTHERS, body + body, body + b"x", b" \n" + body + b"\r\n", b"\0" + body, b"\xef\xbb\xbf" + body)
    )


OTHERS: Final = (
    b"", b"null", b"true", b"0", b'""', b"[]", b"{}", b"[[]]", b'{"":{}}', b"nul", b"NaN", b"\xff\xfe",
    b'"' + b"x" * MILLION + b'"', b"x" * MILLION,
    b'{"Pod":{},"NodeNames":[]}', b'{"Pod":null,"Nodes":{"items":[null]}}',
    b'{"Pod":{},"Nodes":{"items":[{"metadata":{}}]}}', b'{"NodeNameToMetaVictims":{"n1":null},"Pod":{}}',
    b"1" * 10_000, b"-" * 1000, b"1e999999", b'{"a":1e99999}',
)  # fmt: skip


def other_names(random: Random, raw: Json) -> bytes:
    """Name nodes that are not there, some twice, thousands, or whole ones."""
    names = random.choice((
        ["n1"] * 3, ["n9"], ["n1", "n9", "n1"], [""], ["n1", ""], ["\u2028"], [f"n{number}" for number in range(5000)],
        [f"n{number}" for number in range(3000)] * 2, [*(["x" * 40] * 1500), 'n"1', "n,1"], ["\0"] * 2000, ["n1\n"],
    ))  # fmt: skip
    if "NodeNameToMetaVictims" in raw:
        return spelt({**raw, "NodeNameToMetaVictims": {name: {"Pods": None} for name in names}})
    whole = {"items": [{"metadata": {"name": name}} for name in names]}
    return spelt(random.choice(({**raw, "NodeNames": names}, {**raw, "NodeNames": None, "Nodes": whole})))


def fresh(random: Random, raw: Json) -> bytes:
    """Draw a small JSON value."""

    def drawn(depth: int) -> Any:
        kind = random.randrange(4 if depth else 2)
        if kind == 2:
            return [drawn(depth - 1) for _ in range(random.randrange(4))]
        if kind == 3:
            return {
                random.choice((*raw, "metadata", "name", "uid")): drawn(depth - 1) for _ in range(random.randrange(4))
            }
        return deepcopy(random.choice(RUBBISH))

    return spelt(drawn(5))


KINDS: Final[tuple[Callable[[Random, Json], bytes], ...]] = (
    broken, broken, one_replaced, one_replaced, long_text, twice, cut, flipped, nested, other, other_names, fresh,
)  # fmt: skip


class Noticed(logging.Handler):
    """Keeps what the log says of crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.crashes: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.crashes.append(logging.Formatter().format(record))


def _at(raw: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        raw = raw[key]
    return raw


def check(verb: str, answer: Answer) -> None:
    """See that kube-scheduler can do something with the answer."""
    assert answer.status in STATUSES[verb] | REFUSED, answer
    assert b"internal error" not in answer.body, answer
    # What is said of a request goes into conditions and logs.
    assert answer.status == 200 or 0 < len(answer.body) < 2000, answer.body[:100]
    if answer.status == 200:
        told = orjson.loads(answer.body)
        READERS[verb](told)
        assert isinstance(told, list) or len(told.get("Error") or "") < 2000


def _filtered(told: Json) -> None:
    assert isinstance(told["Error"], str)
    if told["Error"]:
        return
    assert told["NodeNames"] is None or all(isinstance(name, str) for name in told["NodeNames"])
    for reasons in (told["FailedNodes"], told["FailedAndUnresolvableNodes"]):
        assert all(isinstance(text, str) for pair in reasons.items() for text in pair)


def _scored(told: Any) -> None:
    assert isinstance(told, list)
    assert all(isinstance(pair["Host"], str) and type(pair["Score"]) is int for pair in told)


def _vetoed(told: Json) -> None:
    for victims in told["NodeNameToMetaVictims"].values():
        assert -MAX_INT64 <= victims["NumPDBViolations"] <= MAX_INT64
        assert all(isinstance(pod["UID"], str) for pod in victims["Pods"])


def _bound(told: Json) -> None:
    assert isinstance(told["Error"], str)


READERS: Final[dict[str, Callable[[Any], None]]] = {
    "filter": _filtered, "prioritize": _scored, "preempt": _vetoed, "bind": _bound,
}  # fmt: skip


def is_refused(verb: str, answer: Answer) -> bool:
    """Tell whether the request was not understood, so that it must have changed nothing."""
    unread = verb in ("filter", "bind") and answer.status == 200 and b'"Error":"Pod ' in answer.body
    return answer.status in REFUSED or unread


async def struck(door: Door, connection: Connection, random: Random, pod: Json) -> None:
    """Make one hostile call on *connection*, and see that nothing but its own answer comes of it."""
    verb = random.choice(VERBS)
    body = random.choice(KINDS)(random, asked(verb, pod, door.names))
    before = door.held()
    answer = await connection.post(f"/{verb}", body)
    check(verb, answer)
    if is_refused(verb, answer):
        assert door.held() == before, (verb, body[:1000])


async def good(door: Door, connection: Connection, pod: Json) -> None:
    """See that the scheduler is answered as ever, on the same connection."""
    for verb in ("filter", "prioritize", "preempt"):
        answer = await connection.post(f"/{verb}", orjson.dumps(asked(verb, pod, door.names)))
        check(verb, answer)
        assert answer.status == 200
        if verb == "filter":
            told = cast("Json", orjson.loads(answer.body))
            assert sorted(told["NodeNames"]) == door.names
