"""Selectors over all devices at once: one evaluation for each distinct combination of what the expression reads."""

from collections.abc import Hashable, Iterator, Sequence
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from extender.allocation.cel import Budget, Path, Program, SelectorOutcome, Verdict
from extender.allocation.cells import DRIVER, FAULT, SHAREABLE
from extender.allocation.columns import Codes, Column, are_same
from extender.allocation.inventory import Inventory
from extender.allocation.projection import project
from extender.allocation.sight import sight_of
from extender.allocation.work import Work, finished
from extender.model.frozen import dataclass

# Outcomes that one selector remembers: one for each device of a large fleet, where an attribute differs on each.
MEMORY = 1 << 16
# What one of them takes, beside the characters of an error: bytes.
OUTCOME_SIZE = 80
# What all of them take, where a question leaves a selector no less.
ROOM = 1 << 24
# Of what is not remembered an error says nothing: words of its own on each device would take as much.
UNTOLD = SelectorOutcome(Verdict.ERROR, "an error that is one of too many")
# Steps between two pauses: half a millisecond. An evaluation that takes more is followed by as many pauses as it cost.
PIECE = 5_000
# What else takes time, in steps: to look up one value of a combination, and to lay out a device for an evaluation.
KNOWN, EVALUATED = 3, 100
# Combinations that are decoded at once.
BLOCK = 1 << 10


class Known(dict[tuple[Hashable, ...], SelectorOutcome]):
    """What was said of combinations of values. *taken*: about how many bytes that takes."""

    taken = 0

    def __setitem__(self, values: tuple[Hashable, ...], outcome: SelectorOutcome) -> None:
        super().__setitem__(values, outcome)
        self.taken += OUTCOME_SIZE + len(outcome.error)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a selector says of each device: the distinct outcomes, and int32[rows] into them."""

    outcomes: tuple[SelectorOutcome, ...]
    codes: Codes

    @property
    def verdicts(self) -> NDArray[np.int8]:
        """int8[rows] of ``Verdict``."""
        return np.array([outcome.verdict for outcome in self.outcomes], np.int8)[self.codes]

    def outcome(self, row: int) -> SelectorOutcome:
        code: int = self.codes[row].item()
        return self.outcomes[code]


class Selector:
    """A compiled selector, and what it said of the values it has seen so far: beyond *room* bytes nothing more."""

    def __init__(self, program: Program, room: int = ROOM) -> None:
        self.program = program
        self.room = room
        self._known = Known()
        # The columns that these values came from, without which they mean nothing.
        self._from: tuple[Path, ...] = ()
        # Of the inventory no more than what is read is kept: it is large, and a question may be idle.
        self._last: tuple[ReferenceType[Inventory], int, list[Column[Hashable] | None], Sweep] | None = None

    @property
    def taken(self) -> int:
        """About how many bytes of the room are taken."""
        return self._known.taken

    @property
    def size(self) -> int:
        """About how many bytes are remembered of what it said."""
        return self.taken + (self._last[3].codes.nbytes if self._last else 0)

    def sweep(self, inventory: Inventory) -> Sweep:
        """Evaluate the selector on every device of *inventory*."""
        return finished(self.sweeping(inventory))

    def sweeping(self, inventory: Inventory) -> Work[Sweep]:
        """Do the same piece by piece. Who stops on the way loses nothing: what was evaluated is known next time."""
        if self._last and self._last[0]() is inventory:
            return self._last[3]
        paths = tuple(sorted(read_by(self.program, inventory)))
        read = [inventory.columns.get(path) for path in paths]
        if self._last and self._last[1] == inventory.rows and are_same(self._last[2], read):
            self._last = ref(inventory), inventory.rows, read, self._last[3]
            return self._last[3]
        if paths != self._from:
            # A sweep of other columns that has yet to end keeps what it had.
            self._from, self._known = paths, Known()
        sweep = yield from self._swept([inventory.column(path) for path in paths], inventory)
        self._last = ref(inventory), inventory.rows, read, sweep
        return sweep

    def _swept(self, columns: Sequence[Column[Hashable]], inventory: Inventory) -> Work[Sweep]:
        projection, budget = project(columns, inventory.rows), Budget()
        distinct: dict[SelectorOutcome, int] = {}
        codes = np.empty(len(projection.first), np.int32)
        known = yield from self._recalled(columns, projection.first)
        due, step = 0, KNOWN * (1 + len(columns))
        for start in range(0, len(codes), BLOCK):
            rows = projection.first[start : start + BLOCK]
            for place, (values, row) in enumerate(zip(_values(columns, rows), rows.tolist(), strict=True), start):
                outcome = known.get(values)
                due += step
                if outcome is None:
                    sight = sight_of(inventory.device(row), inventory.driver_at(row))
                    outcome = self.program.evaluate(sight, budget)
                    due += EVALUATED + budget.spent
                    if self._has_room(known):
                        known[values] = outcome
                    elif outcome.error:
                        outcome = UNTOLD
                codes[place] = distinct.setdefault(outcome, len(distinct))
                for _ in range(due // PIECE):
                    yield
                due %= PIECE
        return Sweep(tuple(distinct), codes.take(projection.codes))

    def _recalled(self, columns: Sequence[Column[Hashable]], rows: NDArray[np.int64]) -> Work[Known]:
        """Return what is known; where that is all that may be, forget first what none of *rows* has any more."""
        known = self._known
        if self._has_room(known):
            return known
        kept = Known()
        for start in range(0, len(rows), BLOCK):
            present = _values(columns, rows[start : start + BLOCK])
            for values in present:
                if values in known:
                    kept[values] = known[values]
            yield
        if self._known is known:
            self._known = kept
        return kept

    def _has_room(self, known: Known) -> bool:
        return len(known) < MEMORY and known.taken < self.room


def read_by(program: Program, inventory: Inventory) -> frozenset[Path]:
    """Name the columns that can make a difference; an attribute without a value does so whatever is read."""
    if program.reads is not None:
        return program.reads | {FAULT}
    return frozenset((DRIVER, SHAREABLE, FAULT, *(path for path in inventory.columns if len(path) > 1)))


def _values(columns: Sequence[Column[Hashable]], rows: NDArray[np.int64]) -> Iterator[tuple[Hashable, ...]]:
    """Decode *rows* of *columns*."""
    if not columns:
        return iter([()] * len(rows))
    decoded = ([column.dictionary.values[code] for code in column.codes[rows].tolist()] for column in columns)
    return zip(*decoded, strict=True)
