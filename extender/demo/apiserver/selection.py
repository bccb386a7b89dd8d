"""Field selectors: of which objects a client wants to be told."""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import POD, Json, Kind
from extender.model.frozen import dataclass

OPERATORS: Final = (("!=", False), ("==", True), ("=", True))
EVERYWHERE: Final = frozenset(("metadata.name", "metadata.namespace"))
# What else pods can be selected by, as far as anybody here asks for it.
OF_PODS: Final = frozenset(
    ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.nominatedNodeName")
)


@dataclass(frozen=True, slots=True)
class Term:
    """A field that is to have a value, or any but this one; a field that is not there is empty."""

    path: str
    value: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Terms of which all have to hold; none select everything."""

    terms: tuple[Term, ...] = ()

    def matches(self, item: Json | None) -> bool:
        """Tell whether *item* is there and selected."""
        return item is not None and all((_value(item, term.path) == term.value) is term.is_equal for term in self.terms)


EVERYTHING: Final = Selection()


def selection_of(text: str, kind: Kind) -> Selection:
    """Read a field selector for objects of *kind*; what the real server refuses is a 400."""
    return Selection(tuple(_terms(text, EVERYWHERE | OF_PODS if kind == POD else EVERYWHERE)))


def _terms(text: str, known: frozenset[str]) -> Iterator[Term]:
    for written in filter(None, text.split(",")):
        term = _term(written)
        if term is None:
            raise Failure(400, f"invalid selector: '{text}'; can't understand '{written}'")
        if term.path not in known:
            raise Failure(400, f"field label not supported: {term.path}")
        yield term


def _term(written: str) -> Term | None:
    """Split at the first operator."""
    for place in range(len(written)):
        for operator, is_equal in OPERATORS:
            if written.startswith(operator, place):
                return Term(written[:place], written[place + len(operator) :], is_equal)
    return None


def _value(item: Json, path: str) -> str:
    value: object = item
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)
