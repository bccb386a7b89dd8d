import asyncio
import json
import logging
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

import orjson
import pytest
import uvloop
from aiohttp import ClientConnectionError, ClientSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.scheduling.endings import Order
from extender.telemetry.keys import ERROR_ID, REASON, VERB
from extender.telemetry.metrics import Metrics
from extender.web import listener, routes
from extender.web.listener import ListenerLimits
from extender.web.server import MOST_STRANGE, Address, Application, CannotListen, Options, Server
from extender.web.verbs import Failed, Filtered
from tests.web.raw_client import connected
from tests.web.record import BODIES, NAMES, POD, recorded
from tests.web.standin import ANYWHERE, StandIn, begun, come, serving
from tests.web.test_request import damaged

VERBS = {"filter": "filter-names", "prioritize": "prioritize-names", "preempt": "preempt-meta", "bind": "bind"}
RESULTS = re.compile(r'dra_extender_verb_duration_seconds_count\{result="(\w+)",verb="(\w+)"\} (\d+)\.0')


def url(server: Server, path: str) -> str:
    return f"http://127.0.0.1:{server.ports[0]}{path}"


def probe(server: Server, path: str) -> str:
    return f"http://127.0.0.1:{server.ports[1]}{path}"


async def measured(server: Server) -> dict[tuple[str, str], int]:
    """Count the calls by verb and result, as a scrape shows them."""
    async with ClientSession() as session, session.get(probe(server, "/metrics")) as answer:
        found = RESULTS.findall(await answer.text())
    return {(verb, result): int(count) for result, verb, count in found if int(count)}


@pytest.mark.parametrize("verb", VERBS)
async def test_an_answer_has_a_length_and_is_neither_chunked_nor_compressed(verb: str) -> None:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        answer = await connection.post(f"/{verb}", recorded(VERBS[verb]))
    assert answer.status == 200
    assert int(answer.headers["content-length"]) == len(answer.body) > 0
    assert not {"transfer-encoding", "content-encoding"} & answer.headers.keys()


async def test_a_connection_serves_all_calls_of_a_pod() -> None:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        for verb, name in VERBS.items():
            answer = await connection.post(f"/{verb}", recorded(name))
            assert (answer.status, answer.headers.get("connection")) == (200, None)


async def test_refusals_and_errors_leave_the_connection_open() -> None:
    standin = StandIn(accepted=Failed("not now"))
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        for verb, body, status in (("filter", b"[]", 400), ("preempt", recorded("preempt-meta"), 500)):
            assert (await connection.post(f"/{verb}", body)).status == status
        assert (await connection.post("/filter", recorded("filter-names"))).status == 200


def test_idle_connections_outlive_those_of_the_scheduler() -> None:
    assert ListenerLimits().keep_alive_seconds > 120


async def test_an_idle_connection_ends_after_its_keep_alive_time() -> None:
    limits = ListenerLimits(keep_alive_seconds=0.05)
    async with serving(StandIn(), limits=limits) as server, connected(server.ports[0]) as connection:
        await connection.post("/filter", recorded("filter-names"))
        assert await connection.ends() == b""


async def test_fifteen_thousand_names_are_taken_and_answered() -> None:
    names = [f"node-{index:05}.rack-{index % 40}.cluster.example.com" for index in range(15_000)]
    body = orjson.dumps({"Pod": POD, "Nodes": None, "NodeNames": names})
    standin = StandIn(filtered=Filtered(text="no device is free"))
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        answer = orjson.loads((await connection.post("/filter", body)).body)
    assert standin.asked[0][1] == names
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(names, "no device is free")


async def test_w1_errors_go_where_each_verb_has_room_for_them() -> None:
    standin = StandIn(filtered=Filtered(error="E"), bound="E", accepted=Failed("E"))
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        for verb in ("filter", "bind"):
            answer = await connection.post(f"/{verb}", recorded(VERBS[verb]))
            assert (answer.status, orjson.loads(answer.body)) == (200, {"Error": "E"})
        answer = await connection.post("/preempt", recorded(VERBS["preempt"]))
        assert (answer.status, answer.body) == (500, b"E")
        assert await measured(server) == dict.fromkeys(((verb, "error") for verb in VERBS if verb != "prioritize"), 1)


