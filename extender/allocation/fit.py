"""Which nodes of a cluster can satisfy a question: by counting where that is exact, by a search per state elsewhere."""

from collections.abc import Mapping, Sequence
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
from extender.allocation.inventory import Inventory
from extender.allocation.offer import Offers, offers_of
from extender.allocation.plain import Plain, can_count, plain_nodes, plain_of
from extender.allocation.question import Question
from extender.allocation.reason import Reason, reason_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Manner, Nothing, Solution, Undecided
from extender.allocation.state import MEMORY, Found, Naming, States
from extender.allocation.work import Work, finished
from extender.model.claim import DeviceClass
from extender.model.names import ClassName
from extender.model.taint import DeviceTaintRule


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
# Reasons that one question tells apart before it begins anew.
REASONS = 4096


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
class Reasons:
    """Reasons by number, which they keep. Whoever needs room begins anew."""

    known: list[Reason] = field(default_factory=list)
    _numbers: dict[Reason, int] = field(default_factory=dict)

    def number(self, reason: Reason) -> int:
        code = self._numbers.setdefault(reason, len(self.known))
        if code == len(self.known):
            self.known.append(reason)
        return code


@dataclass(frozen=True, slots=True)
class Ground:
    """What a question means as long as the same is published and the same rules hold.

    shortfalls: the numbers of the reasons for what nodes have, as counting describes it.
    """

    inventory: Inventory
    rules: Mapping[str, DeviceTaintRule]
    classes: Mapping[ClassName, DeviceClass]
    offers: Offers
    added: Column[Taints]
    shortfalls: dict[bytes, int] = field(default_factory=dict)

    def holds(self, snapshot: Snapshot) -> bool:
        same = self.rules is snapshot.rules and self.classes is snapshot.classes
        return same and self.inventory is snapshot.inventory


@dataclass(slots=True)
class Draft:
    """A fit while it is made, and all that its work may use: another work may begin and end in between."""

    snapshot: Snapshot
    verdicts: NDArray[np.int8]
    reason_codes: NDArray[np.int32]
    ground: Ground
    states: States
    naming: Naming
    reasons: Reasons


@dataclass(slots=True)
class Fitter:
    """A question, and what was found out about it so far. One writer; the fits that it gives stay as they are.

    Works may take turns, or be given up: each has what it needs, and only one that ends leaves anything behind.
    """

    question: Question
    manner: Manner = BEST
    plain: Plain | None = field(init=False)
    ground: Ground | None = None
    # Whether a node fits does not depend on what is preferred.
    _any: Manner = field(init=False)
    _last: Fit | None = None
    _states: States = field(init=False)
    _reasons: Reasons = field(default_factory=Reasons)

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
        if len(self._reasons.known) >= REASONS:
            self._last, self.ground = None, None
            self._states, self._reasons = States(self.question), Reasons()
        reasons, states = self._reasons, self._states.continued(snapshot)
        verdicts, reason_codes, open_nodes = self._carried(snapshot)
        ground = yield from self._grounded(snapshot)
        naming = Naming(states, snapshot, ground.offers, ground.added)
        draft = Draft(snapshot, verdicts, reason_codes, ground, states, naming, reasons)
        for start in range(0, len(open_nodes), BLOCK):
            yield
            grid = grid_of(snapshot.layout, open_nodes[start : start + BLOCK])
            yield from self._counted(draft, grid)
            yield from self._searched(draft, grid)
        for array in (verdicts, reason_codes):
            array.setflags(write=False)
        fit = Fit(snapshot, self.question, self._any, verdicts, reason_codes, reasons.known)
        if reasons is self._reasons:
            self._last, self.ground, self._states = fit, ground, states
        return fit

    def _carried(self, snapshot: Snapshot) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int64]]:
        """Take over what the last answer said of nodes that did not change since; return the others too."""
        last = self._last
        changed = None if last is None else changed_nodes(last.snapshot, snapshot)
        if last is None or changed is None:
            count = len(snapshot.layout.nodes)
            return np.full(count, Verdict.UNKNOWN, np.int8), np.full(count, NO_REASON, np.int32), np.arange(count)
        verdicts, reason_codes = last.verdicts.copy(), last.reason_codes.copy()
        verdicts[changed], reason_codes[changed] = Verdict.UNKNOWN, NO_REASON
        return verdicts, reason_codes, changed

    def _grounded(self, snapshot: Snapshot) -> Work[Ground]:
        if self.ground is not None and self.ground.holds(snapshot):
            return self.ground
        inventory, rules, classes = snapshot.inventory, snapshot.rules, snapshot.classes
        added = added_taints(inventory, rules, classes)
        for ask in self.question.asks.values():
            for test in ask.tests:
                if test.selector:
                    yield from test.selector.sweeping(inventory, Budget())
        return Ground(inventory, rules, classes, offers_of(self.question, inventory, added), added)

    def _counted(self, draft: Draft, grid: Grid) -> Work[None]:
        """Answer for the nodes of *grid* that need no search; yield after each new reason."""
        snapshot, offers, shortfalls = draft.snapshot, draft.ground.offers, draft.ground.shortfalls
        if self.plain is None or not can_count(self.plain, snapshot.inventory):
            return
        chosen = grid_of(snapshot.layout, grid.nodes[plain_nodes(snapshot, grid, offers)])
        fits = yield from self.plain.answer(snapshot.inventory, chosen, offers, snapshot.usage.codes == 0)
        if fits is None:
            return
        draft.verdicts[chosen.nodes] = fits
        rejected = grid_of(snapshot.layout, chosen.nodes[~fits])
        described = self.plain.shortfalls(snapshot, rejected, offers)
        for node, shortfall in zip(rejected.nodes.tolist(), described, strict=True):
            key = shortfall.tobytes()
            code = shortfalls.get(key)
            if code is None:
                found = yield from self._found(draft, node)
                if len(shortfalls) >= MEMORY:
                    shortfalls.clear()
                code = shortfalls[key] = found.reason
                yield
            draft.reason_codes[node] = code

    def _searched(self, draft: Draft, grid: Grid) -> Work[None]:
        """Search on the nodes that counting left open, once for each state; yield after each search."""
        left = grid_of(draft.snapshot.layout, grid.nodes[draft.verdicts[grid.nodes] == Verdict.UNKNOWN])
        for node, state in zip(left.nodes.tolist(), draft.naming.of(left), strict=True):
            found = draft.states.known.get(state)
            if found is None:
                found = yield from self._found(draft, node)
                draft.states.remember(state, found)
                yield
            draft.verdicts[node], draft.reason_codes[node] = found

    def _found(self, draft: Draft, node: int) -> Work[Found]:
        """Search on one node."""
        answer = yield from choosing(draft.snapshot, node, self.question, self._any)
        if not isinstance(answer, Nothing):
            return Found(VERDICTS[type(answer)], NO_REASON)
        return Found(Verdict.NO, draft.reasons.number(reason_of(answer.situation)))
