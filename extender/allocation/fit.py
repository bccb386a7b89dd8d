"""Which nodes of a cluster can satisfy a question: by counting where that is exact, by a search per state elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints, added_taints
from extender.allocation.choose import choose
from extender.allocation.columns import Column
from extender.allocation.difference import changed_nodes
from extender.allocation.grid import Flags, Grid, grid_of
from extender.allocation.offer import Offers, offers_of
from extender.allocation.plain import Plain, can_count, plain_nodes, plain_of
from extender.allocation.question import Question
from extender.allocation.reason import Reason, reason_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Manner, Nothing, Solution, Undecided
from extender.allocation.state import States


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


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for a snapshot. verdicts: int8[nodes] of Verdict, in the order of the layout."""

    snapshot: Snapshot
    question: Question
    manner: Manner
    verdicts: NDArray[np.int8]

    @property
    def mask(self) -> Flags:
        """bool[nodes]: where the question can be satisfied."""
        return np.equal(self.verdicts, Verdict.FITS)

    def reason(self, node: int) -> Reason | Failure | Undecided | None:
        """Say why *node* does not fit; None where it does."""
        found = choose(self.snapshot, node, self.question, self.manner)
        if isinstance(found, Solution):
            return None
        return reason_of(found.situation) if isinstance(found, Nothing) else found


@dataclass(slots=True)
class Fitter:
    """A question, and what was found out about it so far. One writer; the fits that it gives stay as they are."""

    question: Question
    manner: Manner = BEST
    # Whether a node fits does not depend on what is preferred.
    _any: Manner = field(init=False)
    plain: Plain | None = None
    _last: Fit | None = None
    offers: Offers | None = None
    _added: Column[Taints] | None = None
    _states: States = field(init=False)

    def __post_init__(self) -> None:
        self._any = replace(self.manner, preference=None)
        self.plain = plain_of(self.question)
        self._states = States(self.question)

    def fit(self, snapshot: Snapshot) -> Fit:
        """Answer for all nodes of *snapshot*."""
        *_, last = self.pieces(snapshot)
        assert last is not None  # noqa: S101 - the last piece is the answer
        return last

    def pieces(self, snapshot: Snapshot) -> Iterator[Fit | None]:
        """Do the same piece by piece: nothing is yielded between pieces, and the answer at the end."""
        if self._last is not None and self._last.snapshot is snapshot:
            yield self._last
            return
        verdicts, open_nodes = self._carried(snapshot)
        offers, added = self._offered(snapshot)
        for start in range(0, len(open_nodes), BLOCK):
            yield None
            grid = grid_of(snapshot.layout, open_nodes[start : start + BLOCK])
            verdicts[grid.nodes] = self._counted(snapshot, grid, offers)
            yield from self._searched(snapshot, grid, offers, added, verdicts)
        verdicts.setflags(write=False)
        self._last = Fit(snapshot, self.question, self._any, verdicts)
        yield self._last

    def _carried(self, snapshot: Snapshot) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Take over what the last answer said of nodes that did not change since; return the others."""
        last = self._last
        changed = None if last is None else changed_nodes(last.snapshot, snapshot)
        if last is None or changed is None:
            count = len(snapshot.layout.nodes)
            return np.full(count, Verdict.UNKNOWN, np.int8), np.arange(count)
        return last.verdicts.copy(), changed

    def _offered(self, snapshot: Snapshot) -> tuple[Offers, Column[Taints]]:
        last = self._last and self._last.snapshot
        holds = last and last.rules is snapshot.rules and last.classes is snapshot.classes
        if not (self.offers and self._added and last and holds and last.inventory is snapshot.inventory):
            self._added = added_taints(snapshot.inventory, snapshot.rules, snapshot.classes)
            self.offers = offers_of(self.question, snapshot.inventory, self._added)
        return self.offers, self._added

    def _counted(self, snapshot: Snapshot, grid: Grid, offers: Offers) -> NDArray[np.int8]:
        """Answer for the nodes of *grid* that need no search: int8[n], UNKNOWN for the others."""
        verdicts = np.full(len(grid.nodes), Verdict.UNKNOWN, np.int8)
        if self.plain is None or not can_count(self.plain, snapshot.inventory):
            return verdicts
        free = snapshot.usage.codes == 0
        is_plain = plain_nodes(snapshot, grid, offers)
        chosen = grid_of(snapshot.layout, grid.nodes[is_plain])
        verdicts[is_plain] = self.plain.answer(snapshot.inventory, chosen, offers, free)
        return verdicts

    def _searched(
        self, snapshot: Snapshot, grid: Grid, offers: Offers, added: Column[Taints], verdicts: NDArray[np.int8]
    ) -> Iterator[None]:
        """Search on the nodes that counting left open, once for each state; yield after each search."""
        left = grid_of(snapshot.layout, grid.nodes[verdicts[grid.nodes] == Verdict.UNKNOWN])
        for node, state in zip(left.nodes.tolist(), self._states.of(snapshot, left, offers, added), strict=True):
            known = self._states.known.get(state)
            if known is None:
                known = VERDICTS[type(choose(snapshot, node, self.question, self._any))]
                self._states.remember(state, known)
                yield None
            verdicts[node] = known
