"""What the tokens of literals stand for."""

import re

from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.|\Z))",
    re.DOTALL,
)
SURROGATES = range(0xD800, 0xE000)
MAX_DIGITS = 400


def parse_int(text: str) -> int:
    """Return a number that the negation before it may still bring into range."""
    if len(text) > MAX_DIGITS:
        raise CompileError("invalid int literal")
    return int(text, 16 if "x" in text else 10)


def in_int_range(value: int) -> bool:
    return INT_MIN <= value <= INT_MAX


def parse_uint(text: str) -> UInt:
    digits = text[:-1]
    value = parse_int(digits) if len(digits) <= MAX_DIGITS else UINT_MAX + 1
    if value > UINT_MAX:
        raise CompileError("invalid uint literal")
    return UInt(value)


def parse_double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise CompileError("invalid double literal")
    return value


def parse_string(token: str) -> str:
    """Return the string that a string token stands for."""
    body, is_raw = _body(token)
    return body if is_raw or "\\" not in body else ESCAPE.sub(_character, body)


def parse_bytes(token: str) -> bytes:
    """Return the bytes that a bytes token stands for: its text in UTF-8, escapes as single bytes."""
    body, is_raw = _body(token[1:])
    if is_raw or "\\" not in body:
        return body.encode("utf-8", "replace")
    parts: list[bytes] = []
    end = 0
    for match in ESCAPE.finditer(body):
        parts += (body[end : match.start()].encode("utf-8", "replace"), _byte(match))
        end = match.end()
    parts.append(body[end:].encode("utf-8", "replace"))
    return b"".join(parts)


def _body(token: str) -> tuple[str, bool]:
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = token[0] in "rR"
    quoted = token[1:] if is_raw else token
    quotes = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[quotes:-quotes], is_raw


def _character(match: re.Match[str]) -> str:
    simple, byte, short, long, octal, _wrong = match.groups()
    if simple:
        return SIMPLE[simple]
    if octal:
        return chr(int(octal, 8))
    digits = byte or short or long
    if not digits:
        raise CompileError("invalid escape sequence")
    code = int(digits, 16)
    if code > 0x10FFFF or code in SURROGATES:
        raise CompileError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    simple, byte, _short, _long, octal, _wrong = match.groups()
    if simple:
        return SIMPLE[simple].encode()
    if byte or octal:
        return bytes((int(byte, 16) if byte else int(octal, 8),))
    raise CompileError("unable to unescape string")
