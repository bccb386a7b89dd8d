"""One request: what comes back, or what is known where nothing does."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer, Unanswered, complaint_of
from extender.kube.api import Api, Stream, resource_of
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown, outcome_of
from extender.kube.request import Body
from extender.kube.resource import CLAIMS, Served
from extender.kube.writes import Writes
from extender.model.names import ObjectKey, Uid
from extender.scheduling.steps import Later, Refusal
from tests.kube.scripted import HANGING, Script, failure, response, scripted, status

PATH = "/api/v1/things"


@pytest.fixture
async def peer() -> AsyncIterator[tuple[Script, Api]]:
    async with scripted() as pair:
        yield pair


async def test_an_answer_is_returned_whatever_its_status(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, response(b"<html>", 502, "X-Header: Value", kind="text/html"))
    answer = await api.call("GET", PATH)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body, answer.headers["x-header"]) == (502, b"<html>", "Value")
    assert answer.json() is None


async def test_a_request_that_nobody_takes_was_not_sent() -> None:
    api = Api(Fixed(Access(server="http://127.0.0.1:1")))
    answer = await api.call("POST", PATH, body=Body({}))
    await api.close()
    assert isinstance(answer, Unanswered)
    assert not answer.was_sent


async def test_nobody_is_told_where_in_memory_the_context_of_tls_is() -> None:
    api = Api(Fixed(Access(server="https://127.0.0.1:1", tls=ssl.create_default_context())))
    answers = await api.call("GET", PATH), await api.open(PATH), await api.call("POST", PATH, body=Body({}))
    await api.close()
    refused = "ClientConnectorError: Cannot connect to host 127.0.0.1:1 [Connect call failed ('127.0.0.1', 1)]"
    assert [answer.why for answer in answers if isinstance(answer, Unanswered)] == [refused] * 3


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
async def test_a_request_that_is_cut_off_may_have_been_acted_on(peer: tuple[Script, Api], answer: bytes) -> None:
    script, api = peer
    script.add(PATH, answer)
    got = await api.call("POST", PATH, body=Body({}))
    assert isinstance(got, Unanswered)
    assert got.was_sent


async def test_a_request_without_an_answer_in_time_may_have_been_acted_on(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, HANGING)
    # As long as this machine needs to send it.
    for timeout_s in (0.05, 0.5, 5.0):
        answer = await api.call("POST", PATH, body=Body({}), timeout_s=timeout_s)
        if script.asked:
            break
    assert answer == Unanswered(was_sent=True, why=f"no answer within {timeout_s:g} s")


async def test_a_write_that_is_refused_for_its_token_and_then_cut_off_is_unknown(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, failure(401, "Unauthorized"), b"")
    got = await api.call("POST", PATH, body=Body({}))
    assert isinstance(got, Unanswered)
    assert got.was_sent
    assert len(script.asked) == 2


async def test_redirects_are_not_followed(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, response(b"", 302, f"Location: {script.url}/elsewhere"))
    answer = await api.call("GET", PATH)
    assert isinstance(answer, Answer)
    assert answer.status == 302
    assert script.asked == [PATH]


async def test_connections_do_not_limit_a_burst(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, response({}))
    answers = await asyncio.gather(*(api.call("POST", PATH, body=Body({})) for _ in range(200)))
    assert {answer.status for answer in answers if isinstance(answer, Answer)} == {200}
    assert len(answers) == 200


async def test_a_stream_of_html_is_an_answer(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, response(b"<html>", kind="text/html"))
    assert isinstance(await api.open(PATH), Answer)


async def test_a_stream_ends_with_nothing(peer: tuple[Script, Api]) -> None:
    script, api = peer
    script.add(PATH, response(b"{}"))
    stream = await api.open(PATH)
    assert isinstance(stream, Stream)
    assert [await stream.read(5.0), await stream.read(5.0)] == [b"{}", b""]
    stream.close()


async def test_r1_every_write_says_a_timeout_below_our_own_deadline(peer: tuple[Script, Api]) -> None:
    script, api = peer
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
    script.add(path, response({}))
    await Writes(api, lambda: Served(CLAIMS, "v1"), timeout_s=2.0).delete_claim(
        ObjectKey("default", "c"), Uid("u"), "1"
    )
    assert script.asked == [f"{path}?timeout=1600ms&fieldValidation=Ignore"]


def answer(code: int, content: object = b"", **headers: str) -> Answer:
    raw = response(content) if isinstance(content, dict) else content
    assert isinstance(raw, bytes)
    return Answer(code, headers, raw.rpartition(b"\r\n\r\n")[2])


def refused(kind: Refusal, code: int, reason: str) -> Refused:
    return Refused(kind=kind, status=code, reason=reason, message=f"told {reason}")


def broken(why: str) -> Unknown:
    return Unknown(why, is_answered=True)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        pytest.param(answer(200, {"a": 1}), Succeeded({"a": 1}), id="200"),
        pytest.param(answer(201, {"a": 1}), Succeeded({"a": 1}), id="201"),
        pytest.param(answer(200, b"<html>"), broken("success, but no JSON object"), id="html"),
        pytest.param(answer(409, status(409, "Conflict")), refused(Refusal.CONFLICT, 409, "Conflict"), id="conflict"),
        pytest.param(
            answer(409, status(409, "AlreadyExists")), refused(Refusal.EXISTS, 409, "AlreadyExists"), id="exists"
        ),
        pytest.param(answer(404, status(404, "NotFound")), refused(Refusal.NOT_FOUND, 404, "NotFound"), id="404"),
        pytest.param(answer(422, status(422, "Invalid")), refused(Refusal.INVALID, 422, "Invalid"), id="422"),
        pytest.param(answer(403, status(403, "Forbidden")), refused(Refusal.FORBIDDEN, 403, "Forbidden"), id="403"),
        pytest.param(
            answer(401, status(401, "Unauthorized")), refused(Refusal.FORBIDDEN, 401, "Unauthorized"), id="401"
        ),
        pytest.param(answer(400, status(400, "BadRequest")), refused(Refusal.REJECTED, 400, "BadRequest"), id="400"),
        pytest.param(answer(429, status(429, "TooMany"), **{"retry-after": "3"}), Later(3.0, "told TooMany"), id="429"),
        pytest.param(answer(429, status(429, "TooMany")), Later(1.0, "told TooMany"), id="429-without"),
        pytest.param(
            answer(429, b"Too many requests, please try again later.\n", **{"retry-after": "1"}),
            Later(1.0, "Too many requests, please try again later."),
            id="429-of-priority-and-fairness",
        ),
        pytest.param(
            answer(503, status(503, "ServiceUnavailable"), **{"retry-after": "2"}),
            Later(2.0, "told ServiceUnavailable"),
            id="503-shutting-down",
        ),
        pytest.param(
            answer(503, status(503, "ServiceUnavailable")),
            broken("503 ServiceUnavailable: told ServiceUnavailable"),
            id="503-without",
        ),
        pytest.param(answer(503, b"<html>", **{"retry-after": "1"}), broken("503 : <html>"), id="503-of-a-proxy"),
        pytest.param(
            answer(503, status(503, "Busy"), **{"retry-after": "2"}), broken("503 Busy: told Busy"), id="503-busy"
        ),
        pytest.param(
            answer(503, b"error trying to reach the other"),
            broken("503 : error trying to reach the other"),
            id="503-of-a-peer",
        ),
        pytest.param(answer(101, b"another protocol"), broken("101 : another protocol"), id="101"),
        pytest.param(answer(408, b"<html>"), broken("408 : <html>"), id="408-of-a-proxy"),
        pytest.param(answer(408, status(408, "Slow")), broken("408 Slow: told Slow"), id="408"),
        pytest.param(answer(500, status(500, "Error")), broken("500 Error: told Error"), id="500"),
        pytest.param(answer(504, status(504, "Timeout")), broken("504 Timeout: told Timeout"), id="504"),
        pytest.param(
            answer(404, b"<html>"),
            Refused(kind=Refusal.REJECTED, status=404, reason="", message="<html>"),
            id="404-of-a-proxy",
        ),
        pytest.param(answer(502, b"<html>"), broken("502 : <html>"), id="502-html"),
        pytest.param(Unanswered(was_sent=True, why="lost"), Unknown("lost"), id="lost"),
        pytest.param(
            Unanswered(was_sent=False, why="refused"),
            Refused(kind=Refusal.UNSENT, status=0, reason="", message="refused"),
            id="unsent",
        ),
    ],
)
def test_what_became_of_a_write_is_told_from_the_reply(reply: Answer | Unanswered, outcome: RequestOutcome) -> None:
    assert outcome_of(reply) == outcome


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (refused(Refusal.FORBIDDEN, 403, "Forbidden"), "403 Forbidden: told Forbidden"),
        (Refused(kind=Refusal.REJECTED, status=404, reason="", message="<html>"), "404: <html>"),
        (Refused(kind=Refusal.UNSENT, status=0, reason="", message="no way there"), "no way there"),
        (Unknown("no answer within 2 s"), "no answer within 2 s"),
    ],
)
def test_people_are_told_in_the_api_servers_words(outcome: RequestOutcome, told: str) -> None:
    assert str(outcome) == told


def test_a_patch_that_names_another_uid_is_a_conflict() -> None:
    causes = {"details": {"causes": [{"field": "metadata.uid"}, {"field": 3}, "nonsense"]}}
    told = outcome_of(answer(422, {**status(422, "Invalid"), **causes}))
    assert isinstance(told, Refused)
    assert told.kind is Refusal.CONFLICT


@pytest.mark.parametrize(
    ("code", "reason"), [(404, "NotFound"), (409, "Conflict"), (409, "AlreadyExists"), (422, "Invalid")]
)
def test_what_a_webhook_says_of_an_object_is_not_believed(code: int, reason: str) -> None:
    words = 'admission webhook "tenants.example.com" denied the request: no such tenant'
    told = outcome_of(answer(code, {**status(code, reason), "message": words}))
    assert told == Refused(kind=Refusal.REJECTED, status=code, reason=reason, message=words)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("99999", 60.0),
        ("0", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 5.0),
        ("", 5.0),
        ("²", 5.0),
        ("٣", 5.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float) -> None:
    assert complaint_of(answer(429, **{"retry-after": header})).retry_after_s == seconds


def test_retry_after_may_stand_in_the_body_alone() -> None:
    content = {**status(429, "TooMany"), "details": {"retryAfterSeconds": 4}}
    assert complaint_of(answer(429, content)).retry_after_s == 4.0


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"{", b'{"details": 3, "reason": 3, "message": []}', b"\xff"),
        *(b'{"details": {"causes": %b}}' % causes for causes in (b"3", b"true", b'"text"', b'{"field": "a"}', b"[3]")),
    ],
)
def test_any_body_is_a_complaint(content: bytes) -> None:
    assert complaint_of(Answer(500, {}, content)).code == 500


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/ns/pods/p", "pods"),
        ("/api/v1/namespaces/ns/pods/p/binding", "pods/binding"),
        ("/api/v1/namespaces/ns", "namespaces"),
        ("/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status", "resourceclaims/status"),
        ("/apis/resource.k8s.io/v1", ""),
        ("/api", ""),
    ],
)
def test_a_path_tells_what_it_is_about_without_names(path: str, resource: str) -> None:
    assert resource_of(path) == resource
