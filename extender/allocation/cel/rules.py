"""The type of each macro: its loop is checked with the accumulator that it has upstream."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from extender.allocation.cel.tree import Loop
from extender.allocation.cel.types import BOOL, INT, Type, list_of, map_of

if TYPE_CHECKING:
    from extender.allocation.cel.check import Checker


def quantifier(checker: "Checker", node: Loop, _item: Type, _target: Type) -> Type:
    if not checker.agree(node.body.type, BOOL):
        raise checker.mismatch(BOOL, node.body.type, node.body.position)
    return BOOL


def exists_one(checker: "Checker", node: Loop, _item: Type, _target: Type) -> Type:
    checker.resolve(node, "_?_:_", (node.body.type, INT, INT), is_member=False)
    return BOOL


def filtering(checker: "Checker", node: Loop, item: Type, _target: Type) -> Type:
    return accumulate(checker, node, (list_of(checker.fresh()), list_of(item)), node.body.type)


def mapping(checker: "Checker", node: Loop, _item: Type, _target: Type) -> Type:
    test = None if node.condition is None else node.condition.type
    return accumulate(checker, node, (list_of(checker.fresh()), list_of(node.body.type)), test)


def map_entries(checker: "Checker", node: Loop, item: Type, _target: Type) -> Type:
    test = None if node.condition is None else node.condition.type
    body = node.body.type
    accumulated = map_of(checker.fresh(), checker.fresh())
    arguments = (body,) if node.kind == "transformMapEntry" else (item, body)
    return accumulate(checker, node, (accumulated, *arguments), test)


def sort_by(checker: "Checker", node: Loop, item: Type, target: Type) -> Type:
    keys = mapping(checker, node, item, target)
    return checker.resolve(node, "@sortByAssociatedKeys", (target, keys), is_member=True)


def accumulate(checker: "Checker", node: Loop, arguments: tuple[Type, ...], test: Type | None) -> Type:
    """Check one step of a loop that builds a list or a map, which is the first of *arguments*."""
    accumulated = arguments[0]
    name = "_+_" if accumulated.kind == "list" else "@mapInsert"
    step = checker.resolve(node, name, arguments, is_member=False)
    if test is not None:
        step = checker.resolve(node, "_?_:_", (test, step, accumulated), is_member=False)
    if not checker.agree(accumulated, step):
        raise checker.mismatch(accumulated, step, node.position)
    return checker.resolved(accumulated)


LOOPS: dict[str, Callable[["Checker", Loop, Type, Type], Type]] = {
    "all": quantifier,
    "exists": quantifier,
    "exists_one": exists_one,
    "existsOne": exists_one,
    "filter": filtering,
    "map": mapping,
    "sortBy": sort_by,
    "transformList": mapping,
    "transformMap": map_entries,
    "transformMapEntry": map_entries,
}
