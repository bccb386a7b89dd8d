"""Selecting from values at run time: by field, by index, and where there may be nothing."""

from typing import NamedTuple

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import LONG
from extender.allocation.cel.literals import in_int_range
from extender.allocation.cel.program import BUDGET, Closure, Frame
from extender.allocation.cel.values import (
    INT_MIN,
    MAPS,
    MISSING,
    NONE,
    PRIMITIVE,
    Optional,
    UInt,
    Value,
    find,
    type_name,
)


def index_of(key: Value) -> int:
    """Return *key* as a place in a list; raise Failed where it is none."""
    kind = type(key)
    if kind is int:
        return int(key)
    if isinstance(key, UInt) and in_int_range(int(key)):
        return int(key)
    # The least integer is as near as a double comes to the smaller ones, so it does not count.
    if isinstance(key, float) and abs(key) < -INT_MIN and key == int(key):
        return int(key)
    if kind is float or kind is UInt:
        raise Failed(f"unsupported index value {key} in list")
    raise Failed(f"unsupported index type '{type_name(key)}' in list")


def select(box: Value, key: Value) -> object:
    """Return what *box* has under *key*. To an optional that was stored nobody looks through."""
    kind = type(box)
    if kind in MAPS:
        found = find(box, key)
        if found is MISSING:
            raise Failed(f"no such key: {key}")
        return found
    if isinstance(box, tuple) and kind is tuple:
        place = index_of(key)
        if 0 <= place < len(box):
            return box[place]
        raise Failed(f"index out of bounds: {place}")
    raise Failed(f"no such key: {key}")


def present(box: Value, key: Value) -> object:
    """Return what *box* has under *key*, MISSING where it has nothing or is no container."""
    kind = type(box)
    if kind in MAPS:
        return find(box, key)
    if isinstance(box, tuple) and kind is tuple:
        place = index_of(key)
        return box[place] if 0 <= place < len(box) else MISSING
    return MISSING


class Link(NamedTuple):
    """One step of a selection: the key, and whether there may be nothing under it."""

    key: Closure
    is_optional: bool = False


def chain_closure(head: Closure, links: tuple[Link, ...], *, is_test: bool = False) -> Closure:
    """Compile ``head.a[b].?c``; of a test, tell whether there is something under the last key.

    From an optional at the head, or a link that is one, on, the rest may be missing, and is an optional in the end.
    """
    tested, only = len(links) - 1 if is_test else -1, links[0].key

    def follow(frame: Frame, value: Value) -> object:
        may_lack = type(value) is Optional
        if may_lack:
            if not value.present:
                return NONE
            value = value.value
        for place, (key, is_optional) in enumerate(links):
            name, may_lack = _named(frame, key), may_lack or is_optional
            if may_lack:
                value = present(value, name)
                if value is MISSING:
                    return NONE
            elif place == tested:
                return present(value, name) is not MISSING
            else:
                value = select(value, name)
        return Optional(present=True, value=value) if may_lack else value

    def one(frame: Frame) -> object:
        box = head(frame)
        return follow(frame, box) if type(box) is Optional else select(box, _named(frame, only))

    is_simple = len(links) == 1 and not is_test and not links[0].is_optional
    return one if is_simple else lambda frame: follow(frame, head(frame))


def _named(frame: Frame, key: Closure) -> Value:
    """Return the value of a key."""
    name = key(frame)
    if type(name) is str and len(name) > LONG:
        frame[BUDGET].walk(name)
    if type(name) not in PRIMITIVE:
        raise Failed(f"invalid qualifier type: {type_name(name)}")
    return name


def has_closure(chain: Closure) -> Closure:
    """Compile a test whose *chain* may end with an optional."""

    def read(frame: Frame) -> object:
        found = chain(frame)
        return found.present if isinstance(found, Optional) else found

    return read
