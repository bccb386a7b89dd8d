"""Closures of what is not a call: paths of the device, variables, logic, lists and maps."""

from collections.abc import Mapping

from extender.allocation.cel.errors import Failed, no_overload
from extender.allocation.cel.program import BUDGET, DEVICE, UNSET, Closure, Frame
from extender.allocation.cel.reads import GROUPS
from extender.allocation.cel.values import MISSING, NONE, Domains, Optional, encoded, type_name


def device_value(frame: Frame) -> object:
    """Return the whole device as a map."""
    device = frame[DEVICE]
    return {
        "driver": device.driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _attributes(frame),
        "capacity": _capacity(frame),
    }


def _attributes(frame: Frame) -> object:
    return _domains(frame, frame[DEVICE].attributes)


def _capacity(frame: Frame) -> object:
    return _domains(frame, frame[DEVICE].capacity)


def _domains(frame: Frame, given: Mapping[str, Mapping[str, object]]) -> Domains:
    """Return the attributes or the capacity of a device as a value of its own, made anew each time."""
    frame[BUDGET].spend(len(given))
    return Domains({name: dict(entries) for name, entries in given.items()})


def lazy_closure(place: int, initial: Closure) -> Closure:
    """Read a variable that gets its value when it is first read.

    A failure is remembered as well: a chain of variables that fail would double the work with each of them.
    """

    def read(frame: Frame) -> object:
        value = frame[place]
        if value is UNSET:
            try:
                value = initial(frame)
            except Failed as error:
                value = error
            frame[place] = value
        if isinstance(value, Failed):
            raise Failed(*value.args)
        return value

    return read


def path_closure(path: tuple[str, ...], *, is_optional: bool, is_test: bool) -> Closure | None:
    """Read a constant path of the device, None where it is not one."""
    if len(path) == 1 and not is_optional and not is_test:
        return FIELDS.get(path[0])
    if len(path) == 2 and path[0] in GROUPS and not is_optional and not is_test:
        return _domain_closure(path[0], path[1])
    if len(path) != 3 or path[0] not in GROUPS:
        return None
    group, domain, name = path
    if is_test:
        return lambda frame: name in getattr(frame[DEVICE], group).get(domain, ())
    if is_optional:
        return _optional_closure(group, domain, name)
    return _attribute_closure(domain, name) if group == "attributes" else _capacity_closure(domain, name)


def _attribute_closure(domain: str, name: str) -> Closure:
    def read(frame: Frame) -> object:
        try:
            return frame[DEVICE].attributes[domain][name]
        except KeyError:
            raise Failed(f"no such key: {name}") from None

    return read


def _capacity_closure(domain: str, name: str) -> Closure:
    def read(frame: Frame) -> object:
        try:
            return frame[DEVICE].capacity[domain][name]
        except KeyError:
            raise Failed(f"no such key: {name}") from None

    return read


def _optional_closure(group: str, domain: str, name: str) -> Closure:
    def read(frame: Frame) -> object:
        found = getattr(frame[DEVICE], group).get(domain, {}).get(name, MISSING)
        return NONE if found is MISSING else Optional(present=True, value=found)

    return read


def _domain_closure(group: str, domain: str) -> Closure:
    return lambda frame: dict(getattr(frame[DEVICE], group).get(domain, ()))


FIELDS: dict[str, Closure] = {
    "driver": lambda frame: frame[DEVICE].driver,
    "allowMultipleAllocations": lambda frame: frame[DEVICE].allow_multiple_allocations,
    "attributes": _attributes,
    "capacity": _capacity,
}


def logic_closure(terms: tuple[Closure, ...], is_or: bool) -> Closure:  # noqa: FBT001 - which of two operators
    """Join terms: an error is absorbed where another term decides."""

    def join(frame: Frame) -> object:
        error: Failed | None = None
        for term in terms:
            try:
                value = term(frame)
            except Failed as failed:
                error = failed
                continue
            if value is is_or:
                return is_or
            if type(value) is not bool:
                error = no_overload("_||_" if is_or else "_&&_", type_name(value))
        if error is not None:
            raise error
        return not is_or

    return join


def optional_list(items: tuple[Closure, ...], optional: frozenset[int]) -> Closure:
    def build(frame: Frame) -> object:
        built: list[object] = []
        for index, item in enumerate(items):
            value = item(frame)
            if index not in optional:
                built.append(value)
            elif not isinstance(value, Optional):
                raise no_overload("[?]", type_name(value))
            elif value.present:
                built.append(value.value)
        return tuple(built)

    return build


def map_closure(entries: tuple[tuple[Closure, Closure], ...], optional: frozenset[int]) -> Closure:
    def build(frame: Frame) -> object:
        built: dict[object, object] = {}
        for index, (key, value) in enumerate(entries):
            given, item = key(frame), value(frame)
            name = encoded(given)
            frame[BUDGET].meet(name, name)
            if index in optional:
                if not isinstance(item, Optional):
                    raise no_overload("{?}", type_name(item))
                if not item.present:
                    # Upstream takes an entry before it out, too.
                    built.pop(name, None)
                    continue
                item = item.value
            built[name] = item
        budget = frame[BUDGET]
        budget.spend(1 + len(built))
        return built

    return build
