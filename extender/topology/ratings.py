"""How good the best set of each node is, for all nodes at once: what one ask would get there."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.distinct import either
from extender.allocation.grid import Flags, grid_of
from extender.allocation.masks import mask_of, places_of, within
from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot
from extender.topology.atlas import Atlas, Machine
from extender.topology.bodies import Bodies, bodies_of
from extender.topology.choice import Choice, Ranker
from extender.topology.grades import Grades
from extender.topology.machine import Group
from extender.topology.memo import Memo
from extender.topology.policy import PROTECT, STEP, Wish, graded

Values = NDArray[np.int64]
# Where a strict policy has no set; and where none of one kind is known: beyond all that sets can be worth.
NONE: Final = -(1 << 62)
APART: Final = -1000 * STEP
# Where links tell nothing: parts of devices or shares are among what is usable.
PARTS: Final = NONE + 1
KNOWN: Final = 1 << 15
# Nodes that are looked at one by one: more are gathered into matrices.
FEW: Final = 16
# The number of a machine, what is free of it, and what is usable.
Key = tuple[int, int, int]


class Best(NamedTuple):
    """A set, what is free beside it, and of which devices that is."""

    group: Group
    free: int
    choice: Choice


class Ratings:
    """Values of the best sets of *size*, continued from one snapshot to the next; *lacking* where no kind has one.

    ranker_of: who ranks the sets of a group. *is_open*: of some node nobody knows whether it has a set.
    """

    def __init__(self, atlas: Atlas, ranker_of: Callable[[Group], Ranker], size: int, lacking: int) -> None:
        self.atlas, self.ranker_of, self.size, self.lacking = atlas, ranker_of, size, lacking
        self.is_open = False
        self._known: Memo[Key, int] = Memo(KNOWN)
        self._kinds: Memo[tuple[int, int], int] = Memo(KNOWN)
        self._usable: tuple[object, object, dict[int, int]] = (None, None, {})
        self._last: tuple[Snapshot, Flags, Values, NDArray[np.int32]] | None = None

    def of(self, snapshot: Snapshot, usable: Flags) -> Values:
        """Return a value of ONE for each node, int64[nodes]. usable: bool[rows], what could be given if it is free."""
        numbers, last = self.atlas.numbers(snapshot), self._last
        if last and last[0] is snapshot and last[1] is usable and last[3] is numbers:
            return last[2]
        nodes, values = self._open(snapshot, numbers)
        few = len(nodes) <= FEW
        keys = self._each(snapshot, usable, nodes, numbers) if few else self._all(snapshot, usable, nodes, numbers)
        values[nodes] = [self._value(key) for key in keys]
        values.setflags(write=False)
        self._last = snapshot, usable, values, numbers
        return values

    def _all(
        self, snapshot: Snapshot, usable: Flags, nodes: NDArray[np.int64], numbers: NDArray[np.int32]
    ) -> Iterable[Key]:
        """Say of each node which machine it is, what is free of it, and what is usable."""
        grid = grid_of(snapshot.layout, nodes)
        frees = _integers(grid.of_rows(snapshot.usage.codes == 0))
        return zip(numbers[nodes].tolist(), frees, _integers(grid.of_rows(usable)), strict=True)

    def _each(
        self, snapshot: Snapshot, usable: Flags, nodes: NDArray[np.int64], numbers: NDArray[np.int32]
    ) -> Iterable[Key]:
        """Say the same of a few nodes, of which what is usable is remembered."""
        if self._usable[0] is not usable or self._usable[1] is not snapshot.layout:
            self._usable = usable, snapshot.layout, {}
        known = self._usable[2]
        for node in nodes.tolist():
            mine = known.get(node)
            if mine is None:
                flags = usable[snapshot.layout.local(node)]
                mine = known[node] = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
            free = int.from_bytes(snapshot.free[node].astype("<u8").tobytes(), "little")
            yield int(numbers[node]), free, mine

    def best(self, snapshot: Snapshot, usable: Flags, node: int) -> Best | None:
        """Return the best set of *node* with the devices that it is of."""
        grid = grid_of(snapshot.layout, np.array([node]))
        free = next(_integers(grid.of_rows(snapshot.usage.codes == 0)))
        among = next(_integers(grid.of_rows(usable)))
        number = int(self.atlas.numbers(snapshot)[node])
        return self._best(self.atlas.machines[number], free, among)

    def _open(self, snapshot: Snapshot, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int64], Values]:
        """Return the nodes whose value is not known, and the values of the others."""
        last = self._last
        way = passage(last[0], snapshot) if last else None
        if last is None or way is None:
            return np.arange(len(numbers)), np.full(len(numbers), NONE)
        # What is usable of the devices of others is what was.
        changed = way.changed
        if last[3] is not numbers:
            changed = either(changed, np.flatnonzero(way.carried(last[3]) != numbers))
        return changed, way.carried(last[2])

    def _value(self, key: Key) -> int:
        # What is free of kinds that are not asked for makes no difference, but would make many states of one.
        key = key[0], key[1] & self._concerned(key[0], key[2]), key[2]
        value = self._known.get(key)
        if value is None:
            number, free, usable = key
            best = self._best(self.atlas.machines[number], free, usable)
            value = best.choice.value if best else self._without(self.atlas.machines[number], free, usable)
            self._known[key] = value
        return value

    def _concerned(self, number: int, usable: int) -> int:
        """Return the mask of the devices of those kinds of which some are usable."""
        known = self._kinds.get((number, usable))
        if known is None:
            masks = (mask_of(group.indices) for group in self.atlas.machines[number])
            known = self._kinds[number, usable] = sum(mask for mask in masks if mask & usable)
        return known

    def _without(self, machine: Machine, free: int, usable: int) -> int:
        """Return what a node is worth of which no set of one kind is known: it may have one of several."""
        masks = ((group, within(group.indices, free), within(group.indices, free & usable)) for group in machine)
        if any(self.ranker_of(group).is_open(mine, self.size, among) for group, mine, among in masks):
            self.is_open = True
            return APART
        return self.lacking if max(self._numbers_apart(machine, free & usable), default=0) >= self.size else NONE

    def _numbers_apart(self, machine: Machine, free: int) -> Collection[int]:
        """Count what may be given together though it is of several kinds: on each NUMA node where it must be of one."""
        zones = Counter[int | None]()
        for group in machine:
            ranker = self.ranker_of(group)
            allowed = places_of(within(group.indices, free) & ~ranker.make.forbidden)
            is_zoned = ranker.policy.numa is Wish.STRICT
            zones.update(ranker.make.zones[place] if is_zoned else None for place in allowed)
            if is_zoned:
                # Of a device without a known NUMA node nobody knows whether it is on that of others.
                del zones[None]
        return zones.values()

    def _best(self, machine: Machine, free: int, usable: int) -> Best | None:
        found = []
        for group in machine:
            mine, among = within(group.indices, free), within(group.indices, free & usable)
            choice = self.ranker_of(group).best(mine, self.size, among)
            if choice is not None:
                found.append(Best(group, mine, choice))
        return max(found, key=lambda best: best.choice.value) if found else None


class Whole(Ratings):
    """Values of the best sets of whole nodes, as if nothing of them were in use."""

    def _value(self, key: Key) -> int:
        number, _, usable = key
        return super()._value((number, usable, usable))


class Uncut(Ratings):
    """Values of the best sets where devices could be given in parts or shares: PARTS where these are asked for.

    Whole devices of which somebody has a part are not free.
    """

    def __init__(self, atlas: Atlas, ranker_of: Callable[[Group], Ranker], size: int, lacking: int) -> None:
        super().__init__(atlas, ranker_of, size, lacking)
        self._bodies: Memo[int, Bodies] = Memo(KNOWN)

    def _value(self, key: Key) -> int:
        number, free, usable = key
        bodies = self._bodies.get(number)
        if bodies is None:
            bodies = self._bodies[number] = bodies_of(self.atlas.machines[number])
        alone = self._alone(usable, bodies.shared)
        if alone & (bodies.parts | bodies.shared):
            return PARTS
        value = super()._value((number, free & ~bodies.cut(free), alone))
        if alone != usable and value <= APART:
            return PARTS
        # That a body has not enough left for all of it is only a guess, and must keep nobody away.
        return PARTS if value == NONE and any(usable & whole for whole, _ in bodies.wholes) else value

    def _alone(self, usable: int, shared: int) -> int:
        """Return what is given first of what is *usable*."""
        del shared
        return usable


class Spared(Uncut):
    """The same for who takes all of each device: what others could share is left to them while the rest suffices."""

    def _alone(self, usable: int, shared: int) -> int:
        return usable & ~shared


class Gradings(Ratings):
    """What the best devices of each node count for what is preferred and avoided, where their links are not compared.

    Whoever has a share of a device, others may have some, too: no node counts more than it will.
    """

    def _value(self, key: Key) -> int:
        value = self._known.get(key)
        if value is None:
            number, free, usable = key
            value = self._known[key] = self._graded(self.atlas.machines[number], free, usable)
        return value

    def _graded(self, machine: Machine, free: int, usable: int) -> int:
        # Of a slice that is left over no device is in any group.
        there = [index for group in machine for index in group.indices]
        generations, avoided, shareable = [0] * (max(there, default=-1) + 1), 0, 0
        for group in machine:
            thought = self.ranker_of(group).make.grades
            for place, (index, member) in enumerate(zip(group.indices, group.members, strict=True)):
                generations[index] = thought.worst(1 << place)
                avoided |= (thought.avoided >> place & 1) << index
                shareable |= member.device.traits.allow_multiple_allocations << index
        grades = Grades(tuple(generations), avoided)
        needed, step = next(grades.best(mask_of(there) & usable & (free | shareable), self.size), (0, 0))
        policy = self.ranker_of(machine[0]).policy if step else PROTECT
        fewest = max(0, self.size - ((needed | step) & ~avoided).bit_count())
        return sum(graded(policy, grades.worst(needed | step), fewest))


def _integers(flags: Flags) -> Iterator[int]:
    """Read each row of bool[n, width] as an integer, bit 0 first."""
    octets = np.packbits(flags, axis=1, bitorder="little")
    width = octets.shape[1]
    text = octets.tobytes()
    return (int.from_bytes(text[index * width : (index + 1) * width], "little") for index in range(len(flags)))


def first_of(values: Sequence[Values], chosen: NDArray[np.int16]) -> Values:
    """Return the first of *values*, one for each alternative, from the *chosen* one on: int64[nodes].

    Where a strict policy has none of these it may have one before, if other requests have others than they would.
    """
    found = spare = np.full(len(chosen), NONE)
    for index, value in enumerate(values):
        lowered = np.where(value == NONE, NONE, value - index * STEP)
        spare = np.where(spare == NONE, lowered, spare)
        found = np.where((found == NONE) & (chosen <= index), lowered, found)
    return np.where(found == NONE, spare, found)


def summed(total: Values, values: Values) -> Values:
    """Return what both are worth together, NONE where one of them has nothing: int64[nodes]."""
    return np.where((total == NONE) | (values == NONE), NONE, total + values)
