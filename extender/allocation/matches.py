"""Which published devices match each ask of a question, before anything is taken: columns of yes and no."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints
from extender.allocation.capacity import gives
from extender.allocation.cel import Verdict
from extender.allocation.columns import Column
from extender.allocation.features import Features
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.layout import BITS
from extender.allocation.projection import project
from extender.allocation.question import Ask, At, Question
from extender.allocation.work import Toll, Work
from extender.model.device import Traits
from extender.model.frozen import dataclass
from extender.model.taint import blocking, evicts

# Digits of base 65 that a positive int64 surely has: a node that is counted has at most 64 devices of one kind.
DIGITS = 10
# Kinds of devices whose capacities are looked at in one piece of work: each of thousands of disks may have its own.
MEASURED = 128


@dataclass(frozen=True, slots=True)
class Match:
    """For one ask, bool[rows] each. matching: what is asked for; usable: and can be had; errs: nobody can tell.

    last: what of it is given last, for it must be made ready first, or the pod is evicted for it in time; None where
    nothing is. *is_special*: some of what is usable is.
    """

    matching: Flags
    usable: Flags
    errs: Flags
    last: Flags | None = None
    is_special: bool = False


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Matches:
    """By ask. special: bool[rows], devices of which more must be known than whether they are free.

    weights: int64[rows], different where what may keep a device from being given differs; their sums tell mixtures
    apart.
    """

    of: Mapping[At, Match]
    special: Flags
    weights: NDArray[np.int64]

    @property
    def each(self) -> Collection[Match]:
        """Return each match once, in the order of the asks: those that the same devices suit have one."""
        return {id(match): match for match in self.of.values()}.values()

    @property
    def has_last(self) -> bool:
        """Whether some of what can be had is given last."""
        return any(match.last is not None for match in self.of.values())


def matches_of(question: Question, inventory: Inventory, added: Column[Taints]) -> Work[Matches]:
    """Ask every device for every ask, asks alike together; yield after each."""
    features = question.features
    shareable = _by_traits(inventory, lambda traits: traits.allow_multiple_allocations)
    special = _by_traits(inventory, lambda traits: bool(traits.consumes_counters))
    if features.consumable_capacity:
        special |= shareable
    matches: dict[At, Match] = {}
    for at, ask in question.asks.items():
        first = question.alike[at]
        if first == at:
            matches[at] = yield from _match(ask, question.features, inventory, added, special)
            yield
        else:
            matches[at] = matches[first]
    return Matches(matches, special, _weights(inventory, added))


def _weights(inventory: Inventory, added: Column[Taints]) -> NDArray[np.int64]:
    columns: list[Column[Any]] = [inventory.traits, added, *_capacities(inventory)]
    return spread(project(columns, inventory.rows).codes)


def spread(kinds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Give each kind a weight, so that the sums of the weights tell mixtures of kinds apart.

    While there are few kinds the weights are the places of a number system in which a node's devices are digits, which
    is exact. Beyond that they are hashes of 64 bits: two mixtures of up to 64 devices have one sum with a probability
    of about 2**-58, for the sums are equal modulo 2**64 only if one weight, but for the six bits that its multiplicity
    may shift out, is what the others make it. Should it happen, a node is told the reason of another: no verdict
    depends on it.
    """
    if int(kinds.max(initial=-1)) < DIGITS:
        places: NDArray[np.int64] = np.int64(BITS + 1) ** np.arange(DIGITS)
        return places[kinds]
    # SplitMix64, but for the constant in its first line: without it the weight of a double is often the double weight.
    mixed = kinds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def _capacities(inventory: Inventory) -> list[Column[Any]]:
    return [inventory.columns[path] for path in sorted(inventory.columns) if path[0] == "capacity"]


def _match(ask: Ask, features: Features, inventory: Inventory, added: Column[Taints], special: Flags) -> Work[Match]:
    matching, errs = _tested(ask, inventory)
    usable = matching & ~_by_traits(inventory, lambda traits: bool(traits.unknown_fields))
    if features.consumable_capacity:
        enough, unusable = yield from _with_capacity(ask, inventory, fractional=features.fractional_capacity_range)
        usable, errs = usable & enough, errs | (matching & unusable)
    if not features.binding:
        bindable = ~_by_traits(inventory, lambda traits: bool(traits.binding_conditions))
        usable, errs = usable & bindable, errs & bindable
    last = _by_traits(inventory, lambda traits: bool(traits.binding_conditions))
    if features.device_taints:
        tainted, evicting = _tainted(ask, inventory, added, honours_rules=features.device_taint_rules)
        usable, last = usable & ~tainted, last | evicting
    last &= usable
    return Match(matching, usable, errs, last if last.any() else None, is_special=bool((usable & special).any()))


def _tested(ask: Ask, inventory: Inventory) -> tuple[Flags, Flags]:
    """Apply the tests in their order: what fails one is not asked the next."""
    passing, errs = np.ones(inventory.rows, np.bool_), np.zeros(inventory.rows, np.bool_)
    for test in ask.tests:
        if test.selector is None:
            return np.zeros(inventory.rows, np.bool_), errs | passing
        verdicts = test.selector.sweep(inventory).verdicts
        errs |= passing & (verdicts == Verdict.ERROR)
        passing &= verdicts == Verdict.MATCH
    return passing, errs


def _by_traits(inventory: Inventory, tells: Callable[[Traits], bool]) -> Flags:
    column = inventory.traits
    return column.table(tells).astype(np.bool_)[column.codes]


def _tainted(ask: Ask, inventory: Inventory, added: Column[Taints], *, honours_rules: bool) -> tuple[Flags, Flags]:
    """Tell which devices are not given for their taints, and of which others pods are evicted."""
    columns: list[Column[Any]] = [inventory.traits, added] if honours_rules else [inventory.traits]
    projection = project(columns, inventory.rows)
    kinds = [
        (*_taints(inventory, row), *((added.value(row) or ()) if honours_rules else ()))
        for row in projection.first.tolist()
    ]
    # Each of thousands of devices may have a taint of its own.
    found = [
        (is_tainted := bool(blocking(kind, ask.tolerations)), not is_tainted and evicts(kind, ask.tolerations))
        for kind in kinds
    ]
    told = np.array(found, np.bool_).reshape(-1, 2)[projection.codes]
    return told[:, 0], told[:, 1]


def _taints(inventory: Inventory, row: int) -> Taints:
    traits = inventory.traits.value(row)
    return traits.taints if traits else ()


def _with_capacity(ask: Ask, inventory: Inventory, *, fractional: bool) -> Work[tuple[Flags, Flags]]:
    """Tell which devices have what is asked of their capacities, and of which that cannot be told."""
    projection = project(_capacities(inventory), inventory.rows)
    asked, toll, told = dict(ask.capacity), Toll(MEASURED), list[bool | None]()
    for row in projection.first.tolist():
        told.append(gives(asked, inventory.device(row).capacity, fractional=fractional))
        yield from toll.paid(1)
    enough = np.array([has is True for has in told], np.bool_)
    unusable = np.array([has is None for has in told], np.bool_)
    return enough[projection.codes], unusable[projection.codes]
