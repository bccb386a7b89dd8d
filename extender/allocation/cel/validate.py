"""What upstream refuses beyond types: literals that cannot be converted, mixed aggregates, wrong formats."""

from collections.abc import Callable
from functools import partial

from extender.allocation.cel.errors import CompileError, Failed
from extender.allocation.cel.library.clock import parse_duration, parse_timestamp
from extender.allocation.cel.library.formatting import RULES, clauses
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.patterns import CHECKED, check
from extender.allocation.cel.tree import Call, ListLiteral, Literal, MapLiteral, Node
from extender.allocation.cel.types import Type, is_dyn, unwrap_optional

Attempts = dict[str, Callable[[str], object]]
# The first argument of a call of these is tried where it is a literal, and that of ``matches``.
TRIED: Attempts = {"duration": parse_duration, "timestamp": parse_timestamp}
KINDS = {
    "s": ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}


def validate(root: Node) -> None:
    """Raise CompileError for the first thing in a checked tree that upstream's validators refuse."""
    # Of the function ``matches``, unlike the method, that is the text, no pattern; upstream tries it all the same.
    attempts: Attempts = {**TRIED, "matches": partial(check, Budget(CHECKED))}
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, is_exempt = waiting.pop()
        if isinstance(node, Call):
            _validate_call(node, attempts)
            is_exempt = is_exempt or node.name == "format"
        elif isinstance(node, ListLiteral) and not is_exempt:
            _validate_list(node)
        elif isinstance(node, MapLiteral) and not is_exempt:
            _validate_map(node)
        waiting.extend((child, is_exempt) for child in node.children())


def _validate_call(node: Call, attempts: Attempts) -> None:
    attempt = attempts.get(node.name)
    first = node.arguments[0] if node.arguments else None
    if attempt is not None and isinstance(first, Literal) and isinstance(first.value, str):
        try:
            attempt(first.value)
        except Failed:
            raise CompileError(f"invalid {node.name} argument", first.position) from None
    if node.name == "format" and isinstance(node.target, Literal) and isinstance(first, ListLiteral):
        _validate_format(str(node.target.value), first)


def _validate_format(text: str, values: ListLiteral) -> None:
    try:
        wanted = [clause for clause in clauses(text) if clause.letter]
    except Failed as error:
        raise CompileError(str(error), values.position) from None
    for index, clause in enumerate(wanted):
        if index >= len(values.items):
            raise CompileError(f"index {index} out of range", values.position)
        wrong = _wrongly_formatted(clause.letter, values.items[index])
        if wrong is not None:
            raise CompileError(
                f"error during formatting: {RULES[clause.letter]}, was given {wrong.type.name}", wrong.position
            )
    if len(values.items) > len(wanted):
        raise CompileError(
            f"too many arguments supplied to string.format (expected {len(wanted)}, got {len(values.items)})",
            values.position,
        )


def _wrongly_formatted(letter: str, node: Node) -> Node | None:
    """Return the node below *node* whose type the clause cannot write."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if not is_dyn(part.type) and part.type.kind not in KINDS[letter]:
            return part
        if letter == "s" and isinstance(part, (ListLiteral, MapLiteral)):
            waiting.extend(part.children())
    return None


def _validate_list(node: ListLiteral) -> None:
    first: Type | None = None
    for index, item in enumerate(node.items):
        found = _entry_type(item, is_optional=index in node.optional)
        if first is None:
            first = found
        _require_same(first, found, item)


def _validate_map(node: MapLiteral) -> None:
    first: tuple[Type, Type] | None = None
    for index, (key, value) in enumerate(node.entries):
        found = key.type, _entry_type(value, is_optional=index in node.optional)
        if first is None:
            first = found
        _require_same(first[0], found[0], key)
        _require_same(first[1], found[1], value)


def _entry_type(node: Node, *, is_optional: bool) -> Type:
    return unwrap_optional(node.type)[0] if is_optional else node.type


def _require_same(expected: Type, found: Type, node: Node) -> None:
    if expected != found:
        raise CompileError(f"expected type '{expected}' but found '{found}'", node.position)
