"""Random expressions over every function that is declared: well-typed by construction, now and then spoiled."""

from functools import cache
from random import Random

from extender.allocation.cel.overloads import Overload, table
from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Bindings,
    Type,
    is_dyn,
    list_of,
    map_of,
    optional_of,
    parameters_of,
    substitute,
)
from tests.allocation.cel.words import LITERALS, WORDS

SIMPLE = (BOOL, INT, UINT, DOUBLE, STRING, BYTES, DURATION, TIMESTAMP)
OPAQUE = tuple(given for given in LITERALS if given not in (*SIMPLE, DYN, NULL, DEVICE))
DOUBTFUL, WRONG = 0.06, 0.02
OPERATORS = {
    "_?_:_": "({} ? {} : {})",
    "_[_]": "{}[{}]",
    "_[?_]": "{}[?{}]",
    "@in": "({} in {})",
    "!_": "!{}",
    "-_": "-({})",
}


class Typed:
    """Writes expressions of a wanted type, a few levels deep. *scope* holds the variables of the macros around."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.scope: list[tuple[str, Type]] = []

    def any_type(self, depth: int = 2) -> Type:
        """Draw a type that values have."""
        roll = self.random.random()
        if depth <= 0 or roll < 0.7:
            return self.random.choice(SIMPLE)
        if roll < 0.8:
            return self.random.choice(OPAQUE)
        if roll < 0.9:
            return list_of(self.any_type(depth - 1))
        if roll < 0.95:
            return map_of(self.random.choice((STRING, INT, BOOL, UINT)), self.any_type(depth - 1))
        return optional_of(self.any_type(depth - 1))

    def expression(self, wanted: Type, depth: int) -> str:
        """Write an expression of the type, or, rarely, one that is not."""
        roll = self.random.random()
        if roll < DOUBTFUL:
            return f"dyn({self.sound(wanted, depth - 1)})"
        if roll < DOUBTFUL + WRONG:
            return f"dyn({self.sound(self.any_type(), depth - 1)})"
        return self.sound(self.any_type() if roll > 1 - WRONG / 4 else wanted, depth)

    def sound(self, wanted: Type, depth: int) -> str:
        known = [name for name, given in self.scope if given == wanted]
        if known and self.random.random() < 0.3:
            return self.random.choice(known)
        roll = self.random.random()
        if depth <= 0 or roll < 0.12:
            return self.leaf(wanted, depth)
        if roll < 0.3:
            return self.macro(wanted, depth)
        made = [] if is_dyn(wanted) else producers(wanted)
        if not made:
            return self.leaf(wanted, depth)
        return self.call(*self.random.choice(self.random.choice(made)), depth)

    def call(self, overload: Overload, bindings: Bindings, depth: int) -> str:
        """Write a call; the parameters of its type that the result leaves open are drawn."""
        free = {name: self.any_type(1) for name in parameters_of(overload.parameters) if name not in bindings}
        types = [substitute({**bindings, **free}, given) for given in overload.parameters]
        words = WORDS.get(overload.name, ())
        parts = [
            repr_of(self.random.choice(words))
            if given == STRING and words and (place or len(types) == 1) and self.random.random() < 0.85
            else self.expression(given, depth - 1)
            for place, given in enumerate(types)
        ]
        return written(overload, parts)

    def leaf(self, wanted: Type, depth: int) -> str:
        """Write a literal, or one of containers."""
        inner = [lambda given=given: self.sound(given, depth - 1) for given in wanted.parameters]
        match wanted.kind:
            case "list":
                return f"[{', '.join(inner[0]() for _ in range(self.random.choice((0, 1, 2, 2, 3))))}]"
            case "map":
                return f"{{{', '.join(f'{inner[0]()}: {inner[1]()}' for _ in range(self.random.choice((0, 1, 2))))}}}"
            case "type":
                return f"type({self.sound(self.any_type(1), depth - 1)})"
            case "opaque" if wanted.name == "optional_type":
                return f"optional.of({inner[0]()})" if self.random.random() < 0.7 else "optional.none()"
        return self.random.choice(LITERALS[wanted])

    def within(self, variables: list[tuple[str, Type]], wanted: Type, depth: int) -> str:
        """Write an expression that may use *variables*."""
        self.scope += variables
        text = self.expression(wanted, depth)
        del self.scope[-len(variables) :]
        return text

    def macro(self, wanted: Type, depth: int) -> str:
        """Write a macro that makes the type; where none does, bind a variable."""
        item, depth = self.any_type(1), depth - 1
        items = self.expression(list_of(item), depth)
        one = [("x", item)]
        if wanted == BOOL:
            return self.quantifier(items, item, depth)
        if wanted.kind == "list":
            return self.listing(wanted, items, item, depth)
        if wanted.kind == "map" and wanted.parameters[0] == INT:
            body = self.within([("i", INT), *one], wanted.parameters[1], depth)
            return f"{items}.transformMap(i, x, {body})"
        if wanted.kind == "map":
            body = self.within([("i", INT), *one], wanted, depth)
            return f"{items}.transformMapEntry(i, x, {body})"
        if wanted.kind == "opaque" and wanted.name == "optional_type":
            name, made = self.random.choice((("optMap", wanted.parameters[0]), ("optFlatMap", wanted)))
            return f"{self.expression(optional_of(item), depth)}.{name}(x, {self.within(one, made, depth)})"
        return f"cel.bind(x, {self.expression(item, depth)}, {self.within(one, wanted, depth)})"

    def quantifier(self, items: str, item: Type, depth: int) -> str:
        if self.random.random() < 0.3:
            operator = self.random.choice(("&&", "||"))
            return f"({self.expression(BOOL, depth)} {operator} {self.expression(BOOL, depth)})"
        if self.random.random() < 0.5:
            kind = self.random.choice(("all", "exists", "exists_one"))
            return f"{items}.{kind}(x, {self.within([('x', item)], BOOL, depth)})"
        kind = self.random.choice(("all", "exists", "existsOne"))
        if self.random.random() < 0.5:
            return f"{items}.{kind}(i, x, {self.within([('i', INT), ('x', item)], BOOL, depth)})"
        entries = self.expression(map_of(STRING, item), depth)
        return f"{entries}.{kind}(k, x, {self.within([('k', STRING), ('x', item)], BOOL, depth)})"

    def listing(self, wanted: Type, items: str, item: Type, depth: int) -> str:
        (made,) = wanted.parameters
        same = self.expression(wanted, depth)
        double = [("i", INT), ("x", item)]
        match self.random.randrange(6):
            case 0:
                text = f"{same}.filter(x, {self.within([('x', made)], BOOL, depth)})"
            case 1:
                text = f"{same}.sortBy(x, {self.within([('x', made)], self.random.choice(SIMPLE), depth)})"
            case 2:
                text = f"{items}.map(x, {self.within([('x', item)], made, depth)})"
            case 3:
                test = self.within([("x", item)], BOOL, depth)
                text = f"{items}.map(x, {test}, {self.within([('x', item)], made, depth)})"
            case 4:
                text = f"{items}.transformList(i, x, {self.within(double, made, depth)})"
            case _:
                test = self.within(double, BOOL, depth)
                text = f"{items}.transformList(i, x, {test}, {self.within(double, made, depth)})"
        return text


def repr_of(text: str) -> str:
    """Write a string as a literal of CEL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def written(overload: Overload, parts: list[str]) -> str:
    if overload.name in OPERATORS:
        return OPERATORS[overload.name].format(*parts)
    if overload.name[0] == "_":
        return f"({parts[0]} {overload.name.strip('_')} {parts[1]})"
    if overload.is_member:
        return f"{parts[0]}.{overload.name}({', '.join(parts[1:])})"
    return f"{overload.name}({', '.join(parts)})"


