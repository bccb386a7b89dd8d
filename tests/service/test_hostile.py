"""Hostile and broken calls through HTTP: each is answered, nothing comes of it, and the next is answered as ever."""

import asyncio
import gzip
import json
import logging
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.door import Door, opened
from tests.service.hostile import VERBS, Noticed, asked, check, good, is_refused, places, replaced, spelt, struck
from tests.web.raw_client import connected

Json = dict[str, Any]
Rig = tuple[asyncio.Runner, Door, Json, Json]


@asynccontextmanager
async def staged() -> AsyncIterator[tuple[Door, Json, Json]]:
    """Open the door, with a pod that is asked about as ever and one whose bodies are damaged."""
    async with opened() as door:
        door.leave_unattended()
        yield door, await door.pod("good", devices=0), await door.pod("victim")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with asyncio.Runner() as runner:
        stage = staged()
        entered = runner.run(stage.__aenter__())
        yield runner, *entered
        runner.run(stage.__aexit__(None, None, None))


@pytest.fixture(autouse=True)
def noticed() -> Iterator[Noticed]:
    """See that the log tells of no crash, whatever comes."""
    handler = Noticed()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    assert handler.crashes == []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_no_call_does_anything_but_get_its_answer(rig: Rig, random: Random) -> None:
    runner, door, pod, victim = rig

    async def calls() -> None:
        async with connected(door.service.server.ports[0]) as connection:
            for _ in range(3):
                await struck(door, connection, random, victim)
            await good(door, connection, pod)

    runner.run(calls())


