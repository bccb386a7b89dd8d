"""Where the API server stores less than it was sent, and says nothing of it, nobody is bound."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.model.claim import ResourceClaim
from extender.model.device import Traits
from extender.model.names import Uid
from extender.model.node import Pod
from extender.model.node_selector import NodeSelector
from extender.scheduling.account import of_result
from extender.scheduling.endings import Bound, Ending, NotBound
from extender.scheduling.gist import gist
from extender.scheduling.steps import BindPod, Done, MapExtended, Outcome, Step, Unknown, WriteAllocation
from extender.scheduling.unkept import unkept_of
from tests.scheduling.cast import claim, device, given, pod
from tests.scheduling.server import World, allocation_of
from tests.scheduling.stage import N1, POD, bind, world_of

EXTENDED = pod("p", gpus=1)
UNREADY = Traits(binding_conditions=("attached",), binding_failure_conditions=("failed",))
SHARED = Traits(allow_multiple_allocations=True)
INSTEAD = "in place of what was written, as where an admission policy or webhook changes the status of claims"
Change = Callable[[Any], Pod | ResourceClaim]


class Forgetful(World):
    """An API server that does not store all of what a step writes; it may not be heard to answer either."""

    about: type[Step]
    change: Change
    is_heard = True

    def _outcome(self, step: Step) -> Outcome:
        outcome = super()._outcome(step)
        if not isinstance(step, self.about) or not isinstance(outcome, Done):
            return outcome
        kept = self.server.put(self.change(outcome.what))
        self.server.deliver(self.belief)
        return Done(kept) if self.is_heard else Unknown("lost")


def forgetful(world: World, about: type[Step], change: Change) -> Forgetful:
    found = Forgetful(world.server, world.belief)
    found.about, found.change = about, change
    return found


def without(**fields: object) -> Change:
    def change(item: ResourceClaim) -> ResourceClaim:
        assert item.allocation is not None
        devices = tuple(replace(each, **fields) for each in item.allocation.devices)  # type: ignore[arg-type]  # which field is drawn
        return replace(item, allocation=replace(item.allocation, devices=devices))

    return change


CONDITIONS = without(binding_conditions=(), binding_failure_conditions=())
CASES = pytest.mark.parametrize(
    ("traits", "change", "lacking"),
    [
        (UNREADY, CONDITIONS, "bindingConditions, as where the feature DRADeviceBindingConditions is off"),
        (SHARED, without(share_id=None), "shareID, as where the feature DRAConsumableCapacity is off"),
    ],
    ids=["conditions", "shares"],
)


@CASES
@pytest.mark.parametrize("is_heard", [True, False], ids=["answered", "unanswered"])
def test_a_pod_whose_devices_are_not_kept_as_written_is_not_bound_and_they_are_free(
    traits: Traits, change: Change, lacking: str, *, is_heard: bool
) -> None:
    world = forgetful(world_of(claim("a"), traits=traits), WriteAllocation, change)
    world.is_heard = is_heard
    result = bind(world)
    assert result == NotBound(f"claim a: the API server does not keep {lacking}")
    assert not any(isinstance(step, BindPod) for step in world.taken)
    assert allocation_of(world.server, "a") is None
    assert not world.server.holders()
    assert list(world.belief.ledger) == []


class Emptying(World):
    """An API server whose admission takes devices away again, so that a claim is left in the version that it had."""

    def _outcome(self, step: Step) -> Outcome:
        if isinstance(step, WriteAllocation):
            return Done(self.server.claims[step.claim.key])
        return super()._outcome(step)


def test_where_admission_takes_the_devices_away_nothing_stays_held_and_the_pod_is_bound_once_it_ceases() -> None:
    world = world_of(claim("a"))
    for _ in range(3):
        result = bind(Emptying(world.server, world.belief))
        assert result == NotBound(f"claim a: the API server has stored no devices {INSTEAD}")
        assert list(world.belief.ledger) == []
    assert isinstance(bind(world), Bound)


def test_a_pod_for_which_admission_has_put_another_device_is_not_bound_and_that_is_freed() -> None:
    def other(item: ResourceClaim) -> ResourceClaim:
        return replace(item, allocation=given(device("n1", 1), device("n1", 0)))

    world = forgetful(world_of(claim("a", 2)), WriteAllocation, other)
    devices = ", ".join("/".join(device("n1", index)) for index in (1, 0))
    assert bind(world) == NotBound(f"claim a: the API server has stored {devices} {INSTEAD}")
    assert not any(isinstance(step, BindPod) for step in world.taken)
    assert not world.server.holders()
    assert list(world.belief.ledger) == []


@pytest.mark.parametrize("selector", [None, given(device("n2", 0)).node_selector], ids=["all nodes", "another node"])
def test_a_pod_whose_devices_admission_has_put_on_other_nodes_is_not_bound(selector: NodeSelector | None) -> None:
    def moved(item: ResourceClaim) -> ResourceClaim:
        assert item.allocation is not None
        return replace(item, allocation=replace(item.allocation, node_selector=selector))

    world = forgetful(world_of(claim("a")), WriteAllocation, moved)
    stored = f"{'/'.join(device('n1', 0))} for other nodes"
    assert bind(world) == NotBound(f"claim a: the API server has stored {stored} {INSTEAD}")
    assert not any(isinstance(step, BindPod) for step in world.taken)
    assert not world.server.holders()
    assert list(world.belief.ledger) == []


@pytest.mark.parametrize("traits", [UNREADY, SHARED], ids=["conditions", "shares"])
def test_what_is_kept_is_not_taken_back(traits: Traits) -> None:
    world = world_of(claim("a"), traits=traits)
    result = bind(world)
    assert isinstance(result, Bound) == (traits is SHARED)
    assert isinstance(result, Bound) or result.is_waiting
    assert allocation_of(world.server, "a") is not None


def test_a_pod_whose_status_does_not_keep_its_claim_is_not_bound_and_the_claim_goes() -> None:
    world = forgetful(world_of(subject=EXTENDED), MapExtended, lambda item: replace(item, extended_claim=None))
    result = bind(world, subject=EXTENDED)
    field, gate = "the pod's extendedResourceClaimStatus", "DRAExtendedResource"
    assert result == NotBound(f"the API server does not keep {field}, as where the feature {gate} is off")
    assert not any(isinstance(step, BindPod) for step in world.taken)
    world.server.control()
    assert not [item for item in world.server.claims.values() if item.owners]
    assert not world.server.holders()


def test_of_what_is_not_kept_the_same_is_told_each_time() -> None:
    told = set()
    for _ in range(2):
        world = forgetful(world_of(claim("a"), traits=UNREADY), WriteAllocation, CONDITIONS)
        result = bind(world)
        assert isinstance(result, NotBound)
        assert result.ending is Ending.FAILED
        told.add(gist(of_result(POD, result, N1, None, 0.0)))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("field", "value", "gate"),
    [
        ("binding_conditions", ("attached",), "DRADeviceBindingConditions"),
        ("binding_failure_conditions", ("failed",), "DRADeviceBindingConditions"),
        ("share_id", "1", "DRAConsumableCapacity"),
        ("skip_node_operations", ("Prepare",), "DRAOptionalNodeOperations"),
        ("admin_access", True, "DRAAdminAccess"),
    ],
)
def test_of_each_field_that_is_not_kept_the_gate_is_told(field: str, value: object, gate: str) -> None:
    bare = claim("a")
    plain = given(device("n1", 0), device("n1", 1))
    first, second = plain.devices
    written = replace(plain, devices=(first, replace(second, **{field: value})))  # type: ignore[arg-type]  # which field is drawn
    assert gate in unkept_of(replace(bare, allocation=plain), written)
    assert unkept_of(replace(bare, allocation=written), written) == ""
    # What somebody adds is waited for like all else.
    assert unkept_of(replace(bare, allocation=written), plain) == ""


def test_a_claim_written_by_somebody_else_is_not_taken_for_ours_where_shares_are_kept() -> None:
    world = forgetful(world_of(claim("a"), traits=SHARED), WriteAllocation, without(share_id=Uid("another")))
    world.is_heard = False
    assert bind(world) == NotBound("claim a was allocated by somebody else")
