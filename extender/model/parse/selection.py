"""Node selectors, taints and tolerations, and what in them is not known here."""

from functools import lru_cache
from typing import Final

from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields
from extender.model.taint import Taint, Toleration

# Of how many parts and letters selectors are at most that are worth the memory: that of an allocation has three parts,
# or some more, and the name of a node.
MOST_PARTS: Final = 16
MOST_LETTERS: Final = 1024
TERM = frozenset(("matchExpressions", "matchFields"))
REQUIREMENT = frozenset(("key", "operator", "values"))
TAINT = frozenset(("key", "value", "effect", "timeAdded"))
TOLERATION = frozenset(("key", "operator", "value", "effect", "tolerationSeconds"))


def selector_of(fields: Fields) -> NodeSelector:
    """Read a node selector; whether its requirements make sense is ``problem_of``'s to say."""
    return _selectors(fields, "")


def _selector_of(fields: Fields, _version: str) -> NodeSelector:
    terms = tuple(
        NodeSelectorTerm(expressions=_requirements(term, "matchExpressions"), fields=_requirements(term, "matchFields"))
        for term in fields.objects("nodeSelectorTerms")
    )
    return _shared(terms) if _is_short(terms) else NodeSelector(terms)


def _is_short(terms: tuple[NodeSelectorTerm, ...]) -> bool:
    requirements = [item for term in terms for item in (*term.expressions, *term.fields)]
    texts = [text for item in requirements for text in (item.key, *item.values)]
    return len(terms) + len(texts) <= MOST_PARTS and sum(map(len, texts)) <= MOST_LETTERS


# One serves all that are equal: every allocation names its node by one.
_selectors: Final = alike(_selector_of, 512)
_shared: Final = lru_cache(maxsize=1 << 14)(NodeSelector)


def _requirements(term: Fields, name: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=entry.text("key"), operator=entry.text("operator"), values=entry.texts("values"))
        for entry in term.objects(name)
    )


def unknown_in_selector(fields: Fields) -> tuple[str, ...]:
    """Name the unknown fields of the node selector of a slice or a device."""
    if not fields.has("nodeSelector"):
        return ()
    selector, inside = fields.child("nodeSelector"), "nodeSelector.nodeSelectorTerms."
    unknown = selector.unknown(frozenset(("nodeSelectorTerms",)), "nodeSelector.")
    for term in selector.objects("nodeSelectorTerms"):
        unknown += term.unknown(TERM, inside)
        unknown += term.unknown_in("matchExpressions", REQUIREMENT, inside)
        unknown += term.unknown_in("matchFields", REQUIREMENT, inside)
    return unknown


def taint_of(fields: Fields) -> Taint:
    """Read a device taint."""
    return Taint(key=fields.text("key"), value=fields.text("value"), effect=fields.text("effect"))


def toleration_of(fields: Fields) -> Toleration:
    """Read a toleration of device taints."""
    return Toleration(
        key=fields.text("key"),
        operator=fields.text("operator"),
        value=fields.text("value"),
        effect=fields.text("effect"),
        seconds=fields.integer("tolerationSeconds") if fields.has("tolerationSeconds") else None,
    )
