"""Texts of CEL in claims and classes, compiled when somebody needs them: once for all who have the same text."""

from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from extender.allocation.cel import CompileError, Program, compile_attribute, compile_selector
from extender.allocation.selectors import Selector
from extender.allocation.work import Work
from extender.model.frozen import dataclass

# Characters of a text that take half a millisecond to compile, as a piece of work does, where each of them is dear.
PIECE = 20
# What a text takes once it is compiled, and what each of its characters takes, where it is dear: bytes.
SIZE, CHARACTER_SIZE = 800, 180
# Characters of texts that stay compiled when nobody asks them any more: 23 MB.
RECENT = 1 << 17
Key = tuple[str, bool]


class Recent:
    """What the texts compiled to that were needed last: of more characters than *most* the first are forgotten."""

    def __init__(self, most: int = RECENT) -> None:
        self._most, self._characters = most, 0
        self._known: OrderedDict[Key, Program | str] = OrderedDict()

    def get(self, key: Key) -> Program | str | None:
        """Return what was remembered, which is needed now."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, key: Key, compiled: Program | str) -> None:
        """Remember what was not known."""
        self._known[key] = compiled
        self._characters += len(key[0])
        while self._characters > self._most:
            (text, _), _ = self._known.popitem(last=False)
            self._characters -= len(text)


_RECENT: Final = Recent()
# What a selector remembers is shared by all who ask it, and goes with the last of them: it may be much.
_FORMULAS: Final[WeakValueDictionary[Key, "Formula"]] = WeakValueDictionary()


class Formula:
    """A text, and what becomes of it: a program, or an error where it does not compile."""

    __slots__ = ("__weakref__", "_compiled", "_key", "_selector")

    def __init__(self, text: str, *, is_selector: bool) -> None:
        self._key: Key = text, is_selector
        self._compiled: Program | str | None = None
        self._selector: Selector | None = None

    @property
    def text(self) -> str:
        return self._key[0]

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    @property
    def size(self) -> int:
        """About how many bytes it takes, also if it is yet to be compiled, and what it said as a selector."""
        return SIZE + CHARACTER_SIZE * len(self.text) + (self._selector.size if self._selector else 0)

    @property
    def program(self) -> Program | None:
        made = self._made()
        return None if isinstance(made, str) else made

    @property
    def error(self) -> str:
        """What is wrong with the text; nothing where it compiles."""
        made = self._made()
        return made if isinstance(made, str) else ""

    @property
    def selector(self) -> Selector | None:
        """What it says of devices; None where it does not compile."""
        program = self.program
        if self._selector is None and program is not None:
            self._selector = Selector(program)
        return self._selector

    def compiling(self) -> Work[None]:
        """Compile the text, if that is still to be done, after as many pauses as it costs: nothing can interrupt it."""
        if self._compiled is None and _RECENT.get(self._key) is None:
            for _ in range(len(self.text) // PIECE):
                yield
        self._made()

    def _made(self) -> Program | str:
        if self._compiled is None:
            self._compiled = _RECENT.get(self._key)
        if self._compiled is None:
            self._compiled = _compiled(*self._key)
            _RECENT.put(self._key, self._compiled)
        return self._compiled


@dataclass(frozen=True, slots=True)
class Test:
    """A selector and whose it is. One that does not compile has an error in its place, met where a device is tested."""

    owner: str
    formula: Formula

    @property
    def text(self) -> str:
        return self.formula.text

    @property
    def selector(self) -> Selector | None:
        return self.formula.selector

    @property
    def error(self) -> str:
        return self.formula.error


@dataclass(frozen=True, slots=True)
class Derivation:
    """An attribute that a request computes; an expression that does not compile has an error in its place."""

    name: str
    formula: Formula

    @property
    def program(self) -> Program | None:
        return self.formula.program

    @property
    def error(self) -> str:
        return self.formula.error


def formula_of(text: str, *, is_selector: bool) -> Formula:
    """Return the formula of *text*: a selector, or the expression of a derived attribute."""
    key = text, is_selector
    known = _FORMULAS.get(key)
    if known is None:
        known = _FORMULAS[key] = Formula(text, is_selector=is_selector)
    return known


def _compiled(text: str, is_selector: bool) -> Program | str:  # noqa: FBT001 - both make the key
    try:
        return (compile_selector if is_selector else compile_attribute)(text)
    except CompileError as error:
        return f"does not compile: {error}"
