"""Which nodes of a cluster can satisfy a question: by counting where that is exact, by a search per state elsewhere."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints, added_taints
from extender.allocation.choose import choosing
from extender.allocation.columns import Dictionary
from extender.allocation.distinct import distinct
from extender.allocation.grid import Grid, grid_of
from extender.allocation.likeness import Likeness, State
from extender.allocation.matches import Matches, matches_of
from extender.allocation.memory import (
    NO_REASON,
    NODE_SIZE,
    SPARE,
    Basis,
    Draft,
    Reasons,
    Span,
    Told,
    renumbered,
    way_of,
)
from extender.allocation.node_state import Found, Naming, States
from extender.allocation.passage import passage
from extender.allocation.plain import Plain, can_count, plain_nodes, plain_of
from extender.allocation.question import Question, formulas
from extender.allocation.selectors import ROOM
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Manner, Solution, why_not
from extender.allocation.verdict import VERDICTS, Fit, Verdict
from extender.allocation.work import Work, finished

# Places for devices that are looked at in one piece of work, and nodes: where these have few devices. As many asks as
# MANY make the places half as many.
CELLS = 1 << 14
BLOCK = 2048
MANY = 16
# What the selectors of one question remember of what they said: bytes. Without that they are evaluated anew.
OUTCOMES = 1 << 26
# Pieces of work that are done while somebody waits: less than a second of the most expensive ones. On 64,000 devices a
# question that nobody has asked takes thirty.
AT_ONCE = 1000


@dataclass(slots=True, weakref_slot=True, eq=False)
class Fitter:
    """A question, and what was found out about it so far. One writer; the fits that it gives stay as they are.

    Several fits may be under way in turns, or be given up: what they remember in common is only ever added to, and
    numbers in it keep their meaning. Whoever needs room begins anew, and leaves the old to the others.
    """

    question: Question
    manner: Manner = BEST
    plain: Plain | None = field(init=False)
    # Whether a node fits does not depend on what is preferred.
    _any: Manner = field(init=False)
    _last: Fit | None = None
    _basis: Basis | None = None
    _states: States = field(init=False)
    _reasons: Reasons = field(default_factory=Reasons)
    _taints: Dictionary[Taints] = field(default_factory=Dictionary)
    _likeness: Likeness | None = None
    span: Span = field(default_factory=Span)
    _asked_at: int = 0
    # Whether somebody would have had to wait too long for an answer, so that it is to be worked out beside.
    is_late: bool = False
    # Where a rule names an attribute without its domain, which the API refuses, no column tells what it compares.
    _is_blind: bool = field(init=False)

    def __post_init__(self) -> None:
        self._any = replace(self.manner, preference=None, accepts=None, narrowed=None)
        self.plain = plain_of(self.question)
        self._is_blind = any("/" not in rule.attribute for part in self.question.claims for rule in part.rules)
        self._states = States(self.question)

    @property
    def size(self) -> int:
        """About how many bytes are remembered of the question."""
        nodes = NODE_SIZE * len(self._last.verdicts) if self._last else 0
        return self._states.size + self._reasons.size + nodes + (self._basis.size if self._basis else 0)

    def let_go(self, snapshot: Snapshot, before: int) -> None:
        """Let go of all but what was found out about states if nobody has asked since *before*; now is *snapshot*."""
        # What is published is large, and an idle question may be the last to keep it.
        if self._asked_at < before and all(item.is_compiled for item in formulas(self.question)):
            self._last = self._basis = self._likeness = None
            self._states, self.span = self._states.continued(snapshot), Span()

    def matches_in(self, snapshot: Snapshot) -> Matches:
        """Return which devices of *snapshot* match which asks."""
        return self._basis_in(snapshot).matches

    def states_of(self, snapshot: Snapshot, nodes: NDArray[np.int64]) -> tuple[States, Sequence[Hashable]]:
        """Name the states of *nodes*: names mean something within the states that they are of."""
        self._asked_at = snapshot.generation
        self._states, basis = self._states.continued(snapshot), self._basis_in(snapshot)
        alike = None if self._is_blind else self._alike(self._states, basis, snapshot).all(snapshot, nodes)
        if alike is not None:
            return self._states, alike
        naming = Naming(self._states, snapshot, basis.matches, basis.added)
        return self._states, list(naming.of(grid_of(snapshot.layout, nodes)))

    def state_of(self, snapshot: Snapshot, node: int) -> tuple[States, State] | None:
        """Tell the state of one node cheaply: of equal ones of the same states everything is equal to this question.

        None where that cannot be told, or not before devices are looked at.
        """
        basis = self._held(snapshot)
        if self._is_blind or basis is None:
            return None
        self._asked_at, self._states = snapshot.generation, self._states.continued(snapshot)
        state = self._alike(self._states, basis, snapshot).state(snapshot, node)
        return None if state is None else (self._states, state)

    def _alike(self, states: States, basis: Basis, snapshot: Snapshot) -> Likeness:
        if self._likeness is None or not self._likeness.holds(states, basis, snapshot):
            self._likeness = Likeness(states, basis, snapshot.layout)
        return self._likeness

    def _held(self, snapshot: Snapshot) -> Basis | None:
        return self._basis if self._basis is not None and self._basis.holds(snapshot) else None

    def _basis_in(self, snapshot: Snapshot) -> Basis:
        return self._held(snapshot) or finished(self._based(snapshot))

    def fit(self, snapshot: Snapshot) -> Fit:
        """Answer for all nodes of *snapshot*."""
        return finished(self.pieces(snapshot))

    def fit_soon(self, snapshot: Snapshot, most: int) -> Fit | None:
        """Answer if *most* pieces suffice; None where they do not, and as long as nobody has caught up beside.

        Claims are written by strangers: one whose selectors cost all that they may takes minutes on a large fleet.
        """
        work = self.pieces(snapshot)
        try:
            for _ in range(1 if self.is_late else most):
                next(work)
        except StopIteration as end:
            fit: Fit = end.value
            self.is_late = False
            return fit
        self.is_late = True
        return None

    def pieces(self, snapshot: Snapshot) -> Work[Fit]:
        """Do the same piece by piece, so that a service can answer others between the pieces."""
        self._asked_at = snapshot.generation
        if self._last is not None and self._last.snapshot is snapshot:
            return self._last
        yield from _compiled(self.question)
        self._forget()
        self._states = self._states.continued(snapshot)
        draft, open_nodes = self._carried(snapshot)
        basis = self._held(snapshot) or (yield from self._based(snapshot))
        alike = None if self._is_blind else self._alike(draft.states, basis, snapshot)
        known, states = alike.known(snapshot, open_nodes) if alike else ([], [])
        for node, found in known:
            draft.verdicts[node], draft.reason_codes[node] = found
        if len(known) < len(open_nodes):
            open_nodes = open_nodes[draft.verdicts[open_nodes] == Verdict.UNKNOWN]
            yield from self._answered(draft, basis, open_nodes)
        for node, state in states:
            draft.states.remember(state, Found(int(draft.verdicts[node]), int(draft.reason_codes[node])))
        for array in (draft.verdicts, draft.reason_codes):
            array.setflags(write=False)
        fit = Fit(snapshot, self.question, self._any, draft.verdicts, draft.reason_codes, draft.reasons.all)
        if draft.reasons is self._reasons:
            self._last = fit
        return fit

    def _answered(self, draft: Draft, basis: Basis, nodes: NDArray[np.int64]) -> Work[None]:
        """Answer for *nodes*, so many at a time."""
        layout = draft.snapshot.layout
        naming = Naming(draft.states, draft.snapshot, basis.matches, basis.added)
        # What matches each ask is a column: of hundreds, fewer places are looked at.
        cells = CELLS // (1 + len(self.question.asks) // MANY)
        block = min(BLOCK, max(1, cells // int(np.diff(layout.starts).max(initial=1))))
        for start in range(0, len(nodes), block):
            yield
            grid = grid_of(layout, nodes[start : start + block])
            yield from self._counted(draft, grid, basis)
            yield from self._searched(draft, grid, naming)

    def _forget(self) -> None:
        """Forget the reasons that no node has now, once they are many, and all that leads to their numbers."""
        last = self._last
        if self._is_blind:
            self._last, self._states = None, States(self.question)
        elif last is not None and self._reasons.are_too_many(len(last.verdicts)):
            self._reasons, codes = renumbered(last.reasons, last.reason_codes)
            self._last = replace(last, reason_codes=codes, reasons=self._reasons.all)
            self._basis, self._states = self._basis and replace(self._basis, shortfalls={}), States(self.question)
        if len(self._taints.values) > SPARE:
            self._basis, self._states, self._taints = None, States(self.question), Dictionary()

    def _carried(self, snapshot: Snapshot) -> tuple[Draft, NDArray[np.int64]]:
        """Take over what the last answer said of nodes that did not change since; return the others."""
        last = self._last
        way = None if last is None else passage(last.snapshot, snapshot)
        if last is None or way is None:
            changed = np.arange(len(snapshot.layout.nodes))
            verdicts, codes = np.zeros(len(changed), np.int8), np.zeros(len(changed), np.int32)
        else:
            changed = way.changed
            verdicts, codes = way.carried(last.verdicts), way.carried(last.reason_codes)
        verdicts[changed], codes[changed] = Verdict.UNKNOWN, NO_REASON
        return Draft(snapshot, verdicts, codes, self._reasons, self._states), changed

    def _based(self, snapshot: Snapshot) -> Work[Basis]:
        inventory, taints, reasons = snapshot.inventory, self._taints, self._reasons
        added = yield from added_taints(inventory, snapshot.rules, snapshot.classes, taints)
        room = OUTCOMES
        for selector in dict.fromkeys(test.selector for ask in self.question.asks.values() for test in ask.tests):
            if selector:
                selector.room = min(ROOM, room)
                yield from selector.sweeping(inventory)
                room = max(0, room - selector.taken)
        matches = yield from matches_of(self.question, inventory, added)
        basis = Basis(inventory, snapshot.rules, snapshot.classes, matches, added)
        if taints is self._taints and reasons is self._reasons:
            self._basis = basis
        return basis

    def _counted(self, draft: Draft, grid: Grid, basis: Basis) -> Work[None]:
        """Answer for the nodes of *grid* that need no search; yield after each new reason."""
        snapshot, matches = draft.snapshot, basis.matches
        if self.plain is None or not can_count(self.plain, snapshot.inventory):
            return
        chosen = grid_of(snapshot.layout, grid.nodes[plain_nodes(snapshot, grid, matches)])
        yield
        firsts = yield from self.plain.answer(snapshot, chosen, matches)
        if firsts is None:
            return
        fits = firsts < len(self.plain.ways)
        draft.verdicts[chosen.nodes] = fits
        for first in distinct(firsts[fits]).tolist() if self.question.has_choice else ():
            draft.reason_codes[chosen.nodes[firsts == first]] = draft.reasons.number(
                way_of(self.question, self.plain.ways[first])
            )
        rejected = grid_of(snapshot.layout, chosen.nodes[~fits])
        yield
        described = self.plain.shortfalls(snapshot, rejected, matches)
        for node, shortfall in zip(rejected.nodes.tolist(), described, strict=True):
            key = shortfall.tobytes()
            code = basis.shortfalls.get(key)
            if code is None:
                code = (yield from self._found(draft, node)).reason
                basis.remember(key, code)
                yield
            draft.reason_codes[node] = code

    def _searched(self, draft: Draft, grid: Grid, naming: Naming) -> Work[None]:
        """Search on the nodes that counting left open, once for each state; yield after each search."""
        left = grid_of(draft.snapshot.layout, grid.nodes[draft.verdicts[grid.nodes] == Verdict.UNKNOWN])
        for node, state in zip(left.nodes.tolist(), naming.of(left), strict=True):
            # What is not told apart is not remembered either.
            found = None if self._is_blind else draft.states.known.get(state)
            if found is None:
                found = yield from self._found(draft, node)
                draft.states.remember(state, found)
                yield
            draft.verdicts[node], draft.reason_codes[node] = found

    def _found(self, draft: Draft, node: int) -> Work[Found]:
        """Search on one node."""
        answer = yield from choosing(draft.snapshot, node, self.question, self._any)
        told: Told | None = yield from why_not(answer)
        if isinstance(answer, Solution) and self.question.has_choice:
            told = way_of(self.question, answer.asks)
        return Found(VERDICTS[type(answer)], NO_REASON if told is None else draft.reasons.number(told))


def _compiled(question: Question) -> Work[None]:
    """Compile what the question is asked by, one text after the other, in its order."""
    for ask in question.asks.values():
        for formula in ask.formulas():
            if not formula.is_compiled:
                yield from formula.compiling()
