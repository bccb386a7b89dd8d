"""The nodes that a fit rejects, counted by what is wrong with them: few words for thousands of nodes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.memory import NO_REASON
from extender.allocation.reason import Fault, Reason
from extender.allocation.solve import Failure, Undecided
from extender.allocation.verdict import Fit, Verdict
from extender.model.names import NodeName
from extender.scheduling.vocabulary import NEARNESS, Word
from extender.state.table import Numbers
from extender.topology.policy import Policy

# Errors that are told by themselves, for each of which a node is searched anew: the most frequent ones.
MOST_ERRORS: Final = 4
# Reasons that a decision tells by themselves, the most frequent ones: ten thousand decisions are remembered.
MOST: Final = 20
# Said first of nodes that the pod cannot be on, whatever else they lack.
ASIDE: Final = "node selector, affinity or taints keep the pod away, and "
RANKS: Final = {word: rank for rank, word in enumerate(NEARNESS)}


class Tally(NamedTuple):
    """How many nodes were rejected for one reason, with the reason in full and one of the nodes.

    *missing* is how many devices more would have sufficed, where that is what was short; *is_final*: there is nothing
    to wait for, although enough devices match.
    """

    word: Word
    nodes: int
    message: str
    example: NodeName
    missing: int = 0
    is_final: bool = False

    @property
    def nearness(self) -> tuple[int, int]:
        """How far this is from a success: less is nearer."""
        word = Word.NO_MATCH if self.is_final else self.word
        return RANKS.get(word, len(RANKS)), self.missing


class Unwanted(NamedTuple):
    """There are devices, but not as the policies want them that are strict.

    *claims*, *request* and *size*: of whom, and how many are asked for, where it is one request that has none by
    itself; *is_never*: whatever comes free there.
    """

    policies: str
    forbidden: str = ""
    claims: str = ""
    request: str = ""
    size: int = 0
    is_never: bool = False

    @staticmethod
    def by(policies: Iterable[Policy]) -> "Unwanted":
        strict = [policy for policy in policies if policy.is_strict]
        traits = sorted({trait for policy in strict for trait in policy.forbid})
        forbidden = ", ".join(f"{trait.attribute} {' or '.join(trait.values)}" for trait in traits)
        return Unwanted(" and ".join(sorted({policy.name for policy in strict})), forbidden)

    @property
    def message(self) -> str:
        # What an administrator forbids is part of every policy, whatever that is called.
        without = f", without what is forbidden: {self.forbidden}" if self.forbidden else ""
        wanting = "as the policies {} want it" if " and " in self.policies else "as the policy {} wants it"
        return f"{self._whose}{self._what} {wanting.format(self.policies)}{without}"

    @property
    def _whose(self) -> str:
        if not self.claims:
            return ""
        whose = f"claims {self.claims}" if " and " in self.claims else f"claim {self.claims}"
        return f"{whose}, request {self.request}: " if self.request else f"{whose}: "

    @property
    def _what(self) -> str:
        devices = "devices there is ever" if self.is_never else "free devices is"
        if self.size == 1:
            return "no device there is ever" if self.is_never else "no free device is"
        return f"no set of {self.size} {devices}" if self.size else f"no set of {devices}"


Why = Reason | Failure | Undecided | Unwanted | None


class Kind(NamedTuple):
    """Nodes that are rejected alike: the first of them, and how many there are."""

    first: int
    nodes: int


def tallied(fit: Fit, rejected: Numbers, reason: Callable[[int], Why], names: Sequence[NodeName]) -> list[Tally]:
    """Count the nodes *rejected*, of which *reason* says why."""
    kinds = sorted(_kinds(fit, rejected), key=lambda kind: (-kind.nodes, kind.first))
    faults = [(kind, _fault(fit, kind.first)) for kind in kinds]
    distinct = [kind for kind, fault in faults if fault is not None and fault.text]
    told = {*distinct[:MOST_ERRORS], *(kind for kind, fault in faults if fault is None)}
    found = [tally_of(kind, reason(kind.first), names) for kind in kinds if kind in told]
    others = [kind for kind in kinds if kind not in told]
    if others:
        text = f"other errors, such as {text_of(reason(others[0].first))}"
        found.append(Tally(Word.NODE_ERROR, sum(kind.nodes for kind in others), text, names[others[0].first]))
    return found


def limited(tallies: Sequence[Tally], nearest: Tally | None = None) -> list[Tally]:
    """Leave the first of *tallies*, and *nearest*; count others together that have one word."""
    kept = [tally for place, tally in enumerate(tallies) if place < MOST or tally is nearest]
    others: dict[Word, list[Tally]] = {}
    for tally in tallies[MOST:]:
        if tally is not nearest:
            others.setdefault(tally.word, []).append(tally)
    return [*kept, *map(_summed, others.values())]


def _summed(tallies: Sequence[Tally]) -> Tally:
    first, *others = tallies
    if not others:
        return first
    nodes, missing = sum(tally.nodes for tally in tallies), min(tally.missing for tally in tallies)
    return first._replace(nodes=nodes, message=f"other reasons, such as {first.message}", missing=missing)


def aside(tallies: Iterable[Tally]) -> list[Tally]:
    """Tell *tallies* as those of nodes that the pod cannot be on."""
    return [tally._replace(message=f"{ASIDE}{tally.message}") for tally in tallies]


def fatal_node(fit: Fit, among: NDArray[np.bool_]) -> int | None:
    """Return the first node *among* all, bool[nodes], on which something was met that fails the pod as a whole."""
    failed = np.flatnonzero((fit.verdicts == Verdict.FAILS) & among)
    faults = ((kind.first, _fault(fit, kind.first)) for kind in _kinds(fit, failed))
    return min((node for node, fault in faults if fault is not None and not fault.is_local), default=None)


def text_of(why: Why) -> str:
    """Say why a node is rejected."""
    if isinstance(why, Reason | Failure | Unwanted):
        return why.message
    return "the search was given up before it was known whether the devices suffice"


def word_of(why: Why) -> Word:
    """Say the same in a word."""
    if isinstance(why, Unwanted):
        return Word.POLICY
    if isinstance(why, Undecided):
        return Word.GIVEN_UP
    return Word(why.shortage.value) if isinstance(why, Reason) else Word.NODE_ERROR


def _kinds(fit: Fit, nodes: Numbers) -> list[Kind]:
    """Tell *nodes* apart by their reasons: most often all lack the same. Those without one, by their verdicts."""
    if not len(nodes):
        return []
    codes = fit.reason_codes[nodes]
    if (codes == NO_REASON).any():
        codes = np.where(codes == NO_REASON, NO_REASON - 1 - fit.verdicts[nodes], codes)
    if (codes == codes[0]).all():
        return [Kind(int(nodes[0]), len(nodes))]
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return [Kind(*kind) for kind in zip(nodes[first].tolist(), counts.tolist(), strict=True)]


def _fault(fit: Fit, node: int) -> Fault | None:
    """Return what fails *node*, if anything does."""
    code: int = fit.reason_codes[node].item()
    known = None if code == NO_REASON else fit.reasons[code]
    return known if isinstance(known, Fault) else None


def tally_of(kind: Kind, why: Why, names: Sequence[NodeName]) -> Tally:
    """Count nodes that are rejected alike."""
    missing = why.missing if isinstance(why, Reason) else 0
    is_final = isinstance(why, Unwanted) and why.is_never
    return Tally(word_of(why), kind.nodes, text_of(why), names[kind.first], missing, is_final)
