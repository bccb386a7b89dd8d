"""A pod's claims may have policies of their own: what leads is placed by that of whoever asks for it."""

from collections.abc import Callable

import pytest

from extender.model.change import Changed
from extender.model.device import ResourceSlice
from extender.model.names import DeviceKey, DeviceName, PoolName
from extender.scheduling.planner import Offer
from extender.topology.policies import Policies
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import ANY, NIC, asks, cluster, gpus, nics, planner_by, some

Maker = Callable[[str, int], ResourceSlice]


@pytest.mark.parametrize(("policy", "node"), [("spread", "a"), ("pack", "b")])
@pytest.mark.parametrize("names", [("gpu", "nic"), ("nic", "gpu")])
def test_gpus_are_placed_by_the_policy_of_their_own_claim(policy: str, node: str, names: tuple[str, str]) -> None:
    """The NICs are more, or come first, and stand under the default policy."""
    belief = cluster(*(made(name, 8) for name in ("a", "b") for made in (gpus, nics)), nodes=["a", "b"])
    taken = [DeviceKey(NVIDIA, PoolName("b"), DeviceName(f"d{index}")) for index in range(4)]
    belief.apply(Changed(held(asks("held"), *taken)))
    claims = {"gpu": asks("gpu", some(1), policy=policy), "nic": asks("nic", some(2, NIC))}
    for claim in claims.values():
        belief.apply(Changed(claim))
    plan = planner_by(belief, Policies()).plan(pod("p", *names), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == node


@pytest.mark.parametrize(("policy", "node"), [("pack", "b"), ("spread", "a")])
@pytest.mark.parametrize("made", [gpus, nics])
def test_a_node_in_use_is_filled_before_a_smaller_one_is_opened(made: Maker, policy: str, node: str) -> None:
    belief = cluster(made("a", 4), made("b", 8), nodes=["a", "b"])
    taken = [DeviceKey(made("b", 8).driver, PoolName("b"), DeviceName(f"d{index}")) for index in range(3)]
    belief.apply(Changed(held(asks("held"), *taken)))
    belief.apply(Changed(asks("c", some(1, ANY), policy=policy)))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == node