@cache
def producers(wanted: Type) -> list[list[tuple[Overload, Bindings]]]:
    """Return the variants that make the type, by name; with what their parameters then stand for."""
    found = []
    for name, variants in table().items():
        if name.startswith(("@map", "@sort")):
            continue
        fitting = [
            (variant, bindings)
            for variant in variants
            if "authorization" not in str(variant) and (bindings := matched(variant.result, wanted)) is not None
        ]
        if fitting:
            found.append(fitting)
    return found


def matched(result: Type, wanted: Type) -> Bindings | None:
    """Return what the parameters in *result* stand for where it is the wanted type."""
    if result.kind == "parameter":
        return {result: wanted}
    if (result.kind, result.name, len(result.parameters)) != (wanted.kind, wanted.name, len(wanted.parameters)):
        return None
    bindings: Bindings = {}
    for inner, other in zip(result.parameters, wanted.parameters, strict=True):
        found = matched(inner, other)
        if found is None or any(bindings.get(name, given) != given for name, given in found.items()):
            return None
        bindings |= found
    return bindings


def drawn(random: Random, depth: int = 3) -> str:
    """Write an expression of any type, mostly one that a function makes."""
    typed = Typed(random)
    return typed.sound(Type("type", "type") if random.random() < 0.01 else typed.any_type(), depth)
