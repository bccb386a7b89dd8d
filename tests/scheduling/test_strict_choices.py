"""A strict policy has a set exactly where trying all of them finds one, whatever else the claim asks for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.change import Changed
from extender.model.claim import Constraint, RequestSlot
from extender.model.device import PLAIN, Attribute, Device, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, PoolName
from extender.scheduling.planner import Offer, Rejection, Trouble
from extender.state.belief import Belief
from extender.topology.policies import Policies
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import GPU, NUMA, NVIDIA
from tests.scheduling.mixed import (
    ANY,
    NET,
    NIC,
    asks,
    cluster,
    devices_of,
    gpus,
    nics,
    one,
    planner_by,
    published,
    some,
)

COLOR = "example.com/color"
UNREADY = Traits(binding_conditions=("example.com/attached",))
DRIVERS = {GPU: NVIDIA, NIC: NET}
# A device: its class and its number.
Card = tuple[ClassName, int]


@dataclass
class Case:
    """Requests, each of them alternatives, and rules: which requests, and whether they match or differ in color."""

    requests: Sequence[Sequence[tuple[ClassName, int]]]
    rules: Sequence[tuple[Sequence[int], bool]]
    free: Sequence[Card]
    devices: Mapping[Card, Device]

    def is_possible(self, given_: tuple[tuple[Card, ...], ...] = ()) -> bool:
        """Try everything."""
        if len(given_) == len(self.requests):
            return True
        left = [card for card in self.free if not any(card in cards for cards in given_)]
        return any(
            self._is_on_one_node(cards) and self._agree((*given_, cards)) and self.is_possible((*given_, cards))
            for wanted, count in self.requests[len(given_)]
            for cards in combinations([card for card in left if card[0] == wanted], count)
        )

    def _is_on_one_node(self, cards: Sequence[Card]) -> bool:
        return len({self._value(card, NUMA) or card for card in cards}) < 2

    def _agree(self, given_: Sequence[Sequence[Card]]) -> bool:
        return all(self._keeps(given_, rule) for rule in self.rules)

    def _keeps(self, given_: Sequence[Sequence[Card]], rule: tuple[Sequence[int], bool]) -> bool:
        requests, is_match = rule
        bound = [card for index in requests if index < len(given_) for card in given_[index]]
        colors = [self._value(card, COLOR) for card in bound]
        kinds = len(set(colors))
        return None not in colors and (kinds < 2 if is_match else kinds == len(colors))

    def _value(self, card: Card, name: str) -> Attribute | None:
        return dict(self.devices[card].attributes).get(name)


def drawn(random: Random) -> tuple[Belief, Case]:
    """Draw a node with GPUs and NICs, some of them taken, and a claim that is there already."""
    size = random.choice((4, 5, 6, 8))
    slices = {GPU: dressed(gpus("a", size), random), NIC: dressed(nics("a", size), random)}
    devices = {(name, number): item for name, found in slices.items() for number, item in enumerate(found.devices)}
    free = [card for card in devices if random.random() < 0.75]
    belief = cluster(*slices.values())
    taken = [DeviceKey(DRIVERS[name], PoolName("a"), DeviceName(f"d{n}")) for name, n in devices.keys() - set(free)]
    if taken:
        belief.apply(Changed(held(asks("others", some(1)), *taken)))
    requests = list(wishes(random))
    numbers = range(len(requests))
    rules = [
        (random.sample(numbers, random.randint(1, len(numbers))), random.random() < 0.7)
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    ]
    asked = asks("c", *(slot(f"r{index}", wanted) for index, wanted in enumerate(requests)), policy="one-numa")
    constraints = tuple(constraint(names, is_match=is_match) for names, is_match in rules)
    belief.apply(Changed(replace(asked, spec=replace(asked.spec, constraints=constraints))))
    return belief, Case(requests, rules, free, devices)


def dressed(published: ResourceSlice, random: Random) -> ResourceSlice:
    """Take the NUMA node from some devices, and give most a color."""
    devices = []
    for item in published.devices:
        kept = {name: value for name, value in item.attributes if name != NUMA or random.random() < 0.8}
        kept |= {COLOR: Attribute("int", random.randrange(3))} if random.random() < 0.9 else {}
        traits = UNREADY if random.random() < 0.15 else PLAIN
        devices.append(replace(item, attributes=tuple(sorted(kept.items())), traits=traits))
    return replace(published, devices=tuple(devices))


def wishes(random: Random) -> Iterator[list[tuple[ClassName, int]]]:
    for _ in range(random.choice((1, 2, 2, 3, 3, 4))):
        wanted = random.choice((GPU, GPU, NIC))
        yield [(wanted, random.randint(1, 3)) for _ in range(random.choice((1, 1, 1, 2)))]


def slot(name: str, wanted: Sequence[tuple[ClassName, int]]) -> RequestSlot:
    if len(wanted) == 1:
        return some(wanted[0][1], wanted[0][0], name)
    alternatives = (one(count, kind, f"a{index}") for index, (kind, count) in enumerate(wanted))
    return RequestSlot(name=name, first_available=tuple(alternatives))


def constraint(requests: Sequence[int], *, is_match: bool) -> Constraint:
    names = tuple(f"r{index}" for index in requests)
    if is_match:
        return Constraint(requests=names, match_attribute=COLOR)
    return Constraint(requests=names, distinct_attribute=COLOR)


@given(st.integers(0, 1 << 30))
@settings(max_examples=300, deadline=None)
def test_one_numa_is_had_exactly_where_trying_all_sets_finds_one(seed: int) -> None:
    belief, case = drawn(Random(seed))  # noqa: S311 - of cases, not of secrets
    planner = planner_by(belief, Policies())
    plans = (planner.plan(pod("p", "c"), None, 0.0) for _ in range(100))
    plan = next(plan for plan in plans if not isinstance(plan, Trouble))
    assert isinstance(plan, Offer) == case.is_possible(), plan
    assert isinstance(plan, Offer | Rejection)


def test_devices_of_two_drivers_are_had_from_one_numa_node() -> None:
    belief = cluster(gpus("a", 1), nics("a", 1))
    belief.apply(Changed(asks("c", some(2, ANY), policy="one-numa")))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert devices_of(plan) == {"c": ["dra.net/d0", "gpu.nvidia.com/d0"]}


def test_linked_devices_are_had_beside_others_of_their_driver_and_those_are_not_linked() -> None:
    four = published("a", NVIDIA, 4, product="NVIDIA A100-SXM4-80GB")
    others = published("a", NVIDIA, 6, product="NVIDIA DGX Display").devices[4:]
    belief = cluster(replace(four, devices=(*four.devices, *others)))
    found = []
    for name in ("first", "second", "third"):
        belief.apply(Changed(asks(name, some(2), policy="linked")))
        found.append(devices_of(planner_by(belief, Policies()).plan(pod(name, name), None, 0.0)))
    assert found == [
        {"first": ["gpu.nvidia.com/d0", "gpu.nvidia.com/d1"]},
        {"second": ["gpu.nvidia.com/d2", "gpu.nvidia.com/d3"]},
        None,
    ]


HELD = st.sets(st.integers(0, 13))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from((2, 8, 14)), st.sampled_from((2, 8, 14)), HELD, HELD, st.integers(2, 6))
def test_devices_of_two_drivers_are_refused_only_where_no_numa_node_has_enough(
    cards: int, links: int, held_cards: set[int], held_links: set[int], wanted: int
) -> None:
    belief, left = cluster(gpus("a", cards), nics("a", links)), [0, 0]
    for driver, count, taken in ((NVIDIA, cards, held_cards), (NET, links, held_links)):
        for number in range(count):
            left[2 * number // count] += number not in taken
        for number in sorted(taken & set(range(count))):
            key = DeviceKey(driver, PoolName("a"), DeviceName(f"d{number}"))
            belief.apply(Changed(held(asks(f"{driver}-{number}", some(1)), key)))
    belief.apply(Changed(asks("c", some(wanted, ANY), policy="one-numa")))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer) == (max(left) >= wanted)
    assert isinstance(plan, Offer | Rejection)
