"""Who is told what following tells."""

import asyncio
from dataclasses import replace

from extender.allocation.features import Features
from extender.kube.freshness import Freshness
from extender.kube.resource import BOUND, CLAIMS, NODES, SLICES, Resource
from extender.kube.told import Seen, Told, Unserved
from extender.model.change import Changed, Gone, Listed, Noun
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.service.feed import Feed
from extender.service.health import Health
from extender.state.belief import Belief
from tests.scheduling.cast import claim

KEY = ObjectKey("ns", "p")
TAKEN = Footprint(key=KEY, uid=Uid("u"), node=NodeName("n1"), amounts=(("pods", 1),))
NODE = Node(name=NodeName("n1"))
MAX_AGE_S = 10.0


def told(*everything: Told) -> tuple[Belief, list[object]]:
    """Feed *everything*; return what is believed, and what others heard."""
    belief, heard = Belief(("s",), Features()), list[object]()

    def show(what: Noun | Problem) -> None:
        heard.append(what)

    feed = Feed(belief, Freshness(), lambda: heard.append("stirred"), show)
    for one in everything:
        feed.take(one)
    return belief, heard


def test_what_bound_pods_take_is_believed_and_stirs_nobody() -> None:
    belief, heard = told(Listed(Footprint, ()), Changed(TAKEN))
    assert len(belief.loads) == 1
    assert heard == [TAKEN]
    belief, heard = told(Changed(TAKEN), Gone(Footprint, KEY), Changed(Problem("Footprint", KEY, "spec", "is broken")))
    assert len(belief.loads) == 0
    assert "stirred" not in heard


def test_everything_else_is_shown_and_stirs() -> None:
    assert told(Changed(NODE))[1] == [NODE, "stirred"]


class Waiting:
    """Somebody waits for a claim in version 5, made just now."""

    def __init__(self) -> None:
        self.feed = Feed(Belief(("s",), Features()), Freshness(), lambda: None, lambda _: None)
        self.made = claim("made", version=5)
        self.feed.take(Changed(claim("other")))
        self.task = asyncio.create_task(self.feed.shown(self.made.uid, 5))

    async def ends_with(self, told: Told) -> bool:
        await asyncio.sleep(0)
        self.feed.take(told)
        for _ in range(3):
            await asyncio.sleep(0)
        return self.task.done()


async def test_a_claim_that_was_not_shown_yet_is_not_gone_because_another_is() -> None:
    waiting = Waiting()
    assert not await waiting.ends_with(Gone(ResourceClaim, ObjectKey("ns", "other")))
    assert not await waiting.ends_with(Seen(CLAIMS, "4", 0.0))
    assert not await waiting.ends_with(Changed(replace(waiting.made, resource_version="4")))
    assert await waiting.ends_with(Changed(waiting.made))


async def test_a_claim_that_is_gone_is_not_waited_for() -> None:
    waiting = Waiting()
    assert not await waiting.ends_with(Changed(replace(waiting.made, resource_version="4")))
    assert await waiting.ends_with(Gone(ResourceClaim, waiting.made.key))


async def test_a_claim_that_the_watch_is_past_is_not_waited_for() -> None:
    assert await Waiting().ends_with(Seen(CLAIMS, "5", 0.0))
    late = Waiting()
    late.feed.take(Seen(CLAIMS, "6", 0.0))
    assert await late.ends_with(Seen(NODES, "1", 0.0))


def health(*seen: tuple[Resource, float], now: float = 0.0) -> Health:
    freshness = Freshness((NODES, BOUND))
    for resource, at in seen:
        freshness.note(Seen(resource, "1", at))
    found = Health(freshness, MAX_AGE_S, lambda: now)
    found.begin()
    return found


def test_the_scheduler_is_answered_without_what_is_not_vital_and_we_are_not_ready() -> None:
    assert health().hindering() == health().missing() == ["nodes not listed yet"]
    early = health((NODES, 0.0))
    assert early.hindering() == []
    assert early.missing() == ["boundpods not listed yet"]
    assert early.freshness.has_vital
    assert early.freshness.unsynced() == ("boundpods",)
    ready = health((NODES, 0.0), (BOUND, 0.0))
    assert ready.hindering() == ready.missing() == []


def test_an_old_view_of_what_is_not_vital_keeps_nobody_from_anything() -> None:
    later = MAX_AGE_S + 1
    assert health((NODES, later), (BOUND, 0.0), now=later).missing() == []
    assert health((NODES, 0.0), (BOUND, later), now=later).missing() == ["the view of nodes is too old"]


def test_nobody_is_answered_while_devices_are_served_and_claims_are_not() -> None:
    freshness = Freshness((CLAIMS, SLICES))
    found = Health(freshness, MAX_AGE_S, lambda: 0.0)
    found.begin()
    freshness.note(Unserved(CLAIMS, 0.0))
    freshness.note(Unserved(SLICES, 0.0))
    assert found.hindering() == []
    freshness.note(Seen(SLICES, "1", 0.0))
    assert found.hindering() == ["resourceclaims are not served, without which nobody knows which devices are free"]
    freshness.note(Seen(CLAIMS, "1", 0.0))
    assert found.hindering() == []
