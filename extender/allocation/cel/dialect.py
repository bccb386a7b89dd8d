"""Regular expressions of Go, put for RE2: the names of Unicode's classes, and what only RE2 takes."""

import re
from functools import lru_cache
from typing import Final

from re2 import Options, _re2

from extender.allocation.cel.errors import Failed

# Nothing else is another in RE2.
DOUBTFUL: Final = re.compile(r"\\[pP]\{|\\C|\(\?P?<")
CLASS: Final = r"(?P<escape>\\[pP](?:\{[^}]*+\}|.))"
# One part of a pattern after the other, outside of brackets and within. The name of a group that has no end is taken
# to the end: looked for again at each of many groups, it would take long.
OUTSIDE: Final = re.compile(
    rf"\\Q(?:(?!\\E).)*+|{CLASS}|(?P<byte>\\C)|\\.|(?P<group>\(\?P?<[^>]*+>?)|(?P<bracket>\[\^?\]?)|[^\\(\[]++|.",
    re.DOTALL,
)
WITHIN: Final = re.compile(rf"{CLASS}|\\.|\[:\^?[a-zA-Z]++:\]|(?P<bracket>\])|[^\\\[\]]++|.", re.DOTALL)
# What Go takes beside the names that RE2 knows too, without regard to case, blanks, hyphens and underscores.
NAMES: Final = {
    "lc": "LuLlLt",
    "casedletter": "LuLlLt",
    "assigned": "LMNPSZC",
    "cn": "LMNPSZC",
    "unassigned": "LMNPSZC",
    "letter": "L",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "mark": "M",
    "combiningmark": "M",
    "nonspacingmark": "Mn",
    "spacingmark": "Mc",
    "enclosingmark": "Me",
    "number": "N",
    "decimalnumber": "Nd",
    "digit": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P",
    "punct": "P",
    "connectorpunctuation": "Pc",
    "dashpunctuation": "Pd",
    "openpunctuation": "Ps",
    "closepunctuation": "Pe",
    "initialpunctuation": "Pi",
    "finalpunctuation": "Pf",
    "otherpunctuation": "Po",
    "symbol": "S",
    "mathsymbol": "Sm",
    "currencysymbol": "Sc",
    "modifiersymbol": "Sk",
    "othersymbol": "So",
    "separator": "Z",
    "spaceseparator": "Zs",
    "lineseparator": "Zl",
    "paragraphseparator": "Zp",
    "other": "C",
    "control": "Cc",
    "cntrl": "Cc",
    "format": "Cf",
    "surrogate": "Cs",
    "privateuse": "Co",
}
# No class has a longer name.
LONGEST: Final = 64
# Those of what is in none of the classes.
COMPLEMENTS: Final = frozenset(("cn", "unassigned"))
IGNORED: Final = str.maketrans("", "", "_- ")


def re2_of(pattern: str) -> str:
    """Return what RE2 is to be given; raise Failed for what Go refuses and RE2 takes."""
    if not DOUBTFUL.search(pattern):
        return pattern
    written: list[str] = []
    place, is_within = 0, False
    while match := (WITHIN if is_within else OUTSIDE).match(pattern, place):
        part, kind, place = match[0], match.lastgroup, match.end()
        if kind == "byte" or (kind == "group" and not part.isascii()):
            raise Failed(f"error parsing regexp: invalid escape sequence or named capture: `{part[:64]}`")
        if kind == "bracket":
            is_within = not is_within
        written.append(_class(part, is_within=is_within) if kind == "escape" else part)
    return "".join(written)


def _class(escape: str, *, is_within: bool) -> str:
    """Return a class of Unicode's under names that RE2 knows; where it cannot be put so, as it was."""
    is_negative = escape[1] == "P"
    name = escape[2:].strip("{}")
    if name.startswith("^"):
        is_negative, name = not is_negative, name[1:]
    if len(name) > LONGEST or _is_known(name):
        return escape
    loose = name.translate(IGNORED).lower()
    is_negative ^= loose in COMPLEMENTS
    members = [rf"\p{{{each}}}" for each in re.findall("[A-Z][a-z]?", NAMES.get(loose, ""))]
    if loose == "ascii":
        members = [r"\x00-", r"\x7F"]
    elif not members:
        members = [rf"\p{{{loose.capitalize()}}}"]
    if len(members) == 1:
        return members[0].replace("p", "P", 1) if is_negative else members[0]
    if is_within and is_negative:
        return r"\x{80}-\x{10FFFF}" if loose == "ascii" else escape
    if is_within:
        return "".join(members)
    return f"[{'^' * is_negative}{''.join(members)}]"


@lru_cache(maxsize=512)
def _is_known(name: str) -> bool:
    options = Options()
    options.log_errors = False
    regexp = _re2.RE2(rf"\p{{{name}}}".encode("utf-8", "replace"), options)
    return bool(regexp.ok())
