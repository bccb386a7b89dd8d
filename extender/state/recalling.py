"""What a list tells again, recalled: what stays the same is the same object, and taken over at once."""

from dataclasses import replace

from extender.allocation.inventory import key_of
from extender.allocation.publication import are_alike, differs
from extender.model.change import Noun
from extender.model.claim import ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.footprint import Footprint
from extender.model.node import Node
from extender.model.problem import Problem
from extender.state.cluster import Cluster
from extender.state.loads import Loads
from extender.state.ownership import Ownership

Item = Noun | Problem


def recalled(item: Item, cluster: Cluster, loads: Loads, ownership: Ownership) -> Item:
    """Return what is known in place of *item* where that says the same in the same words, and else *item*."""
    known = _known(item, cluster, loads, ownership)
    return item if known is None else known


def _known(item: Item, cluster: Cluster, loads: Loads, ownership: Ownership) -> Item | None:
    match item:
        case ResourceClaim():
            # Claims carry their version: unless the cluster was set back, equal ones are one and the same text.
            claim = cluster.claims.get(item.key)
            return claim if claim == item else None
        case ResourceSlice():
            published = cluster.snapshot.inventory.with_key(key_of(item))
            if published is None or differs(published, replace(ownership.bare(item), seal=published.seal)):
                return None
            return published
        case Node():
            node = cluster.snapshot.nodes.get(item.name)
            return node if node is not None and are_alike(node, item) else None
        case Footprint():
            footprint = loads.footprint(item.key)
            return footprint if footprint == item else None
    return None
