"""Selecting from values at run time: by field, by index, and where there may be nothing."""

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
    """Return what *box* has under *key*; from an optional, an optional."""
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
    if kind is Optional:
        return select_optional(box, key)
    raise Failed(f"no such key: {key}")


def present(box: Value, key: Value) -> object:
    """Return what *box* has under *key*, MISSING where it has nothing or is no container."""
    kind = type(box)
    if kind in MAPS:
        return find(box, key)
    if isinstance(box, tuple) and kind is tuple:
        place = index_of(key)
        return box[place] if 0 <= place < len(box) else MISSING
    if isinstance(box, Optional):
        return present(box.value, key) if box.present else MISSING
    return MISSING


def select_optional(box: Value, key: Value) -> Optional:
    """Return what *box* has under *key* as an optional."""
    found = present(box, key)
    return NONE if found is MISSING else Optional(present=True, value=found)


def index_closure(box: Closure, key: Closure, *, is_optional: bool) -> Closure:
    """Compile ``box[key]`` or ``box[?key]``. Where an optional has nothing, the key is not even evaluated."""
    take = select_optional if is_optional else select

    def read(frame: Frame) -> object:
        value = box(frame)
        if type(value) is Optional and not value.present:
            return NONE
        place = key(frame)
        if type(place) is str and len(place) > LONG:
            frame[BUDGET].walk(place)
        if type(place) not in PRIMITIVE:
            raise Failed(f"invalid qualifier type: {type_name(place)}")
        return take(value, place)

    return read
