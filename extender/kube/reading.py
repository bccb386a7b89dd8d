"""How pages and events of a resource are read: whole, or of each object only the part that is looked at."""

from typing import Any, Final, Generic, TypedDict, TypeVar, cast

import msgspec

from extender.kube.decoding import Read, decoded
from extender.model.frozen import dataclass

T = TypeVar("T")


class _Page(TypedDict, Generic[T], total=False):
    metadata: Any
    items: list[T]


class _Event(TypedDict, Generic[T], total=False):
    type: Any
    object: T


@dataclass(frozen=True, slots=True)
class Reading:
    """Functions from JSON to what it says; they raise JSONDecodeError where it is none."""

    page: Read = decoded
    event: Read = decoded


WHOLE: Final = Reading()


def reading_of(part: type) -> Reading:
    """Read of each object what *part*, a TypedDict, names: the rest costs a fifth, and never becomes an object."""
    return Reading(_partly(cast("Any", _Page)[part]), _partly(cast("Any", _Event)[part]))


def _partly(shape: object) -> Read:
    decode = msgspec.json.Decoder(cast("Any", shape)).decode

    def read(text: bytes) -> Any:  # noqa: ANN401 - JSON may be anything
        try:
            return decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            # Whoever finds that something is not as it should be says what: for that it is read as a whole.
            return decoded(text)

    return read
