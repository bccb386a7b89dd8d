"""Which nodes of a cluster can satisfy a question: by counting where that is exact, by a search per state elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints, added_taints
from extender.allocation.cel import Budget
from extender.allocation.choose import choose, choosing
from extender.allocation.columns import Column
from extender.allocation.difference import changed_nodes
from extender.allocation.grid import Flags, Grid, grid_of
from extender.allocation.offer import Offers, offers_of
from extender.allocation.plain import Plain, can_count, plain_nodes, plain_of
from extender.allocation.question import Question
from extender.allocation.reason import Reason, reason_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Manner, Nothing, Solution, Undecided
from extender.allocation.state import Found, States
from extender.allocation.work import Work, finished


class Verdict(IntEnum):
    """What a node says to a question. FAILS: something was met that must not be passed over."""

    NO = 0
    FITS = 1
    FAILS = 2
    UNDECIDED = 3
    UNKNOWN = 4


VERDICTS: dict[type[Answer], Verdict] = {
    Solution: Verdict.FITS,
    Nothing: Verdict.NO,
    Failure: Verdict.FAILS,
    Undecided: Verdict.UNDECIDED,
}
# Nodes that are counted in one piece of work.
BLOCK = 2048


# Of a node that is not rejected, or whose reason names devices of its own.
NO_REASON = -1


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for a snapshot, in the order of its layout.

    verdicts: int8[nodes] of Verdict; reason_codes: int32[nodes] into *reasons*, NO_REASON where a node has none there.
    """

    snapshot: Snapshot
    question: Question
    manner: Manner
    verdicts: NDArray[np.int8]
    reason_codes: NDArray[np.int32]
    reasons: Sequence[Reason]

    @property
    def mask(self) -> Flags:
        """bool[nodes]: where the question can be satisfied."""
        return np.equal(self.verdicts, Verdict.FITS)

    def reason(self, node: int) -> Reason | Failure | Undecided | None:
        """Say why *node* does not fit; None where it does."""
        code: int = self.reason_codes[node].item()
        if code != NO_REASON:
            return self.reasons[code]
        if self.verdicts[node] == Verdict.FITS:
            return None
        found = choose(self.snapshot, node, self.question, self.manner)
        return found if isinstance(found, Failure | Undecided) else None


@dataclass(slots=True)
class Draft:
    """A fit while it is made."""

    snapshot: Snapshot
    verdicts: NDArray[np.int8]
    reason_codes: NDArray[np.int32]


