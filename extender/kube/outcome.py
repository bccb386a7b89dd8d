"""How a request ended, as far as anybody can know."""

from typing import Final

from extender.kube.answer import Answer, Complaint, Json, Unanswered, complaint_of
from extender.kube.request import UNAUTHORIZED
from extender.model.frozen import dataclass
from extender.scheduling.steps import Later, Refusal, Refused, Unknown

__all__ = ["Refused", "RequestOutcome", "Succeeded", "Unknown", "is_answered", "outcome_of"]
DEFAULT_PAUSE_S: Final = 1.0
UID: Final = "metadata.uid"
# So the API server tells of a webhook that denies.
DENIED: Final = "admission webhook "


@dataclass(frozen=True, slots=True)
class Succeeded:
    """What was asked is done; *object* is what the API server answered."""

    object: Json

    @property
    def resource_version(self) -> str:
        metadata = self.object.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""


RequestOutcome = Succeeded | Refused | Later | Unknown

KINDS: Final = {
    401: Refusal.FORBIDDEN,
    403: Refusal.FORBIDDEN,
    404: Refusal.NOT_FOUND,
    409: Refusal.CONFLICT,
    422: Refusal.INVALID,
}


def is_answered(outcome: RequestOutcome) -> bool:
    """Tell whether the API server has decided: what never left says no more of it than what had no answer.

    Neither does a 401, with which it may answer as long as our new credentials are not in our files.
    """
    if isinstance(outcome, Refused):
        return outcome.kind is not Refusal.UNSENT and outcome.status != UNAUTHORIZED
    return isinstance(outcome, Succeeded)


def outcome_of(reply: Answer | Unanswered) -> RequestOutcome:
    """Read from a *reply* how a write, or a read, has ended."""
    if isinstance(reply, Unanswered):
        return Unknown(reply.why) if reply.was_sent else Refused(Refusal.UNSENT, reply.why)
    if reply.is_success:
        read = reply.json()
        return Unknown("success, but no JSON object", is_answered=True) if read is None else Succeeded(read)
    return _refusal(complaint_of(reply))


def _refusal(complaint: Complaint) -> RequestOutcome:
    code, pause_s = complaint.code, complaint.retry_after_s
    # The API server answers so while it starts or ends, before it handles a request. A proxy, that from one API server
    # to another included, gives no reason, and may have passed the request on.
    is_turned_away = code == 503 and complaint.reason == "ServiceUnavailable" and pause_s is not None
    # 429 is plain text where it is about too many requests: whoever says so has passed nothing on.
    if code == 429 or is_turned_away:
        return Later(pause_s or DEFAULT_PAUSE_S, complaint.message)
    if code >= 500 or code < 300 or code == 408:
        # A time-out of etcd or of a proxy arrives so, and the write behind it may still land. 408 is only said by
        # proxies, by some of them where nothing came back in time.
        return Unknown(f"{code} {complaint.reason}: {complaint.message}", is_answered=True)
    return Refused(_kind(complaint), complaint.message, code, complaint.reason)


def _kind(complaint: Complaint) -> Refusal:
    if complaint.message.startswith(DENIED):
        # With whatever code and reason it likes: that the object is gone, or has moved on, is not its to say.
        return Refusal.REJECTED
    if complaint.reason == "AlreadyExists":
        return Refusal.EXISTS
    if UID in complaint.fields:
        # A patch that names another object's uid: the API server takes it for an attempt to change the uid.
        return Refusal.CONFLICT
    # Without a reason it is not the API server that speaks: a proxy's 404 does not mean that an object is gone.
    return KINDS.get(complaint.code, Refusal.REJECTED) if complaint.reason else Refusal.REJECTED
