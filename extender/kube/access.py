"""Where the API server is, and how it knows us."""

import re
import ssl
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import urlsplit

from extender.model.frozen import dataclass
from extender.model.parse.fields import Malformed

SCHEMES: Final = ("https://", "http://")
# Of a name or an address, to which neither a space nor what ends a host belongs.
HOST: Final = re.compile(r"[\w.:%-]+")
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What every request needs. *authorization* is the value of the header; empty with a client certificate alone.

    until: when that certificate of a plain kubeconfig runs out, in seconds since 1970.
    """

    server: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Access, and the files that it was read from, each with a digest of what was read there.

    lacks: the file that its token should be from, where there was none in it; context: of a kubeconfig, that was read;
    flaw: what could not be used, in place of which there is what was before.
    """

    access: Access
    files: Mapping[str, bytes]
    lacks: str = ""
    context: str = ""
    flaw: str = ""


class Credentials(Protocol):
    """Gives access as it is now: what is rotated on disk is seen by the next request but for a few seconds."""

    async def access(self) -> Access:
        """Return what there is, read anew where it has changed."""

    async def renew(self, refused: Access) -> None:
        """Read everything again, for the API server has *refused* what there was; unless that is the past."""


class Fixed:
    """Access that never changes."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def access(self) -> Access:
        return self._access

    async def renew(self, refused: Access | None = None) -> None:
        """Change nothing: there is nowhere to read from."""


def sendable(token: str, named: str) -> str:
    """Return *token*; raise Malformed, with what it is *named* and not with what it is, where no header can have it."""
    if CONTROLS.search(token):
        raise Malformed(named, "gives a token with a line feed, or another control character, in it")
    return token


def server_of(text: str, named: str) -> str:
    """Return the address of a server as requests begin; raise Malformed, with what it is *named*, where it is none."""
    if not text.startswith(SCHEMES):
        raise Malformed(named, "begins with neither https:// nor http://")
    try:
        parts = urlsplit(text)
        # As the resolver will.
        host, _ = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError as error:
        raise Malformed(named, f"is no address of a server: {error}") from error
    if "@" in parts.netloc:
        raise Malformed(named, "has a user in it, who belongs into users")
    if not (HOST.fullmatch(host) and text.isprintable()):
        raise Malformed(named, "is no address of a server: it has no host, or one that cannot be")
    return text.rstrip("/")
