"""Extended resources: a pod is bound where it has all of them, by devices or by a device plugin, and nowhere else."""

from dataclasses import replace

import pytest

from extender.model.change import Change, Changed, Gone
from extender.model.claim import DeviceClass, DeviceCondition, Selector
from extender.model.device import Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceName, DriverName, ObjectKey, PoolName
from extender.model.node import Container, Pod
from extender.model.quantity import parse_quantity
from extender.scheduling.endings import Bound, NotBound, Result
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Plain, Rejection
from extender.scheduling.remedy import freed, unusable
from extender.scheduling.steps import (
    BindPod,
    CreateClaim,
    DeleteClaim,
    Later,
    MapExtended,
    Outcome,
    Release,
    Step,
    WriteAllocation,
)
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import DRIVER, GPU, GPU_CLASS, WHOLE, belief_of, binder_of, node, planner_of, pod
from tests.scheduling.server import Server, World
from tests.scheduling.stage import N1, N2, bind, world_of

SUBJECT = pod("p", gpus=1)
GONE: Change = Gone(DeviceClass, ObjectKey("", GPU))
PLUGGED: Change = Changed(node("n1", {"ex.com/gpu": 4}))
NAMES = [N1, N2]
ONE = parse_quantity("1")


def told(*changes: Change, subject: Pod = SUBJECT) -> World:
    world = world_of(subject=subject)
    for change in changes:
        world.belief.apply(change)
    return world


def is_bound(world: World, result: Result) -> bool:
    """Tell whether a Binding was sent, which has to be what *result* says."""
    is_sent = BindPod in [type(step) for step in world.taken]
    assert is_sent is isinstance(result, Bound)
    return is_sent


def test_a_pod_whose_class_is_gone_since_it_was_offered_a_node_is_not_bound_without_devices() -> None:
    world = told()
    assert isinstance(planner_of(world.belief).plan(SUBJECT, NAMES, 0.0), Offer)
    world.belief.apply(GONE)
    result = bind(world, subject=SUBJECT)
    assert not is_bound(world, result)
    assert result == NotBound("node n1 does not have ex.com/gpu, and no device class is known to stand behind it")


@pytest.mark.parametrize("changes", [(), (GONE, PLUGGED), (PLUGGED,)], ids=["devices", "plugin", "both"])
def test_a_pod_is_bound_where_it_has_what_it_asks_for(changes: tuple[Change, ...]) -> None:
    world = told(*changes)
    assert is_bound(world, bind(world, subject=SUBJECT))


def test_once_the_class_is_known_the_pod_is_given_devices() -> None:
    world = told(GONE)
    assert isinstance(planner_of(world.belief).plan(SUBJECT, NAMES, 0.0), Plain)
    assert not is_bound(world, bind(world, subject=SUBJECT))
    world.belief.apply(Changed(GPU_CLASS))
    result = bind(world, subject=SUBJECT)
    assert is_bound(world, result)
    assert isinstance(result, Bound)
    assert result.placement is not None


@pytest.mark.parametrize(("ignored", "is_ignored"), [("ex.com/gpu", True), ("ex.com/*", True), ("ex.com/g", False)])
def test_resources_that_the_scheduler_is_told_to_ignore_are_nobodys_concern(ignored: str, *, is_ignored: bool) -> None:
    world = told(GONE)
    binder = binder_of(world.belief)
    binder.ignored = (ignored,)
    assert is_bound(world, bind(world, subject=SUBJECT, binder=binder)) is is_ignored


def test_a_pod_on_a_node_that_is_not_known_is_not_bound_for_what_nobody_can_say_it_has() -> None:
    world = told(GONE, Gone(type(node("n1")), ObjectKey("", "n1")))
    assert not is_bound(world, bind(world, subject=SUBJECT))


def test_a_pod_whose_status_names_a_claim_that_is_gone_goes_only_where_another_is_made_for_it() -> None:
    mapped = replace(SUBJECT, extended_claim="p-gone")
    world = told(PLUGGED, subject=mapped)
    plan = planner_of(world.belief).plan(mapped, NAMES, 0.0)
    assert isinstance(plan, Offer)
    assert plan.nodes == (N2,)
    alone = planner_of(world.belief).plan(mapped, [N1], 0.0)
    assert isinstance(alone, Rejection)
    needs = needs_of(mapped, world.belief)
    assert isinstance(needs, Needs)
    assert "which is gone" in str(planner_of(world.belief).chooser.place(needs, N1))
    result = bind(world, subject=mapped)
    assert not is_bound(world, result)
    assert isinstance(result, NotBound)
    assert "names claim p-gone, which is gone" in result.message


def test_such_a_pod_is_not_bound_where_only_a_device_plugin_is_left() -> None:
    mapped = replace(SUBJECT, extended_claim="p-gone")
    world = told(GONE, PLUGGED, subject=mapped)
    assert not is_bound(world, bind(world, subject=mapped))


