"""URLs, taken apart as Go's net/url does."""

import re
from collections.abc import Iterator
from ipaddress import IPv6Address

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.formatting import quoted
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
NAME = r"[A-Za-z0-9_.~!$&'()*+,;=:\[\]<>\"-]|[^\x00-\x7f]|%25"
HOST = re.compile(f"(?:{NAME}|%[89a-fA-F][0-9a-fA-F])*")
# The zone of an address may have other things encoded: a space, and whatever a host may contain as it is.
ZONE = re.compile(
    f"(?:{NAME}|%2[01246-9a-eA-E]|%3[0-9a-eA-E]|%4[1-9a-fA-F]|%5[0-9abdfABDF]|%6[1-9a-fA-F]|%7[0-9aAeE])*"
)
# What is shown as it is, and the steps of a character where there is anything else.
PLAIN = re.compile(r"[A-Za-z0-9_.~$&+,/:;=@!'()*?#\[\]-]*")
ESCAPED = 10
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
KEPT = UNRESERVED | frozenset(b"!'()*[]%")
# What a fragment has as it is, too.
FRAGMENT = UNRESERVED | frozenset(b"?!()*")
USER_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,;=")
HOST_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~!$&'()*+,;=:[]<>\"")


def parse(budget: Budget, text: str) -> Link:
    """Read an absolute URL or an absolute path; raise Failed for anything else."""
    budget.spend(_price(text))
    try:
        return _parsed(text)
    except Failed as error:
        raise Failed(f"URL parse error during conversion from string: {error}") from None


def _price(text: str) -> int:
    """Return the steps that it takes to read *text*: what is escaped, or has to be, takes far longer."""
    return len(text) if PLAIN.fullmatch(text) else ESCAPED * len(text)


def _parsed(text: str) -> Link:
    _split(text, is_request=True)
    before, _, fragment = text.partition("#")
    link = _split(before, is_request=False)
    _require_escapes(fragment)
    return link._replace(text=f"{link.text}#{_escaped(fragment, FRAGMENT)}" if fragment else link.text)


def problem_of(text: str) -> str:
    """Tell in Go's words why *text* is no absolute URL, "" where it is one."""
    try:
        _split(text, is_request=True)
    except Failed as error:
        return f"parse {quoted(text)}: {error}"
    return ""


def _split(text: str, *, is_request: bool) -> Link:
    if CONTROL.search(text):
        raise Failed("net/url: invalid control character in URL")
    if not text and is_request:
        raise Failed("empty url")
    if text == "*":
        return Link("*", "", "", "*", "")
    if text.startswith(":"):
        raise Failed("missing protocol scheme")
    match = SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    rest = text[match.end() :] if match else text
    rest, mark, query = rest.partition("?")
    suffix = f"?{query}" if mark else ""
    if not rest.startswith("/"):
        if scheme:
            return Link(f"{scheme}:{rest}{suffix}", scheme, "", "", query)
        if is_request or ":" in rest.partition("/")[0]:
            raise Failed("invalid URI for request")
    host, authority = "", ""
    if rest.startswith("//") and (scheme or (not is_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(authority, scheme)
        authority = "//" + authority if authority or rest else ""
    _require_escapes(rest)
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


def _require_escapes(text: str) -> None:
    wrong = BAD_PERCENT.search(text)
    if wrong is not None:
        raise Failed(f"invalid URL escape {quoted(text[wrong.start() : wrong.start() + 3])}")


def _host(authority: str, scheme: str) -> str:
    user, at, host = authority.rpartition("@")
    found = _bare_host(host, scheme)
    if at and not USER.fullmatch(user):
        raise Failed("net/url: invalid userinfo")
    _require_escapes(user)
    return found


def _bare_host(host: str, scheme: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise Failed("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
    if colon >= 0:
        _require_port(host[colon:])
    return _decoded_host(host)


def _require_port(port: str) -> None:
    if port and not PORT.fullmatch(port):
        raise Failed(f"invalid port {quoted(port)} after host")


def _literal(host: str) -> str:
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise Failed("missing ']' in host")
    _require_port(port)
    name, zone_mark, zone = address.partition("%25")
    number = _decoded_host(name)
    whole = number + _decoded_host(zone_mark + zone, ZONE)
    try:
        # Python knows of zones, but of none with a percent sign.
        IPv6Address(whole if zone_mark and not zone else number)
    except ValueError:
        raise Failed(f"invalid host: ParseAddr({quoted(whole)}): unable to parse IP") from None
    return f"[{whole}]{port}"


def _decoded_host(host: str, allowed: re.Pattern[str] = HOST) -> str:
    valid = allowed.match(host)
    end = 0 if valid is None else valid.end()
    if host[end : end + 1] == "%":
        raise Failed(f"invalid URL escape {quoted(host[end : end + 3])}")
    if end < len(host):
        raise Failed(f"invalid character {quoted(host[end])} in host name")
    return _decoded(host)


def _decoded(text: str) -> str:
    """Decode percent escapes; bytes that are no UTF-8 stay as surrogates."""
    if "%" not in text:
        return text
    raw = PERCENT.sub(lambda match: chr(0xDC00 + code) if (code := int(match[1], 16)) > 127 else chr(code), text)
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _escaped(part: str, plain: frozenset[int] = UNRESERVED) -> str:
    """Return a path or a fragment as it was written where that is a valid encoding, else encoded anew."""
    if all(byte in KEPT or byte in plain for byte in part.encode("utf-8", "replace")):
        return part
    decoded = _decoded(part).encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in decoded)


def hostname(budget: Budget, link: Link) -> str:
    budget.walk(link.host)
    name = _without_port(link.host)
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and PORT.fullmatch(":" + port) else host


def port(budget: Budget, link: Link) -> str:
    budget.walk(link.host)
    return link.host[len(_without_port(link.host)) + 1 :]


def query(budget: Budget, link: Link) -> dict[object, object]:
    found: dict[object, tuple[str, ...]] = {}
    budget.characters(len(link.query))
    if "%" in link.query:
        budget.spend(len(link.query))
    for part in link.query.split("&"):
        if not part or ";" in part or BAD_PERCENT.search(part):
            continue
        name, _, value = part.replace("+", " ").partition("=")
        found[_decoded(name)] = (*found.get(_decoded(name), ()), _decoded(value))
        budget.spend(1 + len(found[_decoded(name)]))
    return dict(found)


def is_url(budget: Budget, text: str) -> bool:
    budget.spend(_price(text))
    return not problem_of(text)


def overloads() -> Iterator[Overload]:
    yield metered(function("url", (STRING,), URL, parse))
    yield metered(function("isURL", (STRING,), BOOL, is_url))
    yield method("getScheme", (URL,), STRING, lambda link: link.scheme)
    yield method("getHost", (URL,), STRING, lambda link: link.host)
    yield metered(method("getHostname", (URL,), STRING, hostname))
    yield metered(method("getPort", (URL,), STRING, port))
    yield method("getEscapedPath", (URL,), STRING, lambda link: link.escaped_path)
    yield metered(method("getQuery", (URL,), map_of(STRING, list_of(STRING)), query))
