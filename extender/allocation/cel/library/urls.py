"""URLs, taken apart as Go's net/url does."""

import re
from collections.abc import Iterator
from ipaddress import IPv6Address

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.types import BOOL, STRING, URL, list_of, map_of
from extender.allocation.cel.values import Link

SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
PORT = re.compile(r":[0-9]*")
USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
PERCENT = re.compile(r"%([0-9a-fA-F]{2})")
# What a host may contain beside letters and digits, and what it may have encoded.
HOST = re.compile(r"(?:[A-Za-z0-9_.~!$&'()*+,;=:\[\]<>\"-]|[^\x00-\x7f]|%25|%[89a-fA-F][0-9a-fA-F])*")
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
KEPT = UNRESERVED | frozenset(b"!'()*[]%")
USER_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,;=")
HOST_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~!$&'()*+,;=:[]<>\"")


def parse(budget: Budget, text: str) -> Link:
    """Read an absolute URL or an absolute path; raise Failed for anything else."""
    budget.walk(text)
    if not text or CONTROL.search(text):
        raise invalid("empty url" if not text else "invalid control character in URL")
    if text == "*":
        return Link("*", "", "", "*", "")
    _split(text, is_request=True)
    before, hash_mark, fragment = text.partition("#")
    link = _split(before, is_request=False)
    if not hash_mark:
        return link
    _require_percent(fragment)
    return link._replace(text=f"{link.text}#{_escaped(fragment)}" if fragment else link.text)


def invalid(reason: str) -> Failed:
    return Failed(f"URL parse error during conversion from string: {reason}")


def _split(text: str, *, is_request: bool) -> Link:
    if text.startswith(":"):
        raise invalid("missing protocol scheme")
    match = SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    rest = text[match.end() :] if match else text
    rest, mark, query = rest.partition("?")
    suffix = f"?{query}" if mark else ""
    if not rest.startswith("/"):
        if scheme:
            return Link(f"{scheme}:{rest}{suffix}", scheme, "", "", query)
        if is_request or ":" in rest.partition("/")[0]:
            raise invalid("invalid URI for request")
    host, authority = "", ""
    if rest.startswith("//") and (scheme or (not is_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(authority, scheme)
        authority = "//" + authority if authority or rest else ""
    _require_percent(rest)
    path = _escaped(rest)
    prefix = f"{scheme}:" if scheme else ""
    return Link(f"{prefix}{_shown(authority, host)}{path}{suffix}", scheme, host, path, query)


def _shown(authority: str, host: str) -> str:
    """Write user and host; the host is escaped anew."""
    if not authority:
        return ""
    user, at, _ = authority[2:].rpartition("@")
    escaped = "".join(
        chr(byte) if byte in HOST_KEPT else f"%{byte:02X}" for byte in host.encode("utf-8", "surrogateescape")
    )
    name, colon, password = user.partition(":")
    return f"//{_user(name)}{colon}{_user(password)}{at}{escaped}"


def _user(text: str) -> str:
    plain = _decoded(text).encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in USER_KEPT else f"%{byte:02X}" for byte in plain)


def _require_percent(text: str) -> None:
    if BAD_PERCENT.search(text):
        raise invalid("invalid URL escape")


def _host(authority: str, scheme: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not USER.fullmatch(user):
        raise invalid("net/url: invalid userinfo")
    _require_percent(authority)
    if host.startswith("["):
        return _literal(host)
    if "[" in host:
        raise invalid("invalid IP-literal")
    colon = host.find(":")
    if colon >= 0:
        last = host.rfind(":")
        port = host[colon if scheme in ("http", "https") else last :]
        if not PORT.fullmatch(port):
            raise invalid(f"invalid port {port!r} after host")
    return _decoded_host(host)


def _literal(host: str) -> str:
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise invalid("missing ']' in host")
    if port and not PORT.fullmatch(port):
        raise invalid(f"invalid port {port!r} after host")
    name, zone_mark, zone = address.partition("%25")
    name = _decoded_host(name)
    zone = _decoded(zone)
    try:
        IPv6Address(name + ("%" + zone if zone_mark else ""))
    except ValueError:
        raise invalid("invalid host") from None
    return f"[{name}{'%' if zone_mark else ''}{zone}]{port}"


def _decoded_host(host: str) -> str:
    if not HOST.fullmatch(host):
        raise invalid("invalid character in host name")
    return _decoded(host)


def _decoded(text: str) -> str:
    """Decode percent escapes; bytes that are no UTF-8 stay as surrogates."""
    if "%" not in text:
        return text
    raw = PERCENT.sub(lambda match: chr(0xDC00 + code) if (code := int(match[1], 16)) > 127 else chr(code), text)
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _escaped(path: str) -> str:
    """Return the path as it was written where that is a valid encoding, else encoded anew."""
    raw = path.encode("utf-8", "replace")
    if all(byte in KEPT for byte in raw):
        return path
    plain = _decoded(path).encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in plain)


def hostname(link: Link) -> str:
    name = _without_port(link.host)
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and PORT.fullmatch(":" + port) else host


def port(link: Link) -> str:
    return link.host[len(_without_port(link.host)) + 1 :]


def query(budget: Budget, link: Link) -> dict[object, object]:
    found: dict[object, tuple[str, ...]] = {}
    budget.characters(len(link.query))
    for part in link.query.split("&"):
        if not part or ";" in part or BAD_PERCENT.search(part):
            continue
        name, _, value = part.replace("+", " ").partition("=")
        found[_decoded(name)] = (*found.get(_decoded(name), ()), _decoded(value))
        budget.spend(1 + len(found[_decoded(name)]))
    return dict(found)


def is_url(budget: Budget, text: str) -> bool:
    try:
        budget.walk(text)
        if not text or CONTROL.search(text):
            return False
        if text != "*":
            _split(text, is_request=True)
    except Failed:
        return False
    return True


def overloads() -> Iterator[Overload]:
    yield metered(function("url", (STRING,), URL, parse))
    yield metered(function("isURL", (STRING,), BOOL, is_url))
    yield method("getScheme", (URL,), STRING, lambda link: link.scheme)
    yield method("getHost", (URL,), STRING, lambda link: link.host)
    yield method("getHostname", (URL,), STRING, hostname)
    yield method("getPort", (URL,), STRING, port)
    yield method("getEscapedPath", (URL,), STRING, lambda link: link.escaped_path)
    yield metered(method("getQuery", (URL,), map_of(STRING, list_of(STRING)), query))
