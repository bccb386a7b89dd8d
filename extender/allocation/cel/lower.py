"""Tree to closures: functions of a frame that Python calls without looking at the tree again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from extender.allocation.cel.access import index_closure, present, select, select_optional
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
from extender.allocation.cel.values import MISSING, PRIMITIVE, UNHASHABLE, Optional, TypeValue, encoded, type_name


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
        name = qualified_name(node)
        if name in TYPE_NAMES and node.type.kind == "type":
            return self.fixed(node, TypeValue(name))
        aliases = dict.fromkeys(self.slots)
        path = path_of(node.operand, aliases)
        if path is not None:
            is_optional = node.is_optional or unwrap_optional(node.operand.type)[1]
            known = path_closure((*path, node.field), is_optional=is_optional, is_test=node.is_test)
            if known is not None:
                return known
        operand, key = self.box(node.operand), node.field
        if node.is_test:
            return lambda frame: present(operand(frame), key) is not MISSING
        if node.is_optional:
            return lambda frame: select_optional(operand(frame), key)
        return lambda frame: select(operand(frame), key)

    def call(self, node: Call) -> Closure:
        if node.name in ("_[_]", "_[?_]"):
            return self.index(node)
        closures = tuple([self.lower(argument) for argument in node.children()])
        constants = tuple([self.constant(argument) for argument in node.children()])
        closure, value = call_closure(node, closures, constants, self.checking)
        return closure if value is MISSING else self.fixed(node, value)

    def index(self, node: Call) -> Closure:
        is_optional = node.name == "_[?_]" or unwrap_optional(node.arguments[0].type)[1]
        path = path_of(node, dict.fromkeys(self.slots))
        if path is not None:
            is_chain = path_of(node.arguments[0], dict.fromkeys(self.slots)) is not None
            known = path_closure(path, is_optional=is_optional, is_test=False) if is_chain else None
            if known is not None:
                return known
        box, key = self.box(node.arguments[0]), self.lower(node.arguments[1])
        place = self.constant(node.arguments[1])
        if place is not MISSING and type(place) not in PRIMITIVE and is_plain(node.arguments[1]):
            raise CompileError(f"invalid qualifier type: {type_name(place)}", node.position)
        return index_closure(box, key, is_optional=node.name == "_[?_]")

    def box(self, node: Node) -> Closure:
        """Compile what something is selected from."""
        if isinstance(node, Call) and node.name == "_?_:_":
            test, yes, no = node.arguments
            return condition_closure(self.lower(test), self.box(yes), self.box(no))
        return stored_closure(self.lower(node)) if is_stored(node) else self.lower(node)

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


def is_stored(node: Node) -> bool:
    """Tell whether *node* takes an optional out of a list or a map, where it no longer makes selection optional."""
    if not unwrap_optional(node.type)[1]:
        return False
    is_link = False
    while isinstance(node, Select) or (isinstance(node, Call) and node.name in ("_[_]", "_[?_]")):
        if node.is_optional if isinstance(node, Select) else node.name == "_[?_]":
            return False
        is_link = True
        node = node.operand if isinstance(node, Select) else node.arguments[0]
    return is_link and node.type.kind in ("list", "map")


def stored_closure(operand: Closure) -> Closure:
    """Hide an optional, so that nothing can be selected from it."""
    return lambda frame: None if isinstance(value := operand(frame), Optional) else value


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
