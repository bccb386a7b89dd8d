"""A plan goes with the last who needs it: what waited for the collector of cycles would hold a snapshot each."""

import gc
from collections.abc import Iterator

import pytest

from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.scheduling.planner import Offer, Rejection
from extender.topology.policy import Policy, Wish
from tests.scheduling.cast import pod
from tests.scheduling.machines import NUMA, fleet, planner_with_taste, wanted

STRICT = Policy(numa=Wish.STRICT)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the collector from coming by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("policy", [None, STRICT], ids=["default", "strict"])
@pytest.mark.parametrize(("devices", "match"), [(1, ""), (2, NUMA), (2, ""), (99, "")])
def test_a_plan_that_is_forgotten_is_gone_at_once(devices: int, match: str, policy: Policy | None) -> None:
    belief = fleet(dict.fromkeys(("a", "b"), "dgx-1v"), {"a": (0, 1, 2), "b": ()})
    planner = planner_with_taste(belief, policy=policy)
    for name in ("c", "d"):
        claim = wanted(name, devices, match)
        belief.apply(Changed(claim))
        waiting = pod(f"p-{name}", claim.key.name)
        assert isinstance(planner.plan(waiting, None, 0.0), Offer | Rejection)
        belief.apply(Gone(Pod, waiting.key))
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        left = {type(item).__name__ for item in gc.garbage if _is_ours(item)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert left == set()


def _is_ours(item: object) -> bool:
    return type(item).__module__.startswith("extender.")


def test_nothing_grows_with_pods_that_are_gone() -> None:
    belief = fleet(dict.fromkeys(("a", "b"), "dgx-1v"), {"a": (0, 1, 2), "b": ()})
    planner = planner_with_taste(belief)
    taste = planner.chooser.taste
    assert taste is not None
    for number in range(3):
        claim = wanted(f"c{number}", 1)
        waiting = pod(f"p{number}", claim.key.name)
        for change in (Changed(claim), Changed(waiting)):
            belief.apply(change)
        assert isinstance(planner.plan(waiting, None, 0.0), Offer)
        assert (len(taste._tenants._met), len(taste._tenants._needed)) == (1, 1)
        belief.apply(Gone(Pod, waiting.key))
        belief.apply(Gone(ResourceClaim, claim.key))
        assert (len(taste._tenants._met), len(taste._tenants._needed)) == (0, 0)
