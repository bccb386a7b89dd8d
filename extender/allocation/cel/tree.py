"""The tree of an expression. Macros are nodes of their own; every node knows where in the text it stands.

Nodes are mutable: the checker notes the type of each, and the variants of a function that fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extender.allocation.cel.types import DYN, Type

if TYPE_CHECKING:
    from extender.allocation.cel.overloads import Overload


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """An expression.

    Three measures keep it from growing too deep: *nesting* counts the brackets around its deepest part, *chain*
    the operators and member accesses that lead there, *height* all nodes on the way.
    """

    position: int = -1
    type: Type = DYN
    nesting: int = 0
    chain: int = 0
    height: int = 0

    @property
    def is_link(self) -> bool:
        """Tell whether the node lengthens a chain."""
        return False

    def children(self) -> tuple["Node", ...]:
        return ()

    def inner(self) -> tuple["Node", ...]:
        """Return the children that stand inside brackets of their own."""
        return ()


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: object


@dataclass(slots=True, eq=False)
class Ident(Node):
    name: str
    is_global: bool = False


@dataclass(slots=True, eq=False)
class Select(Node):
    """``operand.field``, ``operand.?field``, or ``has(operand.field)``."""

    operand: Node
    field: str
    is_optional: bool = False
    is_test: bool = False

    @property
    def is_link(self) -> bool:
        return True

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Call(Node):
    """``name(arguments)``, ``target.name(arguments)``, or an operator under its internal name."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]
    overloads: tuple["Overload", ...] = ()

    def children(self) -> tuple[Node, ...]:
        return self.arguments if self.target is None else (self.target, *self.arguments)

    @property
    def is_link(self) -> bool:
        return self.target is not None or self.name[0] in "_@"

    def inner(self) -> tuple[Node, ...]:
        if self.name in ("_[_]", "_[?_]"):
            return self.arguments[1:]
        return () if self.name[0] in "_-!@" else self.arguments


@dataclass(slots=True, eq=False)
class Logic(Node):
    """Terms joined by ``||`` (*is_or*) or ``&&``."""

    is_or: bool
    terms: list[Node]

    def children(self) -> tuple[Node, ...]:
        return tuple(self.terms)


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()

    def children(self) -> tuple[Node, ...]:
        return self.items

    inner = children


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()

    def children(self) -> tuple[Node, ...]:
        return tuple(node for entry in self.entries for node in entry)

    inner = children


@dataclass(slots=True, eq=False)
class Bind(Node):
    """``cel.bind(name, init, body)``: the value of *init* has a name in *body*."""

    name: str
    init: Node
    body: Node

    def children(self) -> tuple[Node, ...]:
        return (self.init, self.body)

    inner = children


@dataclass(slots=True, eq=False)
class OptionalMap(Node):
    """``target.optMap(name, body)``, or optFlatMap where *is_flat*."""

    target: Node
    name: str
    body: Node
    is_flat: bool

    def children(self) -> tuple[Node, ...]:
        return (self.target, self.body)

    def inner(self) -> tuple[Node, ...]:
        return (self.body,)


@dataclass(slots=True, eq=False)
class Loop(Node):
    """A macro over the items of *target*: *kind* is its name, *condition* selects items where it is given."""

    kind: str
    target: Node
    names: tuple[str, ...]
    body: Node
    condition: Node | None = None

    def children(self) -> tuple[Node, ...]:
        return (self.target, self.body) if self.condition is None else (self.target, self.condition, self.body)

    def inner(self) -> tuple[Node, ...]:
        return self.children()[1:]


def walk(root: Node) -> Iterator[Node]:
    """Yield *root* and everything below it."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children())


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` for a chain of names, else None."""
    names: list[str] = []
    while isinstance(node, Select) and not node.is_test and not node.is_optional:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join((node.name, *reversed(names)))
