"""What every write has to pass."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from extender.kube.access import Access, Fixed
from extender.kube.answer import Unanswered
from extender.kube.api import Api
from extender.kube.fence import Fence
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.kube.resource import CLAIMS, Served
from extender.kube.writes import Writes
from extender.model.names import ObjectKey, Uid
from extender.scheduling.steps import Refusal
from tests.kube.scripted import Script, failure, response, scripted

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
KEY, UID = ObjectKey("default", "c"), Uid("u")
WHY_NOT = "not leading: b leads"


@pytest.fixture
async def script() -> AsyncIterator[tuple[Script, Api]]:
    async with scripted() as pair:
        yield pair


def writes(api: Api, fence: Fence) -> Writes:
    return Writes(api, lambda: Served(CLAIMS, "v1"), 2.0, fence)


async def test_a_write_that_is_kept_back_is_not_sent_and_is_refused(script: tuple[Script, Api]) -> None:
    peer, api = script
    outcome = await writes(api, Fence(lambda: WHY_NOT)).delete_claim(KEY, UID, "1")
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.message) == (Refusal.UNSENT, WHY_NOT)
    assert peer.asked == []


async def test_what_was_sent_is_known_to_be_under_way_and_in_doubt_where_it_has_no_answer() -> None:
    now, states = 0.0, list[tuple[bool, bool]]()
    fence = Fence(now=lambda: now, server_s=60.0)

    class Peer:
        """Answers nothing, and sees how the fence is meanwhile."""

        async def call(self, *_args: object, **_kwargs: object) -> Unanswered:
            states.append((fence.is_idle, fence.is_quiet))
            return Unanswered(was_sent=True, why="no answer")

    peer = Peer()
    await writes(peer, fence).delete_claim(KEY, UID, "1")  # type: ignore[arg-type]  # as far as it is asked
    assert states == [(False, False)]
    assert (fence.is_idle, fence.is_quiet) == (True, False)
    now = 60.0
    assert fence.is_quiet
    # Nobody waits for what may arrive of events, nor of what is read.
    await writes(peer, fence).create_event("default", {})  # type: ignore[arg-type]  # as far as it is asked
    await writes(peer, fence).read_claim(KEY)  # type: ignore[arg-type]  # as far as it is asked
    assert states[1:] == [(True, True)] * 2
    assert fence.is_quiet


async def test_what_is_only_read_passes(script: tuple[Script, Api]) -> None:
    peer, api = script
    peer.add(PATH, response({"kind": "ResourceClaim"}))
    assert isinstance(await writes(api, Fence(lambda: WHY_NOT)).read_claim(KEY), Succeeded)


async def test_it_is_asked_after_all_that_can_take_time_before_the_write_is_sent(script: tuple[Script, Api]) -> None:
    """Credentials are read from files, and read again where they were refused."""
    peer, api = script
    peer.add(PATH, failure(401, "Unauthorized"))
    answers = ["", "", WHY_NOT]
    outcome = await writes(api, Fence(lambda: answers.pop(0))).delete_claim(KEY, UID, "1")
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.message) == (Refusal.UNSENT, WHY_NOT)
    assert len(peer.asked) == 1


async def test_it_is_asked_again_before_the_session_repeats_what_was_cut_off(script: tuple[Script, Api]) -> None:
    peer, api = script
    peer.add(PATH, b"")
    answers = ["", "", WHY_NOT]
    outcome = await writes(api, Fence(lambda: answers.pop(0))).delete_claim(KEY, UID, "1")
    assert outcome == Unknown(WHY_NOT)
    assert len(peer.asked) == 1


async def test_it_is_asked_again_once_there_is_a_connection(script: tuple[Script, Api]) -> None:
    peer, _ = script
    peer.add(PATH, response({"kind": "ResourceClaim"}))
    api, answers = Api(Fixed(Access(server=peer.url)), connections=1), ["", WHY_NOT, "", ""]
    fenced = writes(api, Fence(lambda: answers.pop(0)))
    outcome = await fenced.delete_claim(KEY, UID, "1")
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.message, peer.asked) == (Refusal.UNSENT, WHY_NOT, [])
    # The connection was given back.
    assert isinstance(await fenced.delete_claim(KEY, UID, "1"), Succeeded)
    await api.close()


async def ended(outcome: RequestOutcome) -> RequestOutcome:
    return outcome


@pytest.mark.parametrize(
    ("outcome", "quiet_from"),
    [
        pytest.param(Succeeded({}), 0.0, id="landed"),
        pytest.param(Refused(kind=Refusal.CONFLICT, status=409, reason="", message=""), 0.0, id="refused"),
        pytest.param(Unknown("no answer"), 60.0, id="unknown: as long as the API server may work at it"),
    ],
)
async def test_it_is_quiet_when_nothing_can_arrive_any_more(outcome: RequestOutcome, quiet_from: float) -> None:
    now = [0.0]
    fence = Fence(now=lambda: now[0])
    assert await fence.passed(ended(outcome)) == outcome
    now[0] = max(0.0, quiet_from - 0.1)
    assert fence.is_quiet is (quiet_from == 0)
    now[0] = quiet_from
    assert fence.is_quiet


async def test_a_write_that_is_cut_short_may_arrive_still() -> None:
    now = [0.0]
    fence = Fence(now=lambda: now[0])

    async def hanging() -> RequestOutcome:
        await asyncio.Event().wait()
        return Succeeded({})

    task = asyncio.create_task(fence.passed(hanging()))
    await asyncio.sleep(0)
    now[0] = 100.0
    assert not fence.is_quiet
    task.cancel()
    await asyncio.wait({task})
    assert not fence.is_quiet
    now[0] = 160.0
    assert fence.is_quiet


async def test_a_write_that_found_no_connection_is_in_no_doubt() -> None:
    api = Api(Fixed(Access(server="http://127.0.0.1:1")))
    fence = Fence()
    await writes(api, fence).delete_claim(KEY, UID, "1")
    await api.close()
    assert fence.is_quiet


async def test_an_event_that_may_still_arrive_keeps_nobody_waiting(script: tuple[Script, Api]) -> None:
    peer, api = script
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    peer.add(path, failure(500, "InternalError"))
    fence = Fence()
    assert isinstance(await writes(api, fence).create_event("default", {}), Unknown)
    assert fence.is_quiet
    refused = await writes(api, Fence(lambda: WHY_NOT)).create_event("default", {})
    assert isinstance(refused, Refused)
    assert (refused.message, len(peer.asked)) == (WHY_NOT, 1)
