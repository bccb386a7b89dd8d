"""The law of it all: many pods, bindings that overlap, lost answers, late writes, a lagging watch; no device twice."""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.endings import Order, Result
from extender.scheduling.expiry import expired
from extender.scheduling.planner import Offer
from extender.scheduling.remedy import settled
from extender.scheduling.steps import AwaitShown, Outcome, Refusal, Refused, Step, Unknown
from extender.scheduling.waking import Waker
from extender.state.belief import version
from extender.state.ledger import Event
from tests.scheduling.cast import binder_of, claim, gpus, names, node, planner_of, pod, promised
from tests.scheduling.server import Server, World, landed, lost

NODES = names("n1", "n2")
PODS = ("p0", "p1", "p2", "p3")
# What a pod asks for: claims of its own, one that it shares, or extended resources.
WANTS = {
    "p0": lambda: pod("p0", "c0", "c1"),
    "p1": lambda: pod("p1", "c2"),
    "p2": lambda: pod("p2", "c2"),
    "p3": lambda: pod("p3", gpus=2),
}
CLAIMS = {"c0": 1, "c1": 2, "c2": 1}
WAYS = st.sampled_from(["done", "done", "done", "done", "landed", "lost", "refused"])


@dataclass
class Binding:
    """A binding on its way, and the step that it asks for."""

    work: Generator[Step, Outcome, Result]
    step: Step


