"""Whatever happens at whichever step of a binding: it ends bound and consistent, or cleanly free."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.scheduling.planner import Offer
from extender.scheduling.remedy import freed, settled
from extender.scheduling.steps import BindPod, Later, Outcome, Refusal, Refused, Step
from tests.scheduling.cast import binder_of, claim, device, gpus, held, names, node, planner_of, pod
from tests.scheduling.server import Fault, Server, World, landed, lost

POD = pod("p", "a", "b")
EXTENDED = pod("p", "a", gpus=1)
FIXED = (node("n1"), node("n2"), gpus("n1", 3), gpus("n2", 2))
# More attempts than any single fault can cost.
ATTEMPTS = 8
# A node that only somebody else binds to.
ELSEWHERE = NodeName("n3")
MOST_STEPS = 14


def server_of(subject: Pod) -> Server:
    server = Server(FIXED)
    server.put(subject)
    for entry in subject.claims:
        server.put(replace(claim(entry.name), finalizers=()))
    server.put(held(claim("old"), device("n1", 0), by=POD))
    server.claims[ObjectKey("ns", "old")] = replace(server.claims[ObjectKey("ns", "old")], reserved_for=())
    return server


def bind(world: World, subject: Pod, target: NodeName, *, until: int = 200) -> Result | None:
    binder = binder_of(world.belief)
    return world.carry(binder.bind(Order(subject.key, subject.uid, target)), until=until)


def refusing(kind: Refusal) -> Fault:
    return lambda _server, _step: Refused(kind, "no")


def later(_server: Server, _step: Step) -> Outcome:
    return Later(0.1)


def happening(change: Callable[[Server], None]) -> Fault:
    """Have something happen. What becomes of a claim while the Binding is on its way is the kubelet's to find."""

    def fault(server: Server, step: Step) -> None:
        if not (isinstance(step, BindPod) and change.__name__.startswith("claim")):
            change(server)

    return fault


def pod_goes(server: Server) -> None:
    if POD.key in server.pods:
        server.drop(server.pods[POD.key])


def pod_is_another(server: Server) -> None:
    known = server.pods.get(POD.key)
    pod_goes(server)
    server.put(replace(known or POD, uid=Uid("second"), extended_claim=None, node_name=None))


def pod_is_touched(server: Server) -> None:
    server.put(server.pods[POD.key])


def pod_is_gated(server: Server) -> None:
    server.put(replace(server.pods[POD.key], scheduling_gates=("wait",)))


def pod_is_going(server: Server) -> None:
    server.put(replace(server.pods[POD.key], is_deleting=True))


def pod_is_elsewhere(server: Server) -> None:
    server.bind(POD, ELSEWHERE)


def claim_goes(server: Server) -> None:
    if ObjectKey("ns", "a") in server.claims:
        server.drop(server.claims[ObjectKey("ns", "a")])


def claim_is_another(server: Server) -> None:
    claim_goes(server)
    server.put(replace(claim("a"), uid=Uid("second-a")))


def claim_is_touched(server: Server) -> None:
    server.put(server.claims[ObjectKey("ns", "a")])


def claim_is_given(server: Server) -> None:
    known = server.claims[ObjectKey("ns", "a")]
    if known.allocation is None:
        server.put(held(known, device("n2", 1)))


def claim_is_taken(server: Server) -> None:
    known = server.claims[ObjectKey("ns", "a")]
    server.put(replace(known, allocation=None, reserved_for=()))


FAULTS: dict[str, Fault] = {
    **{kind.name: refusing(kind) for kind in Refusal},
    "later": later,
    "landed": landed,
    "lost": lost,
    **{
        change.__name__: happening(change)
        for change in (
            pod_goes,
            pod_is_another,
            pod_is_touched,
            pod_is_gated,
            pod_is_going,
            pod_is_elsewhere,
            claim_goes,
            claim_is_another,
            claim_is_touched,
            claim_is_given,
            claim_is_taken,
        )
    },
}


