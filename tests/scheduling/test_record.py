"""Thousands of decisions are packed, and nobody can tell."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.scheduling.decision import Decided, Decision, Given, Ranked
from extender.scheduling.record import OPEN, Decisions, Packing
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import Word
from extender.topology.appraisal import Basis, Part

TEXTS = st.text(st.characters(codec=None), max_size=12)
NUMBERS = st.integers(-(1 << 70), 1 << 70)
DEVICES = st.builds(DeviceKey, TEXTS.map(DriverName), TEXTS.map(PoolName), TEXTS.map(DeviceName))
NODES = TEXTS.map(NodeName)


def some(what: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(what, max_size=3).map(tuple)


DECISIONS = st.builds(
    Decision,
    pod=st.builds(ObjectKey, TEXTS, TEXTS),
    uid=TEXTS.map(Uid),
    at=st.floats(allow_nan=False),
    generation=NUMBERS,
    outcome=st.sampled_from(Decided),
    reason=st.sampled_from(Word) | TEXTS,
    detail=TEXTS,
    node=st.none() | NODES,
    given=some(st.builds(Given, TEXTS, TEXTS, DEVICES)),
    best=some(st.builds(Ranked, NODES, NUMBERS, NUMBERS, NUMBERS, some(st.builds(Part, TEXTS, NUMBERS, TEXTS)))),
    basis=st.builds(Basis, some(TEXTS), some(TEXTS)),
    fitting=NUMBERS,
    offered=NUMBERS,
    rejected=some(st.builds(Tally, st.sampled_from(Word), NUMBERS, TEXTS, NODES, NUMBERS)),
)


def decision(name: str, **changes: object) -> Decision:
    first = Decision(
        pod=ObjectKey("ns", name), uid=Uid(name), at=1.0, generation=1, outcome=Decided.BOUND, reason="DevicesAllocated"
    )
    return replace(first, **changes)  # type: ignore[arg-type]  # by name


def filled(most: int, pods: int) -> Decisions:
    decisions = Decisions(most)
    for number in range(pods):
        decisions.put(decision(f"p{number}", generation=number))
    return decisions


@given(st.lists(DECISIONS, max_size=3), DECISIONS)
def test_what_was_packed_is_opened_as_it_was(samples: list[Decision], packed: Decision) -> None:
    packing = Packing(samples)
    assert packing.opened(packing.packed(packed)) == packed


def test_a_packed_decision_takes_a_fraction_of_its_words() -> None:
    node = NodeName("node-00001.rack-a.eu-west-1.compute.local")
    ranked = Ranked(node, 10, 4, 1, (Part("links", 1, "links at 80% of the best, what is left at +3%"),))
    packed = [decision(f"p{number}", node=node, best=(ranked, ranked)) for number in range(5)]
    assert len(Packing(packed[:4]).packed(packed[4])) < 100


@pytest.mark.parametrize("name", ["p0", "p1", f"p{OPEN}", f"p{OPEN + 99}"])
def test_every_decision_is_found_packed_or_not(name: str) -> None:
    decisions = filled(OPEN + 100, OPEN + 100)
    assert decisions.get(ObjectKey("ns", name)) == decision(name, generation=int(name[1:]))
    assert len(decisions) == OPEN + 100


@pytest.mark.parametrize("most", [1, 2, OPEN, OPEN + 10])
def test_of_too_many_the_oldest_go_first(most: int) -> None:
    decisions = filled(most, most + 5)
    assert len(decisions) == most
    assert decisions.get(ObjectKey("ns", "p4")) is None
    assert decisions.get(ObjectKey("ns", "p5")) is not None


def test_a_pod_whose_decision_is_packed_is_news_only_if_something_is() -> None:
    decisions = filled(OPEN + 100, OPEN + 50)
    assert not decisions.put(decision("p0", generation=99))
    assert decisions.put(decision("p0", detail="another"))
    assert decisions.get(ObjectKey("ns", "p0")) == decision("p0", detail="another")
    assert len(decisions) == OPEN + 50


def test_a_pod_that_was_decided_about_again_stays_longest() -> None:
    decisions = filled(OPEN + 10, OPEN + 10)
    decisions.put(decision("p0"))
    for number in range(OPEN + 9):
        decisions.put(decision(f"q{number}"))
    assert decisions.get(ObjectKey("ns", "p0")) is not None
    decisions.put(decision("last"))
    assert decisions.get(ObjectKey("ns", "p0")) is None
