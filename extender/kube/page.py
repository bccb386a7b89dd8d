"""A page of a list."""

from extender.kube.answer import Answer, Unanswered
from extender.kube.reading import WHOLE, Reading
from extender.kube.setback import Setback, setback_of
from extender.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """Objects, unread; the version of the whole list; and the token of the next page, empty on the last."""

    items: list[object]
    version: str
    token: str


def page_of(reply: Answer | Unanswered, reading: Reading = WHOLE) -> Page | Setback:
    """Read a page from what the API server answered."""
    read = reply.json(reading.page) if isinstance(reply, Answer) and reply.is_success else None
    if read is None:
        return setback_of(reply)
    metadata, items = read.get("metadata"), read.get("items", [])
    if not isinstance(metadata, dict) or not isinstance(items or [], list):
        return Setback("a success, but no list")
    version, token = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if not isinstance(version, str) or not version or not isinstance(token, str):
        return Setback("a list without its resourceVersion")
    return Page(items or [], version, token)
