"""Closures of macros. Every turn of a loop is paid for before it is made."""

from collections.abc import Callable, Iterable

from extender.allocation.cel.errors import Crashed, Failed, no_overload
from extender.allocation.cel.library.lists import sort_by
from extender.allocation.cel.library.operators import put
from extender.allocation.cel.program import BUDGET, UNSET, Closure, Frame
from extender.allocation.cel.tree import Call, ListLiteral, Literal, Logic, Loop, MapLiteral, Node
from extender.allocation.cel.types import is_dyn
from extender.allocation.cel.values import NONE, Domains, Optional, Value, decoded, type_name

# The weights of upstream's cost model: what a loop costs beside its body, a list and a map that are built.
TURN, LIST, MAP = 3, 10, 30
# Literals cost nothing there; thousands of them in one list, evaluated in each turn, take long all the same.
LITERALS_PER_STEP = 2


def weight(node: Node | None) -> int:
    """Return the most steps that one evaluation of *node* takes, the turns of loops within it aside."""
    if node is None or isinstance(node, Literal):
        return 0
    if isinstance(node, Loop):
        return 1 + weight(node.target)
    parts = list(map(weight, node.children()))
    if _is_condition(node):
        test, yes, no = parts
        parts = [test, max(yes, no)]
    return _own_weight(node) + sum(parts)


def _own_weight(node: Node) -> int:
    """Return what a node takes beside its children."""
    children = node.children()
    literals = sum(isinstance(child, Literal) for child in children)
    many = literals // LITERALS_PER_STEP
    if isinstance(node, Logic) or _is_condition(node):
        # Upstream's operators of logic are free. Here only those are that join something which is paid for.
        is_free = any(not isinstance(child, (Literal, Logic)) and not _is_condition(child) for child in children)
        return many if is_free else 1 + many
    if literals == len(children):
        many = 0
    if isinstance(node, ListLiteral):
        return LIST + many
    return MAP + many if isinstance(node, MapLiteral) else 1 + many


def _is_condition(node: Node) -> bool:
    return isinstance(node, Call) and node.name == "_?_:_"


def cost_of_turn(node: Loop) -> int:
    return TURN + weight(node.body) + weight(node.condition)


def bind_closure(place: int, body: Closure) -> Closure:
    def run(frame: Frame) -> object:
        frame[place] = UNSET
        return body(frame)

    return run


def optional_map_closure(target: Closure, place: int, body: Closure, *, is_flat: bool) -> Closure:
    def run(frame: Frame) -> object:
        optional = target(frame)
        if not isinstance(optional, Optional):
            raise no_overload("hasValue", type_name(optional))
        if not optional.present:
            return NONE
        frame[place] = optional.value
        value = body(frame)
        return value if is_flat else Optional(present=True, value=value)

    return run


Turns = Callable[[Frame], Iterable[tuple[object, object]]]


def turns_of(target: Closure, places: tuple[int, ...], cost: int) -> Turns:
    """Return what yields the items of *target*, each put into the variables, each paid for."""

    def single(frame: Frame) -> Iterable[tuple[object, object]]:
        items, budget, place = _items(target(frame)), frame[BUDGET], places[0]
        for item in items:
            budget.spend(cost)
            frame[place] = item
            yield item, item

    def double(frame: Frame) -> Iterable[tuple[object, object]]:
        budget = frame[BUDGET]
        first, second = places
        for key, value in _pairs(target(frame)):
            budget.spend(cost)
            frame[first], frame[second] = key, value
            yield key, value

    return single if len(places) == 1 else double


def _items(value: Value) -> Iterable[object]:
    if isinstance(value, tuple) and type(value) is tuple:
        return value
    if type(value) in (dict, Domains):
        return [decoded(key) for key in value]
    raise Failed(f"got '{type_name(value)}', expected iterable type")


def _pairs(value: Value) -> Iterable[tuple[object, object]]:
    if isinstance(value, tuple) and type(value) is tuple:
        return enumerate(value)
    if isinstance(value, dict):
        return [(decoded(key), item) for key, item in value.items()]
    raise Failed(f"got '{type_name(value)}', expected iterable type")


