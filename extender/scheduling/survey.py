"""Where in the cluster a pod's needs can be met, and why not elsewhere. Nodes are numbered as in the layout."""

from collections.abc import Iterator, Sequence

import numpy as np

from extender.allocation.extended import Groups
from extender.allocation.fit import AT_ONCE
from extender.allocation.grid import Flags
from extender.allocation.question import Refusal
from extender.allocation.result import is_bound_to_nodes, is_usable, ties_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Failure
from extender.allocation.verdict import Verdict
from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.scheduling.needs import Needs, Unplaceable
from extender.scheduling.part import Part
from extender.scheduling.tally import Tally, aside, fatal_node, limited
from extender.scheduling.taste import Forbidden, Taste
from extender.scheduling.ties import ELSEWHERE, bound_to, named, ties
from extender.scheduling.vocabulary import Word
from extender.state.questions import Questions
from extender.state.table import Numbers
from extender.topology.ratings import Values


@dataclass(frozen=True, slots=True)
class Survey:
    """Every node judged. fits: where the pod can be placed; usable: where the claims that it has can be used.

    *usable_of* tells this of each claim alone.
    """

    snapshot: Snapshot
    fits: Flags
    usable: Flags
    parts: tuple[Part, ...]
    needs: Needs
    usable_of: tuple[Flags, ...]

    @property
    def is_hopeless(self) -> bool:
        """Whether the pod is known to fit nowhere."""
        return not self.fits.any() and not self.is_open()

    def is_open(self, among: Flags | None = None) -> bool:
        """Tell whether some search was given up, on one of the nodes *among*: the pod may fit where nobody knows."""
        undecided = ((part, part.fit.verdicts == Verdict.UNDECIDED.value) for part in self.parts if part.fit)
        asked = self.usable if among is None else self.usable & among
        return any(found.any() and (found & part.nodes & asked).any() for part, found in undecided)

    @property
    def given(self) -> Flags:
        """Where the pod would be given devices: not where a device plugin serves all that it asks for."""
        found = np.zeros(len(self.fits), np.bool_)
        for part in self.parts:
            if part.fit:
                found |= part.nodes & self.fits
        return found

    @property
    def values(self) -> Values | None:
        """int64[nodes]: how good the devices are; None where nothing is preferred."""
        if all(part.values is None for part in self.parts):
            return None
        values = np.zeros(len(self.fits), np.int64)
        for part in self.parts:
            if part.values is not None:
                values[part.nodes] = part.values[part.nodes]
        return values

    def failure(self) -> str | None:
        """Return what was met on a node that must fail the pod as a whole, if anything was."""
        for part in self.parts:
            node = fatal_node(part.fit, part.nodes) if part.fit else None
            found = None if node is None else part.reason(node)
            # Nodes that err alike are remembered as one: what is met on this one has the last word.
            if isinstance(found, Failure) and not found.is_local:
                return found.message
        return None

    def tallies(self, among: Flags | None) -> list[Tally]:
        """Count the rejected nodes, those *among* all, by reason, the most frequent first."""
        names, rejected = self.snapshot.layout.nodes, ~self.fits if among is None else among & ~self.fits
        found = list(self.ties(np.flatnonzero(rejected & ~self.usable)))
        rejected &= self.usable
        for part in self.parts:
            found.extend(part.tallies(rejected, names))
        return sorted(found, key=lambda tally: -tally.nodes)

    def ties(self, nodes: Numbers) -> Iterator[Tally]:
        """Count *nodes*, where the claims that the pod has cannot be used, by which of them is in the way."""
        return ties(self.needs, self.usable_of, nodes, self.snapshot)

    def others(self, own: Flags | None) -> list[Tally]:
        """Count those that are not a pod's *own*, bool[nodes]: it cannot be on them, whatever else they lack."""
        return [] if own is None else aside(limited(self.tallies(~own)))

    def rejected(self, own: Flags | None = None) -> tuple[Tally, ...]:
        """Count all that are rejected, in few words: a pod's *own* first."""
        return (*limited(self.tallies(own)), *self.others(own))

    def part_at(self, node: int) -> Part:
        """Return the part that *node* is in."""
        return next(part for part in self.parts if part.nodes[node])


# Pieces for one question while others are late: whoever writes one slow claim may write a thousand.
HURRIED = 300


