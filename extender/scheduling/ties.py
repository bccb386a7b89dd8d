"""What keeps a pod from nodes because of what it has: claims that can be used elsewhere, and what its status names."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.snapshot import Snapshot
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName
from extender.model.node_selector import NodeSelector
from extender.scheduling.needs import Needs
from extender.scheduling.servable import unsuited
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import Word
from extender.state.table import Numbers

# Said of nodes where the claims that a pod has cannot be used, and each of them on some.
ELSEWHERE: Final = "a claim of the pod is allocated elsewhere"


def ties(needs: Needs, usable: Sequence[Flags], nodes: Numbers, snapshot: Snapshot) -> Iterator[Tally]:
    """Count *nodes*, where the pod cannot use what it has, by the first that is in the way.

    *usable*, bool[nodes] each, tells where its allocated claims can be used.
    """
    names = snapshot.layout.nodes
    for claim, fits in zip(needs.allocated, usable, strict=True):
        here = fits[nodes]
        barred, nodes = nodes[~here], nodes[here]
        if len(barred):
            yield Tally(Word.CLAIM_ELSEWHERE, len(barred), bound_to(claim, fits, snapshot), names[int(barred[0])])
    if len(nodes):
        name = names[int(nodes[0])]
        yield Tally(Word.CLAIM_ELSEWHERE if needs.made else Word.CLAIM_GONE, len(nodes), unsuited(needs, name), name)


def bound_to(claim: ResourceClaim, usable: Flags, snapshot: Snapshot) -> str:
    """Say where *claim* can be used."""
    count, name = np.count_nonzero(usable), claim.key.name
    if count:
        first = snapshot.layout.nodes[int(usable.argmax())]
        where = f"is allocated on node {first}" if count == 1 else f"can be used on {count} nodes, such as {first}"
        return f"claim {name} {where}"
    place = named(claim.allocation.node_selector) if claim.allocation else None
    is_gone = place is not None and place not in snapshot.nodes
    return f"claim {name} " + (
        f"is allocated on node {place}, which is not there" if is_gone else "can be used on no node"
    )


def named(selector: NodeSelector | None) -> NodeName | None:
    """Return the one node that *selector* accepts where it says so by name, as allocations of local devices do."""
    terms = selector.terms if selector else ()
    if len(terms) != 1 or terms[0].expressions or len(terms[0].fields) != 1:
        return None
    asked = terms[0].fields[0]
    is_name = asked.key == "metadata.name" and asked.operator == "In" and len(asked.values) == 1
    return NodeName(asked.values[0]) if is_name else None