NIC, NETWORK = DriverName("nic.example.com"), PoolName("net")
ASKED = (("ex.com/gpu", ONE), ("ex.com/nic", ONE))
BOTH = replace(SUBJECT, containers=(Container(name="main", requests=ASKED),))


def attached() -> World:
    """Make GPUs of the network ready for a pod that asks for a NIC, too: n1 has a plugin for that, n2 devices."""
    selector = (Selector(f"device.driver == '{NIC}'"),)
    world = World(
        Server(
            (
                node("n1", {"ex.com/nic": 1}),
                node("n2"),
                published(
                    "gpus", DRIVER, NETWORK, NodeSelection(all_nodes=True), Traits(binding_conditions=("ready",))
                ),
                published("nics", NIC, PoolName("n2"), NodeSelection(node_name=N2)),
                DeviceClass(name=ClassName("nic"), selectors=selector, extended_resource="ex.com/nic"),
            )
        ),
        belief_of(),
    )
    world.server.put(BOTH)
    world.belief = world.server.believed()
    assert isinstance(bind(world, N1, subject=BOTH), NotBound)
    (made,) = world.server.claims.values()
    assert made.allocation is not None
    ready = DeviceCondition(device=made.allocation.devices[0].device, share_id=None, type="ready", status="True")
    world.server.put(replace(made, device_conditions=(ready,)))
    world.server.deliver(world.belief)
    return world


def published(
    name: str, driver: DriverName, pool: PoolName, selection: NodeSelection, traits: Traits = WHOLE
) -> ResourceSlice:
    return ResourceSlice(
        name=name,
        driver=driver,
        pool=pool,
        generation=1,
        slice_count=1,
        selection=selection,
        devices=(Device(DeviceName("d0"), traits=traits),),
    )


def test_a_pod_whose_claim_was_made_for_some_of_its_resources_goes_only_where_it_needs_just_these() -> None:
    world = attached()
    subject = world.server.pods[BOTH.key]
    plan = planner_of(world.belief).plan(subject, NAMES, 0.0)
    assert isinstance(plan, Offer)
    assert plan.nodes == (N1,)
    alone = planner_of(world.belief).plan(subject, [N2], 0.0)
    assert isinstance(alone, Rejection)
    assert alone.word is Word.CLAIM_ELSEWHERE
    assert isinstance(bind(world, N2, subject=BOTH), NotBound)
    assert isinstance(bind(world, N1, subject=BOTH), Bound)


def test_a_claim_that_was_made_for_other_resources_than_its_pod_needs_now_is_freed_and_another_made() -> None:
    world = attached()
    subject = world.server.pods[BOTH.key]
    assert [len(claim.spec.requests) for claim in unusable(subject, world.belief, 0.0)] == [1]
    assert world.carry(freed(subject, world.belief, 0.0))
    world.server.control()
    world.server.deliver(world.belief)
    assert isinstance(planner_of(world.belief).plan(world.server.pods[BOTH.key], [N2], 0.0), Offer)
    bind(world, N2, subject=BOTH)
    assert [len(claim.spec.requests) for claim in world.server.claims.values()] == [2]


@pytest.mark.parametrize("is_known", [True, False])
def test_which_class_stands_behind_a_resource_makes_no_difference_to_who_was_given_its_devices(
    *, is_known: bool
) -> None:
    world = attached()
    world.belief.apply(GONE)
    if is_known:
        world.belief.apply(Changed(replace(GPU_CLASS, name=ClassName("renamed"))))
    plan = planner_of(world.belief).plan(world.server.pods[BOTH.key], NAMES, 0.0)
    assert isinstance(plan, Offer if is_known else Rejection)


class Throttled(World):
    """A world in which the first step of a kind is to come later."""

    throttled: type[Step] | None = None

    def _outcome(self, step: Step) -> Outcome:
        if type(step) is self.throttled:
            self.throttled = None
            self.taken.append(step)
            return Later(1.0)
        return super()._outcome(step)


@pytest.mark.parametrize("step", [CreateClaim, WriteAllocation, MapExtended, BindPod])
def test_what_is_to_come_later_comes_later_and_nothing_is_taken_back(step: type[Step]) -> None:
    base = world_of(subject=SUBJECT)
    world = Throttled(base.server, base.belief)
    world.throttled = step
    assert isinstance(bind(world, subject=SUBJECT), Bound)
    taken = [type(each) for each in world.taken]
    assert taken.count(step) == 2
    assert not {Release, DeleteClaim} & set(taken)


def test_a_node_that_gets_a_device_plugin_is_served_by_it_from_then_on() -> None:
    world = told()
    for change, is_by_devices in ((None, True), (PLUGGED, False), (Changed(node("n1")), True)):
        if change is not None:
            world.belief.apply(change)
        plan = planner_of(world.belief).plan(SUBJECT, [N1], 0.0)
        assert isinstance(plan, Offer)
        assert (plan.placement.hidden is not None) is is_by_devices
