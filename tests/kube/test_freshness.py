"""How old a view is, and whether it is as new as it has to be."""

import pytest

from extender.kube.freshness import Freshness
from extender.kube.resource import BOUND, CLAIMS, NODES, PODS, RULES, Resource
from extender.kube.told import Seen, Trouble, Unserved


def test_each_part_of_a_view_has_its_age() -> None:
    freshness = Freshness((NODES, PODS, CLAIMS))
    freshness.note(Seen(NODES, "5", 10.0))
    assert freshness.unsynced() == ("pods", "resourceclaims")
    assert (freshness.seen_at(NODES), freshness.seen_at(PODS)) == (10.0, float("-inf"))
    assert freshness.ages(11.0) == {"nodes": 1.0, "pods": float("inf"), "resourceclaims": float("inf")}
    freshness.note(Seen(PODS, "6", 12.0))
    freshness.note(Unserved(CLAIMS, 1.0))
    assert freshness.unsynced() == ()
    assert freshness.ages(20.0) == {"nodes": 10.0, "pods": 8.0, "resourceclaims": 0.0}
    assert freshness.ages(11.0)["pods"] == 0.0
    assert (freshness.version(PODS), freshness.version(CLAIMS)) == ("6", "")


def test_what_is_older_than_it_may_be_is_outdated_and_what_is_as_old_is_not() -> None:
    freshness = Freshness((NODES, PODS, CLAIMS))
    assert freshness.outdated(0.0) == ["nodes", "pods", "resourceclaims"]
    for resource, at in ((NODES, 10.0), (PODS, 12.0)):
        freshness.note(Seen(resource, "5", at))
    freshness.note(Unserved(CLAIMS, 1.0))
    assert freshness.outdated(10.0) == []
    assert freshness.outdated(12.0) == ["nodes"]


def test_all_that_is_vital_is_listed_since_then_or_nothing_is() -> None:
    freshness = Freshness((NODES, CLAIMS, BOUND))
    freshness.note(Seen(NODES, "5", 10.0))
    assert not freshness.is_listed_since(0.0)
    freshness.note(Seen(CLAIMS, "6", 12.0))
    assert freshness.is_listed_since(10.0)
    assert not freshness.is_listed_since(10.1)
    freshness.note(Unserved(NODES, 12.0))
    assert freshness.is_listed_since(12.0)


def test_what_is_listed_nowhere_is_not_outdated_where_releases_have_none_of_it() -> None:
    freshness, absent = Freshness((RULES, CLAIMS)), "it is not listed"
    for resource in (RULES, CLAIMS):
        freshness.note(Seen(resource, "5", 10.0))
        freshness.note(Trouble(resource, absent, is_absent=True))
    assert freshness.outdated(12.0) == ["resourceclaims"]
    freshness.note(Seen(CLAIMS, "6", 12.0))
    assert freshness.outdated(12.0) == []
    assert freshness.is_listed_since(12.0)
    freshness.note(Trouble(RULES, "connection refused"))
    assert freshness.outdated(12.0) == ["devicetaintrules"]
    assert not freshness.is_listed_since(12.0)


@pytest.mark.parametrize(
    ("resource", "version", "at", "is_past"),
    [
        pytest.param(NODES, "5", 99.0, True, id="its version"),
        pytest.param(NODES, "6", 99.0, False, id="a later version, and later"),
        pytest.param(NODES, "6", 10.0, True, id="a later version, which is of another resource perhaps, by the time"),
        pytest.param(NODES, "6", 10.1, False, id="a later version, and just later"),
        pytest.param(CLAIMS, "0", 0.0, False, id="not served"),
        pytest.param(PODS, "0", 0.0, False, id="never listed"),
        pytest.param(BOUND, "0", 0.0, False, id="not followed"),
    ],
)
def test_a_view_is_past_what_it_shows_by_its_version_or_by_its_time(
    resource: Resource, version: str, at: float, *, is_past: bool
) -> None:
    freshness = Freshness((NODES, PODS, CLAIMS))
    freshness.note(Seen(NODES, "5", 10.0))
    freshness.note(Unserved(CLAIMS, 10.0))
    assert freshness.is_past(resource, version, at) == is_past
