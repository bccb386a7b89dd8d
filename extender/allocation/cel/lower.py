"""Tree to closures: functions of a frame that Python calls without looking at the tree again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from extender.allocation.cel.access import Link, chain_closure, has_closure
from extender.allocation.cel.calls import call_closure, condition_closure, is_plain
from extender.allocation.cel.closures import (
    device_value,
    lazy_closure,
    logic_closure,
    map_closure,
    optional_list,
    path_closure,
)
from extender.allocation.cel.declarations import TYPE_NAMES
from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.loops import bind_closure, loop_closure, optional_map_closure
from extender.allocation.cel.patterns import CHECKED
from extender.allocation.cel.program import FIRST_VARIABLE, Closure
from extender.allocation.cel.reads import path_of
from extender.allocation.cel.tree import (
    Bind,
    Call,
    Ident,
    ListLiteral,
    Literal,
    Logic,
    Loop,
    MapLiteral,
    Node,
    OptionalMap,
    Select,
    qualified_name,
)
from extender.allocation.cel.types import unwrap_optional
from extender.allocation.cel.values import MISSING, PRIMITIVE, UNHASHABLE, TypeValue, encoded, type_name

INDEXES = frozenset(("_[_]", "_[?_]"))


@dataclass(slots=True)
class Lowering:
    """One tree being made into closures. *slots* tells where the variables in scope are in the frame."""

    slots: dict[str, tuple[int, Closure | None]] = field(default_factory=dict)
    outer: list[dict[str, tuple[int, Closure | None]]] = field(default_factory=list)
    used: int = FIRST_VARIABLE
    # Values known before any evaluation, by node.
    constants: dict[int, object] = field(default_factory=dict)
    # What may be spent still to see whether patterns are such.
    checking: Budget = field(default_factory=lambda: Budget(CHECKED))

    def lower(self, node: Node) -> Closure:
        return LOWERINGS[type(node)](self, node)

    def constant(self, node: Node) -> object:
        """Return the value of a constant node, MISSING for another. The node must have been lowered."""
        return self.constants.get(id(node), MISSING)

    def fixed(self, node: Node, value: object) -> Closure:
        """Note that *node* always has this value."""
        self.constants[id(node)] = value
        return lambda _frame: value

    def enter(self, names: tuple[str, ...], initial: Closure | None = None) -> tuple[int, ...]:
        """Give places in the frame to new variables, until `leave`.

        Nobody else gets these: what a binding names is computed amid the variables of where it is first read.
        """
        places = tuple(range(self.used, self.used + len(names)))
        self.used += len(names)
        self.outer.append(self.slots)
        self.slots = {**self.slots, **{name: (place, initial) for name, place in zip(names, places, strict=True)}}
        return places

    def leave(self) -> None:
        self.slots = self.outer.pop()

    def literal(self, node: Literal) -> Closure:
        return self.fixed(node, node.value)

    def ident(self, node: Ident) -> Closure:
        if not node.is_global and node.name in self.slots:
            place, initial = self.slots[node.name]
            return (lambda frame: frame[place]) if initial is None else lazy_closure(place, initial)
        if node.name == "device":
            return device_value
        return self.fixed(node, TypeValue(node.name))

    def select(self, node: Select) -> Closure:
        if is_type_name(node):
            return self.fixed(node, TypeValue(qualified_name(node) or ""))
        known = self.path(node)
        if known is not None:
            return known
        chain = self.chain(node.operand, (self.link(node),), is_test=node.is_test)
        return has_closure(chain) if node.is_test else chain

    def path(self, node: Node, *, is_bare: bool = False) -> Closure | None:
        """Compile a constant path of the device, None where *node* is none."""
        tested = node if isinstance(node, Select) and node.is_test else None
        path = path_of(Select(tested.operand, tested.field) if tested else node, dict.fromkeys(self.slots))
        if path is None:
            return None
        may_lack = unwrap_optional(tested.operand.type if tested else node.type)[1]
        is_test = tested is not None and not (is_bare and may_lack)
        return path_closure(path, is_optional=may_lack, is_test=is_test)

    def chain(self, node: Node, links: tuple[Link, ...], *, is_test: bool = False) -> Closure:
        """Compile what is selected from *node*; from a condition, what is selected from either side."""
        if isinstance(node, Call) and node.name == "_?_:_":
            test, *sides = node.arguments
            return condition_closure(self.lower(test), *[self.chain(side, links, is_test=is_test) for side in sides])
        known = self.path(node)
        if known is None and isinstance(node, Select | Call) and (operand := operand_of(node)) is not None:
            return self.chain(operand, (self.link(node), *links), is_test=is_test)
        return chain_closure(known or self.lower(node), links, is_test=is_test)

    def bare(self, node: Node) -> Closure:
        """Compile a side of a condition, or a key: a test of what may be missing is there what it finds, no bool."""
        if isinstance(node, Select) and node.is_test:
            known = self.path(node, is_bare=True)
            return known or self.chain(node.operand, (self.link(node),), is_test=True)
        return self.lower(node)

    def call(self, node: Call) -> Closure:
        if node.name in INDEXES:
            return self.path(node) or self.chain(node.arguments[0], (self.link(node),))
        if node.name == "_?_:_":
            test, *sides = node.arguments
            return condition_closure(self.lower(test), *map(self.bare, sides))
        closures = tuple([self.lower(argument) for argument in node.children()])
        constants = tuple([self.constant(argument) for argument in node.children()])
        closure, value = call_closure(node, closures, constants, self.checking)
        return closure if value is MISSING else self.fixed(node, value)

    def link(self, node: Select | Call) -> Link:
        if isinstance(node, Select):
            field = node.field
            return Link(lambda _frame: field, node.is_optional)
        index = node.arguments[1]
        key, place = self.bare(index), self.constant(index)
        if place is not MISSING and type(place) not in PRIMITIVE and is_plain(index):
            raise CompileError(f"invalid qualifier type: {type_name(place)}", node.position)
        return Link(key, node.name == "_[?_]")

    def logic(self, node: Logic) -> Closure:
        terms = tuple([self.lower(term) for term in node.terms])
        return logic_closure(terms, node.is_or)

    def list(self, node: ListLiteral) -> Closure:
        items = tuple([self.lower(item) for item in node.items])
        values = tuple(self.constant(item) for item in node.items)
        if node.optional:
            return optional_list(items, node.optional)
        if all(value is not MISSING for value in values):
            return self.fixed(node, values)
        return lambda frame: tuple([item(frame) for item in items])

    def map(self, node: MapLiteral) -> Closure:
        entries = tuple([(self.lower(key), self.lower(value)) for key, value in node.entries])
        constants = tuple((self.constant(key), self.constant(value)) for key, value in node.entries)
        if node.optional or any(part is MISSING for entry in constants for part in entry):
            return map_closure(entries, node.optional)
        if all(type(key) in PRIMITIVE for key, _ in constants):
            return self.fixed(node, {encoded(key): value for key, value in constants})
        if any(type(key) in UNHASHABLE for key, _ in constants) and is_plain(node):
            # Upstream builds the map when it compiles the text, and comes to grief.
            raise CompileError("a value of this type cannot be the key of a map", node.position)
        return map_closure(entries, node.optional)

    def bind(self, node: Bind) -> Closure:
        """Name a value, which is computed when it is first read, if at all."""
        places = self.enter((node.name,), self.lower(node.init))
        body = self.lower(node.body)
        self.leave()
        return bind_closure(places[0], body)

    def optional_map(self, node: OptionalMap) -> Closure:
        target = self.lower(node.target)
        places = self.enter((node.name,))
        body = self.lower(node.body)
        self.leave()
        return optional_map_closure(target, places[0], body, is_flat=node.is_flat)

    def loop(self, node: Loop) -> Closure:
        target = self.lower(node.target)
        places = self.enter(node.names)
        condition = None if node.condition is None else self.lower(node.condition)
        body = self.lower(node.body)
        self.leave()
        return loop_closure(node, target, places, body, condition)


def is_type_name(node: Node) -> bool:
    return isinstance(node, Select) and node.type.kind == "type" and qualified_name(node) in TYPE_NAMES


def operand_of(node: Node) -> Node | None:
    """Return what a link selects from, None where *node* is no link."""
    if isinstance(node, Select):
        return None if node.is_test or is_type_name(node) else node.operand
    return node.arguments[0] if isinstance(node, Call) and node.name in INDEXES else None


LOWERINGS: dict[type[Node], Callable[..., Closure]] = {
    Literal: Lowering.literal,
    Ident: Lowering.ident,
    Select: Lowering.select,
    Call: Lowering.call,
    Logic: Lowering.logic,
    ListLiteral: Lowering.list,
    MapLiteral: Lowering.map,
    Bind: Lowering.bind,
    OptionalMap: Lowering.optional_map,
    Loop: Lowering.loop,
}
