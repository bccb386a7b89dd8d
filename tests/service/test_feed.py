"""Who is told what following tells."""

from extender.allocation.features import Features
from extender.kube.freshness import Freshness
from extender.kube.resource import BOUND, NODES, Resource
from extender.kube.told import Seen, Told
from extender.model.change import Changed, Gone, Listed, Noun
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.service.feed import Feed
from extender.service.health import Health
from extender.state.belief import Belief

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
    assert heard == []
    belief, heard = told(Changed(TAKEN), Gone(Footprint, KEY), Changed(Problem("Footprint", KEY, "spec", "is broken")))
    assert len(belief.loads) == 0
    assert heard == []


def test_everything_else_is_shown_and_stirs() -> None:
    assert told(Changed(NODE))[1] == [NODE, "stirred"]


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
    assert not early.freshness.is_synced
    ready = health((NODES, 0.0), (BOUND, 0.0))
    assert ready.hindering() == ready.missing() == []


def test_an_old_view_of_what_is_not_vital_keeps_nobody_from_anything() -> None:
    later = MAX_AGE_S + 1
    assert health((NODES, later), (BOUND, 0.0), now=later).missing() == []
    assert health((NODES, 0.0), (BOUND, later), now=later).missing() == ["the view of nodes is too old"]
