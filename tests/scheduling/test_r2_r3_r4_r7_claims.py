"""R2, R3: of two claims that hold one device the earlier keeps it. R4: what cannot be used is freed. R7: conditions."""

from dataclasses import replace

import pytest

from extender.allocation.extended import ANNOTATION
from extender.model.change import Changed, Listed
from extender.model.claim import DeviceCondition, OwnerReference, ResourceClaim
from extender.model.device import Traits
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Pod
from extender.scheduling.binding import Binder, Bound, NotBound, Order, Result
from extender.scheduling.conditions import TIMEOUT_S, Readiness, standing_of, time_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import freed, unusable
from extender.scheduling.steps import AwaitShown, BindPod, Outcome, Refusal, Refused, Release, Reserve, Step, Unknown
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import chooser_of, claim, consumer, device, given, gpus, held, names, node, planner_of, pod
from tests.scheduling.server import Server, World, allocation_of

N1, N2 = names("n1", "n2")
POD, OTHER = pod("p", "a"), pod("q", "b")
A = ObjectKey("ns", "a")


def world_of(*claims: ResourceClaim, traits: Traits | None = None, subject: Pod = POD) -> World:
    server = Server((node("n1"), node("n2"), gpus("n1", 2, traits or Traits()), gpus("n2", 1, traits or Traits())))
    everything: tuple[Pod | ResourceClaim, ...] = (subject, OTHER, *claims)
    for item in everything:
        server.put(item)
    return World(server, server.believed())


def bind(world: World, target: NodeName = N1, now: float = 0.0, subject: Pod = POD) -> Result:
    binder = Binder(world.belief, chooser_of(world.belief), lambda: now)
    result = world.carry(binder.bind(Order(subject.key, subject.uid, target)))
    assert result is not None
    return result


def intruded(server: Server, _step: Step) -> None:
    """Have somebody else allocate the same device just before us."""
    server.put(held(claim("x"), device("n1", 0), device("n1", 1)))


def test_r2_the_claim_that_the_watch_shows_second_is_rolled_back_before_its_pod_is_bound() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = intruded, 0
    result = bind(world)
    assert isinstance(result, NotBound)
    assert "an earlier claim holds gpu.example.com/n1/d" in result.message
    assert BindPod not in [type(step) for step in world.taken]
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "x") is not None


def test_r2_the_claim_that_the_watch_shows_first_keeps_its_device() -> None:
    world = world_of(claim("a"))

    def fault(server: Server, _step: Step) -> None:
        server.put(held(claim("x"), device("n1", 0), device("n1", 1)))

    world.fault, world.at = fault, 1
    assert isinstance(bind(world), Bound)


def test_r2_nothing_is_bound_before_the_watch_has_shown_the_write() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = (lambda _server, _step: Unknown("late")), 1
    assert isinstance(bind(world), NotBound)
    assert isinstance(world.taken[1], AwaitShown)
    assert allocation_of(world.server, "a") is None


def test_r3_an_allocated_claim_whose_devices_an_earlier_one_holds_is_refused_by_filter_and_by_bind() -> None:
    first, second = held(claim("x"), device("n1", 0)), held(claim("a", version=2), device("n1", 0))
    world = world_of(first, second)
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_CONTESTED
    assert isinstance(bind(world), NotBound)
    assert world.taken == []


def test_r3_of_those_that_were_listed_together_the_older_version_counts_as_earlier() -> None:
    world = world_of(held(claim("a"), device("n1", 0)), held(claim("x"), device("n1", 0)))
    claims = tuple(reversed(world.server.claims.values()))
    world.belief.apply(Listed(ResourceClaim, claims))
    assert isinstance(planner_of(world.belief).plan(POD, [N1, N2], 0.0), Offer)


def test_r3_only_what_is_contested_is_freed() -> None:
    both = pod("p", "a", "c")
    kept = held(claim("c"), device("n1", 1), by=both)
    world = world_of(held(claim("x"), device("n1", 0)), held(claim("a"), device("n1", 0), by=both), kept, subject=both)
    assert [item.key.name for item in unusable(both, world.belief)] == ["a"]
    assert world.carry(freed(both, world.belief))
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "c") is not None
    assert isinstance(bind(world, subject=both), NotBound | Bound)


@pytest.mark.parametrize("users", [(), (POD,), (OTHER,), (POD, OTHER)], ids=["nobody", "us", "another", "both"])
def test_r4_a_claim_that_keeps_its_pod_away_is_freed_unless_another_uses_it(users: tuple[Pod, ...]) -> None:
    stuck = replace(held(claim("a"), device("n9", 0)), reserved_for=tuple(map(consumer, users)))
    world = world_of(stuck)
    assert isinstance(planner_of(world.belief).plan(POD, [N1], 0.0), Rejection)
    is_free = OTHER not in users
    assert bool(unusable(POD, world.belief)) is is_free
    assert bool(world.carry(freed(POD, world.belief))) is is_free
    assert (allocation_of(world.server, "a") is None) is is_free


@pytest.mark.parametrize("is_reserved", [True, False])
def test_r4_freeing_is_one_write_and_outlasts_a_conflict(*, is_reserved: bool) -> None:
    world = world_of(held(claim("a"), device("n9", 0), by=POD if is_reserved else None))

    def fault(server: Server, _step: Step) -> None:
        server.put(server.claims[A])

    world.fault, world.at = fault, 0
    assert world.carry(freed(POD, world.belief))
    assert world.server.claims[A].allocation is None
    assert world.server.claims[A].reserved_for == ()


EXTENDED = pod("p", gpus=1)


