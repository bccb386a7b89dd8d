"""Some nodes, what was asked of them, and why they do not fit: for want of devices, or of what strict policies have."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from extender.allocation.fit import Fitter
from extender.allocation.grid import Flags
from extender.allocation.question import RESULTS, At, Question
from extender.allocation.snapshot import Snapshot
from extender.allocation.verdict import Fit
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.scheduling.tally import Kind, Tally, Unwanted, Why, tallied, tally_of
from extender.scheduling.taste import Taste
from extender.scheduling.tenants import NO_NEEDS
from extender.state.table import Numbers
from extender.topology.policy import Policy
from extender.topology.ratings import NONE, Values, Whole
from extender.topology.shared import Beside


class Lack(NamedTuple):
    """What a strict policy has no set for, and where: bool[nodes]."""

    why: Unwanted
    nodes: Flags


@dataclass(frozen=True, slots=True)
class Part:
    """Some nodes, and what was asked of them: no fit where they need nothing of us.

    *question* is as this pod asks it: a fit is shared by all who ask the same, under other names. *values*: how good
    the devices are that it would get, about, to *taste* or by their alternatives; NONE where its policy does not have
    any. *needed*: beside devices.
    """

    nodes: Flags
    fit: Fit | None
    question: Question | None = None
    fitter: Fitter | None = None
    policies: tuple[Policy, ...] = ()
    values: Values | None = None
    needed: Beside = NO_NEEDS
    taste: Taste | None = None

    @property
    def fits(self) -> Flags:
        """bool[nodes]: where it can be had."""
        if self.fit is None:
            return self.nodes
        mask: Flags = self.nodes & self.fit.mask
        return mask if self.values is None else mask & (self.values != NONE)

    def reason(self, node: int) -> Why:
        """Say why *node* does not fit; None where it does."""
        found = self.fit.reason(node, self.question) if self.fit else None
        if found is None and self.values is not None and self.values[node] == NONE:
            return next((lack.why for lack in self._lacks() if lack.nodes[node]), self.unwanted())
        return found

    def tallies(self, rejected: Flags, names: Sequence[NodeName]) -> Iterator[Tally]:
        """Count those of the nodes that are *rejected*, bool[nodes], by reason."""
        if self.fit is None:
            return
        nodes = np.flatnonzero(self.nodes & rejected)
        if self.values is not None and any(policy.is_strict for policy in self.policies):
            is_had = self.fit.mask[nodes]
            yield from self._unwanted(nodes[is_had], names)
            nodes = nodes[~is_had]
        yield from tallied(self.fit, nodes, self.reason, names)

    def unwanted(self, *, is_never: bool = False) -> Unwanted:
        """Say that no sets for all requests together are as strict policies want them; *is_never*: nor will be."""
        claims = self.question.claims if self.question else ()
        named = zip((part.claim.key.name for part in claims), self.policies, strict=False)
        strict = (name for name, policy in named if policy.is_strict)
        return Unwanted.by(self.policies)._replace(claims=" and ".join(strict), is_never=is_never)

    def is_whole(self) -> Flags:
        """Tell on which nodes all that matches could be given at once: bool[nodes]."""
        if self.fit is None or self.fitter is None:
            return self.nodes
        snapshot, kept = self.fit.snapshot, np.zeros(self.fit.snapshot.inventory.rows, np.bool_)
        for match in self.fitter.matches_in(snapshot).each:
            kept |= match.matching & ~(match.usable & (snapshot.usage.codes == 0))
        places = snapshot.layout.node_of_row[kept]
        # What several nodes see may be in use for any of them.
        whole = snapshot.reach.view == 0 if (places < 0).any() else np.ones(len(self.nodes), np.bool_)
        whole[places[places >= 0]] = False
        return whole

    def _unwanted(self, nodes: Numbers, names: Sequence[NodeName]) -> Iterator[Tally]:
        """Count *nodes* that have devices, but not as they are wanted."""
        for lack in self._lacks() if len(nodes) else ():
            mine, nodes = nodes[lack.nodes[nodes]], nodes[~lack.nodes[nodes]]
            if len(mine):
                yield tally_of(Kind(int(mine[0]), len(mine)), lack.why, names)
        if len(nodes):
            yield tally_of(Kind(int(nodes[0]), len(nodes)), self.unwanted(), names)

    def _lacks(self) -> Sequence[Lack]:
        """Name requests that have no set by themselves, and where: first those that never have one there."""
        never, later = list[Lack](), list[Lack]()
        for claim, part in enumerate(self.question.claims if self.question else ()):
            for slot, wanted in enumerate(part.slots if self.policies[claim].is_strict else ()):
                found = self._lacking([At(claim, slot, index) for index in range(len(wanted.asks))])
                never, later = [*never, *found[:1]], [*later, *found[1:]]
        return (*never, *later)

    def _lacking(self, ats: Sequence[At]) -> Sequence[Lack]:
        """Say where none of *ats* has a set: none of them ever, which is told of the first, or the others now."""
        if self.fit is None or self.question is None or self.fitter is None or self.taste is None:
            return ()
        policy, snapshot, later = self.policies[ats[0].claim], self.fit.snapshot, list[Lack]()
        values = self.taste.asks(self.fitter, ats, policy, snapshot, self.needed)
        left: Flags = np.logical_and.reduce([each == NONE for each in values])
        for at in ats:
            may_have = _may_have(self.taste, self.fitter, at, policy, snapshot)
            later.append(Lack(self._lack(self.question, at), left & may_have))
            left &= ~may_have
        return (Lack(self._lack(self.question, ats[0])._replace(is_never=True), left), *later)

    def _lack(self, question: Question, at: At) -> Unwanted:
        """Say that a request has no set as its policy wants it."""
        part, ask = question.claims[at.claim], question.asks[at]
        told = Unwanted.by((self.policies[at.claim],))
        return told._replace(claims=part.claim.key.name, request=ask.name, size=ask.count)


def _may_have(taste: Taste, fitter: Fitter, at: At, policy: Policy, snapshot: Snapshot) -> Flags:
    """Tell on which nodes an ask may have a set once all that matches it is free: bool[nodes]."""
    if fitter.question.asks[at].count > RESULTS:
        return np.zeros(len(snapshot.layout.nodes), np.bool_)
    matching = fitter.matches_in(snapshot).of[at].matching
    return np.not_equal(taste.ratings(fitter, at, policy, Whole).of(snapshot, matching), NONE)
