"""What is written alike is read once: nearly all that a cluster has was made from few templates, and is shown often."""

import marshal
from collections.abc import Callable
from typing import Any, Final, TypeVar

from extender.model.parse.fields import Fields

T = TypeVar("T")

# How it is written is the key. From the third version on the same may be written in different ways.
FORMAT: Final = 2
# What is longer is rare, and not worth the memory.
LONGEST: Final = 4096


def whole(fields: Fields) -> object:
    """Everything counts."""
    return fields.raw


def written_length(raw: Any) -> int:  # noqa: ANN401 - JSON may be anything
    """Say how long *raw* is in bytes; nothing where it is nested as nothing is."""
    try:
        return len(marshal.dumps(raw, FORMAT))
    except ValueError:
        return 0


def alike(
    read: Callable[[Fields, str], T], most: int, what: Callable[[Fields], object] = whole
) -> Callable[[Fields, str], T]:
    """Return *read* with a memory of the *most* that it read last. *what* must have all that it looks at.

    The second argument is the version of the API, where that counts. What cannot be read is not remembered.
    """
    known: dict[bytes, T] = {}

    def remembered(fields: Fields, version: str = "") -> T:
        try:
            key: Any = what(fields), version
            written = marshal.dumps(key, FORMAT)
        except (AttributeError, TypeError, ValueError):
            # It is not what it should be, or nested as nothing is: whoever reads it says so.
            return read(fields, version)
        if written in known:
            return known[written]
        found = read(fields, version)
        if len(written) <= LONGEST:
            if len(known) >= most:
                known.clear()
            known[written] = found
        return found

    return remembered
