"""What is remembered of binds, and what is counted of them."""

from dataclasses import dataclass, field, replace
from typing import Any

from extender.model.names import NodeName
from extender.scheduling.account import note_of, of_plan
from extender.scheduling.binding import Binder
from extender.scheduling.decision import Decided, Decision
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Planner, Rejection
from extender.service.journal import MOST_WAITING, Journal
from extender.service.notices import Notices
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import claim, device, held, pod
from tests.scheduling.machines import planner_with_taste
from tests.scheduling.server import World
from tests.scheduling.stage import N1, N2, POD, A, bind, world_of
from tests.scheduling.test_r7_conditions import START, WAITS, reported

NOBODY: Any = None


@dataclass
class Scene:
    """A pod whose devices have to be made ready, and what is written down of it."""

    world: World = field(default_factory=lambda: world_of(claim("a"), traits=WAITS))
    metrics: Metrics = field(default_factory=Metrics)
    journal: Journal = field(init=False)
    planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        notices = Notices(NOBODY, "test", 1, is_enabled=False)
        self.journal = Journal(self.world.belief, notices, self.metrics, lambda: 0.0)
        self.planner = planner_with_taste(self.world.belief)

    def asked(self, *nodes: NodeName) -> Decision:
        plan = self.planner.plan(POD, nodes, START)
        assert isinstance(plan, Offer | Rejection)
        self.journal.put(of_plan(POD, plan, 1, START))
        return self.last

    def bound(self) -> Decision:
        binder = Binder(self.world.belief, self.planner.chooser, lambda: START, lambda _pod, _node: True)
        self.told(bind(self.world, binder=binder))
        return self.last

    def told(self, result: Result) -> None:
        self.journal.ended(Order(POD.key, POD.uid, N1), result)

    @property
    def last(self) -> Decision:
        found = self.journal.decisions.get(POD.key)
        assert found is not None
        return found

    def placements(self) -> float:
        values = {"policy": self.last.basis.policies[0]} if self.last.basis.policies else {}
        return self.metrics.registry.get_sample_value("dra_extender_placements_total", values) or 0.0


def needed(scene: Scene) -> Needs:
    needs = needs_of(POD, scene.world.belief)
    assert isinstance(needs, Needs)
    return needs


def devices(decision: Decision) -> list[object]:
    return [item.device for item in decision.given]


def test_r7_a_pod_that_waits_for_its_devices_is_told_of_them_and_why() -> None:
    scene = Scene()
    offer, waiting = scene.asked(N1, N2), scene.bound()
    assert waiting.outcome is Decided.WAITING
    assert devices(waiting) == [device("n1", 0)]
    assert (waiting.best, waiting.basis, waiting.fitting) == (offer.best, offer.basis, 2)
    assert scene.placements() == 0.0


def test_r7_a_pod_that_has_waited_is_told_of_its_devices_once_it_is_bound_and_counted_once() -> None:
    scene = Scene()
    offer, _ = scene.asked(N1, N2), scene.bound()
    # Meanwhile the scheduler asks again: of nodes that will not do, and of the one where the devices are.
    assert scene.asked(N2).outcome is Decided.REJECTED
    assert scene.asked(N1, N2).given == ()
    assert scene.bound().outcome is Decided.WAITING
    reported(scene.world, "attached")
    scene.asked(N1, N2)
    bound = scene.bound()
    assert bound.outcome is Decided.BOUND
    assert (devices(bound), bound.best, bound.basis) == ([device("n1", 0)], offer.best, offer.basis)
    assert "gpu=gpu.example.com/n1/d0; score" in note_of(bound)
    assert scene.placements() == 1.0
    # A bind of a pod that is bound already is no news.
    scene.told(Bound(replace(POD, node_name=N1)))
    assert scene.placements() == 1.0


def test_a_pod_that_turns_out_to_be_bound_is_counted_with_what_it_was_given() -> None:
    scene = Scene()
    scene.asked(N1, N2)
    placement = scene.planner.chooser.place(needed(scene), N1)
    assert isinstance(placement, Placement)
    scene.told(NotBound("no answer", is_waiting=True, is_open=True, placement=placement))
    scene.world.server.put(held(claim("a", version=9), device("n1", 0), by=POD))
    scene.world.server.deliver(scene.world.belief)
    scene.told(Bound(replace(POD, node_name=N1)))
    assert (scene.last.outcome, devices(scene.last)) == (Decided.BOUND, [device("n1", 0)])
    assert scene.placements() == 1.0


def test_devices_that_a_pod_has_lost_meanwhile_are_not_told() -> None:
    scene = Scene()
    scene.asked(N1, N2)
    scene.bound()
    scene.world.server.put(held(scene.world.server.claims[A], device("n1", 1), by=POD))
    scene.world.server.deliver(scene.world.belief)
    scene.asked(N1)
    bound = scene.bound()
    assert (bound.outcome, devices(bound)) == (Decided.BOUND, [])
    assert "no new devices" in note_of(bound)


def test_of_pods_that_wait_as_many_as_there_may_be_are_remembered() -> None:
    scene = Scene()
    scene.asked(N1, N2)
    waiting = scene.bound()
    for index in range(2 * MOST_WAITING):
        scene.journal._waiting[pod(f"p{index}").uid] = waiting
    assert len(scene.journal._waiting) == MOST_WAITING