@pytest.mark.parametrize("verb", VERBS)
async def test_w1_what_no_scheduler_sends_is_refused(verb: str) -> None:
    async with serving(StandIn()) as server, ClientSession() as session:
        async with session.post(url(server, f"/{verb}"), data=b"<html>") as answer:
            assert (answer.status, (await answer.text())[:23]) == (400, "the body is no JSON: un")
        async with session.get(url(server, f"/{verb}")) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert await measured(server) == {(verb, "refused"): 1}


async def test_a_path_that_is_no_verb_is_not_found() -> None:
    async with serving(StandIn()) as server, ClientSession() as session, session.post(url(server, "/scores")) as answer:
        assert (answer.status, await answer.text()) == (
            404,
            "no such path; verbs are filter, prioritize, preempt, bind",
        )


async def test_a_verb_that_there_is_not_is_told_once_and_no_more_than_so_many(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(StandIn()) as server, ClientSession() as session:
        for path in ("/scores", "/scores", *(f"/{number}" for number in range(2 * MOST_STRANGE))):
            async with session.post(url(server, path)) as answer:
                assert answer.status == 404
    told = [vars(record)[VERB] for record in caplog.records if record.msg == "there is no such verb"]
    assert told == ["scores", *map(str, range(MOST_STRANGE - 1))]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
async def test_a_body_that_is_too_large_is_refused_told_and_counted(
    is_chunked: bool,  # noqa: FBT001 - a column
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ListenerLimits(max_body_bytes=1000)
    async with serving(StandIn(), limits=limits) as server, connected(server.ports[0]) as connection:
        if is_chunked:
            head = "POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n"
            answer = await connection.send(head.encode() + b" " * 2000 + b"\r\n0\r\n\r\n")
        else:
            answer = await connection.post("/filter", b" " * 2000)
        assert await measured(server) == {("filter", "refused"): 1}
    assert (answer.status, answer.body) == (413, b"the body is larger than 1000 bytes")
    (line,) = caplog.records
    told = line.getMessage(), line.__dict__[VERB], line.__dict__[REASON]
    assert told == ("a request could not be read", "filter", "the body is larger than 1000 bytes")


async def test_a_pod_that_cannot_be_read_is_an_error_that_names_the_field() -> None:
    body = orjson.dumps({"Pod": {**POD, "spec": {"priority": "high"}}, "NodeNames": NAMES})
    standin = StandIn()
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        answer = await connection.post("/filter", body)
        assert answer.status == 200
        assert orjson.loads(answer.body) == {"Error": "Pod lab/trainer-0: spec.priority: is no integer"}
        for verb in ("prioritize", "preempt"):
            answer = await connection.post(f"/{verb}", body)
            assert (answer.status, answer.body) == (500, b"Pod lab/trainer-0: spec.priority: is no integer")
    assert standin.asked == []


@pytest.mark.parametrize("verb", VERBS)
async def test_a_crash_is_an_error_with_an_id_that_the_log_carries(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    bug = RuntimeError("a bug")
    standin = StandIn(filtered=bug, scores=bug, accepted=bug, bound=bug)
    caplog.set_level(logging.ERROR)
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        first = await connection.post(f"/{verb}", recorded(VERBS[verb]))
        again = await connection.post(f"/{verb}", recorded(VERBS[verb]))
        assert await measured(server) == {(verb, "crash"): 2}
    has_field = verb in ("filter", "bind")
    text = orjson.loads(first.body)["Error"] if has_field else first.body.decode()
    assert (first.status, text) == (
        200 if has_field else 500,
        f"internal error {caplog.records[0].__dict__[ERROR_ID]}, see the extender's log",
    )
    assert again.body == first.body
    assert caplog.records[0].exc_info


async def test_what_is_remembered_of_a_pod_is_shown() -> None:
    standin = StandIn(known={ObjectKey("lab", "trainer-0"): {"node": "worker-1"}})
    async with serving(standin) as server, ClientSession() as session:
        async with session.get(url(server, "/v1/decisions/lab/trainer-0")) as answer:
            assert (answer.status, await answer.json()) == (200, {"node": "worker-1"})
        async with session.get(url(server, "/v1/decisions/lab/other")) as answer:
            assert (answer.status, await answer.text()) == (404, "nothing is remembered of lab/other")
        async with session.get(url(server, "/v1/decisions/lab/unknown")) as answer:
            assert await answer.text() == "nothing is remembered of lab/unknown; unknown is not known"
        async with session.post(url(server, "/v1/decisions/lab/trainer-0")) as answer:
            assert answer.status == 405


async def test_a_bug_beside_the_verbs_has_an_id_as_well(caplog: pytest.LogCaptureFixture) -> None:
    standin = StandIn(known={ObjectKey("lab", "trainer-0"): object()})
    async with serving(standin) as server, ClientSession() as session:
        answer = await session.get(url(server, "/v1/decisions/lab/trainer-0"))
        assert (answer.status, (await answer.text())[:14]) == (500, "internal error")
    assert caplog.records[0].__dict__[ERROR_ID] in await answer.text()


async def test_an_address_that_is_taken_is_an_error_and_leaves_nothing_open() -> None:
    async with serving(StandIn()) as server:
        taken = Address("127.0.0.1", server.ports[1])
        standin = StandIn()
        late = Server(Application(standin, standin, standin, Metrics()), Options(verbs=ANYWHERE, probes=taken))
        with pytest.raises(CannotListen, match="address already in use") as caught:
            await late.start()
        assert (caught.value.which, f":{taken.port} " in str(caught.value)) == ("probes", True)
        assert all(listener._runner is None for listener in late._listeners)


@pytest.mark.parametrize("host", ["..", f"{70 * 'a'}.example", 80 * "ü"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_host_that_is_no_name_is_an_error_and_leaves_nothing_open(
    host: str, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    standin = StandIn()
    options = Options(verbs=ANYWHERE, probes=Address(host, 1))

    async def started() -> None:
        server = Server(Application(standin, standin, standin, Metrics()), options)
        with pytest.raises(CannotListen, match=f"{host}:1 cannot be listened on: ") as caught:
            await server.start()
        assert caught.value.which == "probes"
        assert all(listener._runner is None for listener in server._listeners)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(started())


async def test_o2_probes_and_metrics_have_a_listener_that_only_reads() -> None:
    standin = StandIn()
    async with serving(standin) as server, ClientSession() as session:
        for path in ("/livez", "/readyz", "/metrics"):
            async with session.get(probe(server, path)) as answer:
                assert answer.status == 200
            async with session.get(url(server, path)) as answer:
                assert answer.status == 404
            async with session.post(probe(server, path)) as answer:
                assert answer.status == 405
        for path in ("/filter", "/bind", "/v1/decisions/lab/trainer-0"):
            async with session.get(probe(server, path)) as answer:
                assert answer.status == 404
    assert standin.asked == []


async def test_whoever_is_ready_says_what_is_not_as_it_should_be() -> None:
    standin = StandIn(worries=["no owner taint"])
    async with (
        serving(standin) as server,
        ClientSession() as session,
        session.get(probe(server, "/readyz")) as answer,
    ):
        assert (answer.status, await answer.text()) == (200, "ok\nno owner taint")


async def test_readiness_says_what_is_missing() -> None:
    standin = StandIn(lacking=["pods are not listed", "nodes are not listed"], alive=False)
    async with serving(standin) as server, ClientSession() as session:
        async with session.get(probe(server, "/readyz")) as answer:
            assert (answer.status, await answer.text()) == (503, "pods are not listed\nnodes are not listed")
        async with session.get(probe(server, "/livez")) as answer:
            assert answer.status == 500


class Waiting(StandIn):
    """Binds when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.released, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def bind(self, order: Order) -> str:
        self.begun.set()
        await self.released.wait()
        self.ended.set()
        return await super().bind(order)


async def test_a_call_in_progress_is_answered_before_the_server_stops() -> None:
    standin = Waiting()
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        answering = asyncio.create_task(connection.post("/bind", recorded("bind")))
        await standin.begun.wait()
        stopping = asyncio.create_task(server.stop())
        await refuses(server.ports[0])
        standin.released.set()
        assert orjson.loads((await answering).body) == {"Error": ""}
        await stopping


async def test_a_call_that_is_still_being_read_is_answered_before_the_server_stops() -> None:
    body = recorded("filter-names")
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        rest = await begun(server, connection, body)
        stopping = asyncio.create_task(server.stop())
        await refuses(server.ports[0])
        assert (await connection.send(rest)).status == 200
        await stopping


@pytest.mark.parametrize("turns", range(4))
async def test_a_call_that_has_just_come_is_answered_before_the_server_stops(turns: int) -> None:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        rest = await come(server, connection, recorded("filter-names"), turns=turns)
        answered = asyncio.create_task(connection.send(rest))
        await server.stop()
        assert (await answered).status == 200


@pytest.mark.parametrize("turns", range(4))
async def test_a_call_that_has_just_come_is_answered_before_its_authority_goes(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    monkeypatch.setattr(listener.Listener, "_again", accepted_at_once)
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        rest = await come(server, connection, recorded("filter-names"), turns=turns)
        answered = asyncio.create_task(connection.send(rest))
        await server._listeners[0].renew(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ends_others=True)
        assert (await answered).status == 200
        assert await connection.ends() == b""


async def accepted_at_once(*_told: object) -> list[asyncio.Server]:
    """Be done in the turn in which it was asked for."""
    return []


async def test_what_is_no_call_holds_up_no_end_in_the_turn_in_which_it_comes() -> None:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        await come(server, connection, b"", turns=0, head="no call\r\n\r\n")
        await server.stop()
        assert not server._listeners[0]._reading


async def test_whoever_sends_no_more_of_a_call_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "READ_ON_SECONDS", 0.05)
    limits = ListenerLimits(shutdown_seconds=1000)
    async with serving(StandIn(), limits=limits) as server, connected(server.ports[0]) as connection:
        await begun(server, connection, recorded("filter-names"))
        await server.stop()
        assert await connection.ends() == b""


async def refuses(port: int) -> None:
    """Wait until nobody listens any more."""
    with suppress(OSError):
        while True:
            async with connected(port):
                await asyncio.sleep(0)


async def test_a_scheduler_that_gives_up_does_not_end_its_bind() -> None:
    standin = Waiting()
    async with serving(standin) as server:
        async with connected(server.ports[0]) as connection:
            answering = asyncio.create_task(connection.post("/bind", recorded("bind")))
            await standin.begun.wait()
            answering.cancel()
        standin.released.set()
        await standin.ended.wait()


async def test_a_client_that_goes_amid_its_second_call_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    head = b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: "
    async with serving(StandIn()) as server:
        for turns in range(20):
            async with connected(server.ports[0]) as connection:
                connection.writer.write(head + b"2\r\n\r\n{}" + head + b"9\r\n\r\n{")
                for _ in range(turns % 4):
                    await asyncio.sleep(0)
                connection.writer.transport.abort()
        async with connected(server.ports[0]) as connection:
            assert (await connection.post("/bind", recorded("bind"))).status == 200
    assert [record.message for record in caplog.records if record.exc_info] == []


async def test_other_calls_are_answered_while_a_bind_waits() -> None:
    standin = Waiting()
    async with serving(standin) as server, connected(server.ports[0]) as one, connected(server.ports[0]) as other:
        answering = asyncio.create_task(one.post("/bind", recorded("bind")))
        await standin.begun.wait()
        assert (await other.post("/filter", recorded("filter-names"))).status == 200
        standin.released.set()
        await answering


class InTurns(StandIn):
    """Filters after some turns only."""

    left = 3

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        self.left -= 1
        return super().filter(pod, names) if self.left < 0 else Filtered(error="not yet", goes_on=True)


async def test_an_answer_that_takes_several_turns_is_waited_for() -> None:
    async with serving(InTurns()) as server, connected(server.ports[0]) as connection:
        answer = orjson.loads((await connection.post("/filter", recorded("filter-names"))).body)
    assert not answer.get("Error")
    assert answer["NodeNames"]


async def test_other_calls_are_answered_between_the_turns_of_a_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "TURNS_S", 60.0)
    (standin := InTurns()).left = 1 << 60
    async with serving(standin) as server, connected(server.ports[0]) as busy, connected(server.ports[0]) as other:
        call = asyncio.create_task(busy.post("/filter", recorded("filter-names")))
        assert (await other.post("/bind", recorded("bind"))).status == 200
        assert not call.done()
        standin.left = 0
        assert orjson.loads((await call).body)["NodeNames"]


async def test_what_takes_too_many_turns_is_an_error_after_which_the_scheduler_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "TURNS_S", 0.0)
    async with serving(InTurns()) as server, connected(server.ports[0]) as connection:
        bodies = [(await connection.post("/filter", recorded("filter-names"))).body for _ in range(4)]
    answers = [orjson.loads(body) for body in bodies]
    assert [answer.get("Error", "") for answer in answers] == ["not yet"] * 3 + [""]


async def test_after_it_has_stopped_nobody_is_answered() -> None:
    async with serving(StandIn()) as server, ClientSession() as session:
        await server.stop()
        for address in (url(server, "/filter"), probe(server, "/livez")):
            with pytest.raises(ClientConnectionError):
                await session.get(address)


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls"),
        pytest.param(b"GARBAGE\r\n\r\n", id="garbage"),
        pytest.param(b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: x\r\n\r\n", id="length"),
        pytest.param(b"POST /filter HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="chunk-size"),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", id="gzip"
        ),
        pytest.param(b"POST /" + b"f" * 20_000 + b" HTTP/1.1\r\nHost: e\r\n\r\n", id="long-line"),
    ],
)
async def test_what_is_no_http_is_refused_and_harms_nobody(request_bytes: bytes) -> None:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        connection.writer.write(request_bytes)
        assert (await connection.answer()).status == 400
        async with connected(server.ports[0]) as other:
            assert (await other.post("/filter", recorded("filter-names"))).status == 200


async def test_a_client_that_leaves_within_its_body_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(StandIn()) as server:
        async with connected(server.ports[0]) as connection:
            connection.writer.write(b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 100\r\n\r\n{")
            await connection.writer.drain()
        async with connected(server.ports[0]) as other:
            assert (await other.post("/filter", recorded("filter-names"))).status == 200
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@settings(max_examples=100, suppress_health_check=[HealthCheck.differing_executors])
@given(st.sampled_from(sorted(BODIES)), st.sampled_from(sorted(VERBS)), st.data())
def test_no_damage_to_a_body_makes_a_verb_fail(name: str, verb: str, data: st.DataObject) -> None:
    body = damaged(recorded(name), data)
    status, answer = asyncio.run(answered(verb, body))
    # A pod that cannot be read is no answer of these two, hence the 500.
    assert status in ({200, 400} if verb in {"filter", "bind"} else {200, 400, 500})
    assert b"internal error" not in answer
    if status == 200:
        json.loads(answer)


async def answered(verb: str, body: bytes) -> tuple[int, bytes]:
    async with serving(StandIn()) as server, connected(server.ports[0]) as connection:
        answer = await connection.post(f"/{verb}", body)
        return answer.status, answer.body


async def test_what_is_no_http_is_no_page_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with serving(StandIn()) as server:
        for port in server.ports:
            for said in (b"POST /filter HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"POST / HTTP/1.1\r\n: \r\n\r\n"):
                async with connected(port) as connection:
                    assert (await connection.send(said)).status == 400
    assert caplog.records == []


async def test_a_long_error_is_cut_to_what_a_condition_holds() -> None:
    long = "e" * 5000
    standin = StandIn(filtered=Filtered(error=long), bound=long, accepted=Failed(long))
    async with serving(standin) as server, connected(server.ports[0]) as connection:
        for verb in ("filter", "preempt", "bind"):
            answer = await connection.post(f"/{verb}", recorded(VERBS[verb]))
            assert answer.body.count(b"e" * 1024) == 1
            assert len(answer.body) < 1100


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "BODY_SECONDS", 0.05)
    limits = ListenerLimits(lingering_seconds=0)
    async with serving(StandIn(), limits=limits) as server, connected(server.ports[0]) as connection:
        answer = await connection.send(b"POST /filter HTTP/1.1\r\nHost: e\r\nContent-Length: 100\r\n\r\n{")
        assert (answer.status, answer.body) == (408, b"the body did not come")
        assert await connection.ends() == b""
