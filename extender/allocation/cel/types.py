"""CEL's static types, and when a value of one may stand where another is expected.

The rules follow cel-go's checker, which decides what the API server admits: type parameters are bound
by unification, ``dyn`` fits everywhere, null fits objects, durations and timestamps.
"""

from typing import NamedTuple


class Type(NamedTuple):
    """A type. *kind* tells the rules that apply; objects and opaque types differ by *name*."""

    kind: str
    name: str
    parameters: tuple["Type", ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN = Type("dyn", "dyn")
NULL = Type("null", "null")
BOOL = Type("bool", "bool")
BYTES = Type("bytes", "bytes")
DOUBLE = Type("double", "double")
INT = Type("int", "int")
STRING = Type("string", "string")
UINT = Type("uint", "uint")
DURATION = Type("duration", "google.protobuf.Duration")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
QUANTITY = Type("struct", "kubernetes.Quantity")
SEMVER = Type("struct", "kubernetes.Semver")
URL = Type("struct", "kubernetes.URL")
NAMED_FORMAT = Type("struct", "kubernetes.NamedFormat")
DEVICE = Type("struct", "kubernetes.DRADevice")
IP = Type("opaque", "net.IP")
CIDR = Type("opaque", "net.CIDR")

PARAMETER_A = Type("parameter", "A")
PARAMETER_B = Type("parameter", "B")
NULLABLE = frozenset(("opaque", "struct", "duration", "timestamp"))
COMPOSITE = frozenset(("opaque", "list", "map", "type"))

Bindings = dict[Type, Type]


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of_type(described: Type) -> Type:
    return Type("type", "type", (described,))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def unwrap_optional(given: Type) -> tuple[Type, bool]:
    """Return what an optional holds and True; any other type and False."""
    if given.kind == "opaque" and given.name == "optional_type":
        return given.parameters[0], True
    return given, False


def is_dyn(given: Type) -> bool:
    return given.kind == "dyn"


def substitute(bindings: Bindings, given: Type, *, free: Type | None = None) -> Type:
    """Replace bound type parameters; unbound ones become *free* where it is given."""
    bound = bindings.get(given) if given.kind == "parameter" else None
    if bound is not None:
        return substitute(bindings, bound, free=free)
    if given.kind == "parameter":
        return given if free is None else free
    if not given.parameters:
        return given
    return given._replace(parameters=tuple(substitute(bindings, inner, free=free) for inner in given.parameters))


def assignable(bindings: Bindings, one: Type, other: Type) -> Bindings | None:
    """Return the bindings under which *one* and *other* agree; None where they cannot."""
    if one == other and not one.parameters:
        return bindings
    attempt = dict(bindings)
    return attempt if _assign(attempt, one, other) else None


def all_assignable(bindings: Bindings, ones: tuple[Type, ...], others: tuple[Type, ...]) -> Bindings | None:
    """Return the bindings under which the types agree one by one; None where they cannot."""
    attempt = dict(bindings)
    return attempt if _assign_all(attempt, ones, others) else None


def _assign_all(bindings: Bindings, ones: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
    return len(ones) == len(others) and all(
        _assign(bindings, one, other) for one, other in zip(ones, others, strict=True)
    )


def _assign(bindings: Bindings, one: Type, other: Type) -> bool:  # noqa: PLR0911 - a list of rules
    if other.kind == "parameter":
        valid, known = _bind(bindings, one, other)
        if valid or known:
            return valid
    if one.kind == "parameter":
        return _bind(bindings, other, one)[0]
    if is_dyn(one) or is_dyn(other):
        return True
    if one.kind == "null" or other.kind == "null":
        counterpart = other if one.kind == "null" else one
        return counterpart.kind == "null" or counterpart.kind in NULLABLE
    if one.kind == "type":
        return other.kind == "type"
    if one.kind in COMPOSITE:
        same = one.kind == other.kind and one.name == other.name
        return same and _assign_all(bindings, one.parameters, other.parameters)
    return one == other


def _bind(bindings: Bindings, given: Type, parameter: Type) -> tuple[bool, bool]:
    """Bind *parameter* to *given*: whether that is valid, and whether the parameter was bound before."""
    if given == parameter:
        return True, True
    known = bindings.get(parameter)
    if known is None:
        if _occurs(bindings, parameter, given):
            return False, False
        bindings[parameter] = given
        return True, False
    if given == known:
        return True, True
    if not _assign(bindings, given, known):
        return False, True
    general = most_general(given, known)
    if not _occurs(bindings, parameter, general):
        bindings[parameter] = general
    return True, True


def _occurs(bindings: Bindings, parameter: Type, within: Type) -> bool:
    if parameter == within:
        return True
    if within.kind == "parameter":
        bound = bindings.get(within)
        return bound is not None and _occurs(bindings, parameter, bound)
    return within.kind in COMPOSITE and any(_occurs(bindings, parameter, inner) for inner in within.parameters)


def parameters_of(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """Return the type parameters that occur in *types*, each once."""
    found: dict[Type, None] = {}
    for given in types:
        if given.kind == "parameter":
            found[given] = None
        elif given.parameters:
            found.update(dict.fromkeys(parameters_of(given.parameters)))
    return tuple(found)


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types that agree."""
    return one if _is_general(one, other) else other


def _is_general(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "parameter":
        return True
    if is_dyn(other) or other.kind == "parameter" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in COMPOSITE:
        same = one.name == other.name and len(one.parameters) == len(other.parameters)
        return same and all(map(_is_general, one.parameters, other.parameters))
    return one == other


def is_open(given: Type) -> bool:
    """Tell whether a type parameter occurs in *given*."""
    return given.kind == "parameter" or any(map(is_open, given.parameters))


def is_larger(given: Type, limit: int) -> bool:
    """Tell whether *given* consists of more than *limit* types. Looks at no more than these."""
    if not given.parameters:
        return False
    waiting, seen = [given], 0
    while waiting:
        seen += 1
        if seen > limit:
            return True
        waiting.extend(waiting.pop().parameters)
    return False
