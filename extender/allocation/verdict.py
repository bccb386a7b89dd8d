"""What the nodes of a snapshot say to a question."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from extender.allocation.choose import choose
from extender.allocation.distinct import distinct
from extender.allocation.grid import Flags
from extender.allocation.memory import NO_REASON, Told, Way, lists_of
from extender.allocation.question import Question, compiled_anew
from extender.allocation.reason import Reason
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Failure, Manner, Nothing, Solution, Undecided
from extender.model.frozen import dataclass


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


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer for a snapshot, in the order of its layout.

    verdicts: int8[nodes] of Verdict; reason_codes: int32[nodes] into *reasons*, NO_REASON where a node has none there.
    Where it fits that is the way in which it does, if there are alternatives.
    """

    snapshot: Snapshot
    question: Question
    manner: Manner
    verdicts: NDArray[np.int8]
    reason_codes: NDArray[np.int32]
    reasons: Sequence[Told]

    @property
    def mask(self) -> Flags:
        """bool[nodes]: where the question can be satisfied."""
        return np.equal(self.verdicts, Verdict.FITS.value)

    def chosen(self) -> dict[tuple[int, int], NDArray[np.int16]]:
        """Tell which alternative of each list, by claim and slot, the first solution on a node has: int16[nodes].

        0 where there is none. Where requests before it want the same devices, counting says which it could have if they
        had others.
        """
        if not self.question.has_choice:
            return {}
        lists, codes = lists_of(self.question), np.where(self.mask, self.reason_codes, NO_REASON)
        used = distinct(np.append(codes, np.int32(NO_REASON)))
        ways = map(self.reasons.__getitem__, used[1:].tolist())
        asks = [bytes(2 * len(lists)), *(way for way in ways if isinstance(way, Way))]
        table = np.frombuffer(b"".join(asks), np.int16).reshape(len(used), len(lists))
        return dict(zip(lists, table[np.searchsorted(used, codes)].T, strict=True))

    def later(self) -> NDArray[np.int64] | None:
        """Tell how many alternatives the first solution on each node passes over: int64[nodes]; None without any."""
        if not self.question.has_choice:
            return None
        found = np.zeros(len(self.verdicts), np.int64)
        for chosen in self.chosen().values():
            found += chosen
        return found

    def reason(self, node: int, asker: Question | None = None) -> Reason | Failure | Undecided | None:
        """Say why *node* does not fit; None where it does. *asker* asks the same, maybe for claims of other names."""
        question, code = asker or self.question, self.reason_codes[node].item()
        known = None if code == NO_REASON else self.reasons[code]
        if isinstance(known, Reason):
            return known.named(question)
        if self.verdicts[node] == Verdict.FITS:
            return None
        # What errs is told by the names of who asks, never of who asked first.
        found = choose(self.snapshot, node, compiled_anew(question), self.manner)
        return found if isinstance(found, Failure | Undecided) else None
