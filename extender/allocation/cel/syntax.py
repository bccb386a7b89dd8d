"""Text to tree. The parser calls `Builder` from the leaves up, so that no text can make it recurse."""

from lark import Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.grammar import parser
from extender.allocation.cel.limits import MAX_DEPTH, MAX_HEIGHT, MAX_TEXT
from extender.allocation.cel.literals import (
    in_int_range,
    parse_bytes,
    parse_double,
    parse_int,
    parse_string,
    parse_uint,
)
from extender.allocation.cel.macros import expand
from extender.allocation.cel.tree import Call, Ident, ListLiteral, Literal, Logic, MapLiteral, Node, Select
from extender.allocation.cel.values import Value

CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
# Names that the lexer of CEL keeps for itself, and names that only no variable or function may have.
KEYWORDS = frozenset((*CONSTANTS, "in"))
RESERVED = (
    KEYWORDS
    | frozenset(
        ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package")
    )
    | frozenset(("namespace", "return", "var", "void", "while"))
)
LITERALS = {
    "INT_LIT": parse_int,
    "UINT_LIT": parse_uint,
    "FLOAT_LIT": parse_double,
    "STRING_LIT": parse_string,
    "MLSTRING_LIT": parse_string,
    "BYTES_LIT": parse_bytes,
}


def parse(text: str) -> Node:
    """Return the tree of *text*; raise CompileError where it is not an expression."""
    if len(text) > MAX_TEXT:
        raise CompileError(f"an expression of {len(text)} characters is longer than {MAX_TEXT}")
    try:
        tree: Value = parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    # The transformer has made nodes of everything.
    return checked_literal(tree)


def _syntax_error(text: str, error: UnexpectedInput) -> CompileError:
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return CompileError("Syntax error: the expression ends too early", len(text))
    position = error.pos_in_stream if error.pos_in_stream is not None else -1
    if isinstance(error, UnexpectedCharacters):
        return CompileError(f"Syntax error: no token begins with {text[position : position + 1]!r}", position)
    found = str(error.token) if isinstance(error, UnexpectedToken) else ""
    return CompileError(f"Syntax error: unexpected {found!r}", position)


def start(token: Token) -> int:
    return token.start_pos or 0


def finished(node: Node) -> Node:
    """Measure a node whose children are complete, and refuse what is nested too deeply."""
    for child in node.children():
        node.height = max(node.height, 1 + child.height)
        node.chain = max(node.chain, child.chain)
        node.nesting = max(node.nesting, child.nesting)
    for child in node.inner():
        node.nesting = max(node.nesting, 1 + child.nesting)
    if node.is_link:
        node.chain += 1
    return limited(node)


def limited(node: Node) -> Node:
    if node.chain > MAX_DEPTH or node.nesting >= MAX_DEPTH or node.height > MAX_HEIGHT:
        raise CompileError(f"expression recursion limit exceeded: {MAX_DEPTH}", node.position)
    return node


def checked_literal(node: Node) -> Node:
    """Refuse an integer out of range: only now is it clear that no negation brings it in."""
    if type(node) is Literal and type(node.value) is int and not in_int_range(node.value):
        raise CompileError("invalid int literal", node.position)
    return node


def member_name(token: Token) -> str:
    if token.type == "ESCAPED":
        return str(token.value[1:-1])
    if token.value in KEYWORDS:
        raise CompileError(f"Syntax error: unexpected {token.value!r}", start(token))
    return str(token.value)


def operator(token: Token, name: str, *arguments: Node) -> Node:
    return finished(Call(name, None, tuple(map(checked_literal, arguments)), position=start(token)))


