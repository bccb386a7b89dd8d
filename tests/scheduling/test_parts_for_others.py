"""Whole devices are taken where nobody else could have parts of them, as far as nodes are as good otherwise."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from extender.model.change import Changed
from extender.model.claim import DeviceClass, ResourceClaim, Selector
from extender.model.device import PLAIN, ResourceSlice
from extender.model.names import ClassName
from extender.model.parse import parse_slice
from extender.scheduling.planner import Offer, Planner
from extender.state.belief import Belief
from extender.topology.document import Document
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import asks, planner_of, some
from tests.scheduling.test_partitions import SMALL, SMALL_CLASS
from tests.topology import mig

WHOLE = ClassName("whole")
WHOLE_CLASS = DeviceClass(name=WHOLE, selectors=(Selector(f"device.attributes['{NVIDIA}'].type == 'gpu'"),))
# Two orders of names.
ORDERS = [("a", "b"), ("b", "a")]
NUMBERS = count()


def divisible(name: str) -> list[ResourceSlice]:
    """Publish two A100s that can be cut on a node."""
    raw = json.loads(json.dumps(mig.slices(("gpu-0", "gpu-1"))).replace("mig-a100", name))
    parsed = [parse_slice(one) for one in raw]
    return [replace(one, name=f"{name}-{one.name}") for one in parsed if isinstance(one, ResourceSlice)]


def plain(name: str) -> ResourceSlice:
    """Publish two A100s that cannot."""
    found = [device for one in divisible(name) for device in one.devices if device.name in ("gpu-0", "gpu-1")]
    devices = tuple(replace(device, traits=PLAIN) for device in found)
    return replace(divisible(name)[0], slice_count=1, devices=devices, shared_counters=())


def cluster(cut: Sequence[str], others: Sequence[str]) -> Belief:
    slices = [*(one for name in cut for one in divisible(name)), *map(plain, others)]
    return belief_of(SMALL_CLASS, WHOLE_CLASS, *map(node, (*cut, *others)), *slices)


def placed(belief: Belief, planner: Planner, claim: ResourceClaim) -> str:
    """Return the node of the next pod, whose devices it keeps."""
    belief.apply(Changed(claim))
    plan = planner.plan(pod(f"p-{claim.key.name}", claim.key.name), None, 0.0)
    assert isinstance(plan, Offer)
    return plan.placement.node


def wholes(devices: int = 1) -> ResourceClaim:
    return asks(f"c{next(NUMBERS)}", some(devices, WHOLE))


@pytest.mark.parametrize(("cut", "other"), ORDERS)
def test_single_gpus_leave_a_node_that_can_be_cut_to_those_who_want_partitions(cut: str, other: str) -> None:
    belief = cluster([cut], [other])
    planner = planner_of(belief, Document())
    assert [placed(belief, planner, wholes()) for _ in range(2)] == [other, other]
    assert placed(belief, planner, asks("small", some(1, SMALL))) == cut


@pytest.mark.parametrize(("cut", "other"), ORDERS)
def test_a_node_that_can_be_cut_is_taken_where_less_is_spoilt_there(cut: str, other: str) -> None:
    belief = cluster([cut], [other])
    planner = planner_of(belief, Document())
    belief.apply(Changed(asks("small", some(1, SMALL))))
    assert placed(belief, planner, asks("small", some(1, SMALL))) == cut
    # A pair is broken there already.
    assert placed(belief, planner, wholes()) == cut


def test_more_nodes_that_can_be_cut_than_are_looked_at_closely_do_not_hide_one_that_cannot() -> None:
    belief = cluster([f"a{index:02}" for index in range(30)], ["b"])
    planner = planner_of(belief, Document())
    assert [placed(belief, planner, wholes()) for _ in range(2)] == ["b", "b"]


def test_what_could_be_given_in_parts_is_told() -> None:
    belief = cluster(["a"], [])
    claim = wholes(2)
    belief.apply(Changed(claim))
    plan = planner_of(belief, Document()).plan(pod("p", claim.key.name), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal is not None
    assert [part.text for part in plan.placement.appraisal.parts if part.name == "parts"] == [
        "2 that could be given in parts"
    ]
    assert plan.placement.appraisal.value == sum(part.value for part in plan.placement.appraisal.parts)
