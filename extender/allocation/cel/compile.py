"""Text to program."""

from collections.abc import Callable

from extender.allocation.cel.calls import searching_closure
from extender.allocation.cel.check import check
from extender.allocation.cel.errors import CompileError
from extender.allocation.cel.library.regex import NAMES as SEARCHES
from extender.allocation.cel.lower import Lowering
from extender.allocation.cel.program import FIRST_VARIABLE, TOO_DEEP, Program
from extender.allocation.cel.reads import reads_of
from extender.allocation.cel.syntax import parse
from extender.allocation.cel.tree import Call, walk
from extender.allocation.cel.types import BOOL, DYN, INT, SEMVER, STRING, Type
from extender.allocation.cel.validate import validate

SCALARS = frozenset((BOOL, INT, STRING, SEMVER, DYN))


def compile_selector(text: str) -> Program:
    """Compile an expression that tells whether a device matches; raise CompileError where it is none."""
    return _compile(text, _require_bool)


def compile_attribute(text: str) -> Program:
    """Compile the expression of a derived attribute; raise CompileError where it is none."""
    return _compile(text, _require_attribute)


def compile_expression(text: str) -> Program:
    """Compile an expression of any type; raise CompileError where it is none."""
    return _compile(text, lambda _given: None)


def _require_bool(given: Type) -> None:
    if given not in (BOOL, DYN):
        raise CompileError(f"must evaluate to bool or the unknown type, not {given}", 0)


def _require_attribute(given: Type) -> None:
    element = given.parameters[0] if given.kind == "list" else given
    if element not in SCALARS:
        message = "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
        raise CompileError(f"{message}, not {given}", 0)


def _compile(text: str, require: Callable[[Type], None]) -> Program:
    try:
        tree = parse(text)
        result = check(tree)
        validate(tree)
        require(result)
        lowering = Lowering()
        run = lowering.lower(tree)
        reads = reads_of(tree)
    except RecursionError:
        raise CompileError(TOO_DEEP) from None
    except CompileError:
        raise
    except Exception as error:
        # A stranger's text, which stays where it is: whatever we did not think of must not end who looks at it.
        raise CompileError(f"internal error: {type(error).__name__}: {error}") from error
    nodes = tuple(walk(tree))
    if any(isinstance(node, Call) and node.name in SEARCHES for node in nodes):
        run = searching_closure(run)
    return Program(reads=reads, size=len(nodes), run=run, variables=lowering.used - FIRST_VARIABLE)
