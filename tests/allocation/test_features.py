"""Which features a release has where nobody set a gate."""

from itertools import pairwise

from extender.allocation.features import GATES, ON_SINCE, Features, features_by_default


def test_a_feature_that_is_on_by_default_stays_so() -> None:
    releases = [features_by_default(minor) for minor in range(34, 38)]
    for earlier, later in pairwise(releases):
        assert all(getattr(later, field) >= getattr(earlier, field) for field in GATES.values())


def test_the_features_of_the_last_release_are_those_that_are_assumed() -> None:
    assert features_by_default(37) == Features()
    assert set(ON_SINCE) <= set(GATES.values())


def test_partitions_shares_and_taints_came_in_1_36_and_rules_for_taints_after_them() -> None:
    older, newer = features_by_default(35), features_by_default(36)
    assert (older.partitionable_devices, older.consumable_capacity, older.device_taints, older.binding) == (False,) * 4
    assert (newer.partitionable_devices, newer.consumable_capacity, newer.device_taints, newer.binding) == (True,) * 4
    assert not newer.device_taint_rules
