"""The static checker: what cel-go's checker refuses is refused here, and every node learns its type.

Macros are checked as the loops that they stand for, with the accumulator that the loop has upstream.
"""

from collections.abc import Callable

from extender.allocation.cel.declarations import FIELDS, LITERALS, TYPE_NAMES
from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.overloads import Overload, table
from extender.allocation.cel.rules import LOOPS
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
    walk,
)
from extender.allocation.cel.types import (
    BOOL,
    DEVICE,
    DYN,
    INT,
    Bindings,
    Type,
    all_assignable,
    assignable,
    is_dyn,
    is_larger,
    is_open,
    list_of,
    map_of,
    most_general,
    optional_of,
    parameters_of,
    substitute,
    type_of_type,
    unwrap_optional,
)

# With more than this many type variables the copies of the bindings would cost too much.
MAX_VARIABLES = 10_000
# A map whose keys and values are the map before it doubles the type each time.
MAX_TYPE = 1_000


def check(root: Node) -> Type:
    """Check the tree, note the type of every node in it, and return the type of the whole."""
    checker = Checker()
    checker.check(root)
    for node in walk(root):
        node.type = substitute(checker.bindings, node.type, free=DYN)
    return root.type


class Checker:
    """One pass over one tree: the names in scope and the bindings of type variables so far."""

    __slots__ = ("bindings", "scopes", "variables")

    def __init__(self) -> None:
        self.bindings: Bindings = {}
        self.scopes: list[tuple[str, Type]] = []
        self.variables = 0

    def check(self, node: Node) -> Type:
        """Find the type of *node*; raise CompileError where there is none."""
        node.type = CHECKS[type(node)](self, node)
        if is_larger(node.type, MAX_TYPE):
            raise CompileError("the expression is too complex: the type of a value is too large", node.position)
        return node.type

    def fresh(self) -> Type:
        self.variables += 1
        if self.variables > MAX_VARIABLES:
            raise CompileError("the expression is too complex: too many types to infer")
        return Type("parameter", f"_var{self.variables}")

    def resolved(self, given: Type) -> Type:
        return substitute(self.bindings, given)

    def agree(self, one: Type, other: Type) -> bool:
        bindings = assignable(self.bindings, one, other)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def mismatch(self, expected: Type, found: Type, position: int) -> CompileError:
        return CompileError(f"expected type '{self.shown(expected)}' but found '{self.shown(found)}'", position)

    def shown(self, given: Type) -> Type:
        return substitute(self.bindings, given, free=DYN)

    def literal(self, node: Literal) -> Type:
        return LITERALS[type(node.value)]

    def ident(self, node: Ident) -> Type:
        found = self.variable(node)
        if found is not None:
            return found
        raise CompileError(f"undeclared reference to '{node.name}'", node.position)

    def variable(self, node: Ident) -> Type | None:
        if not node.is_global:
            for name, given in reversed(self.scopes):
                if name == node.name:
                    return given
        if node.name == "device":
            return DEVICE
        return type_of_type(TYPE_NAMES[node.name]) if node.name in TYPE_NAMES else None

    def select(self, node: Select) -> Type:
        qualified = None if node.is_test or node.is_optional else qualified_name(node)
        if qualified in TYPE_NAMES and qualified.split(".")[0] not in dict(self.scopes):
            return type_of_type(TYPE_NAMES[qualified])
        operand = self.resolved(self.check(node.operand))
        target, is_wrapped = unwrap_optional(operand)
        result = self.field(node, target)
        if node.is_test:
            return BOOL
        return optional_of(result) if is_wrapped or node.is_optional else self.resolved(result)

    def field(self, node: Select, target: Type) -> Type:
        if target.kind == "map":
            return target.parameters[1]
        if target == DEVICE:
            if node.field in FIELDS:
                return FIELDS[node.field]
            raise CompileError(f"undefined field '{node.field}'", node.position)
        if target.kind == "parameter":
            self.agree(DYN, target)
            return DYN
        if is_dyn(target):
            return DYN
        if target.kind == "struct":
            raise CompileError(f"undefined field '{node.field}'", node.position)
        raise CompileError(f"type '{self.shown(target)}' does not support field selection", node.position)

    def call(self, node: Call) -> Type:
        arguments = tuple(self.check(argument) for argument in node.arguments)
        if node.target is None:
            return self.resolve(node, node.name, arguments, is_member=False)
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix}.{node.name}" in table():
            node.name, node.target = f"{prefix}.{node.name}", None
            return self.resolve(node, node.name, arguments, is_member=False)
        return self.resolve(node, node.name, (self.check(node.target), *arguments), is_member=True)

    def resolve(self, node: Node, name: str, arguments: tuple[Type, ...], *, is_member: bool) -> Type:
        """Find the variants of a function that take *arguments*, and what they return."""
        variants = table().get(name)
        if variants is None:
            raise CompileError(f"undeclared reference to '{name}'", node.position)
        fitting: list[Overload] = []
        result: Type | None = None
        for variant in variants:
            if variant.is_member is not is_member or len(variant.parameters) != len(arguments):
                continue
            found = self.instantiate(variant, arguments)
            if found is None:
                continue
            fitting.append(variant)
            if result is None:
                result = found
            elif not is_dyn(result) and found != result:
                result = DYN
        if result is None:
            raise self.no_overload(node, name, arguments, is_member=is_member)
        if isinstance(node, Call):
            node.overloads = tuple(fitting)
        return result

    def instantiate(self, variant: Overload, arguments: tuple[Type, ...]) -> Type | None:
        """Return what the variant returns for *arguments*, None where it does not take them."""
        names = parameters_of((variant.result, *variant.parameters))
        renaming = {name: self.fresh() for name in names}
        expected = tuple(substitute(renaming, given) for given in variant.parameters) if names else variant.parameters
        # Types without variables leave no trace in the bindings, whose copies would otherwise cost too much.
        is_closed = not any(map(is_open, arguments))
        bindings = all_assignable({} if is_closed else self.bindings, arguments, expected)
        if bindings is None:
            return None
        result = substitute(bindings, substitute(renaming, variant.result))
        if not is_closed:
            self.bindings = bindings
        elif is_open(result):
            self.bindings = {**self.bindings, **bindings}
        return result

    def no_overload(self, node: Node, name: str, arguments: tuple[Type, ...], *, is_member: bool) -> CompileError:
        shown = [str(self.shown(argument)) for argument in arguments]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if is_member else f"({', '.join(shown)})"
        return CompileError(f"found no matching overload for '{name}' applied to '{signature}'", node.position)

    def logic(self, node: Logic) -> Type:
        for term in node.terms:
            self.check(term)
        for term in node.terms:
            if not self.agree(term.type, BOOL):
                raise self.mismatch(BOOL, term.type, term.position)
        return BOOL

    def list(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for index, item in enumerate(node.items):
            found = self.check(item)
            if index in node.optional:
                found = self.unwrapped(item, found)
            joined = self.join(joined, found)
        return list_of(joined or self.fresh())

    def unwrapped(self, node: Node, found: Type) -> Type:
        """Return what an optional entry holds."""
        inner, is_wrapped = unwrap_optional(found)
        if not is_wrapped and not is_dyn(inner):
            raise self.mismatch(optional_of(inner), inner, node.position)
        return inner

    def map(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for index, (key, value) in enumerate(node.entries):
            keys = self.join(keys, self.check(key))
            found = self.check(value)
            values = self.join(values, self.unwrapped(value, found) if index in node.optional else found)
        return map_of(keys or self.fresh(), values or self.fresh())

    def join(self, previous: Type | None, current: Type) -> Type:
        """Return a type for both. Where there is none the aggregate is mixed, which the validators mostly refuse."""
        if previous is None:
            return current
        return most_general(previous, current) if self.agree(previous, current) else DYN

    def bind(self, node: Bind) -> Type:
        self.scopes.append((node.name, self.check(node.init)))
        self.check(node.body)
        self.scopes.pop()
        return self.resolved(node.body.type)

    def optional_map(self, node: OptionalMap) -> Type:
        target = self.check(node.target)
        self.resolve(node, "hasValue", (target,), is_member=True)
        self.scopes.append((node.name, self.resolve(node, "value", (target,), is_member=True)))
        self.check(node.body)
        self.scopes.pop()
        found = self.resolved(node.body.type)
        if not node.is_flat:
            found = self.resolve(node, "optional.of", (found,), is_member=False)
        none = self.resolve(node, "optional.none", (), is_member=False)
        return self.resolve(node, "_?_:_", (BOOL, found, none), is_member=False)

    def loop(self, node: Loop) -> Type:
        """Check the parts of a loop here, for a shallow stack; the rules of its kind look at their types only."""
        target = self.check(node.target)
        types = self.items(node, self.resolved(target))
        self.scopes.extend(zip(node.names, types, strict=True))
        if node.condition is not None:
            self.check(node.condition)
        self.check(node.body)
        del self.scopes[-len(types) :]
        return LOOPS[node.kind](self, node, types[0], target)

    def items(self, node: Loop, target: Type) -> tuple[Type, ...]:
        """Return the types of the variables over the items of *target*."""
        double = len(node.names) == 2
        if target.kind == "list":
            element = target.parameters[0]
            return (INT, element) if double else (element,)
        if target.kind == "map":
            return target.parameters if double else target.parameters[:1]
        if is_dyn(target) or target.kind == "parameter":
            self.agree(DYN, target)
            return (DYN,) * len(node.names)
        raise CompileError(
            f"expression of type '{self.shown(target)}' cannot be range of a comprehension",
            node.target.position,
        )


CHECKS: dict[type[Node], Callable[..., Type]] = {
    Literal: Checker.literal,
    Ident: Checker.ident,
    Select: Checker.select,
    Call: Checker.call,
    Logic: Checker.logic,
    ListLiteral: Checker.list,
    MapLiteral: Checker.map,
    Bind: Checker.bind,
    OptionalMap: Checker.optional_map,
    Loop: Checker.loop,
}
