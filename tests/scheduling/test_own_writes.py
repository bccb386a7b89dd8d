"""Our own writes: shown late, landing late, and sent by two works at once. Each case was found by playing at random."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from extender.model.claim import OwnerReference, ResourceClaim
from extender.model.node import PodClaim, PodClaimStatus
from extender.scheduling.claiming import NotHad, deleted, release
from extender.scheduling.endings import Bound, NotBound, Order
from extender.scheduling.mapping import mapped
from extender.scheduling.remedy import freed, settled
from extender.scheduling.steps import (
    BindPod,
    DeleteClaim,
    Done,
    MapExtended,
    Outcome,
    ReadClaim,
    ReadPod,
    Release,
    Step,
)
from extender.state.belief import version
from extender.state.ledger import ClaimHold, Event, Phase, Promise
from tests.scheduling.cast import binder_of, claim, consumer, device, held, pod
from tests.scheduling.server import Server, World, allocation_of
from tests.scheduling.stage import N1, OTHER, POD, A, bind, world_of

EXTENDED = pod("p", gpus=1)


def reserved() -> World:
    """Set up a pod that has its devices from an earlier attempt, and a watch that tells nothing by itself."""
    world = world_of(held(claim("a"), device("n1", 0), by=POD))
    world.is_prompt = False
    return world


def step(work: Generator[Step, Outcome, Any]) -> Step:
    return next(work)


def ended(work: Generator[Step, Outcome, Any], outcome: Outcome) -> object:
    try:
        return work.send(outcome)
    except StopIteration as end:
        return end.value


def test_a_pod_is_not_bound_to_what_was_taken_back_before_the_watch_shows_it() -> None:
    world = reserved()
    world.server.put(replace(world.server.claims[A], allocation=None, reserved_for=()))
    assert isinstance(bind(world), NotBound)
    assert world.server.pods[POD.key].node_name is None


def test_what_takes_back_late_does_not_reach_a_pod_that_was_bound_meanwhile() -> None:
    world = reserved()
    world.server.late.append(Release(world.server.claims[A], POD.uid, deallocate=True))
    assert isinstance(bind(world), Bound)
    world.server.land()
    assert [item.uid for item in world.server.claims[A].reserved_for] == [POD.uid]
    assert allocation_of(world.server, "a") is not None


def test_nothing_is_taken_from_a_pod_that_is_bound_already_as_the_watch_will_show() -> None:
    world = reserved()
    world.server.bind(POD, N1)
    assert not world.carry(freed(POD, world.belief, 0.0))
    assert allocation_of(world.server, "a") is not None


def test_nothing_is_freed_for_a_pod_while_it_is_bound() -> None:
    world = reserved()
    doing = binder_of(world.belief).bind(Order(POD.key, POD.uid, N1))
    step(doing)
    assert not world.carry(freed(POD, world.belief, 0.0))
    assert not world.taken
    doing.close()
    assert world.carry(freed(POD, world.belief, 0.0))


def test_a_pod_is_not_bound_while_its_claims_are_freed() -> None:
    world = reserved()
    freeing = freed(POD, world.belief, 0.0)
    step(freeing)
    assert bind(world) == NotBound("claims of the pod are being freed")
    freeing.close()
    assert isinstance(bind(world), Bound)


def test_what_is_found_out_about_one_write_says_nothing_of_the_next() -> None:
    world = world_of(claim("a"))
    world.is_prompt = False
    known = world.server.claims[A]
    hold = ClaimHold(claim=known.uid, devices=(), version=version(known))
    ledger = world.belief.ledger
    ledger.reserve(Promise(POD.uid, N1, (hold,)))
    ledger.rebase(known.uid, version(known))
    world.belief.unanswered(known.uid)
    settling = settled(world.belief)
    assert step(settling) == ReadClaim(A)
    # The binding is faster: it has moved the claim on, written again, and heard nothing again.
    fresh = world.server.put(known)
    assert isinstance(fresh, ResourceClaim)
    ledger.tell_claim(known.uid, Event.RESUMED)
    ledger.rebase(known.uid, version(fresh))
    ledger.tell_claim(known.uid, Event.UNANSWERED)
    ended(settling, Done(fresh))
    left = ledger.hold_of(known.uid)
    assert left is not None
    assert left.phase is Phase.UNKNOWN


def test_with_the_last_reservation_the_devices_go_whoever_allocated_them() -> None:
    world = reserved()
    world.carry(release(world.server.claims[A], POD, is_ours=False))
    assert allocation_of(world.server, "a") is None


def test_with_any_other_reservation_the_devices_stay() -> None:
    world = reserved()
    shared = replace(world.server.claims[A], reserved_for=(consumer(POD), consumer(OTHER)))
    world.carry(release(world.server.put(shared), POD, is_ours=True))  # type: ignore[arg-type]  # a claim comes back
    assert allocation_of(world.server, "a") is not None


def test_a_pods_status_names_the_claim_of_the_last_attempt_even_if_an_earlier_one_lands_late() -> None:
    world = world_of(subject=EXTENDED)
    known = world.server.pods[EXTENDED.key]
    world.server.late.append(MapExtended(known, "gone", None))
    world.carry(mapped(known, "made", None))
    world.server.land()
    assert world.server.pods[EXTENDED.key].extended_claim == "made"


def test_a_pod_that_moved_on_is_read_again_before_its_status_is_written() -> None:
    world = world_of(subject=EXTENDED)
    known = world.server.pods[EXTENDED.key]
    world.server.put(known)
    world.carry(mapped(known, "made", None))
    assert [type(item) for item in world.taken] == [MapExtended, ReadPod, MapExtended]
    assert world.server.pods[EXTENDED.key].extended_claim == "made"


def test_a_pod_that_names_another_claim_meanwhile_is_not_bound_with_the_one_that_it_named_before() -> None:
    entry = PodClaim(name="gpu", template_name="t")
    subject = replace(POD, claims=(entry,), claim_statuses=(PodClaimStatus(name="gpu", claim_name="a"),))
    mine = OwnerReference(kind="Pod", uid=POD.uid)
    world = world_of(replace(claim("a"), owners=(mine,)), replace(claim("c"), owners=(mine,)), subject=subject)

    def renamed(server: Server, taken: Step) -> None:
        assert isinstance(taken, BindPod)
        server.put(replace(subject, claim_statuses=(PodClaimStatus(name="gpu", claim_name="c"),)))

    world.fault, world.at = renamed, 2
    result = bind(world, subject=subject)
    assert isinstance(result, NotBound)
    assert "another claim" in result.message
    assert world.server.pods[POD.key].node_name is None
    assert allocation_of(world.server, "a") is None


def test_a_pod_that_names_another_claim_meanwhile_is_not_told_which_has_its_extended_resources() -> None:
    subject = replace(EXTENDED, claim_statuses=(PodClaimStatus(name="gpu", claim_name="a"),))
    world = world_of(subject=subject)
    read = world.server.pods[subject.key]
    world.server.put(replace(read, claim_statuses=(PodClaimStatus(name="gpu", claim_name="c"),)))
    assert isinstance(world.carry(mapped(read, "made", None)), NotHad)
    assert world.server.pods[subject.key].extended_claim is None


def test_a_claim_that_somebody_changes_while_it_is_deleted_is_looked_at_again() -> None:
    world = world_of(claim("a"))

    def touched(server: Server, taken: Step) -> None:
        assert isinstance(taken, DeleteClaim)
        server.put(server.claims[A])

    world.fault, world.at = touched, 1
    assert world.carry(deleted(world.server.claims[A]))
    assert [type(taken) for taken in world.taken] == [ReadClaim, DeleteClaim] * 2


def test_a_claim_that_somebody_takes_while_it_is_deleted_is_left_to_them() -> None:
    world = world_of(claim("a"))
    before = world.server.claims[A]

    def taken_by_another(server: Server, _taken: Step) -> None:
        server.put(held(before, device("n1", 0), by=OTHER))

    world.fault, world.at = taken_by_another, 1
    assert not world.carry(deleted(before))
    assert not world.server.claims[A].is_deleting
    assert allocation_of(world.server, "a") is not None
