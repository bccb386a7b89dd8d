"""What can be said of a pod: where it may go, why it may not, or that nobody knows yet."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from extender.allocation.grid import Flags
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.scheduling.decision import Ranked
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.survey import Numbers, Survey
from extender.scheduling.tally import Tally, Unwanted
from extender.scheduling.vocabulary import Word

GIVEN_UP = "the search for devices was given up before it was known whether they suffice"


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
    fitting: NDArray[np.int64] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes for the pod with their scores, the best first, and the devices on the best one."""

    needs: Needs
    scores: Mapping[NodeName, int]
    placement: Placement
    best: tuple[Ranked, ...]
    fitting: int
    surveyed: Survey

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(self.scores)

    @property
    def rejected(self) -> tuple[Tally, ...]:
        return tuple(self.surveyed.tallies())


Plan = Plain | Trouble | Rejection | Offer


@dataclass(frozen=True, slots=True)
class Moment:
    """When a plan is made, and whether the scheduler hears of it; *suitable*, bool[nodes], where it has to be."""

    now: float
    is_answer: bool
    suitable: Flags | None = None


def nowhere(surveyed: Survey, own: Flags | None) -> Rejection:
    """Say what those nodes lack that a pod can be on: *own*, bool[nodes], or all."""
    mine = surveyed.tallies(own)
    nearest = min(mine, key=lambda tally: tally.nearness, default=None)
    word, detail = (nearest.word, nearest.message) if nearest else (Word.NO_DEVICES, "")
    return Rejection(word, detail, None, (*mine, *surveyed.others(own)), is_hopeless=surveyed.is_hopeless)


def unwanted(surveyed: Survey, nodes: Numbers, *, is_open: bool) -> Rejection:
    """Say that searches on all *nodes* have found nothing that strict policies have; *is_open*: or were given up."""
    unwanted = Unwanted.by(policy for part in surveyed.parts for policy in part.policies).message
    detail = GIVEN_UP if is_open else unwanted
    tally = Tally(Word.POLICY, len(nodes), detail, surveyed.snapshot.layout.nodes[int(nodes[0])])
    is_hopeless = len(nodes) == np.count_nonzero(surveyed.fits) and not is_open
    return Rejection(Word.POLICY, detail, None, (tally, *surveyed.tallies()), is_hopeless=is_hopeless)
