"""Which attributes and capacities an expression can depend on. Errs on the side of the whole device."""

from extender.allocation.cel.tree import Bind, Call, Ident, Literal, Loop, Node, OptionalMap, Select

Path = tuple[str, ...]
# Names that stand for a part of the device, or for something else (None).
Aliases = dict[str, Path | None]
GROUPS = frozenset(("attributes", "capacity"))
ATOMS = frozenset(("driver", "allowMultipleAllocations"))


class _Whole(Exception):  # noqa: N818 - not an error, the end of a search
    """The expression may read anything."""


def reads_of(root: Node) -> frozenset[Path] | None:
    """Return the paths that *root* can read; None where these cannot be told."""
    found: set[Path] = set()
    try:
        _collect(root, {}, found)
    except _Whole:
        return None
    return frozenset(found)


def path_of(node: Node, aliases: Aliases) -> Path | None:
    """Return the steps from ``device`` to *node* where all of them are constants, else None."""
    steps: list[str] = []
    while True:
        match node:
            case Select(operand=operand, field=field, is_test=False):
                steps.append(field)
                node = operand
            case Call(name="_[_]" | "_[?_]", arguments=(operand, Literal(value=str(key)))):
                steps.append(key)
                node = operand
            case Ident(name=name, is_global=False) if name in aliases:
                base = aliases[name]
                return None if base is None else (*base, *reversed(steps))
            case Ident(name="device"):
                return tuple(reversed(steps))
            case _:
                return None


def complete(path: Path) -> Path | None:
    """Return the part of *path* that a device has a value for; None where the path stops before."""
    if path[:1] and path[0] in ATOMS:
        return path[:1]
    return path[:3] if len(path) >= 3 and path[0] in GROUPS else None


def _collect(node: Node, aliases: Aliases, found: set[Path]) -> None:
    path = path_of(node, aliases)
    if path is None:
        _collect_below(node, aliases, found)
        return
    whole = complete(path)
    if whole is None:
        raise _Whole
    found.add(whole)


def _collect_below(node: Node, aliases: Aliases, found: set[Path]) -> None:
    match node:
        case Select(operand=operand, field=field, is_test=True):
            _collect_test(operand, field, aliases, found)
        case Call(name="@in", arguments=(Literal(value=str(key)), box)) if _is_domain(path_of(box, aliases)):
            found.add((*(path_of(box, aliases) or ()), key))
        case Bind(name=name, init=init, body=body):
            known = path_of(init, aliases)
            if known is None or complete(known) is not None:
                _collect(init, aliases, found)
            _collect(body, {**aliases, name: known}, found)
        case OptionalMap(target=target, name=name, body=body):
            _collect(target, aliases, found)
            _collect(body, {**aliases, name: None}, found)
        case Loop(target=target, names=names):
            _collect(target, aliases, found)
            inner = {**aliases, **dict.fromkeys(names)}
            for child in node.inner():
                _collect(child, inner, found)
        case _:
            for child in node.children():
                _collect(child, aliases, found)


def _collect_test(operand: Node, field: str, aliases: Aliases, found: set[Path]) -> None:
    """Collect what ``has(operand.field)`` reads: the fields of the device and all domains are always there."""
    base = path_of(operand, aliases)
    if base is None:
        _collect(operand, aliases, found)
        return
    path = complete((*base, field))
    if path is not None:
        found.add(path)


def _is_domain(path: Path | None) -> bool:
    return path is not None and len(path) == 2 and path[0] in GROUPS
