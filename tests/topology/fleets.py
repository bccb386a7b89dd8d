"""Fleets that share devices, drawn or written down, and what is to be said of them, worked out naively."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from extender.topology.fragmentation import Rows
from extender.topology.typical import ANY, PodAsk, Typical
from loadtests.quality.openb import OURS, Formula

WHOLE = 8
MODELS = 3


class Node(NamedTuple):
    """One node, as a person would write it down."""

    cpu: int
    memory: int
    free: tuple[int, ...]
    model: int = 0

    def fits(self, ask: PodAsk) -> bool:
        if self.cpu < ask.cpu or self.memory < ask.memory:
            return False
        if not ask.devices:
            return True
        enough = [free for free in self.free if free >= ask.amount]
        return bool(ask.models >> self.model & 1) and len(enough) >= ask.devices

    def given(self, ask: PodAsk, places: tuple[int, ...]) -> "Node":
        free = tuple(one - ask.amount * (place in places) for place, one in enumerate(self.free))
        return Node(self.cpu - ask.cpu, self.memory - ask.memory, free, self.model)


def rows_of(nodes: list[Node]) -> Rows:
    widest = max((len(node.free) for node in nodes), default=0)
    free = [node.free + (0,) * (widest - len(node.free)) for node in nodes]
    columns = ([node.cpu for node in nodes], [node.memory for node in nodes], free, [node.model for node in nodes])
    return Rows(*(np.array(column, dtype=np.int64) for column in columns))


def fragments(node: Node, ask: PodAsk) -> int:
    """F of one node and one typical pod, word for word."""
    if not ask.devices or not node.fits(ask):
        return sum(node.free)
    return sum(free for free in node.free if free < ask.amount)


def lasting(node: Node, ask: PodAsk) -> int:
    """How much of what is usable CPU and memory last for."""
    usable = sum(node.free) - fragments(node, ask)
    if ask.cpu:
        usable = min(usable, node.cpu * ask.total // ask.cpu)
    if ask.memory:
        usable = min(usable, node.memory * ask.total // ask.memory)
    return usable


def used(node: Node, ask: PodAsk, formula: Formula) -> int:
    return formula.usable * (sum(node.free) - fragments(node, ask)) + formula.lasting * lasting(node, ask)


def price(typical: Typical, whole: list[Node], ask: PodAsk) -> Fraction:
    """What a unit that *ask* can use counts by our formula: how often it is met, for its share of the fleet."""
    supply = sum(used(node, ask, OURS) for node in whole if ask.models >> node.model & 1)
    capacity = (OURS.usable + OURS.lasting) * sum(sum(node.free) for node in whole)
    often = Fraction(dict(typical.asks)[ask], sum(weight for _, weight in typical.served))
    return often * capacity / supply if supply else Fraction()


def asks() -> st.SearchStrategy[PodAsk]:
    models = st.one_of(st.just(ANY), st.integers(1, (1 << MODELS) - 1))
    beside = (st.integers(0, 6), st.integers(0, 6))
    shares = st.tuples(*beside, st.integers(1, WHOLE), st.integers(1, 3), models).map(PodAsk._make)
    return st.one_of(shares, st.tuples(*beside, st.just(0), st.just(0), st.just(ANY)).map(PodAsk._make))


def typicals() -> st.SearchStrategy[Typical]:
    return st.dictionaries(asks(), st.integers(1, 9), min_size=1, max_size=5).map(Typical.of)


def nodes(most: int = 5) -> st.SearchStrategy[list[Node]]:
    free = st.lists(st.integers(0, WHOLE), max_size=4).map(tuple)
    one = st.builds(Node, st.integers(0, 12), st.integers(0, 12), free, st.integers(0, MODELS - 1))
    return st.lists(one, min_size=1, max_size=most)