@dataclass(slots=True)
class Fitter:
    """A question, and what was found out about it so far. One writer; the fits that it gives stay as they are."""

    question: Question
    manner: Manner = BEST
    plain: Plain | None = field(init=False)
    offers: Offers | None = None
    # Whether a node fits does not depend on what is preferred.
    _any: Manner = field(init=False)
    _last: Fit | None = None
    _added: Column[Taints] | None = None
    _states: States = field(init=False)
    _reasons: list[Reason] = field(default_factory=list)
    _numbers: dict[Reason, int] = field(default_factory=dict)
    _shortfalls: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._any = replace(self.manner, preference=None)
        self.plain = plain_of(self.question)
        self._states = States(self.question)

    def fit(self, snapshot: Snapshot) -> Fit:
        """Answer for all nodes of *snapshot*."""
        return finished(self.pieces(snapshot))

    def pieces(self, snapshot: Snapshot) -> Work[Fit]:
        """Do the same piece by piece, so that a service can answer others between the pieces."""
        if self._last is not None and self._last.snapshot is snapshot:
            return self._last
        draft, open_nodes = self._carried(snapshot)
        offers, added = yield from self._offered(snapshot)
        for start in range(0, len(open_nodes), BLOCK):
            yield
            grid = grid_of(snapshot.layout, open_nodes[start : start + BLOCK])
            yield from self._counted(draft, grid, offers)
            yield from self._searched(draft, grid, offers, added)
        for array in (draft.verdicts, draft.reason_codes):
            array.setflags(write=False)
        self._last = Fit(snapshot, self.question, self._any, draft.verdicts, draft.reason_codes, self._reasons)
        return self._last

    def _carried(self, snapshot: Snapshot) -> tuple[Draft, NDArray[np.int64]]:
        """Take over what the last answer said of nodes that did not change since; return the others."""
        last = self._last
        changed = None if last is None else changed_nodes(last.snapshot, snapshot)
        if last is None or changed is None:
            count = len(snapshot.layout.nodes)
            unknown = np.full(count, Verdict.UNKNOWN, np.int8)
            return Draft(snapshot, unknown, np.full(count, NO_REASON, np.int32)), np.arange(count)
        draft = Draft(snapshot, last.verdicts.copy(), last.reason_codes.copy())
        draft.verdicts[changed], draft.reason_codes[changed] = Verdict.UNKNOWN, NO_REASON
        return draft, changed

    def _offered(self, snapshot: Snapshot) -> Work[tuple[Offers, Column[Taints]]]:
        last = self._last and self._last.snapshot
        holds = last and last.rules is snapshot.rules and last.classes is snapshot.classes
        if not (self.offers and self._added and last and holds and last.inventory is snapshot.inventory):
            self._added = added_taints(snapshot.inventory, snapshot.rules, snapshot.classes)
            for ask in self.question.asks.values():
                for test in ask.tests:
                    if test.selector:
                        yield from test.selector.sweeping(snapshot.inventory, Budget())
            self.offers = offers_of(self.question, snapshot.inventory, self._added)
            self._shortfalls.clear()
        return self.offers, self._added

    def _counted(self, draft: Draft, grid: Grid, offers: Offers) -> Work[None]:
        """Answer for the nodes of *grid* that need no search; yield after each new reason."""
        snapshot = draft.snapshot
        if self.plain is None or not can_count(self.plain, snapshot.inventory):
            return
        chosen = grid_of(snapshot.layout, grid.nodes[plain_nodes(snapshot, grid, offers)])
        fits = self.plain.answer(snapshot.inventory, chosen, offers, snapshot.usage.codes == 0)
        draft.verdicts[chosen.nodes] = fits
        rejected = grid_of(snapshot.layout, chosen.nodes[~fits])
        described = self.plain.shortfalls(snapshot, rejected, offers)
        for node, shortfall in zip(rejected.nodes.tolist(), described, strict=True):
            key = shortfall.tobytes()
            code = self._shortfalls.get(key)
            if code is None:
                found = yield from self._found(snapshot, node)
                code = self._shortfalls[key] = found.reason
                yield
            draft.reason_codes[node] = code

    def _searched(self, draft: Draft, grid: Grid, offers: Offers, added: Column[Taints]) -> Work[None]:
        """Search on the nodes that counting left open, once for each state; yield after each search."""
        snapshot = draft.snapshot
        left = grid_of(snapshot.layout, grid.nodes[draft.verdicts[grid.nodes] == Verdict.UNKNOWN])
        for node, state in zip(left.nodes.tolist(), self._states.of(snapshot, left, offers, added), strict=True):
            found = self._states.known.get(state)
            if found is None:
                found = yield from self._found(snapshot, node)
                self._states.remember(state, found)
                yield
            draft.verdicts[node], draft.reason_codes[node] = found

    def _found(self, snapshot: Snapshot, node: int) -> Work[Found]:
        """Search on one node."""
        answer = yield from choosing(snapshot, node, self.question, self._any)
        if not isinstance(answer, Nothing):
            return Found(VERDICTS[type(answer)], NO_REASON)
        reason = reason_of(answer.situation)
        code = self._numbers.setdefault(reason, len(self._reasons))
        if code == len(self._reasons):
            self._reasons.append(reason)
        return Found(Verdict.NO, code)