def negated(literal: Literal, sign: Token) -> Node:
    """Return a negative number for a sign before a number; another literal is left to the checker to refuse."""
    if isinstance(literal.value, float) or type(literal.value) is int:
        literal.value = -literal.value
        return checked_literal(literal)
    return operator(sign, "-_", literal)


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """Makes nodes of what the parser has recognised."""

    def literal(self, token: Token) -> Node:
        try:
            return Literal(LITERALS[token.type](token.value), position=start(token))
        except CompileError as error:
            error.position = start(token)
            raise

    def ident(self, *tokens: Token) -> Node:
        name = tokens[-1].value
        position = start(tokens[-1])
        if name in CONSTANTS and len(tokens) == 1:
            return Literal(CONSTANTS[name], position=position)
        if name in RESERVED:
            raise CompileError(f"reserved identifier: {name}", position)
        return Ident(name, is_global=len(tokens) > 1, position=position)

    def expr(self, test: Node, token: Token, yes: Node, no: Node) -> Node:
        return operator(token, "_?_:_", test, yes, no)

    def conditionalor(self, left: Node, token: Token, right: Node) -> Node:
        return self._logic(left, token, right, is_or=True)

    def conditionaland(self, left: Node, token: Token, right: Node) -> Node:
        return self._logic(left, token, right, is_or=False)

    @staticmethod
    def _logic(left: Node, token: Token, right: Node, *, is_or: bool) -> Node:
        """Join terms; a chain of any length is one node, as it is balanced upstream."""
        checked_literal(left)
        checked_literal(right)
        if not isinstance(left, Logic) or left.is_or is not is_or:
            return finished(Logic(is_or, [left, right], position=start(token)))
        left.terms.append(right)
        left.height = max(left.height, 1 + right.height)
        left.chain = max(left.chain, right.chain)
        left.nesting = max(left.nesting, right.nesting)
        return limited(left)

    def relation(self, left: Node, token: Token, right: Node) -> Node:
        return operator(token, "@in" if token.value == "in" else f"_{token.value}_", left, right)

    def addition(self, left: Node, token: Token, right: Node) -> Node:
        return operator(token, f"_{token.value}_", left, right)

    multiplication = addition

    def negation(self, *parts: Value) -> Node:
        operand: Node = parts[-1]
        sign: Token = parts[0]
        # A literal in brackets is not one number with the sign: the negation of the smallest integer overflows.
        if sign.value == "-" and len(parts) == 2 and isinstance(operand, Literal) and not operand.nesting:
            return negated(operand, sign)
        if len(parts) % 2:  # an even number of signs
            return operand
        return operator(sign, f"{sign.value}_", operand)

    def paren_expr(self, _token: Token, inside: Node) -> Node:
        checked_literal(inside)
        inside.nesting += 1
        return limited(inside)

    def member_dot(self, operand: Node, token: Token, *rest: Token) -> Node:
        field = member_name(rest[-1])
        return finished(Select(checked_literal(operand), field, is_optional=len(rest) > 1, position=start(token)))

    def member_index(self, operand: Node, token: Token, *rest: Value) -> Node:
        index = rest[-1]
        return operator(token, "_[?_]" if len(rest) > 1 else "_[_]", operand, index)

    def member_object(self, operand: Node, token: Token, *_fields: object) -> Node:
        raise CompileError(
            "messages cannot be made in a selector", start(token) if operand.position < 0 else operand.position
        )

    def field(self, *_parts: object) -> None:
        return None

    def member_dot_arg(
        self, target: Node, _dot: Token, name: Token, token: Token, *arguments: tuple[Node, ...]
    ) -> Node:
        given = arguments[0] if arguments else ()
        return finished(expand(member_name(name), checked_literal(target), given, start(token)))

    def global_call(self, *parts: Token | tuple[Node, ...]) -> Node:
        arguments = parts[-1] if isinstance(parts[-1], tuple) else ()
        tokens = [part for part in parts if isinstance(part, Token)]
        name, opening = tokens[-2], tokens[-1]
        if name.value in RESERVED:
            raise CompileError(f"reserved identifier: {name.value}", start(name))
        return finished(expand(str(name.value), None, arguments, start(opening)))

    def exprlist(self, *nodes: Node) -> tuple[Node, ...]:
        return tuple(map(checked_literal, nodes))

    def item(self, *parts: Value) -> tuple[bool, Node]:
        node = parts[-1]
        return len(parts) > 1, checked_literal(node)

    def entry(self, item: tuple[bool, Node], value: Node) -> tuple[bool, Node, Node]:
        return (*item, checked_literal(value))

    def list_lit(self, token: Token, *items: tuple[bool, Node]) -> Node:
        optional = frozenset(index for index, (is_optional, _) in enumerate(items) if is_optional)
        return finished(ListLiteral(tuple(node for _, node in items), optional, position=start(token)))

    def map_lit(self, token: Token, *entries: tuple[bool, Node, Node]) -> Node:
        optional = frozenset(index for index, entry in enumerate(entries) if entry[0])
        pairs = tuple((key, value) for _, key, value in entries)
        return finished(MapLiteral(pairs, optional, position=start(token)))
