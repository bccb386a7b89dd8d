"""What comes back from the API server, or does not."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from extender.kube.decoding import Read, decoded
from extender.model.frozen import dataclass

Json = dict[str, Any]
MAX_TEXT: Final = 500
PAUSE_UNTIL_A_DATE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of any status. *headers* are found by lower-case names; *body* is what came, JSON or not."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json(self, read: Read = decoded) -> Json | None:
        """Return the object in the body; None where there is something else, as the HTML of a proxy."""
        try:
            found = read(self.body)
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No response. Unless *was_sent* is false the API server may have acted all the same, even later."""

    was_sent: bool
    why: str


@dataclass(frozen=True, slots=True)
class Complaint:
    """A Status object that reports a failure, or what can be told without one."""

    code: int
    reason: str
    message: str
    retry_after_s: float | None = None
    fields: tuple[str, ...] = ()


def complaint_of(answer: Answer) -> Complaint:
    """Read why the API server, or something before it, refused."""
    status = answer.json() or {}
    given = status.get("details")
    details = given if isinstance(given, dict) else {}
    return Complaint(
        code=answer.status,
        reason=_text(status.get("reason")),
        message=_text(status.get("message")) or answer.body[:MAX_TEXT].decode(errors="replace").strip(),
        retry_after_s=_pause(_seconds(answer.headers.get("retry-after")), _number(details.get("retryAfterSeconds"))),
        fields=tuple(_fields(details)),
    )


def complaint_in(status: Json) -> Complaint:
    """Read the Status object of an ERROR event."""
    code = status.get("code")
    return Complaint(code if isinstance(code, int) else 0, _text(status.get("reason")), _text(status.get("message")))


def _fields(details: Json) -> Iterator[str]:
    """Yield the fields that an object is refused for."""
    causes = details.get("causes")
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and isinstance(cause.get("field"), str):
            yield cause["field"]


def _text(value: object) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _pause(*asked: float | None) -> float | None:
    """Return the first pause that is asked for; whoever asks for a very long one is asked again before."""
    return next((min(seconds, LONGEST_PAUSE_S) for seconds in asked if seconds is not None), None)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int) and value > 0 else None


def _seconds(header: str | None) -> float | None:
    """Read Retry-After. A date, as only proxies write it, asks for a pause too; how long is for us to say."""
    if header is None:
        return None
    # "²" is a digit, too, and no number.
    return float(header) if header.isascii() and header.strip().isdigit() else PAUSE_UNTIL_A_DATE_S
