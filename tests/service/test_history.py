"""A cluster that was set back: nothing is answered or written any more by whoever knew what came after."""

import logging

import pytest

from extender.kube.freshness import Freshness
from extender.kube.outcome import Refused, RequestOutcome
from extender.kube.resource import CLAIMS, NODES
from extender.kube.told import Reverted, Seen, Told, Trouble, Unserved
from extender.model.names import ObjectKey
from extender.scheduling.steps import Refusal
from extender.service.health import Health
from extender.service.history import DOUBT, WHY_NOT, History
from tests.service.owned import Place, place, so

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
BACK = Reverted(CLAIMS, known="10", version="5")


def begun(history: History) -> Health:
    freshness = Freshness((NODES,))
    freshness.note(Seen(NODES, "1", 0.0))
    health = Health(freshness, 90.0, lambda: 0.0, history=history)
    health.begin()
    return health


def test_after_it_is_over_nobody_is_answered_nothing_is_written_and_a_restart_helps() -> None:
    history = History()
    health = begun(history)
    assert (health.missing(), health.is_alive(), history.why_not()) == ([], True, "")
    history.note(BACK)
    assert (health.hindering(), health.is_alive(), history.why_not()) == ([WHY_NOT], False, WHY_NOT)


def test_it_ends_once_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []
    history = History(lambda: ended.append("ended"))
    with caplog.at_level(logging.CRITICAL):
        history.note(BACK)
        history.note(Reverted(NODES, known="9", version="5"))
    (record,) = caplog.records
    assert (ended, record.__dict__["resource"], record.__dict__["error"]) == (
        ["ended"],
        str(CLAIMS),
        "it is at 5, after 10",
    )


def test_other_troubles_end_nothing() -> None:
    history = History()
    history.note(Trouble(CLAIMS, "500 InternalError"))
    assert not history.is_over


@pytest.mark.parametrize("again", [Seen(CLAIMS, "12", 1.0), Unserved(CLAIMS, 1.0)])
def test_while_it_is_in_doubt_nobody_is_answered_nothing_is_written_and_nothing_ends(again: Told) -> None:
    history = History(lambda: pytest.fail("it has ended"))
    health = begun(history)
    history.note(Trouble(CLAIMS, "the cluster is at 5, after 10", is_behind=True))
    assert (health.hindering(), health.is_alive(), history.why_not()) == ([DOUBT], True, DOUBT)
    history.note(Trouble(CLAIMS, "500 InternalError"))
    history.note(Seen(NODES, "12", 0.5))
    assert history.why_not() == DOUBT
    history.note(again)
    assert (health.hindering(), history.why_not()) == ([], "")


def test_who_was_in_doubt_is_certain_in_the_end() -> None:
    history = History()
    history.note(Trouble(CLAIMS, "the cluster is at 5, after 10", is_behind=True))
    history.note(BACK)
    history.note(Seen(CLAIMS, "5", 1.0))
    assert (history.is_over, history.why_not()) == (True, WHY_NOT)


async def written(here: Place) -> RequestOutcome:
    claim = await here.claim("c")
    key, uid = ObjectKey("default", "c"), claim["metadata"]["uid"]
    return await here.service.answers.binds.carrier.writes.delete_claim(key, uid, claim["metadata"]["resourceVersion"])


async def test_writes_that_are_under_way_are_kept_back_in_doubt_and_for_good_in_the_end() -> None:
    async with place() as here:
        history, port = here.service.health.history, int(here.server.url.rpartition(":")[2])
        await here.server.stop()
        here.server.store.revision = 1
        await here.server.start(port)
        for why_not in (DOUBT, WHY_NOT):
            await so(lambda told=why_not: history.why_not() == told)  # type: ignore[misc]  # its default is its type
            outcome = await written(here)
            assert isinstance(outcome, Refused)
            assert (outcome.kind, outcome.message) == (Refusal.UNSENT, why_not)
            assert here.service.answers.hindrance() == f"not ready: {why_not}"
            await here.do("DELETE", f"{PATH}/c")
