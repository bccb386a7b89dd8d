"""Holds: what ends them and what does not, as a table and as laws over whatever happens."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Changed
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.state.ledger import BINDING, TRANSITIONS, ClaimHold, Event, Ledger, Phase, Promise
from tests.state.test_cluster import cluster_of, device, free_devices, holder, node_slice

POD, OTHER, CLAIM = Uid("pod"), Uid("other"), Uid("claim")
N1 = NodeName("n1")
WAYS: dict[Phase, tuple[Event, ...]] = {
    Phase.OFFERED: (),
    Phase.RESERVED: (Event.BIND,),
    Phase.WRITTEN: (Event.BIND, Event.ACCEPTED),
    Phase.UNKNOWN: (Event.BIND, Event.UNANSWERED),
}


def promise(pod: Uid = POD, claim: Uid = CLAIM, name: str = "d0") -> Promise:
    return Promise(pod, N1, (ClaimHold(claim, (Hold(device("n1", name), WHOLE),)),))


def held(ledger: Ledger) -> list[str]:
    return [hold.device.device for promise in ledger for claim in promise.claims for hold in claim.devices]


def ledger_in(phase: Phase) -> Ledger:
    ledger = Ledger()
    assert ledger.offer(promise())
    for event in WAYS[phase]:
        ledger.tell(POD, event)
    found = ledger.of_pod(POD)
    assert found is not None
    assert found.claims[0].phase is phase
    return ledger


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.WRITTEN, Phase.UNKNOWN])
@pytest.mark.parametrize("event", [Event.EXPIRED, Event.POD_GONE])
def test_neither_time_nor_the_pods_end_shortens_a_hold_whose_write_may_land(phase: Phase, event: Event) -> None:
    assert ledger_in(phase).tell(POD, event) is not None


@pytest.mark.parametrize("event", [Event.EXPIRED, Event.POD_GONE, Event.OUTDATED])
def test_an_offer_ends_with_time_with_its_pod_and_with_its_claim(event: Event) -> None:
    assert ledger_in(Phase.OFFERED).tell(POD, event) is None


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.UNKNOWN])
def test_a_write_that_can_no_longer_succeed_ends_its_hold(phase: Phase) -> None:
    assert ledger_in(phase).tell(POD, Event.OUTDATED) is None


def test_left_to_a_pod_is_what_nobody_holds_and_what_it_was_merely_offered_itself() -> None:
    ledger = Ledger()
    assert ledger.offer(promise())
    assert ledger.offer(promise(OTHER, Uid("another"), "d1"))
    left = [[name for name in ("d0", "d1", "d2") if ledger.is_left_to(pod, device("n1", name))] for pod in (POD, OTHER)]
    assert left == [["d0", "d2"], ["d1", "d2"]]
    ledger.tell(POD, Event.BIND)
    assert not ledger.is_left_to(POD, device("n1", "d0"))


def test_only_a_definite_refusal_releases_a_reservation() -> None:
    assert ledger_in(Phase.RESERVED).tell(POD, Event.REFUSED) is None
    unknown = ledger_in(Phase.RESERVED).tell(POD, Event.UNANSWERED)
    assert unknown is not None
    assert unknown.claims[0].phase is Phase.UNKNOWN
    assert ledger_in(Phase.UNKNOWN).tell(POD, Event.REFUSED) is not None


@pytest.mark.parametrize("phase", Phase)
def test_what_the_watch_shows_is_no_longer_held(phase: Phase) -> None:
    ledger = ledger_in(phase)
    ledger.tell_claim(CLAIM, Event.SHOWN)
    assert ledger.of_pod(POD) is None
    assert ledger.of_claim(CLAIM) is None


def test_every_phase_says_what_every_end_means() -> None:
    assert set(TRANSITIONS) == set(Phase)
    assert all(step[Event.SHOWN] is None for step in TRANSITIONS.values())


def test_a_second_filter_replaces_the_offer_of_the_first() -> None:
    ledger = ledger_in(Phase.OFFERED)
    assert ledger.offer(promise(name="d1"))
    assert held(ledger) == ["d1"]


def test_a_filter_does_not_replace_what_is_being_written() -> None:
    ledger = ledger_in(Phase.RESERVED)
    assert not ledger.offer(promise(name="d1"))
    assert held(ledger) == ["d0"]


def test_a_claim_is_promised_to_one_pod_at_a_time() -> None:
    ledger = ledger_in(Phase.OFFERED)
    assert not ledger.offer(promise(pod=OTHER, name="d1"))
    assert ledger.of_claim(CLAIM) == ledger.of_pod(POD)
    assert ledger.of_pod(OTHER) is None


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.WRITTEN, Phase.UNKNOWN])
def test_what_is_being_written_for_one_pod_is_not_written_for_another(phase: Phase) -> None:
    ledger = ledger_in(phase)
    assert not ledger.reserve(promise(pod=OTHER, name="d1"))
    assert ledger.of_claim(CLAIM) == ledger.of_pod(POD)
    assert held(ledger) == ["d0"]


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.WRITTEN, Phase.UNKNOWN])
def test_who_is_bound_anew_without_claims_to_write_loses_nothing_that_is_being_written(phase: Phase) -> None:
    ledger = ledger_in(phase)
    assert not ledger.reserve(Promise(POD, N1, ()))
    assert held(ledger) == ["d0"]


def test_who_is_bound_takes_a_claim_that_was_merely_offered_to_another() -> None:
    ledger = ledger_in(Phase.OFFERED)
    assert ledger.reserve(promise(pod=OTHER, name="d1"))
    assert ledger.of_pod(POD) is None
    assert ledger.of_claim(CLAIM) == ledger.of_pod(OTHER)
    assert held(ledger) == ["d1"]


@pytest.mark.parametrize("phase", Phase)
def test_a_claim_may_be_written_from_when_its_pod_is_bound_until_that_is_answered(phase: Phase) -> None:
    ledger = ledger_in(phase)
    assert ledger.is_reserved(CLAIM, POD) is (phase is Phase.RESERVED)
    assert not ledger.is_reserved(CLAIM, OTHER)


def test_holds_are_seen_by_everybody_but_the_pod_that_only_has_an_offer() -> None:
    cluster = cluster_of(Node(name=N1), node_slice("n1", "d0", "d1"))
    ledger = ledger_in(Phase.OFFERED)
    assert free_devices(ledger.overlay(cluster.snapshot)) == {("n1", 1)}
    assert free_devices(ledger.overlay(cluster.snapshot, without=POD)) == {("n1", 0), ("n1", 1)}
    ledger.tell(POD, Event.BIND)
    assert free_devices(ledger.overlay(cluster.snapshot, without=POD)) == {("n1", 1)}


def test_a_device_counts_once_when_the_watch_shows_what_was_held() -> None:
    cluster = cluster_of(Node(name=N1), node_slice("n1", "d0"))
    ledger = ledger_in(Phase.WRITTEN)
    cluster.apply(Changed(holder("c", device("n1", "d0"))))
    ledger.tell_claim(CLAIM, Event.SHOWN)
    assert ledger.overlay(cluster.snapshot).usage_at(0) == WHOLE


def test_a_claim_that_was_made_is_found_by_its_identity_from_then_on() -> None:
    ledger = ledger_in(Phase.RESERVED)
    ledger.rename(CLAIM, Uid("made"), ObjectKey("ns", "made"))
    assert ledger.of_claim(CLAIM) is None
    assert ledger.is_reserved(Uid("made"), POD)
    ledger.saw(Uid("made"))
    hold = ledger.hold_of(Uid("made"))
    assert hold is not None
    assert hold.unseen is None
    ledger.tell_claim(Uid("made"), Event.REFUSED)
    assert list(ledger) == []


class Holds(RuleBasedStateMachine):
    """Whatever happens in whatever order, no pod has two promises, no claim two pods, and no binding hold just goes."""

    PODS = st.sampled_from([Uid(f"p{index}") for index in range(4)])
    CLAIMS = st.sampled_from([Uid(f"c{index}") for index in range(5)])

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.binding: set[Any] = set()

    @rule(pod=PODS, claims=st.sets(CLAIMS, max_size=3), name=st.sampled_from(["d0", "d1", "d2"]))
    def offer(self, pod: Uid, claims: set[Uid], name: str) -> None:
        holds = tuple(ClaimHold(claim, (Hold(device("n1", name), WHOLE),)) for claim in sorted(claims))
        self.ledger.offer(Promise(pod, N1, holds))

    @rule(pod=PODS, claim=st.none() | CLAIMS, event=st.sampled_from(Event))
    def tell(self, pod: Uid, claim: Uid | None, event: Event) -> None:
        self.ledger.tell(pod, event, claim)
        if event in (Event.SHOWN, Event.OUTDATED, Event.REFUSED):
            self.binding = {(one, other) for one, other in self.binding if one != pod or claim not in (None, other)}

    @rule(claim=CLAIMS, event=st.sampled_from([Event.SHOWN, Event.OUTDATED]))
    def tell_claim(self, claim: Uid, event: Event) -> None:
        self.ledger.tell_claim(claim, event)
        self.binding = {(one, other) for one, other in self.binding if other != claim}

    @invariant()
    def each_claim_is_found_at_the_pod_that_has_it(self) -> None:
        for index in range(4):
            found = self.ledger.of_pod(Uid(f"p{index}"))
            for hold in found.claims if found else ():
                assert self.ledger.of_claim(hold.claim) == found
        for index in range(5):
            found = self.ledger.of_claim(Uid(f"c{index}"))
            assert found is None or Uid(f"c{index}") in [hold.claim for hold in found.claims]

    @invariant()
    def what_is_being_written_stays_until_its_outcome_is_known(self) -> None:
        now = {
            (found.pod, hold.claim)
            for index in range(4)
            if (found := self.ledger.of_pod(Uid(f"p{index}")))
            for hold in found.claims
            if hold.phase in BINDING
        }
        assert self.binding <= now
        self.binding = now


TestHolds = Holds.TestCase
