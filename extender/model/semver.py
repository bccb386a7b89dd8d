"""Semantic versions, as strict as the parser behind the version attributes of devices and CEL's ``semver()``."""

import re
from typing import Final

from extender.model.frozen import dataclass

MAX_UINT64: Final = 2**64 - 1

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,19}")
_DIGITS: Final = re.compile(r"[0-9]+")
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]+")

# A number sorts before a word; the flag in front keeps the two from being compared with each other.
Identifier = tuple[bool, int | str]
Precedence = tuple[int, int, int, bool, tuple[Identifier, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A version. Build metadata takes no part in equality, hash or order; compare ``key``, there is no ``<``."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def key(self) -> Precedence:
        """Return what orders versions: a release comes after its pre-releases."""
        return self.major, self.minor, self.patch, not self.pre, tuple((isinstance(p, str), p) for p in self.pre)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Semver) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        pre = "-" + ".".join(map(str, self.pre)) if self.pre else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{build}"


def parse_semver(text: str, *, normalize: bool = False) -> Semver:
    """Parse *text*; *normalize* first drops a leading v and leading zeros and adds missing parts, as CEL does."""
    if normalize:
        text = _normalized(text)
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError(f"{_shown(text)} is not a semantic version: it needs major, minor and patch")
    rest, has_build, build = parts[2].partition("+")
    patch, has_pre, pre = rest.partition("-")
    return Semver(
        _number(parts[0], "major"),
        _number(parts[1], "minor"),
        _number(patch, "patch"),
        tuple(_pre_release(identifier) for identifier in pre.split(".")) if has_pre else (),
        tuple(_identifier(identifier, "build metadata") for identifier in build.split(".")) if has_build else (),
    )


def _normalized(text: str) -> str:
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise ValueError(f"{_shown(text)} is not a semantic version: a short one has neither pre-release nor build")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    part = part.lstrip("0")
    return part if "0" <= part[:1] <= "9" else "0" + part


def _number(text: str, name: str) -> int:
    if _NUMBER.fullmatch(text) and (number := int(text)) <= MAX_UINT64:
        return number
    raise ValueError(f"{_shown(text)} is no {name} number of a semantic version")


def _pre_release(text: str) -> int | str:
    return _number(text, "pre-release") if _DIGITS.fullmatch(text) else _identifier(text, "pre-release")


def _identifier(text: str, name: str) -> str:
    if _IDENTIFIER.fullmatch(text):
        return text
    raise ValueError(f"{_shown(text)} is no {name} of a semantic version")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 64 else f"{text[:64]!r}..."
