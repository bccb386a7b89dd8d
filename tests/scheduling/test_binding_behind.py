"""The scheduler's view of a pod may be ahead of ours: a pod that it binds was let in, whatever our watch shows."""

from dataclasses import replace

import pytest

from extender.model.claim import OwnerReference
from extender.model.names import ObjectKey
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.scheduling.endings import Bound, NotBound
from extender.scheduling.steps import BindPod, ReadPod
from tests.scheduling.cast import claim, pod
from tests.scheduling.stage import bind, world_of

P = replace(pod("p"), claims=(PodClaim(name="t", template_name="template"),))
LATER = replace(P, claim_statuses=(PodClaimStatus(name="t", claim_name="made"),))
OWNED = (OwnerReference(kind="Pod", uid=P.uid),)
MADE = replace(claim("made"), key=ObjectKey("ns", "made"), owners=OWNED)


@pytest.mark.parametrize("shown", [P, replace(LATER, scheduling_gates=("later",))], ids=["no claim", "gated"])
def test_a_pod_that_our_watch_shows_as_not_ready_is_read_before_it_is_bound(shown: Pod) -> None:
    world = world_of(MADE, subject=shown)
    world.server.put(LATER)
    assert isinstance(bind(world, subject=shown), Bound)
    assert isinstance(world.taken[0], ReadPod)


def test_a_pod_that_is_not_ready_at_the_api_server_either_is_not_bound() -> None:
    world = world_of(subject=P)
    assert bind(world, subject=P) == NotBound("the claim of resourceClaims[t] has not been created yet")
    assert not [step for step in world.taken if isinstance(step, BindPod)]
