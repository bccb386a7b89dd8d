"""Another allocator of our kind at work on the same pod: what it has bound keeps what it was bound with."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest

from extender.model.names import Uid
from extender.scheduling.assigning import kept_off
from extender.scheduling.claiming import NotHad, consumer_of, release
from extender.scheduling.endings import Bound, NotBound, Order
from extender.scheduling.mapping import mapped, unmade
from extender.scheduling.remedy import freed
from extender.scheduling.steps import (
    AwaitShown,
    BindPod,
    DeleteClaim,
    MapExtended,
    Outcome,
    ReadClaim,
    Refusal,
    Refused,
    Release,
    Step,
    Unknown,
    WriteAllocation,
)
from tests.scheduling.cast import binder_of, claim, device, given, held, pod
from tests.scheduling.server import World, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, A, world_of

EXTENDED = pod("p", gpus=1)
BOTH = pod("p", "a", "b")


def binding(world: World, subject: Any = POD) -> Generator[Step, Outcome, Any]:
    return binder_of(world.belief).bind(Order(subject.key, subject.uid, N1))


def carried(
    world: World, work: Generator[Step, Outcome, Any], before: type[Step], *meanwhile: Callable[[], Any]
) -> Any:
    """Carry out *work*; each of *meanwhile* happens once, just before another step of a certain kind arrives."""
    left = list(meanwhile)
    try:
        step = next(work)
        while True:
            if isinstance(step, before) and left:
                left.pop(0)()
            outcome = world.server.do(step)
            world.server.deliver(world.belief)
            step = work.send(outcome)
    except StopIteration as end:
        assert not left
        return end.value


def touched(world: World) -> None:
    world.server.put(replace(world.server.pods[POD.key]))


def test_what_another_has_allocated_alike_is_not_taken_from_the_pod_that_it_has_bound() -> None:
    world = world_of(claim("a"), claim("b"), subject=BOTH)
    server = world.server

    def other() -> None:
        key = next(key for key in server.claims if key.name == "b")
        ours = consumer_of(BOTH)
        alike = given(device("n1", 0))
        server.put(replace(server.claims[A], allocation=alike, reserved_for=(ours,)))
        server.put(replace(server.claims[key], allocation=given(device("n2", 0)), reserved_for=(ours,)))
        server.bind(BOTH, N1)

    result = carried(world, binding(world, BOTH), WriteAllocation, other)
    assert isinstance(result, NotBound)
    assert allocation_of(server, "a") is not None


def test_what_another_that_chose_alike_takes_back_does_not_land_after_our_binding() -> None:
    world = world_of(claim("a"))

    def other() -> None:
        alike = given(device("n1", 0))
        world.server.put(replace(world.server.claims[A], allocation=alike, reserved_for=(consumer_of(POD),)))
        # As the first to write it, it takes its claim back without a look at the pod.
        world.server.late.append(Release(world.server.claims[A], POD.uid, deallocate=True))

    assert isinstance(carried(world, binding(world), WriteAllocation, other), Bound)
    world.server.land()
    assert allocation_of(world.server, "a") is not None


def test_what_another_has_begun_to_use_is_not_taken_from_the_pod_that_it_has_bound_elsewhere() -> None:
    world = world_of(claim("a"))

    def other() -> None:
        world.server.put(replace(world.server.claims[A]))
        world.server.bind(POD, N2)

    assert isinstance(carried(world, binding(world), BindPod, other), NotBound)
    assert allocation_of(world.server, "a") is not None


def test_what_was_made_sure_of_once_more_is_not_taken_from_the_pod_that_another_has_bound_elsewhere() -> None:
    world = world_of(claim("a"))
    result = carried(world, binding(world), BindPod, lambda: touched(world), lambda: world.server.bind(POD, N2))
    assert isinstance(result, NotBound)
    assert allocation_of(world.server, "a") is not None


def test_a_shared_claim_stays_reserved_for_the_pod_that_another_has_bound_elsewhere() -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=OTHER))
    assert isinstance(carried(world, binding(world), BindPod, lambda: world.server.bind(POD, N2)), NotBound)
    assert consumer_of(POD) in world.server.claims[A].reserved_for


@pytest.mark.parametrize(
    "change", [{"is_deleting": True}, {"reserved_for": ()}, {"allocation": given(device("n2", 0))}]
)
def test_a_pod_is_not_bound_with_what_was_done_away_with_before_the_watch_has_shown_our_write(
    change: dict[str, Any],
) -> None:
    world = world_of(claim("a"))

    def other() -> None:
        world.server.put(replace(world.server.claims[A], **change))

    assert isinstance(carried(world, binding(world), AwaitShown, other), NotBound)
    assert world.server.pods[POD.key].node_name is None


def test_what_is_sent_to_take_back_from_a_pod_that_was_touched_does_not_land_after_its_binding() -> None:
    world = world_of(claim("a"))
    late: list[Release] = []

    def other() -> None:
        touched(world)
        late.append(Release(world.server.claims[A], POD.uid, deallocate=True))

    assert isinstance(carried(world, binding(world), BindPod, other), Bound)
    world.server.late.extend(late)
    world.server.land()
    assert allocation_of(world.server, "a") is not None


def test_what_is_sent_to_take_back_before_the_pods_status_is_written_does_not_land_after_its_binding() -> None:
    world, late = world_of(subject=EXTENDED), list[Release]()

    def other() -> None:
        touched(world)
        late.extend(Release(made, POD.uid, deallocate=True) for made in world.server.claims.values())

    assert isinstance(carried(world, binding(world, EXTENDED), MapExtended, other), Bound)
    world.server.late.extend(late)
    world.server.land()
    assert [made.allocation is not None for made in world.server.claims.values()] == [True]


def test_what_was_taken_back_from_a_pod_that_was_touched_keeps_it_from_being_bound() -> None:
    world = world_of(claim("a"))

    def other() -> None:
        touched(world)
        world.server.put(replace(world.server.claims[A], allocation=None, reserved_for=()))

    assert isinstance(carried(world, binding(world), BindPod, other), NotBound)
    assert world.server.pods[POD.key].node_name is None


def test_after_a_conflict_nothing_is_taken_from_a_pod_that_was_bound_meanwhile() -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=POD))
    known = world.server.claims[A]
    world.server.put(replace(known))
    world.server.bind(POD, N1)
    assert not world.carry(release(known, POD, is_ours=True, kept_off=kept_off))
    assert allocation_of(world.server, "a") is not None


def test_the_status_of_a_pod_that_was_bound_meanwhile_goes_on_naming_its_claim() -> None:
    world = world_of(subject=EXTENDED)
    known = world.server.pods[EXTENDED.key]
    world.server.put(replace(known, extended_claim="theirs"))
    world.server.bind(EXTENDED, N1)
    assert isinstance(world.carry(mapped(known, "ours", None)), NotHad)
    assert world.server.pods[EXTENDED.key].extended_claim == "theirs"


def test_a_pod_whose_status_names_anothers_claim_by_now_is_not_bound_with_ours() -> None:
    world = world_of(subject=EXTENDED)

    def other() -> None:
        world.server.put(replace(world.server.pods[EXTENDED.key], extended_claim="theirs"))

    assert isinstance(carried(world, binding(world, EXTENDED), BindPod, other), NotBound)
    assert world.server.pods[EXTENDED.key].node_name is None


@pytest.mark.parametrize("answer", [Unknown(), Refused(Refusal.UNSENT)], ids=["unknown", "unsent"])
def test_a_claim_that_could_not_be_taken_back_is_not_deleted_for_nobody_would_free_it_without_its_pod(
    answer: Outcome,
) -> None:
    world = world_of(subject=EXTENDED)

    class Deaf(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, MapExtended):
                return Refused(Refusal.FORBIDDEN)
            return answer if isinstance(step, Release) else super()._outcome(step)

    deaf = Deaf(world.server, world.belief)
    assert isinstance(deaf.carry(binding(world, EXTENDED)), NotBound)
    assert not [step for step in deaf.taken if isinstance(step, DeleteClaim)]
    assert [claim.is_deleting for claim in world.server.claims.values()] == [False]
    assert not deaf.carry(freed(EXTENDED, world.belief, 0.0))
    assert [claim.is_deleting for claim in world.server.claims.values()] == [False]


def test_a_claim_of_which_nobody_knew_whether_it_was_written_is_freed_before_it_is_deleted() -> None:
    world = world_of(subject=EXTENDED)

    class Deaf(World):
        def _outcome(self, step: Step) -> Outcome:
            outcome = super()._outcome(step)
            is_written = any(isinstance(taken, WriteAllocation) for taken in self.taken)
            is_deaf = is_written and not any(isinstance(taken, Release) for taken in self.taken)
            return Unknown() if is_deaf and isinstance(step, WriteAllocation | ReadClaim) else outcome

    deaf = Deaf(world.server, world.belief)
    assert isinstance(deaf.carry(binding(world, EXTENDED)), NotBound)
    assert [(claim.is_deleting, claim.allocation) for claim in world.server.claims.values()] == [(True, None)]


def test_what_was_made_for_a_pod_that_another_has_bound_with_its_own_claim_is_given_up() -> None:
    world = world_of(subject=EXTENDED)

    def other() -> None:
        world.server.put(replace(world.server.pods[EXTENDED.key], extended_claim="theirs"))
        world.server.bind(EXTENDED, N1)

    assert isinstance(carried(world, binding(world, EXTENDED), BindPod, other), Bound)
    assert [(claim.is_deleting, claim.allocation) for claim in world.server.claims.values()] == [(True, None)]


def test_what_was_made_is_given_up_even_if_nothing_else_may_be_taken_from_the_pod() -> None:
    both = replace(EXTENDED, claims=POD.claims)
    world = world_of(held(claim("a"), device("n1", 0), by=both), subject=both)

    def other() -> None:
        world.server.put(replace(world.server.pods[both.key], extended_claim="theirs"))
        world.server.bind(both, N1)

    assert isinstance(carried(world, binding(world, both), MapExtended, other), NotBound)
    made = [claim for key, claim in world.server.claims.items() if key != A]
    assert [(claim.is_deleting, claim.allocation) for claim in made] == [(True, None)]
    assert allocation_of(world.server, "a") is not None


def test_what_a_pod_had_is_taken_back_once_another_pod_has_its_name() -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=POD))
    world.is_prompt = False
    world.server.put(replace(world.server.pods[POD.key], uid=Uid("another")))
    assert world.carry(freed(POD, world.belief, 0.0))
    assert allocation_of(world.server, "a") is None


@pytest.mark.parametrize(
    ("change", "is_given_up"),
    [
        pytest.param({"node_name": N1, "extended_claim": "another"}, True, id="bound with another"),
        pytest.param({"node_name": N1, "extended_claim": "a"}, False, id="bound with it"),
        pytest.param({"node_name": N1}, False, id="bound, and nobody says with what"),
        pytest.param({"extended_claim": "another"}, False, id="not bound"),
        pytest.param({"node_name": N1, "extended_claim": "another", "uid": Uid("x")}, False, id="another of its name"),
    ],
)
def test_what_could_not_be_freed_is_given_up_only_if_its_pod_runs_with_another_claim(
    change: dict[str, Any], *, is_given_up: bool
) -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=EXTENDED), subject=EXTENDED)
    world.server.put(replace(world.server.pods[EXTENDED.key], **change))
    made = world.server.claims[A]
    world.carry(unmade([made], {made.uid: False}, EXTENDED))
    assert (world.server.claims[A].is_deleting, world.server.claims[A].allocation is None) == (is_given_up,) * 2
