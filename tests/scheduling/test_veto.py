"""Preemption is vetoed where the pod's devices would not be there even without the victims."""

from dataclasses import replace

import pytest

from extender.allocation import work
from extender.allocation.extended import hidden_claim
from extender.allocation.features import Features
from extender.allocation.snapshot import Snapshot
from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Changed
from extender.model.claim import AllocatedDevice, Allocation, DeviceCondition, ResourceClaim
from extender.model.names import ClassName, DeviceKey, NodeName, Uid
from extender.model.node import Pod
from extender.scheduling import choosing, veto
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.precedent import Vain
from extender.scheduling.veto import Ahead, helped
from extender.state.belief import Belief
from extender.state.domain import Domain
from extender.state.ledger import ClaimHold, Event, Promise
from tests.scheduling.cast import (
    GPU,
    GPU_CLASS,
    OURS,
    THEIRS,
    belief_of,
    chooser_of,
    claim,
    consumer,
    device,
    given,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
)

V, W = pod("v"), pod("w")
N1, N2 = names("n1", "n2")


def left(subject: Pod, victims: dict[NodeName, tuple[Uid, ...]], *claims: ResourceClaim) -> tuple[NodeName, ...]:
    belief = belief_of(node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 1), claim("c", 2), *claims)
    return helped(subject, victims, chooser_of(belief), 0.0)


BOTH = held(claim("b"), device("n1", 0), device("n1", 1), by=V)
SHARED = replace(BOTH, reserved_for=(consumer(V), consumer(W)))
FIRST, SECOND = held(claim("f"), device("n1", 0), by=V), held(claim("s"), device("n1", 1), by=W)


@pytest.mark.parametrize(
    ("victims", "claims", "is_helped"),
    [
        ((), (), True),
        ((), (BOTH,), False),
        ((V.uid,), (BOTH,), True),
        ((V.uid,), (SHARED,), False),
        ((V.uid, W.uid), (SHARED,), True),
        ((V.uid,), (FIRST, SECOND), False),
        ((V.uid, W.uid), (FIRST, SECOND), True),
        ((V.uid,), (replace(BOTH, reserved_for=()),), False),
    ],
    ids=["free", "taken", "alone", "shared", "all-of-shared", "one-of-two", "both", "unreserved"],
)
def test_a_node_is_left_where_the_pod_fits_without_the_victims(
    victims: tuple[Uid, ...], claims: tuple[ResourceClaim, ...], *, is_helped: bool
) -> None:
    assert left(pod("p", "c"), {N1: victims, N2: ()}, *claims) == ((N1,) if is_helped else ())


def test_what_is_merely_promised_to_a_victim_is_free_once_that_is_gone() -> None:
    belief = belief_of(node("n1"), gpus("n1", 2), claim("f"), claim("s"), claim("c", 2), low := pod("v", "f"))
    planner = planner_of(belief)
    planner.plan(low, [N1], 0.0)
    assert helped(pod("p", "c"), {N1: ()}, planner.chooser, 0.0) == ()
    assert helped(pod("p", "c"), {N1: (V.uid,)}, planner.chooser, 0.0) == (N1,)
    planner.plan(pod("w", "s"), [N1], 0.0)
    assert helped(pod("p", "c"), {N1: (V.uid,)}, planner.chooser, 0.0) == ()


@pytest.mark.parametrize(
    "events",
    [(), (Event.ACCEPTED,), (Event.UNANSWERED,)],
    ids=["being written", "written", "unknown"],
)
def test_what_a_victim_is_being_bound_with_is_free_once_that_is_gone(events: tuple[Event, ...]) -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), claim("f"), claim("c"))
    assert belief.ledger.reserve(Promise(V.uid, N1, (ClaimHold(claim("f").uid, (Hold(device("n1", 0), WHOLE),)),)))
    for event in events:
        belief.ledger.tell(V.uid, event)
    assert helped(pod("p", "c"), {N1: (V.uid,)}, chooser_of(belief), 0.0) == (N1,)
    assert helped(pod("p", "c"), {N1: (W.uid,)}, chooser_of(belief), 0.0) == ()


def test_what_a_less_important_victim_was_promised_unasked_is_left_once() -> None:
    low, shared = pod("v", "f"), held(claim("s"), device("n1", 0), by=W)
    belief = belief_of(node("n1"), gpus("n1", 2), claim("f"), claim("c", 2), low)
    planner, high = planner_of(belief), pod("p", "c", priority=1)
    hold = ClaimHold(claim("f").uid, (Hold(device("n1", 0), WHOLE),))
    assert belief.ledger.offer(Promise(V.uid, N1, (hold,), is_answer=False))
    assert helped(high, {N1: (V.uid,)}, planner.chooser, 0.0) == (N1,)
    # Somebody else was given it as well, who does not go.
    belief.apply(Changed(shared))
    assert helped(high, {N1: (V.uid,)}, planner.chooser, 0.0) == ()