def made(*, by: Pod | None = None, is_bare: bool = False) -> ResourceClaim:
    owner = OwnerReference(kind="Pod", name="p", uid=EXTENDED.uid, is_controller=True)
    bare = replace(claim("made"), owners=(owner,), annotations=((ANNOTATION, "true"),))
    return bare if is_bare else held(bare, device("n1", 0), by=by)


@pytest.mark.parametrize("state", ["bare", "allocated", "reserved"])
def test_r4_a_claim_left_from_an_earlier_attempt_is_deleted(state: str) -> None:
    left = made(by=EXTENDED if state == "reserved" else None, is_bare=state == "bare")
    world = world_of(left, subject=EXTENDED)
    planner = planner_of(world.belief)
    plan = planner.plan(EXTENDED, [N1], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_STALE
    assert [item.key.name for item in unusable(EXTENDED, world.belief)] == ["made"]
    assert world.carry(freed(EXTENDED, world.belief))
    world.server.control()
    world.server.deliver(world.belief)
    assert ObjectKey("ns", "made") not in world.server.claims
    assert isinstance(planner.plan(EXTENDED, [N1], 0.0), Offer)


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
    assert not deaf.carry(freed(POD, world.belief))


def test_r4_what_another_pod_has_begun_to_use_meanwhile_stays() -> None:
    world = world_of(held(claim("a"), device("n9", 0), by=POD))

    def fault(server: Server, _step: Step) -> None:
        known = server.claims[A]
        server.put(replace(known, reserved_for=(*known.reserved_for, consumer(OTHER))))

    world.fault, world.at = fault, 0
    assert world.carry(freed(POD, world.belief))
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


WAITS = Traits(binding_conditions=("attached",), binding_failure_conditions=("broken",))
START = 1_800_000_000.0


def reported(world: World, kind: str) -> None:
    known = world.server.claims[A]
    assert known.allocation is not None
    item = known.allocation.devices[0]
    condition = DeviceCondition(device=item.device, share_id=None, type=kind, status="True")
    world.server.put(replace(known, device_conditions=(condition,)))
    world.server.deliver(world.belief)


def waiting() -> World:
    world = world_of(claim("a"), traits=WAITS)
    result = bind(world, now=START)
    assert isinstance(result, NotBound)
    assert result.is_waiting
    assert result.message.startswith("waiting for conditions")
    return world


def test_r7_bind_writes_the_allocation_and_waits_without_holding_anybody_up() -> None:
    world = waiting()
    assert BindPod not in [type(step) for step in world.taken]
    allocation = allocation_of(world.server, "a")
    assert allocation is not None
    assert allocation.timestamp == time_of(START) == "2027-01-15T08:00:00Z"
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Offer)
    assert list(plan.nodes) == [N1]


def test_r7_once_the_conditions_are_met_the_pod_is_bound() -> None:
    world = waiting()
    reported(world, "attached")
    assert isinstance(bind(world, now=START + 2 * TIMEOUT_S), Bound)


@pytest.mark.parametrize("kind", ["broken", "late"])
def test_r7_devices_that_fail_or_take_too_long_are_freed(kind: str) -> None:
    world = waiting()
    if kind == "broken":
        reported(world, "broken")
    else:
        assert bind(world, now=START + TIMEOUT_S) == NotBound(
            "waiting for conditions: device gpu.example.com/n1/d0 is waiting for attached", is_waiting=True
        )
    result = bind(world, now=START + (1 if kind == "broken" else TIMEOUT_S + 1))
    assert isinstance(result, NotBound)
    assert not result.is_waiting
    assert allocation_of(world.server, "a") is None
    assert world.server.claims[A].reserved_for == ()
    assert isinstance(planner_of(world.belief).plan(POD, [N2], 0.0), Offer)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ((), Readiness.WAITING),
        ((("attached", "False"),), Readiness.WAITING),
        ((("attached", "True"),), Readiness.READY),
        ((("attached", "True"), ("broken", "True")), Readiness.FAILED),
        ((("broken", "True"),), Readiness.FAILED),
        ((("broken", "False"), ("attached", "True")), Readiness.READY),
    ],
)
def test_r7_a_failure_outweighs_everything(reports: tuple[tuple[str, str], ...], expected: Readiness) -> None:
    base = held(claim("a"), device("n1", 0))
    assert base.allocation is not None
    waits = replace(
        base.allocation.devices[0], binding_conditions=("attached",), binding_failure_conditions=("broken",)
    )
    item = replace(
        base,
        allocation=replace(base.allocation, devices=(waits,)),
        device_conditions=tuple(
            DeviceCondition(device=waits.device, share_id=None, type=kind, status=status) for kind, status in reports
        ),
    )
    assert standing_of([item], START).readiness is expected
    assert standing_of([held(claim("b"), device("n1", 1)), item], START).readiness is expected
    other = replace(item, device_conditions=tuple(replace(report, share_id="s") for report in item.device_conditions))
    assert standing_of([other], START).readiness is Readiness.WAITING


@pytest.mark.parametrize("stamp", [None, "yesterday", ""])
def test_r7_a_claim_that_does_not_say_since_when_is_waited_for(stamp: str | None) -> None:
    base = held(claim("a"), device("n1", 0))
    assert base.allocation is not None
    waits = replace(base.allocation.devices[0], binding_conditions=("attached",))
    item = replace(base, allocation=replace(base.allocation, devices=(waits,), timestamp=stamp))
    assert standing_of([item], START).readiness is Readiness.WAITING


def test_a_changed_claim_is_shown() -> None:
    world = world_of(claim("a"))
    world.belief.apply(Changed(held(claim("a", version=500), device("n1", 0))))
    assert isinstance(planner_of(world.belief).plan(POD, [N1, N2], 0.0), Offer)
