"""The file: YAML to the values of settings by their paths."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from extender.config.table import rows

# What the library lets out of values that are not what their tag says, as !!int, or what they look like, as 2026-99-99.
UNFIT: Final = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


class Loader(yaml.SafeLoader):
    """Plain data; a key that is there twice is an error, and all that is wrong is a YAMLError that says where."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - the signature of the library
        try:
            return super().construct_object(node, deep)
        except UNFIT as error:
            raise _wrong(node, f"this is no {node.tag.rpartition(':')[2]}") from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the signature of the library
        if not isinstance(node, yaml.MappingNode):
            raise _wrong(node, f"keys with values are expected, and here is a {node.id}")
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise _wrong(key, f"{key.value} is there twice")
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _wrong(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def parsed(text: str) -> object:
    """Read YAML; raise ValueError, which says where, for anything else."""
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a loader of plain data
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{where}{error.problem}") from error
    except (yaml.YAMLError, RecursionError, *UNFIT) as error:
        raise ValueError(f"is no YAML: {error}") from error


def flattened(raw: object) -> Iterator[tuple[str, object]]:
    """Yield what the file sets by path; what is no setting, or of another shape, comes with a ValueError.

    The path of the whole file is empty.
    """
    for name, value in _entries("", raw):
        if any(path.startswith(f"{name}.") for path in rows()):
            yield from ((inner, _known(inner, inner_value)) for inner, inner_value in _entries(f"{name}.", value))
        else:
            yield name, _unknown(name) if "." in name else _known(name, value)


def _entries(prefix: str, raw: object) -> list[tuple[str, object]]:
    if raw is None:
        return []
    if not isinstance(raw, Mapping):
        return [(prefix.rstrip("."), ValueError("must be keys with values"))]
    return [(f"{prefix}{name}", value) for name, value in raw.items()]


def _known(name: str, value: object) -> object:
    """Return *value*, or what is wrong with its name."""
    return value if name in rows() or isinstance(value, ValueError) else _unknown(name)


def _unknown(name: str) -> ValueError:
    """Say what there is in place of *name*, in its section if that is one."""
    section, dot, key = name.partition(".")
    if name in rows():
        return ValueError(f"is no setting: they are nested, {section}: {{{key}: ...}}")
    beside = [path for path in rows() if path.startswith(f"{section}{dot or '.'}")]
    sections = dict.fromkeys(path.partition(".")[0] for path in rows())
    return ValueError(f"is no setting; there are {', '.join(beside or sections)}")
