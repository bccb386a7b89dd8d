"""The grammar of cel-python, corrected, and the parser that it gives.

The grammar file is read without importing its package, which would cost a tenth of a second and change
the interpreter's recursion limit. Each correction replaces text that must be there exactly once, so that
another version of the file is noticed. The corrections of the string terminals are mandatory: as shipped,
they backtrack exponentially and hang the process on an unterminated string. The other ones follow CEL.g4.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lark import Lark

OPERATORS = """relation       : [relation_lt | relation_le | relation_ge | relation_gt | relation_eq | relation_ne | relation_in] addition
relation_lt    : relation "<"
relation_le    : relation "<="
relation_gt    : relation ">"
relation_ge    : relation ">="
relation_eq    : relation "=="
relation_ne    : relation "!="
relation_in    : relation "in"
"""  # noqa: E501 - the text as it is in the file
ADDITION = """addition       : [addition_add | addition_sub] multiplication
addition_add   : addition "+"
addition_sub   : addition "-"
"""
MULTIPLICATION = """multiplication : [multiplication_mul | multiplication_div | multiplication_mod] unary
multiplication_mul : multiplication "*"
multiplication_div : multiplication "/"
multiplication_mod : multiplication "%"
"""
UNARY = """unary          : member
               | unary_not unary
               | unary_neg unary

unary_not      : "!"
unary_neg      : "-"
"""
MEMBER = """member         : member_dot | member_dot_arg | member_index | member_object | primary
member_dot     : member "." IDENT
member_dot_arg : member "." IDENT "(" [exprlist] ")"
member_index   : member "[" expr "]"
member_object  : member "{" [fieldinits] "}"
"""
PRIMARY = """primary        : literal | dot_ident_arg | dot_ident | ident_arg
               | paren_expr | list_lit | map_lit | ident
dot_ident_arg  : "." IDENT "(" [exprlist] ")"
dot_ident      : "." IDENT
ident_arg      : IDENT "(" [exprlist] ")"
ident          : IDENT
paren_expr     : "(" expr ")"
list_lit       : "[" [exprlist] "]"
map_lit        : "{" [mapinits] "}"
"""
LITERAL = """literal        : UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT | STRING_LIT | BYTES_LIT
               | BOOL_LIT | NULL_LIT
"""
NUMBERS = """INT_LIT        : /-?/ /0x/ HEXDIGIT+ | /-?/ DIGIT+

