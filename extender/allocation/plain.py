"""Nodes that need no search: where devices stand for themselves, counting decides exactly, for all nodes at once.

By Hall's theorem: requests can be satisfied together if no subset of them wants more devices than there are for it.
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import add, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.cel import Path
from extender.allocation.columns import Codes, Column
from extender.allocation.counting import MOST_COUNTS, is_allowed
from extender.allocation.disagreement import bound_together
from extender.allocation.grid import Flags, Grid, Words, packed
from extender.allocation.inventory import Inventory
from extender.allocation.layout import BITS
from extender.allocation.matches import Matches
from extender.allocation.question import At, ClaimQuestion, Question
from extender.allocation.snapshot import Snapshot
from extender.allocation.work import Work
from extender.model.device import Attribute
from extender.model.frozen import dataclass
from extender.model.names import split_qualified

# Beyond these, and MOST_COUNTS, the number of sets and of choices makes a search the better way.
MOST_SLOTS = 6
MOST_RULES = 2
SCALARS = ("int", "bool", "string", "version")
Yes = NDArray[np.bool_]
Places = NDArray[np.int32]
Counts = NDArray[np.integer[Any]]
Digits = NDArray[np.uint8]


class Want(NamedTuple):
    """So many devices out of a mask for each node: uint64[n]."""

    mask: Words
    size: int


class RuleAt(NamedTuple):
    """A rule by its claim and its place among the claim's rules."""

    claim: int
    rule: int


@dataclass(frozen=True, slots=True)
class Plain:
    """A question of which counting can decide, and the ways to answer it: one ask for each slot."""

    question: Question
    ways: tuple[tuple[At, ...], ...]
    rules: tuple[RuleAt, ...]
    choices: int

    def answer(self, snapshot: Snapshot, grid: Grid, matches: Matches) -> Work[Places | None]:
        """Tell for each node of *grid*, all of which must be plain, which of the ways can be had first: int32[n].

        How many ways there are where none can. None where that takes too long, as it may where rules compare many
        values.
        """
        inventory, free = snapshot.inventory, grid.of_rows(snapshot.usage.codes) == 0
        masks = {at: packed(grid.of_rows(match.usable) & free) for at, match in matches.of.items()}
        groups: list[list[Words]] = []
        for rule in self.rules:
            codes = grid.of_rows(self.column(inventory, rule).codes)
            if self._counts(groups) * _most_groups(codes) > MOST_COUNTS:
                return None
            # Without any value there is one group, of no devices: who is bound by the rule gets none.
            groups.append([])
            for group in _groups(codes):
                groups[-1].append(group)
                yield
            groups[-1] = groups[-1] or [np.zeros(len(grid.nodes), np.uint64)]
        found, missed = np.zeros(len(grid.nodes), np.bool_), np.zeros(len(grid.nodes), np.int32)
        for way in self.ways:
            for choice in product(*groups):
                wants = [Want(self._within(at, masks[at], choice), self._size(at)) for at in way]
                found |= can_share(wants, len(grid.nodes))
                yield
            missed += ~found
        return missed

    def _counts(self, groups: Sequence[Sequence[Words]]) -> int:
        """Count the sets of slots that have to be looked at: as who searches one node counts them, or more."""
        return (prod(map(len, groups)) * self.choices) << len(self.ways[0])

    def shortfalls(self, snapshot: Snapshot, grid: Grid, matches: Matches) -> NDArray[np.int64]:
        """Describe what each node of *grid* has, int64[n, parts]: alike where the reason for a rejection is alike."""
        inventory, usage = snapshot.inventory, snapshot.usage
        # A device of which somebody has a share is taken by nobody: something else keeps it from being given.
        taken = usage.table(lambda held: int(held.dedicated > 0)).astype(np.bool_)[grid.of_rows(usage.codes)]
        weights = grid.of_rows(matches.weights)
        parts: list[Any] = [(grid.rows >= 0).any(axis=1)]
        for match in matches.each:
            matching, usable = grid.of_rows(match.matching), grid.of_rows(match.usable)
            # What is kept from being given is so in use, too, and told before that.
            kept = np.where(matching & ~usable, weights, 0)
            parts += [(usable & ~taken).sum(axis=1), (usable & taken).sum(axis=1), kept.sum(axis=1)]
        for rule in self.rules:
            parts.append(self._lacking(rule, grid.of_rows(self.column(inventory, rule).codes), grid, matches, ~taken))
        return np.stack(parts, axis=1).astype(np.int64)

    def _lacking(self, rule: RuleAt, codes: Codes, grid: Grid, matches: Matches, free: Flags) -> Counts:
        """Describe what is missing under *rule*, as far as that is told."""
        slots, nodes = bound_together(self.question, *rule), len(grid.nodes)
        flags = [reduce(or_, (grid.of_rows(matches.of[at].usable) for at in places)) & free for places, *_ in slots]
        sizes = [sum(min(map(self._size, places)) for places in alike) for alike in slots]
        groups = _groups(np.where(reduce(or_, flags, np.False_), codes, 0))
        if len(slots) > 1:
            wants = [Want(packed(mask), size) for mask, size in zip(flags, sizes, strict=True)]
            return _least_lacking(wants, groups)
        return reduce(np.minimum, (_lack(sizes[0], group) for group in groups), np.full(nodes, sum(sizes)))

    def _size(self, at: At) -> int:
        return self.question.asks[at].count

    def _within(self, at: At, mask: Words, choice: Sequence[Words]) -> Words:
        """Narrow what there is for an ask to one value of each rule that covers it."""
        for rule, group in zip(self.rules, choice, strict=True):
            if rule.claim == at.claim and rule.rule in self.question.covered[at]:
                mask = mask & group
        return mask

    def column(self, inventory: Inventory, rule: RuleAt) -> Column[Hashable]:
        """Return the column that has what a rule compares."""
        return inventory.column(path_of(self.question.claims[rule.claim].rules[rule.rule].attribute))


