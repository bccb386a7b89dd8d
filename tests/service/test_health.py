"""Who asks whether we are ready is told what is missing, and why."""

from extender.kube.freshness import Freshness
from extender.kube.resource import CLAIMS, NODES
from extender.kube.told import Seen, Trouble
from extender.service.health import Health

FORBIDDEN = "403 Forbidden nodes is forbidden"


def test_what_is_not_listed_is_told_with_the_reason_until_it_is_listed() -> None:
    freshness = Freshness((NODES, CLAIMS))
    health = Health(freshness, 90.0, lambda: 0.0)
    freshness.note(Seen(CLAIMS, "1", 0.0))
    freshness.note(Trouble(NODES, FORBIDDEN))
    assert list(health.missing()) == ["nodes not listed yet", f"nodes: {FORBIDDEN}"]
    # Without the reason, which may be another each time: this is in the conditions of pods.
    assert list(health.hindering()) == ["nodes not listed yet"]
    freshness.note(Seen(NODES, "1", 0.0))
    health.begin()
    assert list(health.missing()) == []


def test_who_cannot_lead_is_told_what_is_not_read_either() -> None:
    freshness = Freshness((NODES,))
    health = Health(freshness, 90.0, lambda: 0.0, trouble=lambda: "the Lease cannot be read")
    health.begin()
    freshness.note(Seen(NODES, "1", 0.0))
    freshness.note(Trouble(NODES, "401 Unauthorized"))
    assert list(health.missing()) == ["the Lease cannot be read", "nodes: 401 Unauthorized"]


def test_a_view_that_is_too_old_is_told_with_the_reason_and_a_trouble_that_passes_is_not() -> None:
    now = [0.0]
    freshness = Freshness((NODES,))
    health = Health(freshness, 90.0, lambda: now[0])
    health.begin()
    freshness.note(Seen(NODES, "1", 0.0))
    freshness.note(Trouble(NODES, FORBIDDEN))
    assert list(health.missing()) == []
    now[0] = 91.0
    assert list(health.missing()) == ["the view of nodes is too old", f"nodes: {FORBIDDEN}"]