def _decision(name: str, value: Value) -> bool:
    if value is True:
        return True
    if value is False:
        return False
    raise no_overload(name, type_name(value))


def quantifier(turns: Turns, body: Closure, _condition: Closure | None, *, is_exists: bool) -> Closure:
    """Compile all and exists: an error is absorbed where another item decides."""

    def run(frame: Frame) -> object:
        error: Failed | None = None
        for _ in turns(frame):
            try:
                if _decision("_||_" if is_exists else "_&&_", body(frame)) is is_exists:
                    return is_exists
            except Failed as failed:
                error = failed
        if error is not None:
            raise error
        return not is_exists

    return run


def exists_one(turns: Turns, body: Closure, _condition: Closure | None) -> Closure:
    return lambda frame: sum([_decision("_?_:_", body(frame)) for _ in turns(frame)]) == 1


def filtering(turns: Turns, body: Closure, _condition: Closure | None) -> Closure:
    return lambda frame: tuple([item for item, _ in turns(frame) if _decision("_?_:_", body(frame))])


def mapping(turns: Turns, body: Closure, condition: Closure | None) -> Closure:
    if condition is None:
        return lambda frame: tuple([body(frame) for _ in turns(frame)])
    return lambda frame: tuple([body(frame) for _ in turns(frame) if _decision("_?_:_", condition(frame))])


def sorting(target: Closure, place: int, cost: int, body: Closure, *, is_measured: bool) -> Closure:
    """Compile sortBy. Upstream measures the keys to tell its cost, and crashes where there are none."""
    wrong = Crashed if is_measured else Failed

    def run(frame: Frame) -> object:
        budget = frame[BUDGET]
        keys: list[object] = []
        try:
            items = target(frame)
            for item in _items(items):
                budget.spend(cost)
                frame[place] = item
                keys.append(body(frame))
        except Failed as error:
            raise wrong(*error.args) from None
        if not isinstance(items, tuple) or type(items) is not tuple:
            raise no_overload("sortBy", type_name(items))
        return sort_by(budget, items, tuple(keys))

    return run


def map_values(turns: Turns, body: Closure, condition: Closure | None) -> Closure:
    def run(frame: Frame) -> object:
        built: dict[object, object] = {}
        for key, _ in turns(frame):
            if condition is None or _decision("_?_:_", condition(frame)):
                put(frame[BUDGET], built, key, body(frame))
        return built

    return run


def map_entries(turns: Turns, body: Closure, condition: Closure | None) -> Closure:
    def run(frame: Frame) -> object:
        built: dict[object, object] = {}
        budget = frame[BUDGET]
        for _ in turns(frame):
            if condition is None or _decision("_?_:_", condition(frame)):
                entries = body(frame)
                if not isinstance(entries, dict):
                    raise no_overload("@mapInsert", "map", type_name(entries))
                budget.items(len(built) + len(entries))
                for key, value in entries.items():
                    put(budget, built, decoded(key), value)
        return built

    return run


LOOPS: dict[str, Callable[[Turns, Closure, Closure | None], Closure]] = {
    "all": lambda turns, body, condition: quantifier(turns, body, condition, is_exists=False),
    "exists": lambda turns, body, condition: quantifier(turns, body, condition, is_exists=True),
    "exists_one": exists_one,
    "existsOne": exists_one,
    "filter": filtering,
    "map": mapping,
    "transformList": mapping,
    "transformMap": map_values,
    "transformMapEntry": map_entries,
}


def loop_closure(
    node: Loop, target: Closure, places: tuple[int, ...], body: Closure, condition: Closure | None
) -> Closure:
    """Return the closure of a macro over the items of *target*, for which there are *places* in the frame."""
    cost = cost_of_turn(node)
    if node.kind == "sortBy":
        return sorting(target, places[0], cost, body, is_measured=not is_dyn(node.body.type))
    return LOOPS[node.kind](turns_of(target, places, cost), body, condition)
