"""How a write ended, as far as anybody can know."""

from typing import Final

from extender.kube.answer import Answer, Complaint, Json, Unanswered, complaint_of
from extender.model.frozen import dataclass
from extender.scheduling.steps import Later, Refusal

DEFAULT_PAUSE_S: Final = 1.0
UID: Final = "metadata.uid"


@dataclass(frozen=True, slots=True)
class Done:
    """The write landed; *object* is what the API server answered."""

    object: Json

    @property
    def resource_version(self) -> str:
        metadata = self.object.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The write did not land and will not."""

    kind: Refusal
    status: int
    reason: str
    message: str

    def __str__(self) -> str:
        """Say for people what was answered."""
        told = " ".join(filter(None, (str(self.status or ""), self.reason)))
        return f"{told}: {self.message}" if told else self.message


@dataclass(frozen=True, slots=True)
class Unknown:
    """The write may have landed, and may land yet: no answer, a 5xx, a 408, or a success that cannot be read."""

    why: str
    status: int | None = None

    def __str__(self) -> str:
        """Say for people why nobody knows."""
        return self.why


Outcome = Done | Refused | Later | Unknown

KINDS: Final = {
    401: Refusal.FORBIDDEN,
    403: Refusal.FORBIDDEN,
    404: Refusal.NOT_FOUND,
    409: Refusal.CONFLICT,
    422: Refusal.INVALID,
}


def is_answered(outcome: Outcome) -> bool:
    """Tell whether the API server has decided: what never left says no more of it than what had no answer."""
    if isinstance(outcome, Refused):
        return outcome.kind is not Refusal.UNSENT
    return isinstance(outcome, Done)


def outcome_of(reply: Answer | Unanswered) -> Outcome:
    """Tell what became of a write."""
    if isinstance(reply, Unanswered):
        if reply.was_sent:
            return Unknown(reply.why)
        return Refused(kind=Refusal.UNSENT, status=0, reason="", message=reply.why)
    if reply.is_success:
        read = reply.json()
        return Unknown("success, but no JSON object", reply.status) if read is None else Done(read)
    return _refusal(complaint_of(reply))


def _refusal(complaint: Complaint) -> Outcome:
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
        return Unknown(f"{code} {complaint.reason}: {complaint.message}", code)
    return Refused(kind=_kind(complaint), status=code, reason=complaint.reason, message=complaint.message)


def _kind(complaint: Complaint) -> Refusal:
    if complaint.reason == "AlreadyExists":
        return Refusal.EXISTS
    if UID in complaint.fields:
        # A patch that names another object's uid: the API server takes it for an attempt to change the uid.
        return Refusal.CONFLICT
    # Without a reason it is not the API server that speaks: a proxy's 404 does not mean that an object is gone.
    return KINDS.get(complaint.code, Refusal.REJECTED) if complaint.reason else Refusal.REJECTED
