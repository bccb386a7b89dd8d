"""Stories of pods that come and go on nodes of a few kinds, told to those who remember and to those who do not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from random import Random

from extender.allocation.boards import Boards
from extender.allocation.features import Features
from extender.model.change import Change, Changed, Gone
from extender.model.claim import Constraint, DeviceConfig, RequestSlot, ResourceClaim
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Node, Pod
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.scheduling.advice import Advisor
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.placement import Placement
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.state.questions import Questions
from extender.topology.document import Document
from extender.topology.policies import Policies
from tests.scheduling.cast import consumer, node
from tests.scheduling.machines import GPU_CLASS, NUMA, NVIDIA
from tests.scheduling.mixed import NIC, asks, cluster, gpus, nics, one, some

NAMES = tuple(NodeName(f"n{index}") for index in range(5))
POLICIES = ("protect", "pack", "spread", "one-numa", "linked")


def fresh_taste(belief: Belief, commons: Commons | None = None) -> Taste:
    return Taste(Document(policies=Policies()), belief.learning.mix_for, commons)


@contextmanager
def forgotten(belief: Belief, chooser: Chooser | Advisor, commons: Commons | None = None) -> Iterator[None]:
    """Have nobody remember anything for a while, but for what *commons* has learnt of those who share devices."""
    questions, taste, snapshot = belief.questions, chooser.taste, belief.cluster.snapshot
    belief.questions, chooser.taste = Questions(Features()), fresh_taste(belief, commons)
    belief.cluster.snapshot = replace(snapshot, boards=Boards())
    yield
    belief.questions, chooser.taste, belief.cluster.snapshot = questions, taste, snapshot


def crossed(cards: ResourceSlice) -> ResourceSlice:
    """Put every other device on the other NUMA node: alike to who asks for devices only, but linked otherwise."""
    zones = (Attribute("int", index % 2) for index in range(len(cards.devices)))
    told = (
        tuple((name, zone if name == NUMA else value) for name, value in device.attributes)
        for zone, device in zip(zones, cards.devices, strict=True)
    )
    devices = (replace(device, attributes=said) for said, device in zip(told, cards.devices, strict=True))
    return replace(cards, devices=tuple(devices))


class Story:
    """Pods that come and go on nodes of a few kinds, whose devices change, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = Random(seed), count()  # noqa: S311 - no secret depends on it
        self.bound: list[ResourceClaim] = []
        self.kinds = self.random.sample((4, 8, 8), 2)
        self.has_nics = self.random.random() < 0.5
        self.requests = [self.drawn_request() for _ in range(2)]

    def begin(self) -> Belief:
        slices = [item for name in NAMES for item in self.slices(name)]
        return cluster(*slices, nodes=NAMES)

    def slices(self, name: str) -> Iterator[ResourceSlice]:
        size = self.random.choice(self.kinds)
        cards = gpus(name, size, self.random.choice(((), (), (), (0, 1))))
        yield crossed(cards) if self.random.random() < 0.4 else cards
        if self.has_nics:
            yield nics(name, size)

    def drawn_request(self) -> tuple[tuple[RequestSlot, ...], tuple[Constraint, ...], str]:
        random = self.random
        slots = [some(random.choice((0, 1, 1, 2, 2, 4)))]
        if random.random() < 0.2:
            slots = [RequestSlot(name="some", first_available=(one(4, name="four"), one(1, name="one")))]
        if self.has_nics and random.random() < 0.6:
            slots.append(some(random.choice((1, 2)), NIC, "nic"))
        rules = (Constraint(match_attribute=NUMA),) if random.random() < 0.4 else ()
        return tuple(slots), rules, random.choice(("", "", *POLICIES))

    def claim(self) -> ResourceClaim:
        slots, rules, policy = self.random.choice(self.requests)
        made = asks(f"c{next(self.numbers)}", *slots, policy=policy)
        config = (DeviceConfig(opaque={"of": made.key.name}),) if self.random.random() < 0.3 else ()
        return replace(made, spec=replace(made.spec, constraints=rules, config=config))

    def names(self) -> list[str] | None:
        return None if self.random.random() < 0.6 else self.random.sample(NAMES, 3)

    def showing(self, subject: Pod, placement: Placement) -> Iterator[Change]:
        """Yield what the watch tells of a pod that was bound."""
        for item, allocation in placement.claims:
            written = replace(item, allocation=allocation, reserved_for=(consumer(subject),), resource_version="2")
            self.bound.append(written)
            yield Changed(written)
        yield Changed(replace(subject, node_name=placement.node))

    def aside(self) -> Iterator[Change]:
        """Yield what else happens."""
        random, what = self.random, self.random.random()
        name = random.choice(NAMES)
        if what < 0.3 and self.bound:
            yield Gone(ResourceClaim, self.bound.pop(random.randrange(len(self.bound))).key)
        elif what < 0.45:
            yield from map(Changed, self.slices(name))
        elif what < 0.5:
            yield Gone(ResourceSlice, ObjectKey("", f"{name}-{NVIDIA}"))
        elif what < 0.55:
            selector = TaintSelector(driver=NVIDIA, pool=None, device=None)
            yield Changed(DeviceTaintRule(name="rule", selector=selector, taint=Taint(key="sick", effect="NoExecute")))
        elif what < 0.6:
            yield Gone(DeviceTaintRule, ObjectKey("", "rule"))
        elif what < 0.7:
            yield Changed(replace(node(name), labels=(("zone", random.choice("ab")),)))
        elif what < 0.75:
            config = (DeviceConfig(opaque={"said": random.choice("ab")}),)
            yield Changed(replace(GPU_CLASS, config=config))
        elif what < 0.95:
            yield from self.moving(name)

    def moving(self, name: NodeName) -> Iterator[Change]:
        """Yield what happens to a node: it comes, goes, or goes and comes back at once."""
        what = self.random.random()
        if what < 0.6:
            yield Gone(Node, ObjectKey("", name))
        if what > 0.3:
            yield Changed(node(name))
