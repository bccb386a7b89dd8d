"""Drawn fleets of mostly plain devices, claims that hold some of them, and questions that counting often decides."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from extender.allocation.features import Features
from extender.allocation.question import Question, ask
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Constraint,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.quantity import parse_quantity
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, Toleration

DRIVERS = (DriverName("gpu.example.com"), DriverName("nic.example.com"))
MODELS = ("A", "B")
SELECTORS = (
    "device.attributes[device.driver].model == 'A'",
    "device.attributes[device.driver].?model.orValue('B') == 'B'",
    "device.driver == 'nic.example.com'",
    "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('2'))",
    "device.attributes[device.driver].rank > 1",
)
ATTRIBUTES = (
    "topology.example.com/numa",
    "topology.example.com/root",
    "gpu.example.com/model",
    "gpu.example.com/side",
    "topology.example.com/links",
)
CLASSES = {
    name: DeviceClass(name=name, selectors=selectors)
    for name, selectors in (
        (ClassName("any"), ()),
        (ClassName("gpu"), (Selector("device.driver == 'gpu.example.com'"),)),
        (ClassName("nic"), (Selector("device.driver == 'nic.example.com'"),)),
    )
}
TAINT = Taint(key="sick", effect="NoSchedule")


class Fleet:
    """Draws everything from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - no secret depends on it
        self.nodes = tuple(NodeName(f"n{index}") for index in range(self.random.randint(1, 8)))
        # Few odd devices: with one of them its whole node has to be searched.
        self.odd = self.random.random() < 0.4
        self.most = 12 if self.random.random() < 0.1 else 6
        # Pools of single nodes come before or after shared ones, which are called m.
        self.pools = {node: PoolName(self.random.choice(("a-", "z-", "")) + node) for node in self.nodes}

    def changes(self) -> Iterator[Change]:
        """Yield what builds the fleet up."""
        yield Listed(Node, tuple(self.node(name) for name in self.nodes))
        private = [self.slice(node, driver) for node in self.nodes for driver in DRIVERS]
        shared = [self.shared(index) for index in range(self.random.choice((1, 2, 3)))] if self.odd else []
        yield Listed(ResourceSlice, (*private, *shared))
        yield Listed(ResourceClaim, tuple(self.holder(index) for index in range(2 * len(self.nodes))))

    def change(self) -> Change:
        """Draw something that happens to the fleet."""
        node = self.random.choice(self.nodes)
        what = self.random.random()
        if what < 0.5:
            return Changed(self.holder(self.random.randrange(2 * len(self.nodes))))
        if what < 0.6:
            return Gone(ResourceClaim, ObjectKey("ns", f"h{self.random.randrange(2 * len(self.nodes))}"))
        if what < 0.9:
            return self.change_of_slices(node, is_shared=self.odd and self.random.random() < 0.4, goes=what > 0.84)
        if what < 0.95:
            selector = TaintSelector(driver=self.random.choice((*DRIVERS, None)), device=self.device_name())
            return Changed(DeviceTaintRule(name="rule", selector=selector, taint=TAINT))
        return Changed(self.node(node)) if what < 0.975 else Gone(Node, ObjectKey("", node))

    def change_of_slices(self, node: NodeName, *, is_shared: bool, goes: bool) -> Change:
        fresh = self.shared(self.random.randrange(3)) if is_shared else self.slice(node, self.random.choice(DRIVERS))
        return Gone(ResourceSlice, ObjectKey("", fresh.name)) if goes else Changed(fresh)

    def node(self, name: NodeName) -> Node:
        return Node(name=name, labels=(("zone", self.random.choice("ab")),))

    def shared(self, index: int) -> ResourceSlice:
        """Draw a slice that several nodes may see: one of a pool of several, or one by itself."""
        random = self.random
        zone = Requirement(key="zone", operator="In", values=(random.choice("ab"),))
        some = NodeSelection(selector=NodeSelector((NodeSelectorTerm(expressions=(zone,)),)))
        selection = random.choice((some, some, NodeSelection(all_nodes=True), None))
        devices = [self.device(index * 3 + place) for place in range(random.randint(0, 2))]
        if selection is None:
            devices = [
                replace(
                    device,
                    traits=replace(device.traits, selection=random.choice((some, NodeSelection(all_nodes=True)))),
                )
                for device in devices
            ]
        return ResourceSlice(
            name=f"shared-{index}",
            driver=random.choice(DRIVERS),
            pool=PoolName(random.choice(("m", "m", f"m{index}"))),
            generation=random.choice((1, 1, 1, 2)),
            slice_count=random.choice((1, 1, 2)),
            selection=selection,
            devices=tuple(devices),
        )

    def device_name(self) -> DeviceName:
        return DeviceName(f"d{self.random.randrange(6)}")

    def slice(self, node: NodeName, driver: DriverName) -> ResourceSlice:
        count = self.random.randint(0, self.most)
        selection = NodeSelection(node_name=node)
        if self.odd and self.random.random() < 0.15:
            selection = NodeSelection(all_nodes=True)
        return ResourceSlice(
            name=f"{node}-{driver}",
            driver=driver,
            pool=self.pools[node],
            generation=1,
            slice_count=2 if self.odd and self.random.random() < 0.1 else 1,
            selection=selection,
            devices=tuple(self.device(index) for index in range(count)),
        )

    def device(self, index: int) -> Device:
        random = self.random
        attributes = [("model", Attribute("string", random.choice(MODELS)))]
        if random.random() < 0.9:
            attributes.append(("topology.example.com/numa", Attribute("int", random.randrange(2))))
        if random.random() < 0.8:
            attributes.append(("topology.example.com/root", Attribute("string", f"pci{random.randrange(3)}")))
        if random.random() < 0.9:
            attributes.append(("rank", Attribute("int", random.randrange(4))))
        if self.odd and random.random() < 0.3:
            attributes.append(("topology.example.com/links", Attribute("strings", tuple(random.sample("xyz", 2)))))
        attributes += [(name, Attribute("int", random.randrange(2))) for name in self.named("side")]
        capacity = [(name, Capacity(parse_quantity(random.choice(("1", "4"))))) for name in self.named("memory")]
        traits = Traits(
            taints=(TAINT,) if random.random() < 0.1 else (),
            allow_multiple_allocations=self.odd and random.random() < 0.1,
        )
        return Device(DeviceName(f"d{index}"), tuple(sorted(attributes)), tuple(sorted(capacity)), traits)

    def named(self, name: str) -> tuple[str, ...]:
        """Publish something by its bare name, or with its domain, or as both."""
        full = f"{DRIVERS[0]}/{name}"
        return self.random.choice(((name,), (name,), (full,), (full, name)))

    def holder(self, index: int) -> ResourceClaim:
        node, driver = self.random.choice(self.nodes), self.random.choice(DRIVERS)
        pool = self.random.choice((PoolName("m"), self.pools[node])) if self.odd else self.pools[node]
        keys = {DeviceKey(driver, pool, self.device_name()) for _ in range(self.random.randint(0, 3))}
        share = "s" if self.random.random() < (0.2 if self.odd else 0.03) else None
        devices = tuple(AllocatedDevice(request="r", device=key, share_id=share) for key in sorted(keys))
        return ResourceClaim(
            key=ObjectKey("ns", f"h{index}"), uid=Uid(""), spec=ClaimSpec(), allocation=Allocation(devices=devices)
        )

    def question(self) -> Question:
        """Draw what a pod asks for."""
        claims = [self.claim(index) for index in range(self.random.choice((1, 1, 2)))]
        return ask(claims, CLASSES, self.features())

    def features(self) -> Features:
        return Features()

    def claim(self, index: int) -> ResourceClaim:
        slots = [self.slot(f"r{number}") for number in range(self.random.choice((1, 1, 2, 3)))]
        names = [slot.name for slot in slots]
        names += [f"{slot.name}/{ask.name}" for slot in slots for ask in slot.first_available]
        constraints = tuple(self.constraint(names) for _ in range(self.random.choice((0, 0, 1, 1, 2))))
        spec = ClaimSpec(requests=tuple(slots), constraints=constraints)
        return ResourceClaim(key=ObjectKey("ns", f"c{index}"), uid=Uid(""), spec=spec)

    def slot(self, name: str) -> RequestSlot:
        if self.random.random() < 0.4:
            # Three of the longest lists are more than 64 ways to answer a claim.
            count = self.random.choice((1, 2, 2, 3, 5))
            alternatives = tuple(self.request(f"s{index}") for index in range(count))
            return RequestSlot(name=name, first_available=alternatives)
        return RequestSlot(name=name, exactly=self.request(name))

    def request(self, name: str) -> DeviceRequest:
        random = self.random
        takes_all = random.random() < 0.05
        return DeviceRequest(
            name=name,
            class_name=random.choice(tuple(CLASSES)),
            selectors=(Selector(random.choice(SELECTORS)),) if random.random() < 0.3 else (),
            mode="All" if takes_all else "ExactCount",
            count=0 if takes_all else random.choice((0, 1, 1, 2, 2, 3, 4)),
            tolerations=(Toleration(operator="Exists"),) if random.random() < 0.3 else (),
            capacity=(("memory", parse_quantity("2")),) if random.random() < 0.1 else None,
        )

    def constraint(self, names: list[str]) -> Constraint:
        random = self.random
        attribute = random.choice(ATTRIBUTES if self.odd else ATTRIBUTES[:-1])
        covered = tuple(random.sample(names, random.randint(0, min(3, len(names)))))
        if random.random() < 0.1:
            return Constraint(requests=covered, distinct_attribute=attribute)
        return Constraint(requests=covered, match_attribute=attribute)