def plain_of(question: Question) -> Plain | None:
    """Return how counting answers *question*, None where a search has to."""
    rules = tuple(RuleAt(claim, rule) for claim, part in enumerate(question.claims) for rule in range(len(part.rules)))
    slots = question.slots.values()
    simple = all(not (ask.takes_all or ask.is_admin or ask.derivations) for ask in question.asks.values())
    matching = all(rule.is_match for part in question.claims for rule in part.rules)
    if not (simple and matching) or len(slots) > MOST_SLOTS or len(rules) > MOST_RULES:
        return None
    choices = prod(map(len, slots))
    if choices << len(slots) > MOST_COUNTS or not all(map(_is_qualified, question.claims)):
        return None
    ways = tuple(way for way in product(*slots) if is_allowed(question, way))
    return Plain(question, ways, rules, choices) if ways else None


def _is_qualified(part: ClaimQuestion) -> bool:
    """Tell whether all rules name attributes with their domains: only these have columns of their own."""
    return all("/" in rule.attribute for rule in part.rules)


def can_count(plain: Plain, inventory: Inventory) -> bool:
    """Tell whether the attributes that the rules compare have one value each; lists may overlap in part."""
    return all(
        isinstance(value, Attribute) and value.kind in SCALARS
        for rule in plain.rules
        for value in plain.column(inventory, rule).dictionary.values[1:]
    )


def path_of(attribute: str) -> Path:
    """Return the path of the column that has a rule's attribute; its name has a domain, or nothing has it."""
    domain, name = split_qualified(attribute, "")  # type: ignore[arg-type]  # no driver: a bare name belongs to nobody
    return ("attributes", domain, name)


def _most_groups(codes: Codes) -> int:
    """Return how many groups there are at most."""
    width: int = codes.shape[1]
    return max(1, min(width, int(codes.max(initial=0))))


def _groups(codes: Codes) -> Iterator[Words]:
    """Yield the devices of each node that share a value, one after the other: uint64[n]. codes: int32[n, width]."""
    occurs = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
    occurs[codes] = True
    occurs[0] = False
    values = np.flatnonzero(occurs)
    if len(values) <= codes.shape[1]:
        for value in values.tolist():
            yield packed(codes == value)
        return
    for place in range(codes.shape[1]):
        # Each device's own value; those that an earlier one has too come again, which does no harm.
        yield packed((codes == codes[:, place : place + 1]) & (codes > 0))


def can_share(wants: Sequence[Want], nodes: int) -> Yes:
    """Tell for each node whether all *wants* can be satisfied together: bool[n]."""
    yes = np.ones(nodes, np.bool_)
    unions: list[Want] = []
    for want in wants:
        if want.size:
            further = [Want(union.mask | want.mask, union.size + want.size) for union in unions]
            unions += (want, *further)
    for union in unions:
        yes &= np.bitwise_count(union.mask) >= union.size
    return yes


def _least_lacking(wants: Sequence[Want], groups: Iterator[Words]) -> Counts:
    """Tell what *wants* lack in that of *groups* where the least is missing."""
    total, nothing = sum(want.size for want in wants), np.zeros_like(wants[0].mask)
    least = _in_digits(_lack(total, nothing), [_lack(want.size, nothing) for want in wants])
    for group in groups:
        lacks = [_lack(want.size, group & want.mask) for want in wants]
        least = np.minimum(least, _in_digits(np.maximum(reduce(add, lacks), _lack(total, group)), lacks))
    return least


def _lack(size: int, mask: Words) -> Digits:
    """Tell how many devices *mask* lacks for *size*, which is that of a claim at most: uint8 holds that."""
    count = np.bitwise_count(mask)
    return np.maximum(count, size) - count


def _in_digits(first: Digits, others: Sequence[Digits]) -> Counts:
    """Make one number by which the counts compare one after the other: a question that is counted has few slots."""
    return reduce(lambda number, count: number * (BITS + 1) + count, others, first.astype(np.int64))


def plain_nodes(snapshot: Snapshot, grid: Grid, matches: Matches) -> Yes:
    """Tell which nodes of *grid* need no search: bool[n]."""
    standing, usage = snapshot.inventory.standing, snapshot.usage
    held = grid.of_rows(usage.codes)
    # A device with shares that is not shareable, or no longer.
    odd = usage.table(lambda held: int(not held.dedicated)).astype(np.bool_)[held]
    looked_at, special = odd | (held == 0), grid.of_rows(matches.special) | odd
    searched = np.zeros(grid.rows.shape, np.bool_)
    for match in matches.each:
        searched |= (grid.of_rows(match.usable) & special) | (grid.of_rows(match.errs) & looked_at)
    narrow = np.less_equal((grid.rows >= 0).sum(axis=1), BITS)
    ordinary = standing.table(lambda item: int(item.is_plain), absent=1).astype(np.bool_)[
        grid.of_slices(standing.codes)
    ]
    alone = np.equal(snapshot.reach.view[grid.nodes], 0)
    yes: Yes = narrow & alone & ordinary.all(axis=1) & ~searched.any(axis=1)
    return yes
