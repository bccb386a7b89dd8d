"""A small cluster with one pod to bind, for tests of single rules."""

from extender.model.claim import ResourceClaim
from extender.model.device import Traits
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Pod
from extender.scheduling.binding import Binder
from extender.scheduling.endings import Order, Result
from tests.scheduling.cast import binder_of, gpus, names, node, pod
from tests.scheduling.server import Server, World

N1, N2 = names("n1", "n2")
POD, OTHER = pod("p", "a"), pod("q", "b")
A = ObjectKey("ns", "a")


def world_of(*claims: ResourceClaim, traits: Traits | None = None, subject: Pod = POD) -> World:
    server = Server((node("n1"), node("n2"), gpus("n1", 2, traits or Traits()), gpus("n2", 1, traits or Traits())))
    everything: tuple[Pod | ResourceClaim, ...] = (subject, OTHER, *claims)
    for item in everything:
        server.put(item)
    return World(server, server.believed())


def bind(
    world: World, target: NodeName = N1, now: float = 0.0, subject: Pod = POD, binder: Binder | None = None
) -> Result:
    binder = binder or binder_of(world.belief, now)
    result = world.carry(binder.bind(Order(subject.key, subject.uid, target)))
    assert result is not None
    return result
