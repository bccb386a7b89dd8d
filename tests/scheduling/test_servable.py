"""Extended resources: a pod is bound where it has all of them, by devices or by a device plugin, and nowhere else."""

from dataclasses import replace

import pytest

from extender.model.change import Change, Changed, Gone
from extender.model.claim import DeviceClass
from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.scheduling.binding import Bound, NotBound, Result
from extender.scheduling.planner import Offer, Plain, Rejection
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
from tests.scheduling.cast import GPU, GPU_CLASS, binder_of, node, planner_of, pod
from tests.scheduling.server import World
from tests.scheduling.stage import N1, N2, bind, world_of

SUBJECT = pod("p", gpus=1)
GONE: Change = Gone(DeviceClass, ObjectKey("", GPU))
PLUGGED: Change = Changed(node("n1", {"ex.com/gpu": 4}))
NAMES = [N1, N2]


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
    result = bind(world, subject=mapped)
    assert not is_bound(world, result)
    assert isinstance(result, NotBound)
    assert "names claim p-gone, which is gone" in result.message


def test_such_a_pod_is_not_bound_where_only_a_device_plugin_is_left() -> None:
    mapped = replace(SUBJECT, extended_claim="p-gone")
    world = told(GONE, PLUGGED, subject=mapped)
    assert not is_bound(world, bind(world, subject=mapped))


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
