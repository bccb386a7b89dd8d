"""Calls that are macros: their arguments are not values but names and expressions."""

from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.tree import Bind, Call, Ident, Literal, Loop, Node, OptionalMap, Select

# name -> the numbers of arguments with one variable, and with two; the larger of a pair has a condition too.
LOOPS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "all": ((2,), (3,)),
    "exists": ((2,), (3,)),
    "exists_one": ((2,), (3,)),
    "existsOne": ((), (3,)),
    "filter": ((2,), ()),
    "map": ((2, 3), ()),
    "sortBy": ((2,), ()),
    "transformList": ((), (3, 4)),
    "transformMap": ((), (3, 4)),
    "transformMapEntry": ((), (3, 4)),
}
ACCUMULATORS = ("@result", "__result__")
# Upstream calls the accumulator by a name that no text can contain.
SORTABLE = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"


def expand(name: str, target: Node | None, arguments: tuple[Node, ...], position: int) -> Node:
    """Return the node of a call: a macro where its name, its target and the number of arguments say so."""
    if target is None:
        return (
            _has(arguments, position)
            if name == "has" and len(arguments) == 1
            else Call(name, None, arguments, position=position)
        )
    if name in LOOPS:
        single, double = LOOPS[name]
        if len(arguments) in single:
            return _loop(name, target, 1, arguments, position)
        if len(arguments) in double:
            return _loop(name, target, 2, arguments, position)
    if name == "bind" and len(arguments) == 3 and _is_namespace(target):
        variable = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
        return Bind(variable, arguments[1], arguments[2], position=position)
    if name in ("optMap", "optFlatMap") and len(arguments) == 2:
        variable = _variable(arguments[0], f"{name}() variable name must be a simple identifier")
        return OptionalMap(target, variable, arguments[1], name == "optFlatMap", position=position)
    return Call(name, target, arguments, position=position)


def _is_namespace(target: Node) -> bool:
    return isinstance(target, Ident) and target.name == "cel" and not target.is_global


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident) or node.is_global:
        raise CompileError(message, node.position)
    return node.name


def _has(arguments: tuple[Node, ...], position: int) -> Node:
    argument = arguments[0]
    if not isinstance(argument, Select) or argument.is_optional or argument.is_test:
        raise CompileError("invalid argument to has() macro", argument.position)
    return Select(argument.operand, argument.field, is_test=True, position=position)


def _loop(name: str, target: Node, variables: int, arguments: tuple[Node, ...], position: int) -> Node:
    names = tuple(_variable(node, "argument must be a simple name") for node in arguments[:variables])
    for node, variable in zip(arguments, names, strict=False):
        if variable in ACCUMULATORS:
            raise CompileError("iteration variable overwrites accumulator variable", node.position)
    if len(set(names)) < len(names):
        raise CompileError(f"duplicate variable name: {names[1]}", arguments[1].position)
    if name == "sortBy" and isinstance(target, Literal):
        raise CompileError(SORTABLE, target.position)
    rest = arguments[variables:]
    return Loop(name, target, names, rest[-1], rest[0] if len(rest) > 1 else None, position=position)