class Cluster(RuleBasedStateMachine):
    """One process of ours, and everything that can happen around it."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server((node("n1"), node("n2"), gpus("n1", 3), gpus("n2", 2)))
        for name, count in CLAIMS.items():
            self.server.put(claim(name, count))
        for name in PODS:
            self.server.put(WANTS[name]())
        self.belief = self.server.believed()
        self.planner = planner_of(self.belief)
        self.waker = Waker(self.belief, self.planner)
        self.binder = binder_of(self.belief)
        self.bindings: dict[Uid, Binding] = {}
        self.nodes: dict[Uid, NodeName] = {}
        self.now = 0.0

    def pod(self, name: str) -> Pod | None:
        return self.server.pods.get(ObjectKey("ns", name))

    @rule(name=st.sampled_from(PODS))
    def filter(self, name: str) -> None:
        item = self.pod(name)
        if item is None or item.node_name or item.uid in self.bindings:
            return
        plan = self.planner.plan(item, NODES, self.now)
        if isinstance(plan, Offer):
            self.nodes[item.uid] = plan.nodes[-1]
            self.waker.drop(item.uid)
        else:
            self.waker.put(item.uid)

    @rule(name=st.sampled_from(PODS), is_asked=st.booleans())
    def bind(self, name: str, *, is_asked: bool) -> None:
        if is_asked:
            self.filter(name)
        item = self.pod(name)
        target = self.nodes.pop(item.uid, None) if item else None
        if item is None or target is None or item.uid in self.bindings:
            return
        work = self.binder.bind(Order(item.key, item.uid, target))
        self.go(item.uid, work, None)

    def go(self, pod: Uid, work: Generator[Step, Outcome, Result], outcome: Outcome | None) -> None:
        try:
            step = next(work) if outcome is None else work.send(outcome)
            self.bindings[pod] = Binding(work, step)
        except StopIteration:
            self.bindings.pop(pod, None)

    @rule(index=st.integers(0, 3), how=WAYS)
    def step(self, index: int, how: str) -> None:
        if not self.bindings:
            return
        pod = sorted(self.bindings)[index % len(self.bindings)]
        binding = self.bindings[pod]
        self.go(pod, binding.work, self.outcome(binding.step, how))

    @rule(index=st.integers(0, 3), count=st.integers(1, 12))
    def go_on(self, index: int, count: int) -> None:
        for _ in range(count):
            if self.bindings:
                binding = self.bindings[sorted(self.bindings)[index % len(self.bindings)]]
                if isinstance(binding.step, AwaitShown):
                    self.tell(len(self.server.log))
                self.step(index, "done")

    def outcome(self, step: Step, how: str) -> Outcome:
        if isinstance(step, AwaitShown):
            known = self.belief.cluster.claims.with_uid(step.claim)
            is_shown = known is None or version(known) >= step.version
            return self.server.do(step) if is_shown else Unknown("late")
        if how == "refused":
            return Refused(Refusal.REJECTED, "no")
        ways = {"landed": landed, "lost": lost}
        return ways[how](self.server, step) if how in ways else self.server.do(step)

    @rule(index=st.integers(0, 3))
    def drop(self, index: int) -> None:
        if self.bindings:
            pod = sorted(self.bindings)[index % len(self.bindings)]
            self.bindings.pop(pod).work.close()

    @rule(count=st.integers(1, 5))
    def tell(self, count: int) -> None:
        for _ in range(min(count, len(self.server.log))):
            self.belief.apply(self.server.log.pop(0))

    @rule(kind=st.sampled_from([ResourceClaim, Pod]))
    def list_anew(self, kind: Any) -> None:
        held: dict[Any, Any] = {ResourceClaim: self.server.claims, Pod: self.server.pods}
        kept = [
            change
            for change in self.server.log
            if (type(change.what) if isinstance(change, Changed) else getattr(change, "kind", None)) is not kind
        ]
        self.server.log[:] = kept
        self.belief.apply(Listed(kind, tuple(held[kind].values())))

    @rule()
    def land(self) -> None:
        self.server.land()

    @rule()
    def settle(self) -> None:
        world = World(self.server, self.belief, is_prompt=False)
        world.carry(settled(self.belief))

    @rule(seconds=st.sampled_from([1.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for uid in expired(self.belief, self.now, 15.0):
            self.belief.ledger.tell(uid, Event.EXPIRED)
        list(self.waker.round(self.now))

    @rule(name=st.sampled_from(PODS))
    def kill(self, name: str) -> None:
        item = self.pod(name)
        if item is not None:
            self.server.drop(item)
            self.server.control()

    @rule(name=st.sampled_from(PODS), number=st.integers(0, 10**6))
    def make(self, name: str, number: int) -> None:
        if self.pod(name) is None:
            self.server.put(replace(WANTS[name](), uid=Uid(f"{name}-{number}-{self.server.revision}")))

    @rule(name=st.sampled_from(sorted(CLAIMS)))
    def touch(self, name: str) -> None:
        self.server.put(self.server.claims[ObjectKey("ns", name)])

    @invariant()
    def no_device_is_in_two_claims(self) -> None:
        assert all(len(holders) == 1 for holders in self.server.holders().values())

    @invariant()
    def no_device_is_promised_twice(self) -> None:
        counted = Counter(promised(self.belief))
        assert all(count == 1 for count in counted.values())

    @invariant()
    def what_is_promised_or_allocated_is_not_free(self) -> None:
        seen = self.belief.seen_by()
        taken = set(promised(self.belief))
        rows = [row for key in taken for row in seen.inventory.rows_of(key)]
        assert all(seen.usage_at(row).is_held for row in rows)

    @invariant()
    def whoever_is_bound_has_what_it_asked_for_on_its_node(self) -> None:
        for item in self.server.pods.values():
            asked = [str(entry.claim_name) for entry in item.claims]
            asked += [str(item.extended_claim)] if item.containers[0].requests else []
            for name in asked if item.node_name else ():
                known = self.server.claims[ObjectKey("ns", name)]
                assert known.allocation is not None
                assert {str(result.device.pool) for result in known.allocation.devices} == {item.node_name}
                assert item.uid in [consumer.uid for consumer in known.reserved_for]

    def teardown(self) -> None:
        for binding in self.bindings.values():
            binding.work.close()
        self.server.land()
        for name in PODS:
            self.kill(name)
        self.server.control()
        self.server.deliver(self.belief)
        self.settle()
        self.server.deliver(self.belief)
        # Of a pod that came and went unseen only time ends the offer.
        self.wait(20.0)
        assert list(self.belief.ledger) == []
        assert not self.server.holders()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(stateful_step_count=60)