@pytest.mark.parametrize(("devices", "is_helped"), [(1, False), (2, True)])
def test_what_the_pod_shares_with_victims_alone_it_needs_anew_once_they_are_gone(
    devices: int, *, is_helped: bool
) -> None:
    shared = held(claim("s"), device("n1", 0), by=V)
    belief = belief_of(node("n1"), gpus("n1", devices), shared, claim("b"))
    assert helped(pod("p", "s", "b"), {N1: (V.uid,)}, chooser_of(belief), 0.0) == ((N1,) if is_helped else ())


def test_what_others_use_too_stays_the_pods_where_it_is() -> None:
    shared = replace(held(claim("s"), device("n1", 0), by=V), reserved_for=(consumer(V), consumer(W)))
    belief = belief_of(node("n1"), gpus("n1", 2), shared, held(claim("f"), device("n1", 1), by=V), claim("b"))
    assert helped(pod("p", "s", "b"), {N1: (V.uid,)}, chooser_of(belief), 0.0) == (N1,)


P, Q = pod("p", "c", priority=1), pod("q", "d", priority=1)
ONE, TWO = held(claim("f"), device("n1", 0), by=V), held(claim("s"), device("n1", 1), by=W)


@pytest.mark.parametrize(
    ("devices", "victims", "ahead", "is_helped"),
    [
        (1, (V.uid,), (), True),
        (1, (V.uid,), (Ahead(Q, (V.uid,)),), False),
        (1, (), (Ahead(Q, (V.uid,)),), False),
        (2, (V.uid,), (Ahead(Q, (V.uid,)),), False),
        (2, (V.uid, W.uid), (Ahead(Q, (V.uid,)),), True),
        (2, (W.uid,), (Ahead(Q, (V.uid,)),), True),
        (2, (), (Ahead(Q, (V.uid, W.uid)),), False),
        (3, (), (Ahead(Q, (V.uid,)),), True),
    ],
    ids=["alone", "same victim", "no victim", "one of two", "two of two", "another", "theirs are not ours", "free"],
)
def test_who_is_ahead_on_a_node_has_his_devices_first(
    devices: int, victims: tuple[Uid, ...], ahead: tuple[Ahead, ...], *, is_helped: bool
) -> None:
    taken = (ONE, TWO)[: min(devices, 2)]
    belief = belief_of(node("n1"), gpus("n1", devices), *taken, claim("c"), claim("d"), Q)
    assert helped(P, {N1: victims}, chooser_of(belief), 0.0, {N1: ahead}) == ((N1,) if is_helped else ())


def test_who_is_ahead_with_a_claim_of_the_pod_has_its_devices_with_it() -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), ONE, claim("c"))
    ahead = Ahead(pod("q", "c", priority=1), (V.uid,))
    assert helped(P, {N1: (V.uid,)}, chooser_of(belief), 0.0, {N1: (ahead,)}) == (N1,)


@pytest.mark.parametrize(
    ("priority", "is_answer", "is_helped"),
    [(0, False, True), (0, True, False), (1, False, False), (2, False, False)],
    ids=["woken", "told", "as important", "more important"],
)
def test_the_less_important_leave_what_nobody_was_told_of(*, priority: int, is_answer: bool, is_helped: bool) -> None:
    other = pod("o", "d", priority=priority)
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"), claim("d"), other)
    planner = planner_of(belief)
    planner.plan(other, [N1], 0.0, is_answer=is_answer)
    assert helped(P, {N1: (V.uid,)}, planner.chooser, 0.0) == ((N1,) if is_helped else ())
    assert helped(P, {N1: (other.uid,)}, planner.chooser, 0.0) == (N1,)


def test_claims_that_are_freed_are_given_in_the_order_of_the_pod() -> None:
    order: list[str] = []

    class Asked(Chooser):
        def place(self, needs: Needs, node: NodeName, snapshot: Snapshot | None = None) -> Placement | Vain | str:
            order.extend(item.key.name for item in needs.pending)
            return Chooser.place(self, needs, node, snapshot)

    belief = belief_of(node("n1"), gpus("n1", 3), held(claim("s"), device("n1", 0), by=V), claim("a"), claim("b"))
    assert helped(pod("p", "a", "s", "b"), {N1: (V.uid,)}, Asked(belief, lambda: ""), 0.0) == (N1,)
    assert order == ["a", "s", "b"]


def test_what_only_others_may_allocate_is_not_had_again() -> None:
    shared = held(claim("s"), device("n1", 0), by=V)
    ours = Domain(classes=frozenset({ClassName("other")}))
    belief = Belief((OURS,), Features(), domain=ours)
    for noun in (GPU_CLASS, node("n1"), gpus("n1", 1), shared):
        belief.apply(Changed(noun))
    assert helped(pod("p", "s"), {N1: ()}, chooser_of(belief), 0.0) == (N1,)
    assert helped(pod("p", "s"), {N1: (V.uid,)}, chooser_of(belief), 0.0) == ()


