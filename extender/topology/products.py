"""The third layer: tables of machines, found by product and by number of devices."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from extender.model.node import Node
from extender.topology.aliases import Place
from extender.topology.configuration import Flat, Labels, LinkTable, Product, Published
from extender.topology.sheet import Sheet, Source


class Table(NamedTuple):
    """A machine, and its devices by their number among all of a kind: another product may stand beside it."""

    product: Product
    devices: tuple[int, ...]

    @property
    def tells(self) -> bool:
        """Whether it tells of links itself."""
        return not isinstance(self.product.links, Published)


def tables_for(node: Node, places: Sequence[Place], products: Iterable[Product]) -> list[Table]:
    """Return the machines that stand on *node*, each of devices that none before it is about."""
    found, left = list[Table](), tuple(range(len(places)))
    for product in products:
        about = tuple(index for index in left if product.product.search(places[index].product))
        if len(about) in product.counts and has_labels(node, product.nodes):
            found.append(Table(product, about))
            left = tuple(index for index in left if index not in about)
    return found


def has_labels(node: Node, labels: Labels) -> bool:
    """Tell whether *node* has all of *labels*."""
    return set(labels) <= set(node.labels)


def objection(sheet: Sheet, places: Sequence[Place], table: Table) -> str | None:
    """Say why *table* cannot be laid."""
    product, links = table.product, table.product.links
    if not isinstance(links, LinkTable):
        return None
    if len({places[index].bus for index in table.devices} - {None}) < len(table.devices):
        return f"{product.rule} goes by PCI bus ids, which are not all published or not all distinct"
    if sheet.link_weight not in (None, links.link_weight):
        return f"{product.rule} has links of another weight than what stands beside it"
    return None


def lay_table(sheet: Sheet, places: Sequence[Place], table: Table) -> None:
    """Set what *table* tells of its devices."""
    links, devices = table.product.links, table.devices
    source = Source("products", f"table for {len(devices)} of {places[devices[0]].product}", table.product.rule)
    if isinstance(links, Flat):
        # Devices on one PCI address are parts of one chip, and tables tell of what is between chips.
        for one, other in combinations(devices, 2):
            if places[one].bus is None or places[one].bus != places[other].bus:
                sheet.put((one, other), links.weight, source)
        sheet.is_flat = True
    elif isinstance(links, LinkTable):
        for one, other, count in links.edges:
            sheet.put((devices[one], devices[other]), links.link_weight * count, source, count)
        sheet.link_weight = links.link_weight
