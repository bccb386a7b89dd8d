"""When certificates run out, out of files that OpenSSL has taken: Python tells that of those of others alone."""

import re
from binascii import a2b_base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

WRITTEN: Final = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END ", re.DOTALL)
# Tags: the version, which alone may be missing before the validity; and the time with two digits for the year.
VERSION, UTC_TIME = 0xA0, 0x17


def expiry_in(pem: bytes) -> float | None:
    """Return when the first certificate of *pem* runs out, in seconds since 1970; None where nobody can say."""
    try:
        return min(_expiry_of(a2b_base64(written)) for written in WRITTEN.findall(pem))
    except (IndexError, ValueError):
        return None


def _expiry_of(certificate: bytes) -> float:
    """Read as RFC 5280 writes it: serial number, algorithm, issuer, and then from when until when it holds."""
    (_, whole), *_ = _parts(certificate)
    (_, signed), *_ = _parts(whole)
    fields = [content for tag, content in _parts(signed) if tag != VERSION]
    _, (tag, until) = _parts(fields[3])
    century = ("19" if until[:1] >= b"5" else "20") if tag == UTC_TIME else ""
    return datetime.strptime(f"{century}{until.decode()}", "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _parts(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what stands in *der*, one after another: each with its tag."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size]), at + size
        yield tag, der[at : at + length]
        at += length