def finished(world: World, *, is_late: bool = False) -> None:
    """Go on as a scheduler does until the pod is bound or can no longer be, and mend what is in the way."""
    world.fault = None
    planner = planner_of(world.belief)
    for _ in range(ATTEMPTS):
        if is_late:
            world.server.land()
        world.server.control()
        world.server.deliver(world.belief)
        world.carry(settled(world.belief))
        world.server.deliver(world.belief)
        known = world.server.pods.get(POD.key)
        if known is None or known.node_name or known.is_deleting or known.scheduling_gates:
            return
        plan = planner.plan(known, names("n1", "n2"), 0.0)
        if isinstance(plan, Offer):
            bind(world, known, plan.nodes[0])
        else:
            world.carry(freed(known, world.belief, 0.0))


def check(world: World) -> None:
    """Nothing is held twice, nothing leaks, and a pod that is bound by us has what it asked for."""
    server = world.server
    server.deliver(world.belief)
    for key, holders in server.holders().items():
        assert len(holders) == 1, f"{key} is held by {holders}"
    assert list(world.belief.ledger) == []
    known = server.pods.get(POD.key)
    if known is None or not known.node_name or known.node_name == ELSEWHERE:
        return
    asked = [entry.claim_name for entry in known.claims] + (
        [known.extended_claim] if known.containers[0].requests else []
    )
    for name in asked:
        item = server.claims[ObjectKey("ns", str(name))]
        assert item.allocation is not None
        assert known.uid in [consumer.uid for consumer in item.reserved_for]
        assert {str(result.device.pool) for result in item.allocation.devices} == {known.node_name}


def is_servable(server: Server) -> bool:
    known = server.pods.get(POD.key)
    return (
        known is not None
        and not known.is_deleting
        and not known.scheduling_gates
        and all(ObjectKey("ns", str(entry.claim_name)) in server.claims for entry in known.claims)
    )


@pytest.mark.parametrize("is_prompt", [True, False], ids=["prompt", "lagging"])
@pytest.mark.parametrize("subject", [POD, EXTENDED], ids=["claims", "extended"])
@pytest.mark.parametrize("at", range(MOST_STEPS))
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_happens_at_a_step_the_pod_ends_bound_with_its_devices_or_free(
    fault: str, at: int, subject: Pod, *, is_prompt: bool
) -> None:
    server = server_of(subject)
    world = World(server, server.believed(), FAULTS[fault], at, is_prompt=is_prompt)
    result = bind(world, subject, NodeName("n1"))
    assert isinstance(result, Bound | NotBound)
    finished(world, is_late=True)
    check(world)
    if is_servable(server):
        assert server.pods[POD.key].node_name


@pytest.mark.parametrize("is_late", [True, False], ids=["late-writes-land", "late-writes-do-not"])
@pytest.mark.parametrize("subject", [POD, EXTENDED], ids=["claims", "extended"])
@pytest.mark.parametrize("fault", [None, "landed", "lost"])
@pytest.mark.parametrize("at", range(MOST_STEPS))
def test_a_process_that_dies_before_any_step_is_succeeded_by_one_that_finishes(
    at: int, fault: str | None, subject: Pod, *, is_late: bool
) -> None:
    server = server_of(subject)
    first = World(server, server.believed(), FAULTS[fault] if fault else None, at)
    bind(first, subject, NodeName("n1"), until=at + (fault is not None))
    second = World(server, server.believed())
    finished(second, is_late=is_late)
    check(second)
    assert server.pods[POD.key].node_name


def test_a_binding_takes_no_more_steps_than_are_tried_here() -> None:
    for subject in (POD, EXTENDED):
        server = server_of(subject)
        world = World(server, server.believed())
        assert isinstance(bind(world, subject, NodeName("n1")), Bound)
        assert len(world.taken) < MOST_STEPS


def test_what_is_bound_is_answered_with_success_a_second_time() -> None:
    server = server_of(POD)
    world = World(server, server.believed())
    assert isinstance(bind(world, POD, NodeName("n1")), Bound)
    assert isinstance(bind(world, POD, NodeName("n1")), Bound)
    assert bind(world, POD, NodeName("n2")) == NotBound("the pod is on node n1 already")
