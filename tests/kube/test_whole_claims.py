"""Claims that are written whole, in protobuf, where a patch is refused for what it would do to them."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest

from extender.kube.answer import Answer, Unanswered
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.kube.protobuf import MAGIC, field, guard, sent
from extender.kube.request import Body
from extender.kube.resource import CLAIMS, Served
from extender.kube.writes import ATTEMPTS, Writes
from extender.model.claim import Allocation, Consumer, DeviceConfig
from extender.model.names import Uid
from extender.scheduling.steps import Refusal
from tests.scheduling.cast import claim, consumer, device, held, pod

CLAIM = held(claim("a", version=5), device("n1", 0), by=pod("p", "a"))
Writing = Callable[[Writes], Coroutine[Any, Any, RequestOutcome]]
GUARDED: dict[str, Writing] = {
    "finalizer": lambda writes: writes.add_finalizer(CLAIM),
    "reservation": lambda writes: writes.reserve_shared(CLAIM, Consumer(resource="pods", name="q", uid=Uid("q"))),
    "release": lambda writes: writes.release(CLAIM, consumer(pod("p", "a")).uid, deallocate=False),
}
OTHERS: dict[str, Writing] = {"touch": lambda writes: writes.touch_claim(CLAIM, "mark")}


def status(code: int, reason: str) -> Answer:
    return Answer(code, {}, orjson.dumps({"kind": "Status", "reason": reason, "message": "no"}))


class Stored:
    """Stands in for an API server that has the claim in *version*, takes no patch, and answers what replaces it."""

    def __init__(self, version: str, *answers: Answer) -> None:
        self.version, self.answers, self.puts = version, list(answers), list[bytes]()
        self.read: Answer | Unanswered | None = None

    async def read_as(self, *_args: object, **_kwargs: object) -> Answer | Unanswered:
        metadata = field(1, field(6, self.version.encode()))
        return self.read or Answer(200, {}, MAGIC + field(2, metadata + field(3, b"")))

    async def call(self, method: str, path: str, *, body: Body, **_kwargs: object) -> Answer:
        if method == "PATCH":
            return status(422, "Invalid")
        self.puts.append(body.content if isinstance(body.content, bytes) else orjson.dumps([path, body.content]))
        return self.answers.pop(0)


def writes_to(server: Stored) -> Writes:
    return Writes(server, lambda: Served(CLAIMS, "v1"))  # type: ignore[arg-type]  # as far as it is asked


def done(mark: str = "mark") -> Answer:
    touched = {"dra-extender.x-k8s.io/touched": mark}
    return Answer(200, {}, orjson.dumps({"kind": "ResourceClaim", "metadata": {"annotations": touched}}))


@pytest.mark.parametrize("name", GUARDED)
async def test_a_claim_that_has_moved_on_is_not_replaced(name: str) -> None:
    server = Stored("6")
    outcome = await GUARDED[name](writes_to(server))
    assert isinstance(outcome, Refused)
    assert (outcome.kind, server.puts) == (Refusal.CONFLICT, [])


@pytest.mark.parametrize("name", [*GUARDED, *OTHERS])
async def test_what_replaces_a_claim_says_which_one_it_is_meant_for(name: str) -> None:
    server = Stored("5", done())
    assert isinstance(await (GUARDED | OTHERS)[name](writes_to(server)), Succeeded)
    (put,) = server.puts
    assert sent(put).endswith(guard(CLAIM.uid))


async def test_a_touch_that_others_are_faster_than_is_tried_again_whatever_version_there_is_by_then() -> None:
    server = Stored("6", status(409, "Conflict"), status(409, "Conflict"), done())
    assert isinstance(await OTHERS["touch"](writes_to(server)), Succeeded)
    assert len(server.puts) == ATTEMPTS
    server = Stored("6", *[status(409, "Conflict")] * ATTEMPTS)
    outcome = await OTHERS["touch"](writes_to(server))
    assert isinstance(outcome, Refused)
    assert (outcome.kind, len(server.puts)) == (Refusal.CONFLICT, ATTEMPTS)


async def test_a_touch_of_which_nothing_is_left_is_in_vain() -> None:
    outcome = await OTHERS["touch"](writes_to(Stored("5", done("an earlier one"))))
    assert isinstance(outcome, Refused)
    assert outcome.kind is Refusal.IN_VAIN


def allocating(server: Stored) -> Coroutine[Any, Any, RequestOutcome]:
    free, by = claim("a", version=5), Consumer(resource="pods", name="p", uid=Uid("p"))
    configured = DeviceConfig(source="FromClass", opaque={"driver": "gpu.example.com", "parameters": {"x": "<" * 2000}})
    return writes_to(server).write_allocation(free, Allocation(config=(configured,)), by)


async def test_an_allocation_that_a_patch_makes_too_long_is_written_as_the_status_of_the_claim_that_was_read() -> None:
    server = Stored("5", done())
    assert isinstance(await allocating(server), Succeeded)
    path, put = orjson.loads(server.puts.pop())
    assert path.endswith("/resourceclaims/a/status")
    assert (put["metadata"]["uid"], put["metadata"]["resourceVersion"]) == (CLAIM.uid, "5")
    assert put["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "p"}]
    assert put["status"]["allocation"]["devices"]["config"][0]["opaque"]["parameters"] == {"x": "<" * 2000}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(422, "Invalid"), Refused(Refusal.INVALID, "no", 422, "Invalid")),
        (status(403, "Forbidden"), Refused(Refusal.FORBIDDEN, "no; no", 403, "Forbidden")),
    ],
)
async def test_an_allocation_that_is_wrong_either_way_is_refused_for_what_it_is(
    answer: Answer, expected: Refused
) -> None:
    assert await allocating(Stored("5", answer)) == expected


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (status(404, "NotFound"), Refusal.NOT_FOUND),
        (Unanswered(was_sent=False, why="no connection"), Refusal.UNSENT),
        (Unanswered(was_sent=True, why="no answer"), None),
        (Answer(200, {}, b'{"kind": "ResourceClaim"}'), Refusal.INVALID),
    ],
)
async def test_where_a_claim_cannot_be_read_whole_nothing_is_put_in_its_place(
    read: Answer | Unanswered, expected: Refusal | None
) -> None:
    server = Stored("5")
    server.read = read
    outcome = await GUARDED["finalizer"](writes_to(server))
    assert server.puts == []
    assert isinstance(outcome, Unknown) if expected is None else isinstance(outcome, Refused)
    assert expected is None or (isinstance(outcome, Refused) and outcome.kind is expected)
