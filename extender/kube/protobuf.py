"""Objects in protobuf, as far as something can be added to their metadata: all else stays the bytes that it was."""

from collections.abc import Iterator, Sequence
from typing import Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
# What the API server puts before an object, which is the second field of what follows.
MAGIC: Final = b"k8s\x00"
RAW: Final = 2
# Every object begins with its metadata; the rest are fields of these, and of an annotation.
METADATA: Final = 1
UID, RESOURCE_VERSION, ANNOTATIONS, FINALIZERS = 5, 6, 12, 14
KEY, VALUE = 1, 2
# Of a field that is as long as it says: a string, bytes, or a message.
COUNTED: Final = 2


def of(uid: str, version: str = "") -> bytes:
    """Spell metadata with which nothing lands on another object, or, where one is given, on another *version* of it."""
    return field(UID, uid.encode()) + (field(RESOURCE_VERSION, version.encode()) if version else b"")


def with_finalizers(finalizers: Sequence[str]) -> bytes:
    return b"".join(field(FINALIZERS, each.encode()) for each in finalizers)


def with_annotation(name: str, value: str) -> bytes:
    return field(ANNOTATIONS, field(KEY, name.encode()) + field(VALUE, value.encode()))


def added(body: bytes, metadata: bytes) -> bytes:
    """Return the object in *body* with *metadata* added: of lists both parts hold, of what there is one of, the last.

    So protobuf reads a message that comes twice. Raises ValueError where *body* is no object in protobuf.
    """
    if not body.startswith(MAGIC):
        raise ValueError(f"no object in protobuf: it begins with {body[:4]!r}")
    more = {RAW: field(METADATA, metadata)}
    return MAGIC + b"".join(field(number, read + more.get(number, b"")) for number, read in _fields(body[4:]))


def field(number: int, content: bytes) -> bytes:
    """Spell one field."""
    return _varint(number << 3 | COUNTED) + _varint(len(content)) + content


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Read the fields of a message in which each is as long as it says."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        length, at = _read_varint(message, at)
        if key & 7 != COUNTED or at + length > len(message):
            raise ValueError(f"no object in protobuf: field {key} of {length} bytes in {len(message)}")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(number: int) -> bytes:
    """Spell a number: seven bits in each byte, the lowest first, all but the last marked."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins there, and where it ends."""
    number = shift = 0
    for end, part in enumerate(message[at:], at + 1):
        number |= (part & 0x7F) << shift
        if part < 0x80:
            return number, end
        shift += 7
    raise ValueError("no object in protobuf: it ends within a number")