@pytest.mark.parametrize("value", [None, 0, -1, 2**63, 1.5, True, "", "x", [], [None], {}, {"": None}], ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_every_part_of_a_body_may_be_of_another_kind(rig: Rig, verb: str, value: object) -> None:
    runner, door, pod, victim = rig
    body = asked(verb, victim, door.names)

    async def calls() -> None:
        async with connected(door.service.server.ports[0]) as connection:
            for place in places(body):
                before = door.held()
                answer = await connection.post(f"/{verb}", spelt(replaced(body, place, value)))
                check(verb, answer)
                assert not is_refused(verb, answer) or door.held() == before
            await good(door, connection, pod)

    runner.run(calls())


def request(body: bytes, *headers: str, line: str = "POST /filter HTTP/1.1") -> bytes:
    return "\r\n".join((line, "Host: e", *headers, "", "")).encode() + body


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\nTrailer: x\r\n\r\n"


def transport(good: bytes) -> dict[str, tuple[bytes, list[int]]]:
    """Return requests that are odd on the way, with the codes of what is answered: nothing to what does not end."""
    length = f"Content-Length: {len(good)}"
    packed = {"gzip": gzip.compress(good), "deflate": zlib.compress(good), "br": good}
    encoded = {
        name: (
            request(body, f"Content-Encoding: {name}", f"Content-Length: {len(body)}"),
            [200 if name == "br" else 400],
        )
        for name, body in packed.items()
    }
    return encoded | {
        "chunks": (request(chunked(good, 7), "Transfer-Encoding: chunked"), [200]),
        "chunk-size": (request(b"zz\r\n" + good, "Transfer-Encoding: chunked"), [400]),
        "chunk-huge": (request(b"f" * 17 + b"\r\n" + good, "Transfer-Encoding: chunked"), [400]),
        "chunk-cut": (request(b"ff\r\n{", "Transfer-Encoding: chunked"), []),
        "length-long": (request(good, f"Content-Length: {len(good) + 9}"), []),
        "length-short": (request(good, f"Content-Length: {len(good) - 9}"), [400]),
        "length-none": (request(good), [400]),
        "length-twice": (request(good, length, "Content-Length: 1"), [400]),
        "length-below-zero": (request(good, "Content-Length: -1"), [400]),
        "length-and-chunks": (request(chunked(good, 9), length, "Transfer-Encoding: chunked"), [400]),
        "chunks-by-another-name": (request(chunked(good, 9), "Transfer-Encoding: xchunked"), [400]),
        "expectation": (request(good, length, "Expect: 100-continue"), [200]),
        "old": (request(good, length, line="POST /filter HTTP/1.0"), [200]),
        "newer": (request(good, length, line="POST /filter HTTP/3.7"), [400]),
        "http2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
        "absolute": (request(good, length, line="POST http://e/filter HTTP/1.1"), [200]),
        "query": (request(good, length, line="POST /filter?x=1 HTTP/1.1"), [200]),
        "slash": (request(good, length, line="POST /filter/ HTTP/1.1"), [404]),
        "slashes": (request(good, length, line="POST //filter HTTP/1.1"), [404]),
        "climbing": (request(good, length, line="POST /x/../filter HTTP/1.1"), [404]),
        "capitals": (request(good, length, line="POST /FILTER HTTP/1.1"), [404]),
        "no-letter": (request(b"", "Content-Length: 0", line="POST /%ED%A0%80%00%ff HTTP/1.1"), [404]),
        "decision": (request(b"", line="GET /v1/decisions/%ED%A0%80/%00%0d%0a HTTP/1.1"), [404]),
        "decision-of-nobody": (request(b"", line="GET /v1/decisions// HTTP/1.1"), [404]),
        "upgrade": (request(good, length, "Connection: Upgrade", "Upgrade: websocket"), [200]),
        "folded": (request(good, length, "X: a", " b"), [400]),
        "nothing-in-a-header": (request(good, length, "X: \0"), [400]),
        "no-colon": (request(good, length, "X"), [400]),
        "two-at-once": (request(good, length) * 2, [200, 200]),
        "many-headers": (request(good, length, *(f"X-{number}: x" for number in range(500))), [400]),
    }


ODD = sorted(transport(b"{}"))


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_on_the_way_is_answered_or_ended_and_harms_nobody(rig: Rig, name: str) -> None:
    runner, door, pod, _ = rig
    sent, codes = transport(orjson.dumps(asked("filter", pod, door.names)))[name]

    async def call() -> None:
        before, port = door.held(), door.service.server.ports[0]
        async with connected(port) as connection, connected(port) as beside:
            connection.writer.write(sent)
            assert [(await connection.answer()).status for _ in codes] == codes
            await good(door, beside, pod)
        assert door.held() == before

    runner.run(call())


FLEET = [f"node-{number:05}.rack-{number % 40}.example.com" for number in range(15_000)]


@pytest.mark.parametrize("at", [0, 7_500, 14_999])
@pytest.mark.parametrize("bad", [None, 1, {}, [], True], ids=repr)
def test_one_bad_name_among_fifteen_thousand_is_named(rig: Rig, at: int, bad: object) -> None:
    runner, door, pod, _ = rig
    names: list[Any] = [*FLEET[:at], bad, *FLEET[at + 1 :]]
    whole: list[Any] = [{"metadata": {"name": name}} for name in FLEET]
    whole[at] = {"metadata": {"name": bad}}

    async def call() -> None:
        async with connected(door.service.server.ports[0]) as connection:
            for verb in ("filter", "prioritize"):
                body = {"Pod": pod, "Nodes": None, "NodeNames": names}
                answer = await connection.post(f"/{verb}", orjson.dumps(body))
                assert (answer.status, answer.body) == (400, f"NodeNames[{at}]: is no string".encode())
                body = {"Pod": pod, "Nodes": {"items": whole}, "NodeNames": None}
                answer = await connection.post(f"/{verb}", orjson.dumps(body))
                assert (answer.status, answer.body.partition(b":")[0]) == (
                    400,
                    f"Nodes.items[{at}].metadata.name".encode(),
                )
            await good(door, connection, pod)

    runner.run(call())


@pytest.mark.parametrize(
    ("names", "passed"),
    [
        (["n1", "n1", "n2"], {"n1", "n2"}),
        (["n9", "n1"], {"n1"}),
        (["n1", *FLEET, "n1"], {"n1"}),
        (FLEET, set()),
        ([], set()),
    ],
    ids=["twice", "unknown", "twice-among-many", "unknown-all", "none"],
)
@pytest.mark.parametrize("is_whole", [False, True], ids=["names", "nodes"])
def test_names_that_are_twice_there_or_nobodys_are_answered_by_those_that_were_asked(
    rig: Rig, names: list[str], passed: set[str], *, is_whole: bool
) -> None:
    runner, door, _, victim = rig
    nodes = {"items": [{"metadata": {"name": name}} for name in names]}
    body = {"Pod": victim, "Nodes": nodes if is_whole else None, "NodeNames": None if is_whole else names}

    async def call() -> None:
        async with connected(door.service.server.ports[0]) as connection:
            answer = await connection.post("/filter", orjson.dumps(body))
            check("filter", answer)
            told = orjson.loads(answer.body)
            found = [node["metadata"]["name"] for node in told["Nodes"]["items"]] if is_whole else told["NodeNames"]
            # A node that the pod has come back from may be left out.
            assert set(found) <= passed
            assert bool(found) == bool(passed)
            failed = {**told["FailedNodes"], **told["FailedAndUnresolvableNodes"]}
            assert set(failed) <= set(names) - passed
            assert passed or set(failed) == set(names)

    runner.run(call())


def test_a_million_letters_are_no_name_and_are_not_remembered(rig: Rig) -> None:
    runner, door, pod, victim = rig
    long = "x" * 1_000_000

    async def call() -> None:
        async with connected(door.service.server.ports[0]) as connection:
            for verb in VERBS:
                body = asked(verb, victim, door.names)
                for place in [place for place in places(body) if place[-1] in ("name", "uid", "namespace", *BINDING)]:
                    before = door.held()
                    check(verb, await connection.post(f"/{verb}", spelt(replaced(body, place, long))))
                    assert verb == "filter" or door.held() == before
            await good(door, connection, pod)

    runner.run(call())
    remembered = json.dumps([str(vars_of(door.service.journal.decisions)), list(map(str, door.service.belief.ledger))])
    assert "x" * 5000 not in remembered


BINDING = ("PodName", "PodNamespace", "PodUID", "Node")


def vars_of(decisions: Any) -> Any:
    return [decisions.get(pod) for pod in (*decisions._open, *decisions._packed)]