UINT_LIT       : INT_LIT /[uU]/
"""
FLOAT = """FLOAT_LIT      : /-?/ DIGIT+ "." DIGIT* EXPONENT? | /-?/ DIGIT* "." DIGIT+ EXPONENT? | /-?/ DIGIT+ EXPONENT
"""
STRINGS = r'''STRING_LIT     : /[rR]?"(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4-8}|.)*?"/
               | /[rR]?'(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|.)*?'/

MLSTRING_LIT   : /[rR]?"""(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4-8}|\r\n|\r|\n|.)*?"""/
               | /[rR]?\'\'\'(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\r\n|\r|\n|.)*?\'\'\'/

BYTES_LIT      : /[bB]/ MLSTRING_LIT | /[bB]/ STRING_LIT
'''.replace(r"\'\'\'", "'''")  # noqa: E501 - the text as it is in the file

# In each repetition the first character decides which alternative applies: one step a character, no going back.
ONE_LINE = r"""[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*'"""
MANY_LINES = (
    r'[rR]"""(?:[^"]|"(?!""))*"""'
    r"|[rR]'''(?:[^']|'(?!''))*'''"
    r'|"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
)

OUR_OPERATORS = (
    "?relation : [relation RELATION] addition\n"
    "RELATION : /<=|>=|==|!=|<|>|in(?![_a-zA-Z0-9])/\n"
    'CONDITION : "?"\n_COLON : ":"\nOR : "||"\nAND : "&&"\n'
)
OUR_MEMBER = (
    "?member : member_dot | member_dot_arg | member_index | member_object | primary\n"
    "member_dot : member DOT [OPTIONAL] (IDENT | ESCAPED)\n"
    "member_dot_arg : member DOT IDENT OPEN [exprlist] _CLOSE\n"
    "member_index : member BRACKET [OPTIONAL] expr _BRACKET_CLOSE\n"
    "member_object : member BRACE (field _COMMA)* [field] _BRACE_CLOSE | member BRACE _COMMA _BRACE_CLOSE\n"
    "ESCAPED : /`[a-zA-Z0-9_.\\/ -]+`/\n"
    'DOT : "."\nOPTIONAL : "?"\nOPEN : "("\n_CLOSE : ")"\nBRACKET : "["\n_BRACKET_CLOSE : "]"\n'
    'BRACE : "{"\n_BRACE_CLOSE : "}"\n_COMMA : ","\n'
)
OUR_PRIMARY = (
    "?primary : literal | global_call | ident | paren_expr | list_lit | map_lit\n"
    "global_call : [DOT] IDENT OPEN [exprlist] _CLOSE\n"
    "ident : [DOT] IDENT\n"
    "paren_expr : OPEN expr _CLOSE\n"
    "list_lit : BRACKET (item _COMMA)* [item] _BRACKET_CLOSE | BRACKET _COMMA _BRACKET_CLOSE\n"
    "map_lit : BRACE (entry _COMMA)* [entry] _BRACE_CLOSE | BRACE _COMMA _BRACE_CLOSE\n"
    "item : [OPTIONAL] expr\n"
)
# A sign is part of the number, where it is the only one: several are operators.
SIGN = r"(?:(?<!-)-)?"
OUR_NUMBERS = (
    rf"INT_LIT : /{SIGN}(?:0x[0-9a-fA-F]++|[0-9]++)(?![uU])/"
    "\n"
    "UINT_LIT.3 : /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/\n"
)
OUR_FLOAT = (
    rf"FLOAT_LIT.4 : /{SIGN}(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)/"
    "\n"
)
OUR_STRINGS = (
    f"STRING_LIT.5 : /{ONE_LINE}/\nMLSTRING_LIT.6 : /{MANY_LINES}/s\nBYTES_LIT.7 : /[bB](?:{MANY_LINES}|{ONE_LINE})/s\n"
)
RESERVED = """RESERVED.0       : "as" | "break" | "const" | "continue" | "else"
               | "for" | "function" | "if" | "import" | "let"
               | "loop" | "package" | "namespace" | "return"
               | "var" | "void" | "while"
"""
# What is in the file, and what it becomes.
CORRECTIONS = (
    ("expr           : conditionalor [", "?expr          : conditionalor ["),
    ('["?" conditionalor ":" expr]', "[CONDITION conditionalor _COLON expr]"),
    ('conditionalor  : [conditionalor "||"]', "?conditionalor : [conditionalor OR]"),
    ('conditionaland : [conditionaland "&&"]', "?conditionaland : [conditionaland AND]"),
    (OPERATORS, OUR_OPERATORS),
    (ADDITION, '?addition : [addition (PLUS | MINUS)] multiplication\nPLUS : "+"\nMINUS : "-"\n'),
    (MULTIPLICATION, "?multiplication : [multiplication TIMES] unary\nTIMES : /[*\\/%]/\n"),
    (UNARY, '?unary : member | NOT+ member -> negation | MINUS+ member -> negation\nNOT : "!"\n'),
    (MEMBER, OUR_MEMBER),
    (PRIMARY, OUR_PRIMARY),
    ('exprlist       : expr ("," expr)*', "exprlist : expr (_COMMA expr)*"),
    ('fieldinits     : IDENT ":" expr ("," IDENT ":" expr)*', "field : [OPTIONAL] IDENT _COLON expr"),
    ('mapinits       : expr ":" expr ("," expr ":" expr)*', "entry : item _COLON expr"),
    (LITERAL, "literal : UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT | STRING_LIT | BYTES_LIT\n"),
    (NUMBERS, OUR_NUMBERS),
    (FLOAT, OUR_FLOAT),
    (STRINGS, OUR_STRINGS),
    ('BOOL_LIT       : "true" | "false"\n\nNULL_LIT       : "null"\n', ""),
    (RESERVED, ""),
)


def corrected(grammar: str) -> str:
    """Apply every correction to the text of the grammar."""
    for shipped, ours in CORRECTIONS:
        if grammar.count(shipped) != 1:
            raise RuntimeError(f"cel-python's grammar is not the one that was corrected: it lacks {shipped!r}")
        grammar = grammar.replace(shipped, ours)
    return grammar


def shipped() -> str:
    """Read the grammar that comes with cel-python."""
    spec = find_spec("celpy")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("cel-python, whose grammar is needed, is not installed")
    return Path(spec.submodule_search_locations[0], "cel.lark").read_text(encoding="utf-8")


@cache
def parser() -> "Lark":
    """Build the parser, once: it costs tens of milliseconds. It is stateless, hence shareable."""
    from extender.allocation.cel.syntax import Builder  # noqa: PLC0415 - the builder is only needed with the parser

    return Lark(corrected(shipped()), parser="lalr", start="expr", maybe_placeholders=False, transformer=Builder())
