"""A request to the API server, and whether any of it can have left."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlencode

import orjson

from extender.model.frozen import dataclass

Query = Sequence[tuple[str, str]]

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
UNAUTHORIZED: Final = 401
TOO_LARGE: Final = 413


def unhindered() -> str:
    """Keep nothing back."""
    return ""


class KeptBackError(Exception):
    """A request was not sent, for its sender must not send it any more."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: JSON, of which a patch is a list, or bytes as they are.

    *why_not*, asked last, says what keeps it from being sent.
    """

    content: object
    content_type: str = JSON
    why_not: Callable[[], str] = unhindered


class Request:
    """A request, and whether any of it can have left. *is_last*: no other is sent over its connection."""

    def __init__(
        self, method: str, path: str, query: Query = (), body: Body | None = None, *, is_last: bool = False
    ) -> None:
        self.method = method
        self.path = path
        self.is_last = is_last
        self.accept = JSON
        self.target = f"{path}?{_encoded(tuple(query))}" if query else path
        self.data = None if body is None else _encoded_body(body.content)
        self.content_type = JSON if body is None else body.content_type
        self.why_not = unhindered if body is None else body.why_not
        self.was_sent = False

    def check(self) -> None:
        """Raise KeptBackError where it must not be sent any more."""
        why_not = self.why_not()
        if why_not:
            raise KeptBackError(why_not)

    def heard(self, status: int) -> None:
        """Take over what the head of an answer says of what was sent: of whom it does not know it does nothing."""
        if status == UNAUTHORIZED:
            self.was_sent = False


def _encoded_body(content: object) -> bytes:
    return content if isinstance(content, bytes) else orjson.dumps(content)


# Writes ask the same each time.
_encoded: Final = lru_cache(maxsize=64)(urlencode)
