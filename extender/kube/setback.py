"""Why a read did not go on, and what that asks for."""

from enum import Enum
from typing import Final

from extender.kube.answer import Answer, Complaint, Unanswered, complaint_of
from extender.model.frozen import dataclass

EXPIRED: Final = ("Expired", "Gone")
# What a client is told and what is over soon: a token renewed, a time limit, a list begun anew, too many requests.
PASSING: Final = frozenset((401, 408, 410, 429))


class Remedy(Enum):
    """What to do about it, after a pause."""

    AGAIN = "again"  # the same once more
    RELIST = "relist"  # the versions that we have are no longer served
    REDISCOVER = "rediscover"  # the path leads nowhere


@dataclass(frozen=True, slots=True)
class Setback:
    """*pause_s* is what the API server asks for at least. *is_lasting*: asked again, it would say the same.

    *is_behind*: it is not even where it was before, now; it may have been set back. *is_expired*: it was asked about
    versions that it does not keep any more.
    """

    why: str
    remedy: Remedy = Remedy.AGAIN
    pause_s: float = 0.0
    is_lasting: bool = False
    is_behind: bool = False
    is_expired: bool = False

    @property
    def is_passing(self) -> bool:
        """Whether the same, asked for once more, may be answered."""
        return self.remedy is Remedy.AGAIN and not self.is_lasting


def setback_of(reply: Answer | Unanswered) -> Setback:
    """Read a *reply* that is not what was asked for; a success too is none where it is no JSON object."""
    if isinstance(reply, Unanswered):
        return Setback(reply.why)
    if reply.is_success:
        return Setback(f"{reply.status}, but no JSON object of ours: {reply.headers.get('content-type', 'no type')}")
    return setback_in(complaint_of(reply))


def setback_in(complaint: Complaint) -> Setback:
    """Read a failure that the API server reports, as a response or within a stream."""
    why = " ".join(filter(None, (str(complaint.code), complaint.reason, complaint.message)))
    remedy, is_expired = Remedy.AGAIN, complaint.code == 410 or complaint.reason in EXPIRED
    if is_expired:
        remedy = Remedy.RELIST
    elif complaint.code == 404:
        remedy = Remedy.REDISCOVER
    is_lasting = complaint.code // 100 == 4 and complaint.code not in PASSING
    return Setback(why, remedy, complaint.retry_after_s or 0.0, is_lasting, is_expired=is_expired)
