"""Claims in protobuf, as far as we change them: all else stays the bytes that it was."""

from collections.abc import Iterator, Sequence
from typing import Final

from extender.model.claim import Consumer

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
# What the API server puts before an object, which is the second field of what follows.
MAGIC: Final = b"k8s\x00"
RAW: Final = 2
# Fields of a claim, of its metadata, of an annotation, of its status, and of whom it is reserved for.
METADATA, STATUS = 1, 3
UID, RESOURCE_VERSION, ANNOTATIONS, FINALIZERS = 5, 6, 12, 14
KEY, VALUE = 1, 2
RESERVED_FOR: Final = 2
API_GROUP, RESOURCE, NAME, CONSUMER = 1, 3, 4, 5
# Of a field that is as long as it says: a string, bytes, or a message.
COUNTED: Final = 2


def guard(uid: str) -> bytes:
    """Spell what has a claim land on the one with *uid*, or not at all; its version it says itself."""
    return field(METADATA, field(UID, uid.encode()))


def with_finalizer(claim: bytes, finalizer: str) -> bytes:
    """Return a claim with one finalizer more: a message that comes twice has what both say."""
    return claim + field(METADATA, field(FINALIZERS, finalizer.encode()))


def with_annotation(claim: bytes, name: str, value: str) -> bytes:
    """Return a claim that is annotated so, too."""
    return claim + field(METADATA, field(ANNOTATIONS, field(KEY, name.encode()) + field(VALUE, value.encode())))


def reserved(claim: bytes, consumers: Sequence[Consumer]) -> bytes:
    """Return a claim that is reserved for *consumers*, and for nobody else; who is there already stays as he is."""
    parts = [field(number, _unreserved(read) if number == STATUS else read) for number, read in _fields(claim)]
    there = [entry for number, read in _fields(claim) if number == STATUS for entry in _reserved(read)]
    listed = (field(RESERVED_FOR, _entry(each, there)) for each in consumers)
    return b"".join([*parts, field(STATUS, b"".join(listed))])


def sent(body: bytes) -> bytes:
    """Return the claim that the API server sent. Raises ValueError where it sent none in protobuf."""
    return dict(_envelope(body)).get(RAW, b"")


def version_of(claim: bytes) -> str:
    """Return the version of a claim. Raises ValueError where it has none."""
    for number, metadata in _fields(claim):
        for inner, text in _fields(metadata) if number == METADATA else ():
            if inner == RESOURCE_VERSION:
                return text.decode()
    raise ValueError("no object in protobuf: it has no version")


def to_send(body: bytes, claim: bytes) -> bytes:
    """Return *body*, which the API server sent, with *claim* in the place of its own."""
    return MAGIC + b"".join(field(number, claim if number == RAW else read) for number, read in _envelope(body))


def _envelope(body: bytes) -> Iterator[tuple[int, bytes]]:
    if not body.startswith(MAGIC):
        raise ValueError(f"no object in protobuf: it begins with {body[:4]!r}")
    return _fields(body[len(MAGIC) :])


def _unreserved(status: bytes) -> bytes:
    return b"".join(field(number, read) for number, read in _fields(status) if number != RESERVED_FOR)


def _reserved(status: bytes) -> list[bytes]:
    return [read for number, read in _fields(status) if number == RESERVED_FOR]


def _entry(item: Consumer, there: Sequence[bytes]) -> bytes:
    uid = item.uid.encode()
    return next((entry for entry in there if _uid_of(entry) == uid), None) or _consumer(item)


def _uid_of(consumer: bytes) -> bytes:
    # What is not known here comes later, and may be no text.
    return next((read for number, read in _fields(consumer) if number == CONSUMER), b"")


def _consumer(item: Consumer) -> bytes:
    parts = (API_GROUP, item.api_group), (RESOURCE, item.resource), (NAME, item.name), (CONSUMER, item.uid)
    return b"".join(_text(number, text) for number, text in parts)


def _text(number: int, text: str) -> bytes:
    return field(number, text.encode()) if text else b""


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
    # By index: a slice would copy the rest of the message for each of its fields.
    for end in range(at, len(message)):
        number |= (message[end] & 0x7F) << shift
        if message[end] < 0x80:
            return number, end + 1
        shift += 7
    raise ValueError("no object in protobuf: it ends within a number")
