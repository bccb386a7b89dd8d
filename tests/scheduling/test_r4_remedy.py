"""R4: what keeps a pod away and nobody else uses is freed; what others use stays."""

from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.extended import ANNOTATION, hidden_claim
from extender.model.change import Changed
from extender.model.claim import Allocation, OwnerReference, ResourceClaim
from extender.model.names import ObjectKey
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.scheduling.conditions import time_of
from extender.scheduling.endings import Bound, NotBound
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import freed, replaced, unusable
from extender.scheduling.steps import (
    AwaitShown,
    BindPod,
    Done,
    Later,
    Outcome,
    Pause,
    ReadPod,
    Refusal,
    Refused,
    Release,
    Reserve,
    Step,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.scheduling.vocabulary import Word
from extender.state.belief import READY_WITHIN_S
from extender.state.domain import Domain
from extender.state.ownership import Ownership
from tests.scheduling.cast import GPU, claim, consumer, device, given, held, planner_of, pod
from tests.scheduling.server import Server, World, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, A, bind, world_of

START = 1_800_000_000.0


@pytest.mark.parametrize("users", [(), (POD,), (OTHER,), (POD, OTHER)], ids=["nobody", "us", "another", "both"])
def test_r4_a_claim_that_keeps_its_pod_away_is_freed_unless_another_uses_it(users: tuple[Pod, ...]) -> None:
    stuck = replace(held(claim("a"), device("n9", 0)), reserved_for=tuple(map(consumer, users)))
    world = world_of(stuck)
    assert isinstance(planner_of(world.belief).plan(POD, [N1], 0.0), Rejection)
    is_free = OTHER not in users
    assert bool(unusable(POD, world.belief, 0.0)) is is_free
    assert bool(world.carry(freed(POD, world.belief, 0.0))) is is_free
    assert (allocation_of(world.server, "a") is None) is is_free


@pytest.mark.parametrize("is_reserved", [True, False])
def test_r4_freeing_is_one_write_to_the_claim_and_outlasts_a_conflict(*, is_reserved: bool) -> None:
    world = world_of(held(claim("a"), device("n9", 0), by=POD if is_reserved else None))

    def fault(server: Server, _step: Step) -> None:
        server.put(server.claims[A])

    world.fault, world.at = fault, 1  # after the pod was touched
    assert world.carry(freed(POD, world.belief, 0.0))
    assert world.server.claims[A].allocation is None
    assert world.server.claims[A].reserved_for == ()


def anywhere(item: ResourceClaim, *, waits_for: tuple[str, ...] = ()) -> ResourceClaim:
    """Return *item* with a device that every node reaches."""
    one = replace(given(device("n1", 0)).devices[0], binding_conditions=waits_for)
    return replace(item, allocation=Allocation(devices=(one,), timestamp=time_of(START)))


@pytest.mark.parametrize("domain", [Domain(), Domain(classes=frozenset(("gpu",))), Domain(classes=frozenset(("x",)))])
@pytest.mark.parametrize("is_bound", [True, False])
def test_r4_what_is_usable_on_every_node_or_is_not_ours_to_give_is_not_freed(domain: Domain, *, is_bound: bool) -> None:
    has = held(claim("a"), device("n9", 0)) if is_bound else anywhere(claim("a"))
    world = world_of(has, claim("c"), subject=(both := pod("p", "a", "c")))
    world.belief.ownership = Ownership(domain)
    is_in_the_way = is_bound and domain.has_class(GPU)
    assert bool(unusable(both, world.belief, 0.0)) is is_in_the_way
    assert bool(world.carry(freed(both, world.belief, 0.0))) is is_in_the_way
    assert (allocation_of(world.server, "a") is None) is is_in_the_way


@pytest.mark.parametrize("has_failed", [True, False])
def test_r4_what_is_usable_on_every_node_is_freed_once_it_cannot_be_made_ready(*, has_failed: bool) -> None:
    world, now = world_of(anywhere(claim("a"), waits_for=("attached",))), START + READY_WITHIN_S + has_failed
    assert bool(world.carry(freed(POD, world.belief, now))) is has_failed
    assert (allocation_of(world.server, "a") is None) is has_failed


EXTENDED = pod("p", gpus=1)


def made(*, by: Pod | None = None, is_bare: bool = False) -> ResourceClaim:
    owner = OwnerReference(kind="Pod", uid=EXTENDED.uid)
    spec = hidden_claim(EXTENDED, ("ex.com/gpu",), {"ex.com/gpu": GPU}).spec
    bare = replace(claim("made"), spec=spec, owners=(owner,), annotations=((ANNOTATION, "true"),))
    return bare if is_bare else held(bare, device("n1", 0), by=by)


@pytest.mark.parametrize("state", ["bare", "allocated", "reserved"])
def test_r4_a_claim_left_from_an_earlier_attempt_is_deleted(state: str) -> None:
    left = made(by=EXTENDED if state == "reserved" else None, is_bare=state == "bare")
    world = world_of(left, subject=EXTENDED)
    planner = planner_of(world.belief)
    plan = planner.plan(EXTENDED, [N1], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_STALE
    assert [item.key.name for item in unusable(EXTENDED, world.belief, 0.0)] == ["made"]
    assert world.carry(freed(EXTENDED, world.belief, 0.0))
    world.server.control()
    world.server.deliver(world.belief)
    assert ObjectKey("ns", "made") not in world.server.claims
    assert isinstance(planner.plan(EXTENDED, [N1], 0.0), Offer)


def test_r4_for_a_claim_left_from_an_earlier_attempt_that_is_being_deleted_and_stays_nothing_is_written() -> None:
    world = world_of(replace(made(is_bare=True), is_deleting=True), subject=EXTENDED)
    plan = planner_of(world.belief).plan(EXTENDED, [N1], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_STALE
    assert unusable(EXTENDED, world.belief, 0.0) == ()
    assert not world.carry(freed(EXTENDED, world.belief, 0.0))
    assert world.taken == []


def test_a_claim_of_another_namespace_that_says_it_was_made_for_a_pod_does_not_hold_it_back() -> None:
    world = world_of(replace(made(is_bare=True), key=ObjectKey("another", "made"), is_deleting=True), subject=EXTENDED)
    assert isinstance(planner_of(world.belief).plan(EXTENDED, [N1], 0.0), Offer)
    allocated = replace(made(by=EXTENDED), key=ObjectKey("another", "made"))
    assert unusable(EXTENDED, world_of(allocated, subject=EXTENDED).belief, 0.0) == ()


def test_r4_what_the_pods_status_names_for_extended_resources_is_not_taken_for_replaced() -> None:
    had = replace(EXTENDED, extended_claim="made")
    world = world_of(made(by=EXTENDED), subject=had)
    assert list(replaced(had, world.belief)) == []
    assert [item.key.name for item in replaced(EXTENDED, world.belief)] == ["made"]


def test_a_claim_that_was_made_and_told_in_the_pods_status_is_used_even_if_the_scheduler_knows_an_older_pod() -> None:
    world = world_of(made(by=EXTENDED), subject=replace(EXTENDED, extended_claim="made"))
    plan = planner_of(world.belief).plan(EXTENDED, [N1, N2], 0.0)
    assert isinstance(plan, Offer)
    assert (list(plan.nodes), plan.placement.claims) == ([N1], ())
    assert isinstance(bind(world, subject=EXTENDED), Bound)


@pytest.mark.parametrize("answer", [Unknown(), Refused(Refusal.FORBIDDEN)], ids=["unknown", "refused"])
def test_r4_what_was_not_freed_is_not_said_to_be(answer: Outcome) -> None:
    world = world_of(held(claim("a"), device("n9", 0), by=POD))

    class Deaf(World):
        def _outcome(self, step: Step) -> Outcome:
            return answer if isinstance(step, Release) else super()._outcome(step)

    deaf = Deaf(world.server, world.belief)
    assert not deaf.carry(freed(POD, world.belief, 0.0))


def test_r4_what_another_pod_has_begun_to_use_meanwhile_stays() -> None:
    world = world_of(held(claim("a"), device("n9", 0), by=POD))

    def fault(server: Server, _step: Step) -> None:
        known = server.claims[A]
        server.put(replace(known, reserved_for=(*known.reserved_for, consumer(OTHER))))

    world.fault, world.at = fault, 1  # after the pod was touched
    assert world.carry(freed(POD, world.belief, 0.0))
    assert world.server.claims[A].allocation is not None
    assert [item.uid for item in world.server.claims[A].reserved_for] == [OTHER.uid]


def test_a_claim_that_was_allocated_anew_elsewhere_is_not_reserved() -> None:
    world = world_of(held(claim("a"), device("n1", 0)))

    def fault(server: Server, step: Step) -> None:
        assert isinstance(step, Reserve)
        server.put(replace(server.claims[A], allocation=given(device("n2", 0))))

    world.fault, world.at = fault, 0
    assert isinstance(bind(world), NotBound)
    assert world.server.claims[A].reserved_for == ()


def test_a_shared_claim_is_reserved_for_each_pod_and_kept_for_the_other_when_one_fails() -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=OTHER))
    world.fault, world.at = (lambda _server, _step: Refused(Refusal.REJECTED, "no")), 2
    assert isinstance(bind(world), NotBound)
    assert [type(step) for step in world.taken[:4]] == [Reserve, AwaitShown, BindPod, Release]
    assert [item.uid for item in world.server.claims[A].reserved_for] == [OTHER.uid]
    assert isinstance(bind(world), Bound)
    assert [item.uid for item in world.server.claims[A].reserved_for] == [OTHER.uid, POD.uid]


def test_a_changed_claim_is_shown() -> None:
    world = world_of(claim("a"))
    world.belief.apply(Changed(held(claim("a", version=500), device("n1", 0))))
    assert isinstance(planner_of(world.belief).plan(POD, [N1, N2], 0.0), Offer)


@pytest.mark.parametrize("how", [{"is_deleting": True}, {"scheduling_gates": ("wait",)}], ids=["deleting", "gated"])
def test_nothing_is_written_for_a_pod_that_cannot_be_bound(how: dict[str, Any]) -> None:
    world = world_of(claim("a"), subject=replace(POD, **how))
    assert isinstance(bind(world), NotBound)
    assert not [step for step in world.taken if not isinstance(step, ReadPod)]


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_pod_that_runs_elsewhere_keeps_what_it_had_before(*, is_shared: bool) -> None:
    both = pod("p", "a", "c")
    had = replace(held(claim("a"), device("n1", 0)), reserved_for=tuple(map(consumer, [both, OTHER][: 1 + is_shared])))
    assert had.allocation is not None
    anywhere = replace(had, allocation=replace(had.allocation, node_selector=None))
    world = world_of(anywhere, claim("c"), subject=both)
    world.server.bind(both, N2)
    assert isinstance(bind(world, N1, subject=both), NotBound)
    assert both.uid in [item.uid for item in world.server.claims[A].reserved_for]
    assert allocation_of(world.server, "c") is None


def leaving(*users: Pod) -> ResourceClaim:
    """Return a claim that is being deleted, and is kept by those that it is reserved for."""
    return replace(held(claim("a"), device("n1", 0)), reserved_for=tuple(map(consumer, users)), is_deleting=True)


def test_r4_a_claim_that_is_deleted_is_freed_by_the_pod_that_waits_for_it_to_go() -> None:
    world = world_of(leaving(POD))
    assert world.carry(freed(POD, world.belief, 0.0))
    assert world.server.claims[A].allocation is None
    world.server.control()
    world.server.deliver(world.belief)
    assert A not in world.server.claims
    assert not world.belief.cluster.claims.keepers()


@pytest.mark.parametrize("is_bound", [True, False])
def test_r4_of_a_claim_that_is_deleted_a_pod_gives_up_only_its_own_part(*, is_bound: bool) -> None:
    world = world_of(leaving(POD, OTHER))
    if is_bound:
        world.server.bind(OTHER, N1)
    assert world.carry(freed(POD, world.belief, 0.0))
    assert [item.uid for item in world.server.claims[A].reserved_for] == [OTHER.uid]
    assert allocation_of(world.server, "a") is not None
    assert bool(world.carry(freed(OTHER, world.belief, 0.0))) is not is_bound
    assert (allocation_of(world.server, "a") is None) is not is_bound


def test_r4_a_claim_that_is_deleted_stays_for_the_pod_that_is_bound_with_it() -> None:
    world = world_of(leaving(POD))
    world.is_prompt = False
    world.server.bind(POD, N1)
    assert not world.carry(freed(POD, world.belief, 0.0))
    assert allocation_of(world.server, "a") is not None


def test_r4_what_was_made_for_a_pod_that_names_another_by_now_is_freed() -> None:
    mine = OwnerReference(kind="Pod", uid=POD.uid)
    entry = PodClaim(name="gpu", template_name="t")
    subject = replace(POD, claims=(entry,), claim_statuses=(PodClaimStatus(name="gpu", claim_name="a"),))
    left = replace(held(claim("left"), device("n1", 0), by=POD), owners=(mine,))
    others = replace(held(claim("others"), device("n1", 1), by=OTHER), owners=(mine,))
    world = world_of(replace(claim("a"), owners=(mine,)), left, others, subject=subject)
    assert [item.key.name for item in unusable(subject, world.belief, 0.0)] == ["left"]
    assert world.carry(freed(subject, world.belief, 0.0))
    assert allocation_of(world.server, "left") is None
    assert allocation_of(world.server, "others") is not None
    assert unusable(subject, world.belief, 0.0) == ()


MINE = OwnerReference(kind="Pod", uid=POD.uid)
ENTRY = PodClaim(name="gpu", template_name="t")


def naming(name: str) -> Pod:
    return replace(POD, claims=(ENTRY,), claim_statuses=(PodClaimStatus(name="gpu", claim_name=name),))


class Renaming(World):
    """A pod names another claim just before its first Binding; while it is silent, what takes back is lost."""

    is_renamed = False
    is_silent = True

    def _outcome(self, step: Step) -> Outcome:
        if isinstance(step, BindPod) and not self.is_renamed:
            self.is_renamed = True
            self.server.put(replace(claim("b2"), owners=(MINE,)))
            self.server.put(replace(self.server.pods[POD.key], claim_statuses=naming("b2").claim_statuses))
        return Unknown("lost") if self.is_silent and isinstance(step, Release) else super()._outcome(step)


@pytest.mark.parametrize("is_silent", [False, True])
def test_r4_what_was_replaced_is_given_up_by_a_pod_that_is_bound_with_the_other(*, is_silent: bool) -> None:
    base = world_of(replace(claim("a"), owners=(MINE,)), subject=naming("a"))
    world = Renaming(base.server, base.belief)
    assert isinstance(bind(world, subject=naming("a")), NotBound)
    assert allocation_of(world.server, "a") is not None
    world.is_silent = is_silent
    assert isinstance(bind(world, subject=naming("b2")), Bound)
    assert allocation_of(world.server, "b2") is not None
    # Without an answer it is not waited for.
    assert (allocation_of(world.server, "a") is not None) is is_silent


def test_r4_what_was_replaced_is_given_up_before_the_pod_is_bound_and_at_no_cost_to_others() -> None:
    left = replace(held(claim("left"), device("n1", 0), by=POD), owners=(MINE,))
    steps = []
    for claims in ((), (left,)):
        world = world_of(replace(claim("a"), owners=(MINE,)), *claims, subject=naming("a"))
        assert isinstance(bind(world, subject=naming("a")), Bound)
        steps.append([type(step) for step in world.taken])
    assert steps[0] == [WriteAllocation, AwaitShown, BindPod]
    assert steps[1][: len(steps[0]) + 2] == [TouchPod, Release, *steps[0]]


def test_r4_what_a_pod_may_be_bound_with_that_names_it_by_now_is_not_given_up() -> None:
    left = replace(held(claim("left"), device("n1", 0), by=POD), owners=(MINE,))
    world = world_of(replace(claim("a"), owners=(MINE,)), left, subject=naming("a"))
    world.is_prompt = False
    world.server.put(replace(world.server.pods[POD.key], claim_statuses=naming("left").claim_statuses))
    world.server.bind(world.server.pods[POD.key], N1)
    bind(world, subject=naming("a"))
    assert allocation_of(world.server, "left") is not None


def test_r4_what_a_pod_names_itself_is_not_taken_for_replaced_even_if_the_pod_owns_it() -> None:
    entries = (PodClaim(name="a", claim_name="a"), PodClaim(name="b", claim_name="b"))
    subject = replace(pod("p"), claims=entries)
    owner = OwnerReference(kind="Pod", uid=subject.uid)
    earlier, contested = held(claim("x"), device("n1", 0), by=OTHER), held(claim("b"), device("n1", 0), by=subject)
    owned = replace(held(claim("a"), device("n1", 1), by=subject), owners=(owner,))
    world = world_of(earlier, contested, owned)
    assert [item.key.name for item in unusable(subject, world.belief, 0.0)] == ["b"]


@pytest.mark.parametrize("users", [(POD,), (POD, OTHER), (OTHER,)], ids=["itself", "both", "another"])
@pytest.mark.parametrize("has_failed", [True, False])
def test_r4_who_waits_for_a_claim_that_is_gone_gives_up_its_part_in_what_cannot_be_made_ready(
    users: tuple[Pod, ...], *, has_failed: bool
) -> None:
    entries = (*POD.claims, PodClaim(name="gpu", template_name="t"))
    subject = replace(POD, claims=entries, claim_statuses=(PodClaimStatus(name="gpu", claim_name="gone"),))
    waits = replace(given(device("n1", 0)).devices[0], binding_conditions=("attached",))
    late = replace(given(device("n1", 0)), devices=(waits,), timestamp=time_of(START))
    shared = replace(held(claim("a"), device("n1", 0)), allocation=late, reserved_for=tuple(map(consumer, users)))
    world, now = world_of(shared, subject=subject), START + READY_WITHIN_S + has_failed
    gives_up = has_failed and POD in users
    assert bool(unusable(subject, world.belief, now)) is gives_up
    assert bool(world.carry(freed(subject, world.belief, now))) is gives_up
    left = [OTHER.uid] if OTHER in users else []
    assert [item.uid for item in world.server.claims[A].reserved_for] == (left if gives_up else [u.uid for u in users])
    assert (allocation_of(world.server, "a") is None) is (gives_up and not left)


BUSY, BARRED = Later(1.0, "too many requests"), Refused(Refusal.FORBIDDEN, "denied by a policy")


@pytest.mark.parametrize(
    ("outcomes", "pause", "told"),
    [
        ((BARRED,), Done(), False),
        ((BUSY, BARRED), Done(), False),
        ((BUSY,), Refused(Refusal.UNSENT), None),
        ((Unknown(), BARRED), Done(), None),
    ],
    ids=["refused", "busy, then refused", "busy", "no answer, then refused"],
)
def test_a_busy_api_server_that_answers_in_the_end_was_not_silent(
    outcomes: tuple[Outcome, ...], pause: Outcome, *, told: bool | None
) -> None:
    base = world_of(held(claim("a"), device("n9", 0), by=POD))
    answers = iter(outcomes)

    class Answering(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, Pause):
                return pause
            return next(answers) if isinstance(step, Release) else super()._outcome(step)

    world = Answering(base.server, base.belief)
    assert world.carry(freed(POD, world.belief, 0.0)) is told