class Unfinished(Exception):  # noqa: N818 - the end of a turn, not an error
    """Too much is to be searched for at once; what was found is remembered for the next turn.

    *is_search*: it is the devices of a node that are searched for, whatever other questions are late.
    """

    def __init__(self, *, is_search: bool = False) -> None:
        super().__init__()
        self.is_search = is_search


def survey(needs: Needs, snapshot: Snapshot, questions: Questions, taste: Taste | None = None) -> Survey | Unplaceable:
    """Judge every node of *snapshot*. Raise Unfinished."""
    count = len(snapshot.layout.nodes)
    usable, usable_of = np.ones(count, np.bool_), _usable_of(needs.allocated, snapshot)
    for nodes in usable_of:
        usable &= nodes
    groups = _groups(needs, snapshot, questions)
    if needs.is_choosy:
        # What its status names is looked for by the kubelet, unless another claim takes its place.
        found = [nodes for nodes, served in groups if needs.suits(served)]
        usable &= np.logical_or.reduce(found or [np.zeros(count, np.bool_)])
    parts: list[Part] = []
    try:
        parts.extend(_part(needs, group, snapshot, questions, taste) for group in groups)
    except Refusal as refusal:
        return Unplaceable(Word.QUESTION, str(refusal))
    except Forbidden as forbidden:
        return Unplaceable(Word.POLICY_REFUSED, str(forbidden))
    fits = np.zeros(count, np.bool_)
    for part in parts:
        fits |= usable & part.fits
    return Survey(snapshot, fits, usable, tuple(parts), needs, usable_of)


def _part(
    needs: Needs, group: tuple[Flags, tuple[str, ...]], snapshot: Snapshot, questions: Questions, taste: Taste | None
) -> Part:
    nodes, claims = group[0], claims_for(needs, group[1])
    if not claims:
        return Part(nodes, None)
    question, fitter = questions.asked(claims, snapshot.classes)
    fit = fitter.fit_soon(snapshot, HURRIED if questions.late() else AT_ONCE)
    if fit is None:
        raise Unfinished
    if taste is None:
        # As kube-scheduler ranks nodes: by which alternatives they have.
        later = fit.later()
        return Part(nodes, fit, question, fitter, values=None if later is None else -later)
    policies = taste.policies(claims)
    needed = taste.meet(needs.pod, question, fitter, snapshot)
    values = taste.values(fitter, policies, fit, needed)
    return Part(nodes, fit, question, fitter, policies, values, needed, taste)


def claims_for(needs: Needs, resources: tuple[str, ...]) -> tuple[ResourceClaim, ...]:
    """Return the claims to allocate on a node that serves *resources* by devices."""
    is_unmade = resources and needs.made is None
    return (*needs.pending, *([needs.unmade(needs.hidden(resources))] if is_unmade else []))


def _groups(needs: Needs, snapshot: Snapshot, questions: Questions) -> Groups:
    if not needs.extended:
        return ((np.ones(len(snapshot.layout.nodes), np.bool_), ()),)
    return questions.by_service(snapshot, needs.extended)


def _usable_of(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> tuple[Flags, ...]:
    """Tell of each allocated claim where it can be used: thousands may be tied to the same nodes."""
    ties = [claim.allocation and ties_of(claim.allocation) for claim in claims]
    found = {tie: _usable(claim, snapshot) for tie, claim in dict(zip(ties, claims, strict=True)).items()}
    return tuple(map(found.__getitem__, ties))


def _usable(claim: ResourceClaim, snapshot: Snapshot) -> Flags:
    """Tell on which nodes the devices of an allocated claim can be used."""
    names, allocation = snapshot.layout.nodes, claim.allocation
    if allocation is None or not is_bound_to_nodes(allocation):
        return np.ones(len(names), np.bool_)
    name = named(allocation.node_selector)
    place = None if name is None else snapshot.layout.number(name)
    asked = range(len(names)) if name is None else () if place is None else (place,)
    found = np.zeros(len(names), np.bool_)
    for number in asked:
        found[number] = is_usable(allocation, snapshot.nodes[names[number]])
    return found


def tie_of(needs: Needs, snapshot: Snapshot, asked: Numbers) -> str:
    """Name the claim that can be used on none of the nodes *asked*, and where it can be: the pod fits somewhere."""
    for claim, usable in zip(needs.allocated, _usable_of(needs.allocated, snapshot), strict=True):
        if not usable[asked].any():
            return bound_to(claim, usable, snapshot)
    return ELSEWHERE
