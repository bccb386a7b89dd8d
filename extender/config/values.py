"""Values of settings: checked as the file has them, read as the environment and flags have them, written for people."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeVar, get_args, get_origin

from extender.allocation.features import GATES, Features
from extender.config.settings import Key

V = TypeVar("V")
DEFAULT_GATES: Final = Features()
# Far beyond any use, and as much as a column holds.
MOST_INTEGER: Final = 2**63 - 1
# What no file is called. The halves that are left out stand for bytes of the environment that are no UTF-8.
BROKEN: Final = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


class Unfit(ValueError):  # noqa: N818 - says what the value is, and is caught by that name
    """What a value is not, or what each of its *parts* that is wrong is not: where it is within the value, and that."""

    def __init__(self, text: str = "", *parts: tuple[str, str]) -> None:
        super().__init__(text)
        self.parts = parts or (("", text),)


def checked(hint: object, key: Key, value: object) -> object:
    """Return *value* as the settings hold it; raise Unfit where it is of another type or out of bounds."""
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint), value)
    return CHECKS[hint](key, value)


def read(hint: object, text: str) -> object:
    """Turn *text* into what a file would have; what cannot be turned is left to be refused as it is."""
    reader = READERS.get(hint)
    return reader(text) if reader else text


def kind(hint: object, key: Key) -> str:
    """Tell people what values are taken."""
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    if hint == tuple[str, ...]:
        return KINDS[hint]
    bounds = (("at least", key.least), ("at most", key.most))
    return ", ".join((KINDS[hint], *(f"{word} {bound:g}" for word, bound in bounds if bound is not None)))


def shown(value: object) -> str:
    """Write a value as a file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, Features):
        gates = {gate: getattr(value, name) for gate, name in GATES.items()}
        named = (f"{gate}: {shown(on)}" for gate, on in gates.items() if on != getattr(DEFAULT_GATES, GATES[gate]))
        return f"{{{', '.join(named)}}}"
    return str(value) or '""'


def _one_of(choices: tuple[str, ...], value: object) -> str:
    # Of a release the v may be left out, and in YAML it is a number then.
    chosen = f"v{value}" if isinstance(value, str | float) and value not in choices else value
    if not isinstance(chosen, str) or chosen not in choices:
        raise Unfit(f"must be one of {', '.join(choices)}")
    return chosen


def _text(_key: Key, value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("must be text")
    if BROKEN.search(value):
        raise Unfit("must be text without NUL, and without half of a surrogate pair")
    return value


def _flag(_key: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit("must be true or false")
    return value


def _integer(key: Key, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit("must be an integer")
    _bounded(key, value)
    if abs(value) > MOST_INTEGER:
        raise Unfit(f"must be at {'most ' if value > 0 else 'least -'}{MOST_INTEGER}")
    return value


def _number(key: Key, value: object) -> float:
    # Compared, for an integer that is larger than every float cannot be made one.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise Unfit("must be a number")
    _bounded(key, value)
    return value


def _bounded(key: Key, value: float) -> None:
    if key.least is not None and value < key.least:
        raise Unfit(f"must be at least {key.least:g}")
    if key.most is not None and value > key.most:
        raise Unfit(f"must be at most {key.most:g}")


def _texts(key: Key, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) < (key.least or 0):
        raise Unfit("must be a list of at least one name" if key.least else "must be a list of names")
    return _whole(tuple(value), ((f"[{index}]", wrong) for index, wrong in enumerate(_wrong_names(value))))


def _wrong_names(names: list[object]) -> Iterator[str]:
    known = set()
    for name in names:
        if isinstance(name, str) and name:
            yield "is there twice" if name in known else ""
            known.add(name)
        else:
            yield "must be text"


def _whole(value: V, parts: Iterable[tuple[str, str]]) -> V:
    """Return *value* where nothing is said of any of its *parts*."""
    wrong = [part for part in parts if part[1]]
    if wrong:
        raise Unfit("", *wrong)
    return value


def _features(_key: Key, value: object) -> Features:
    if not isinstance(value, Mapping):
        raise Unfit("must be feature gates with true or false each")
    gates = _whole(value, ((f".{gate}", _wrong_gate(gate, is_on)) for gate, is_on in value.items()))
    return replace(DEFAULT_GATES, **{GATES[gate]: is_on for gate, is_on in gates.items()})


def _wrong_gate(gate: str, is_on: object) -> str:
    if gate not in GATES:
        return f"is no feature gate that is known here; those are {', '.join(GATES)}"
    return "" if isinstance(is_on, bool) else "must be true or false"


def _read_number(text: str) -> object:
    # Python's own way to write them: in a file it would be text.
    for number in (int, float) if "_" not in text else ():
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _read_flag(text: str) -> object:
    return {"true": True, "false": False}.get(text.lower(), text)


def _read_texts(text: str) -> object:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _read_gates(text: str) -> object:
    """Read gates as Kubernetes' own flags have them: DRAOne=true,DRATwo=false."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {gate.strip(): _read_flag(is_on.strip()) for gate, _, is_on in pairs}


CHECKS: Final[Mapping[object, Callable[[Key, object], object]]] = {
    str: _text,
    bool: _flag,
    int: _integer,
    float: _number,
    tuple[str, ...]: _texts,
    Features: _features,
}
READERS: Final[Mapping[object, Callable[[str], object]]] = {
    bool: _read_flag,
    int: _read_number,
    float: _read_number,
    tuple[str, ...]: _read_texts,
    Features: _read_gates,
}
KINDS: Final[Mapping[object, str]] = {
    str: "text",
    bool: "true, false",
    int: "integer",
    float: "number",
    tuple[str, ...]: "list of names",
    Features: "true or false by name",
}
