"""Random expressions in which variables are named within loops within bindings, often by a name that is taken."""

from random import Random

INTS, BOOLS, LISTS = "ints", "bools", "lists"
# {v}: a new variable; of the parts, those with a mark know it.
SHAPES = {
    INTS: (
        "cel.bind({v}, {ints}, {ints*})",
        "({ints} + {ints})",
        "({bools} ? {ints} : {ints})",
        "optional.of({ints}).optMap({v}, {ints*}).orValue({ints})",
        "{lists}.sum()",
        "{lists}.size()",
    ),
    LISTS: (
        "[{ints}, {ints}]",
        "{lists}.map({v}, {ints*})",
        "{lists}.filter({v}, {bools*})",
        "{lists}.transformList(at, {v}, {ints*})",
        "{lists}.sortBy({v}, {ints*})",
    ),
    BOOLS: (
        "({ints} < {ints})",
        "({bools} && {bools})",
        "{lists}.exists({v}, {bools*})",
        "{lists}.all({v}, {bools*})",
    ),
}
LEAVES = {INTS: "{n}", BOOLS: "({n} < {n})", LISTS: "[{n}, {n}]"}
NAMES = ("a", "b", "c", "d", "e")


def scoped(random: Random, depth: int = 5) -> str:
    """Return an expression that is a number."""
    return _written(random, INTS, (), depth)


def _written(random: Random, kind: str, scope: tuple[str, ...], depth: int) -> str:
    is_leaf = depth <= 0 or random.random() < 0.15
    text, taken = LEAVES[kind] if is_leaf else random.choice(SHAPES[kind]), set(scope)
    free = [name for name in NAMES if name not in taken]
    name = random.choice(free if free and random.random() < 0.8 else NAMES)
    pieces = []
    for piece in text.split("{"):
        what, _, rest = piece.rpartition("}")
        pieces.append(_part(random, what, name, scope, depth) + rest)
    return "".join(pieces)


def _part(random: Random, what: str, name: str, scope: tuple[str, ...], depth: int) -> str:
    if what == "v":
        return name
    if what == "n":
        return random.choice(scope) if scope and random.random() < 0.8 else str(random.randrange(4))
    inner = (*scope, name) if what.endswith("*") else scope
    return _written(random, what.rstrip("*"), inner, depth - 1) if what else ""
