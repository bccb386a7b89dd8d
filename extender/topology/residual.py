"""What free devices are still good for: the sets that could be taken out of them, by the sizes that are asked for."""

from collections.abc import Iterable, Mapping

from extender.model.frozen import dataclass
from extender.topology.candidates import EXACT, grown, out_of
from extender.topology.cells import Cell, Signature, whole
from extender.topology.memo import Memo
from extender.topology.quality import Quality

State = int | Signature
# States of one shape that are remembered.
STATES = 1 << 15
# So many devices in good sets are worth ONE, however many their node has: what is lost on nodes of different sizes can
# be compared. As a share of its own node a set would count the less, the larger that is.
USUAL = 8
# How many times ONE a node is worth at most, so that what is left never outweighs what is preferred: of more than 32
# devices each counts less.
MOST = 4


@dataclass(frozen=True, slots=True)
class Mix:
    """How often each size is asked for, in whole numbers; sets of one need no links and do not count."""

    weights: tuple[tuple[int, int], ...]

    @staticmethod
    def of(counts: Mapping[int, int]) -> "Mix":
        return Mix(tuple(sorted((size, count) for size, count in counts.items() if size > 1 and count)))


class Packing:
    """P for one shape, whatever is asked for: how much quality sets of a size have that are taken out of free devices.

    Each is worked out once.
    """

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self._in_cells = quality.shape.size > EXACT and quality.shape.is_tree
        self._packed: Memo[tuple[State, int], int] = Memo(STATES)
        self._starting: dict[int, dict[int, list[tuple[int, int]]]] = {}

    def state(self, free: int) -> State:
        """Return what P and V depend on: in a large tree not which devices are free, but how many in which cells."""
        return whole(self.quality.shape).signature(free) if self._in_cells else free

    def packed(self, free: int, size: int) -> int:
        """Return P: the most quality that sets of *size* can have together, no two with a device in common."""
        key = (self.state(free), size)
        known = self._packed.get(key)
        if known is None:
            known = self._packed[key] = self._pack(free, size)
        return known

    def _pack(self, free: int, size: int) -> int:
        if free.bit_count() < size:
            return 0
        if self.quality.shape.size <= EXACT:
            return self._exactly(free, size)
        return self._by_cells(free, size)

    def _exactly(self, free: int, size: int) -> int:
        """Leave the lowest device out, or take each set that has it."""
        lowest = free & -free
        best = self.packed(free ^ lowest, size)
        for chosen, quality in self._sets(size)[lowest]:
            if chosen & free == chosen:
                best = max(best, quality + self.packed(free ^ chosen, size))
        return best

    def _sets(self, size: int) -> Mapping[int, Iterable[tuple[int, int]]]:
        """Return all sets of *size* with their quality, by their lowest device."""
        known = self._starting.get(size)
        if known is None:
            known = {1 << place: [] for place in range(self.quality.shape.size)}
            for chosen in self.quality.sets(self.quality.shape.full, size):
                known[chosen & -chosen].append((chosen, self.quality.of(chosen)))
            self._starting[size] = known
        return known

    def _by_cells(self, free: int, size: int) -> int:
        """Fill sets within the smallest cells first; what is left over there goes together one level up."""
        return self._filled(whole(self.quality.shape), free, size)[0]

    def _filled(self, cell: Cell, free: int, size: int) -> tuple[int, int]:
        """Return the quality of the sets within *cell*, and what they leave of it."""
        parts = [self._filled(part, free, size) for part in cell.children]
        total = sum(quality for quality, _ in parts)
        left = sum(rest for _, rest in parts) if parts else cell.mask & free
        while left.bit_count() >= size:
            chosen = self._out_of(cell, left, size)
            total += self.quality.of(chosen)
            left &= ~chosen
        return total, left

    def _out_of(self, cell: Cell, left: int, size: int) -> int:
        """Take a set out of what is *left* of *cell*, whose devices are alike only in a tree."""
        if self.quality.shape.is_tree:
            return out_of(cell, left, size, -1)
        return grown(self.quality.shape, left, size, (left & -left).bit_length() - 1)


def measure(size: int) -> int:
    """Return how many devices of a node with *size* of them are worth ONE."""
    return max(USUAL, -(-size // MOST))


class Residual:
    """V for one shape and one mix: what free devices are worth, by P of the sizes that are asked for.

    P may be shared with other mixes.
    """

    def __init__(self, quality: Quality | Packing, mix: Mix) -> None:
        packing = quality if isinstance(quality, Packing) else Packing(quality)
        self.packing, self.quality, self.packed = packing, packing.quality, packing.packed
        self.mix = mix
        self._whole = measure(packing.quality.shape.size) * sum(weight for _, weight in mix.weights)
        self._value: Memo[State, int] = Memo(STATES)

    def value(self, free: int) -> int:
        """Return V, of ONE: how many of the free devices could be in good sets, beside USUAL."""
        state = self.packing.state(free)
        known = self._value.get(state)
        if known is None:
            total = sum(weight * size * self.packed(free, size) for size, weight in self.mix.weights)
            known = self._value[state] = total // self._whole if total else 0
        return known
