"""What can be said of a pod: where it may go, why it may not, or that nobody knows yet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

import numpy as np

from extender.allocation.grid import Flags
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.scheduling.decision import Ranked
from extender.scheduling.placement import Placement
from extender.scheduling.survey import Survey
from extender.scheduling.tally import Kind, Tally, limited, tally_of
from extender.scheduling.vocabulary import TEXTS, Word
from extender.state.table import Numbers

V = TypeVar("V")
GIVEN_UP = TEXTS[Word.GIVEN_UP]


@dataclass(frozen=True, slots=True)
class Plain:
    """The pod needs no devices of us: every node will do; some better, where devices are known by count only."""

    scores: Mapping[NodeName, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nothing can be said now; the pod is to be tried again soon. *goes_on*: at once, to go on with what was begun."""

    message: str
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """No node that was offered to us will do. *elsewhere* is one that would; *is_hopeless*: none would.

    *fitting*: int64, the nodes that have devices where none of them was suitable.
    """

    word: Word
    detail: str = ""
    elsewhere: NodeName | None = None
    rejected: tuple[Tally, ...] = ()
    is_hopeless: bool = False
    fitting: Numbers | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes for the pod with their scores, the best first, and the devices on the best one.

    *count* says how many nodes fit of those that were asked about, *why* what the others lack.
    """

    scores: Mapping[NodeName, int]
    placement: Placement
    best: tuple[Ranked, ...]
    count: Callable[[], int] = field(compare=False)
    why: Callable[[], tuple[Tally, ...]] = field(compare=False)

    @property
    def fitting(self) -> int:
        return self.count()

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(self.scores)

    @property
    def rejected(self) -> tuple[Tally, ...]:
        return self.why()

    def settled(self) -> "Offer":
        """Say all at once, to be kept: what could be asked of all nodes is a third of a MB of a large fleet."""
        return replace(self, count=always(self.fitting), why=always(self.rejected))


def always(value: V) -> Callable[[], V]:
    """Say the same whenever it is asked."""
    return lambda: value


Plan = Plain | Trouble | Rejection | Offer


@dataclass(frozen=True, slots=True)
class Moment:
    """When a plan is made, and whether the scheduler hears of it; *suitable*, bool[nodes], where it has to be."""

    now: float
    is_answer: bool
    suitable: Flags | None


def nowhere(surveyed: Survey, own: Flags | None) -> Rejection:
    """Say what those nodes lack that a pod can be on: *own*, bool[nodes], or all."""
    return _short(surveyed, own, surveyed.tallies(own), is_hopeless=surveyed.is_hopeless)


def unwanted(surveyed: Survey, nodes: Numbers, own: Flags | None, *, is_open: bool) -> Rejection:
    """Say that searches on all *nodes* have found nothing that strict policies have; *is_open*: or were given up."""
    names, part, found = surveyed.snapshot.layout.nodes, surveyed.part_at(int(nodes[0])), list[Tally]()
    if is_open:
        found.append(Tally(Word.POLICY, len(nodes), GIVEN_UP, names[int(nodes[0])]))
    else:
        is_whole = part.is_whole()[nodes]
        for is_never, some in ((False, nodes[~is_whole]), (True, nodes[is_whole])):
            if len(some):
                found.append(tally_of(Kind(int(some[0]), len(some)), part.unwanted(is_never=is_never), names))
    is_hopeless = len(nodes) == np.count_nonzero(surveyed.fits) and not (is_open or surveyed.is_open())
    return _short(surveyed, own, [*found, *surveyed.tallies(own)], is_hopeless=is_hopeless)


def _short(surveyed: Survey, own: Flags | None, mine: Sequence[Tally], *, is_hopeless: bool) -> Rejection:
    """Tell what is nearest to a success of what a pod's *own* nodes lack, which was counted as *mine*."""
    nearest = min(mine, key=lambda tally: tally.nearness, default=None)
    word, detail = (nearest.word, nearest.message) if nearest else (Word.NO_DEVICES, "")
    return Rejection(word, detail, None, (*limited(mine, nearest), *surveyed.others(own)), is_hopeless=is_hopeless)
