"""What is promised on top of what the cluster shows: brought up to date, it is what adding all up anew gives."""

from weakref import ref

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.allocation import columns
from extender.allocation.snapshot import Snapshot, overlay
from extender.allocation.usage import WHOLE, Hold, Usage
from extender.model.change import Changed, Gone
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Node
from extender.state.taken import Taken
from tests.state.test_cluster import cluster_of, device, holder, node_slice

NODES, NAMES = ("n1", "n2"), ("d0", "d1", "d2")
PLACES = st.tuples(st.sampled_from(NODES), st.sampled_from((*NAMES, "unpublished")))
USAGES = st.sampled_from((WHOLE, Usage(shares=1), Usage(shares=1, consumed=(("memory", 7),))))
HOLDS = st.lists(st.builds(lambda place, usage: Hold(device(*place), usage), PLACES, USAGES), max_size=3).map(tuple)


class Promised(RuleBasedStateMachine):
    """Holds and snapshots come and go in any order."""

    def __init__(self) -> None:
        super().__init__()
        nodes = (Node(name=NodeName(name)) for name in NODES)
        self.cluster = cluster_of(*nodes, *(node_slice(name, *NAMES) for name in NODES))
        self.taken = Taken()
        self.held: list[tuple[Hold, ...]] = []

    @rule(holds=HOLDS)
    def take(self, holds: tuple[Hold, ...]) -> None:
        self.taken.change((), holds)
        self.held.append(holds)

    @rule(number=st.integers(0, 5), holds=HOLDS)
    def exchange(self, number: int, holds: tuple[Hold, ...]) -> None:
        if number < len(self.held):
            self.taken.change(self.held[number], holds)
            self.held[number] = holds

    @rule(name=st.sampled_from(("a", "b")), place=PLACES)
    def allocate(self, name: str, place: tuple[str, str]) -> None:
        self.cluster.apply(Changed(holder(name, device(*place))))

    @rule(node=st.sampled_from(NODES), names=st.lists(st.sampled_from(NAMES)))
    def publish(self, node: str, names: list[str]) -> None:
        self.cluster.apply(Changed(node_slice(node, *names)))

    @rule(name=st.sampled_from(NODES), is_unschedulable=st.booleans())
    def change_node(self, name: str, *, is_unschedulable: bool) -> None:
        self.cluster.apply(Changed(Node(name=NodeName(name), is_unschedulable=is_unschedulable)))

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        self.cluster.apply(Gone(Node, ObjectKey("", name)))

    @rule(number=st.integers(0, 5))
    def spare(self, number: int) -> None:
        """Leave one out: whoever holds it may use it again."""
        if number < len(self.held):
            others = [hold for index, holds in enumerate(self.held) if index != number for hold in holds]
            seen = self.taken.without(self.cluster.snapshot, self.held[number])
            assert_same(seen, overlay(self.cluster.snapshot, others))

    @invariant()
    def nothing_is_missing_and_nothing_left(self) -> None:
        expected = overlay(self.cluster.snapshot, (hold for holds in self.held for hold in holds))
        assert_same(self.taken.over(self.cluster.snapshot), expected)
        assert self.taken.over(self.cluster.snapshot) is self.taken.over(self.cluster.snapshot)


def assert_same(seen: Snapshot, expected: Snapshot) -> None:
    assert seen.usage.decoded() == expected.usage.decoded()
    assert np.array_equal(seen.free, expected.free)
    assert seen.inventory is expected.inventory
    assert seen.layout is expected.layout
    assert seen.nodes is expected.nodes


TestPromised = Promised.TestCase


def test_what_does_not_change_is_the_same_object() -> None:
    cluster, taken = cluster_of(Node(name=NodeName("n1")), node_slice("n1", *NAMES)), Taken()
    assert taken.over(cluster.snapshot) is cluster.snapshot
    held = (Hold(device("n1", "d0"), WHOLE),)
    taken.change((), held)
    seen = taken.over(cluster.snapshot)
    taken.change(held, held)
    assert taken.over(cluster.snapshot) is seen


def test_what_has_changed_is_seen_although_numbers_stand_for_other_amounts_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "WASTE", 1)
    monkeypatch.setattr(columns, "SPARE", 0)
    d0, d1 = device("n1", "d0"), device("n1", "d1")
    cluster, taken = cluster_of(Node(name=NodeName("n1")), node_slice("n1", "d0", "d1"), holder("a", d0)), Taken()
    taken.change((), (Hold(d1, WHOLE),))
    taken.over(cluster.snapshot)
    before = cluster.snapshot.usage
    cluster.apply(Changed(holder("b", d0)))
    after = cluster.snapshot.usage
    assert after.codes.tolist() == before.codes.tolist()
    assert after.dictionary is not before.dictionary
    assert_same(taken.over(cluster.snapshot), overlay(cluster.snapshot, [Hold(d1, WHOLE)]))


@pytest.mark.parametrize("is_over", [False, True])
def test_of_a_cluster_that_is_past_nothing_is_kept_for_who_saw_it_without_his_own(*, is_over: bool) -> None:
    cluster, taken = cluster_of(node_slice("n1", *NAMES)), Taken()
    own, others = (Hold(device("n1", "d0"), WHOLE),), (Hold(device("n1", "d1"), WHOLE),)
    taken.change((), (*own, *others))
    past = [ref(seen.usage.codes) for seen in (cluster.snapshot, taken.without(cluster.snapshot, own))]
    cluster.apply(Changed(node_slice("n2", *NAMES)))
    if is_over:
        taken.change((*own, *others), ())
    taken.over(cluster.snapshot)
    assert [each() for each in past] == [None, None]
