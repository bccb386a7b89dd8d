"""The third layer: tables of machines, found by product and by number of devices."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from extender.model.node import Node
from extender.topology.aliases import Place
from extender.topology.configuration import Flat, Labels, LinkTable, Product
from extender.topology.provenance import Source
from extender.topology.sheet import Sheet


def product_for(node: Node, places: Sequence[Place], products: Iterable[Product]) -> Product | None:
    """Return the first of *products* that is about such devices on such a node."""
    return next((product for product in products if _is_about(product, node, places)), None)


def has_labels(node: Node, labels: Labels) -> bool:
    """Tell whether *node* has all of *labels*."""
    return set(labels) <= set(node.labels)


def objection(product: Product, places: Sequence[Place]) -> str | None:
    """Say why the table of *product* cannot be laid over such devices."""
    if isinstance(product.links, LinkTable) and len({place.bus for place in places} - {None}) < len(places):
        return f"{product.rule} goes by PCI bus ids, which are not all published or not all distinct"
    return None


def lay_product(sheet: Sheet, places: Sequence[Place], product: Product) -> None:
    """Set what the table of *product* tells; no links are left beside its own."""
    source = Source("products", f"table for {len(places)} of {places[0].product}", product.rule)
    if isinstance(product.links, Flat):
        # Devices on one PCI address are parts of one chip, and tables tell of what is between chips.
        for one, other in combinations(range(len(places)), 2):
            if places[one].bus is None or places[one].bus != places[other].bus:
                sheet.put((one, other), product.links.weight, source)
        sheet.is_flat = True
    elif isinstance(product.links, LinkTable):
        for one, other, links in product.links.edges:
            sheet.put((one, other), product.links.link_weight * links, source, links)
        sheet.link_weight = product.links.link_weight


def _is_about(product: Product, node: Node, places: Sequence[Place]) -> bool:
    return (
        len(places) in product.counts
        and has_labels(node, product.nodes)
        and all(product.product.search(place.product) for place in places)
    )
