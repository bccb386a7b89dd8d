"""What will be asked for, learnt from what was: numbers of devices by class, in coarse shares that change rarely."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from extender.allocation.question import RESULTS
from extender.model.claim import ResourceClaim
from extender.topology.demand import EXPECTED, Demand
from extender.topology.memo import Memo
from extender.topology.residual import Mix

# After so many requests of a class those before count half.
MEMORY: Final = 512
# What a request counts, so that it can be halved a few times.
WEIGHT: Final = 16
# Requests before which nothing is believed to be learnt, the parts that a share is told in, and by how many of them
# some share must have moved before another mix is told.
LEAST: Final = 16
PARTS: Final = 16
MOVED: Final = 4
# Classes that are remembered: anybody can name any.
CLASSES: Final = 1024


@dataclass(slots=True)
class Sizes:
    """How often each size was asked for of one class, and the mix that was told last."""

    counts: dict[int, int] = field(default_factory=dict)
    asked: int = 0
    told: Mix | None = None

    def add(self, size: int) -> None:
        self.counts[size] = self.counts.get(size, 0) + WEIGHT
        self.asked += 1
        if self.asked % MEMORY == 0:
            self.counts = {one: count // 2 for one, count in self.counts.items() if count > 1}
        if self.asked >= LEAST:
            self._tell()

    def _tell(self) -> None:
        fresh = _shares(self.counts)
        before = dict(self.told.weights) if self.told else {}
        if self.told is None or any(
            abs(fresh.get(size, 0) - before.get(size, 0)) >= MOVED for size in fresh.keys() | before.keys()
        ):
            self.told = Mix.of(fresh)


class Learning:
    """Counts requests as claims appear. One writer. What is configured is not learnt."""

    def __init__(self) -> None:
        self._classes: Memo[str, Sizes] = Memo(CLASSES)

    def saw(self, claim: ResourceClaim) -> None:
        """Count what *claim* asks for; of alternatives the first. Single devices need no links and teach nothing."""
        for class_name, size in _asked(claim):
            if 1 < size <= RESULTS:
                if class_name not in self._classes:
                    self._classes[class_name] = Sizes()
                self._classes[class_name].add(size)

    def mix_for(self, class_name: str, demand: Demand) -> Mix:
        """Return what will be asked for of a class: as configured, as learnt, or as is usual."""
        known = self._classes.get(class_name)
        return demand.mix_for(class_name) or (known.told if known else None) or EXPECTED


def _asked(claim: ResourceClaim) -> Iterable[tuple[str, int]]:
    for slot in claim.spec.requests:
        request = slot.exactly or next(iter(slot.first_available), None)
        if request is not None and request.mode == "ExactCount" and not request.admin_access:
            yield request.class_name, request.count


def _shares(counts: dict[int, int]) -> dict[int, int]:
    """Return shares in PARTS, of what is asked for at all at least one."""
    whole = sum(counts.values())
    return {size: max(1, (PARTS * count + whole // 2) // whole) for size, count in sorted(counts.items())}
