"""Node selectors: which nodes a slice, a device or an allocated claim belongs to."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import LABEL_MAX, NodeName, is_label_key, is_label_value

# The only field that upstream knows of a node.
NAME: Final = "metadata.name"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A condition on one label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """Conditions that must all hold; a term without any matches nothing."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must hold; a selector without any matches nothing."""

    terms: tuple[NodeSelectorTerm, ...] = ()


def matches(selector: NodeSelector, node_name: NodeName, labels: Mapping[str, str]) -> bool:
    """Tell whether *selector* accepts the node. It must be one of which ``problem_of`` finds nothing to say."""
    return any(_term_matches(term, node_name, labels) for term in selector.terms)


def pinned(selector: NodeSelector) -> frozenset[str] | None:
    """Name the nodes of which alone *selector* may accept some, where all its terms name nodes, as for a DaemonSet."""
    names = set[str]()
    for term in selector.terms:
        named = next((each for each in term.fields if each.operator == "In" and each.key == NAME), None)
        if named is None:
            return None
        names.update(named.values)
    return frozenset(names)


def problem_of(selector: NodeSelector) -> str | None:
    """Say what is wrong with *selector*; one bad requirement anywhere spoils all of it, even where others match."""
    problems = [
        f"nodeSelectorTerms[{index}].{problem}"
        for index, term in enumerate(selector.terms)
        for problem in _term_problems(term)
    ]
    return "; ".join(problems) or None


def _term_matches(term: NodeSelectorTerm, node_name: NodeName, labels: Mapping[str, str]) -> bool:
    if not term.expressions and not term.fields:
        return False
    if not all(_label_matches(requirement, labels) for requirement in term.expressions):
        return False
    # A node without a name has no fields, and upstream then does not ask for any.
    return not node_name or all(_field_matches(requirement, node_name) for requirement in term.fields)


def _label_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _order_matches(requirement, value)
    return False


def _order_matches(requirement: Requirement, value: str) -> bool:
    bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
    number = _integer(value)
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def _integer(text: str) -> int | None:
    """Return the integer that *text* is if int64 holds it: no blanks, no underscores, no foreign digits."""
    if len(text) > LABEL_MAX or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _field_matches(requirement: Requirement, node_name: NodeName) -> bool:
    # Nodes have this one field; any other reads as empty.
    value = node_name if requirement.key == NAME else ""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
    return False


def _term_problems(term: NodeSelectorTerm) -> Iterator[str]:
    for index, requirement in enumerate(term.expressions):
        for problem in _expression_problems(requirement):
            yield f"matchExpressions[{index}].{problem}"
    for index, requirement in enumerate(term.fields):
        for problem in _field_problems(requirement):
            yield f"matchFields[{index}].{problem}"


def _expression_problems(requirement: Requirement) -> Iterator[str]:
    if requirement.operator not in _OPERATORS:
        yield f"operator: {requirement.operator!r} is none of {', '.join(_OPERATORS)}"
        return
    if not is_label_key(requirement.key):
        yield f"key: {requirement.key!r} is not a label's key"
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn" if not values:
            yield f"values: {requirement.operator} needs at least one"
        case "Exists" | "DoesNotExist" if values:
            yield f"values: {requirement.operator} takes none, not {len(values)}"
        case "Gt" | "Lt":
            yield from _order_problems(requirement)
    for index, value in enumerate(values):
        if not is_label_value(value):
            yield f"values[{index}]: {value!r} is not a label's value"


def _order_problems(requirement: Requirement) -> Iterator[str]:
    if len(requirement.values) != 1:
        yield f"values: {requirement.operator} needs exactly one, not {len(requirement.values)}"
    for index, value in enumerate(requirement.values):
        if _integer(value) is None:
            yield f"values[{index}]: {value!r} is not a 64-bit integer"


def _field_problems(requirement: Requirement) -> Iterator[str]:
    if requirement.operator not in ("In", "NotIn"):
        yield f"operator: {requirement.operator!r} is none of In, NotIn"
    elif len(requirement.values) != 1:
        yield f"values: {requirement.operator} needs exactly one, not {len(requirement.values)}"