def test_a_pod_without_devices_is_none_of_our_business_and_one_that_is_refused_helps_nobody() -> None:
    victims: dict[NodeName, tuple[Uid, ...]] = {N1: (), N2: ()}
    assert left(pod("p"), victims) == (N1, N2)
    assert left(replace(pod("p"), scheduler=THEIRS), victims) == ()
    assert left(pod("p", "none"), victims) == ()


def test_a_share_that_is_left_from_before_a_gate_was_closed_keeps_its_device_until_its_pod_is_gone() -> None:
    whole = held(claim("h"), device("n1", 0), by=V)
    assert whole.allocation is not None
    shares = tuple(replace(result, share_id="1") for result in whole.allocation.devices)
    share = replace(whole, allocation=Allocation(devices=shares, node_selector=whole.allocation.node_selector))
    features = Features(consumable_capacity=False)
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"), share, features=features)
    assert helped(pod("p", "c"), {N1: ()}, chooser_of(belief), 0.0) == ()
    assert helped(pod("p", "c"), {N1: (V.uid,)}, chooser_of(belief), 0.0) == (N1,)


def test_nodes_behind_long_searches_are_left_for_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = belief_of(node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 2), claim("c", 2))
    nodes = {N1: (V.uid,), N2: (V.uid,)}
    assert helped(pod("p", "c"), nodes, chooser_of(belief), 0.0) == (N1, N2)
    chooser, finished = chooser_of(belief), work.finished_with_pauses
    monkeypatch.setattr(choosing, "finished_with_pauses", lambda doing: (finished(doing)[0], veto.PAUSES + 1))
    assert helped(pod("p", "c"), nodes, chooser, 0.0) == (N1,)


def spoilt(item: ResourceClaim, key: DeviceKey, *users: Pod, condition: str = "bad") -> ResourceClaim:
    """Return *item*, which *users* use, with a device that is reported to have failed, or another *condition* of it."""
    waits = AllocatedDevice(
        request="gpu", device=key, binding_conditions=("ready",), binding_failure_conditions=("bad",)
    )
    told = DeviceCondition(device=key, share_id=None, type=condition, status="True")
    allocation = replace(given(key), devices=(waits,))
    return replace(item, allocation=allocation, reserved_for=tuple(map(consumer, users)), device_conditions=(told,))


@pytest.mark.parametrize(
    ("users", "is_helped"),
    [((P,), True), ((V,), True), ((P, V), True), ((), True), ((W,), False), ((P, W), False), ((V, W), False)],
    ids=["own", "victim's", "with the victim", "nobody's", "another's", "with another", "theirs"],
)
def test_what_has_failed_nobody_is_bound_with_as_long_as_others_use_it(
    users: tuple[Pod, ...], *, is_helped: bool
) -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), spoilt(claim("c"), device("n1", 0), *users))
    assert helped(P, {N1: (V.uid,)}, chooser_of(belief), 0.0) == ((N1,) if is_helped else ())
    belief.apply(Changed(spoilt(claim("c", version=2), device("n1", 0), *users, condition="busy")))
    assert helped(P, {N1: (V.uid,)}, chooser_of(belief), 0.0) == (N1,)


@pytest.mark.parametrize(("devices", "is_helped"), [(1, False), (2, True)])
def test_in_place_of_what_has_failed_the_pod_needs_something_else_where_it_is_freed(
    devices: int, *, is_helped: bool
) -> None:
    withdrawn, taken = spoilt(claim("c"), device("n1", 7), P), held(claim("s"), device("n1", 0), by=W)
    belief = belief_of(node("n1"), node("n2"), gpus("n1", devices), gpus("n2", 1), withdrawn, taken)
    assert helped(P, {N1: (V.uid,), N2: ()}, chooser_of(belief), 0.0) == ((N1,) if is_helped else ())


def test_what_was_made_for_resources_and_has_failed_is_made_anew_before_anybody_goes() -> None:
    subject = replace(pod("x", gpus=1), extended_claim="made")
    made = replace(claim("made"), spec=hidden_claim(subject, ("ex.com/gpu",), {"ex.com/gpu": GPU}).spec)
    belief = belief_of(node("n1"), gpus("n1", 2), spoilt(made, device("n1", 0), subject), subject)
    assert helped(subject, {N1: (V.uid,)}, chooser_of(belief), 0.0) == ()
    belief.apply(Changed(held(replace(made, resource_version="2"), device("n1", 0), by=subject)))
    assert helped(subject, {N1: (V.uid,)}, chooser_of(belief), 0.0) == (N1,)