class Uniform(Fleet):
    """Nodes of one or two devices that are nearly alike: what is in use is often kept from being given, too."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.odd, self.most = self.random.random() < 0.2, 2

    def device(self, index: int) -> Device:
        random = self.random
        attributes = [("model", Attribute("string", "A")), ("rank", Attribute("int", 1))]
        attributes.append(("topology.example.com/numa", Attribute("int", random.randrange(2))))
        capacity = ("gpu.example.com/memory", Capacity(parse_quantity(random.choice(("1", "4")))))
        traits = Traits(
            taints=(TAINT,) if random.random() < 0.4 else (),
            binding_conditions=("ready",) if random.random() < 0.2 else (),
        )
        return Device(DeviceName(f"d{index}"), tuple(attributes), (capacity,), traits)

    def device_name(self) -> DeviceName:
        return DeviceName(f"d{self.random.randrange(2)}")

    def features(self) -> Features:
        return Features(device_binding_conditions=self.random.random() < 0.5)

    def request(self, name: str) -> DeviceRequest:
        capacity = (("gpu.example.com/memory", parse_quantity("2")),) if self.random.random() < 0.3 else None
        return DeviceRequest(
            name=name,
            class_name=ClassName("gpu"),
            mode="ExactCount",
            count=self.random.choice((1, 2)),
            capacity=capacity,
        )


class Joined(Fleet):
    """Claims of a few requests, all of which a constraint binds together."""

    def claim(self, index: int) -> ResourceClaim:
        random = self.random
        slots = [
            RequestSlot(
                name=f"r{number}",
                exactly=DeviceRequest(
                    name=f"r{number}",
                    class_name=random.choice(tuple(CLASSES)),
                    mode="ExactCount",
                    count=random.choice((1, 1, 2)),
                ),
            )
            for number in range(random.choice((2, 2, 3)))
        ]
        rule = Constraint(match_attribute=random.choice(("topology.example.com/numa", "topology.example.com/root")))
        spec = ClaimSpec(requests=tuple(slots), constraints=(rule,))
        return ResourceClaim(key=ObjectKey("ns", f"c{index}"), uid=Uid(""), spec=spec)
