"""docs/topology.md shows configurations that are valid, every key, and every machine that is shipped."""

import re

import pytest

from extender.config.file import parsed
from extender.topology.configuration import Flat, LinkTable, Product
from extender.topology.tables import shipped, with_shipped
from tests.tree import ROOT

DOCUMENT = (ROOT / "docs" / "topology.md").read_text()
KEYS = [
    "deviceTopology",
    "match",
    "driver",
    "type",
    "nodeSelector",
    "aliases",
    "numa",
    "root",
    "bus",
    "product",
    "uuid",
    "levels",
    "attribute",
    "key",
    "node",
    "weight",
    "peers",
    "annotation",
    "linkWeight",
    "products",
    "count",
    "order",
    "links",
    "flat",
    "pairs",
    "source",
    "clusterTopology",
    "label",
    "maxNodes",
]


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL))
def test_a_configuration_that_is_shown_is_valid(text: str) -> None:
    assert with_shipped(parsed(text)).kinds


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_explained(key: str) -> None:
    assert f"`{key}`" in DOCUMENT


def row(product: Product) -> str:
    """Write a machine as the document does."""
    links = product.links
    assert isinstance(links, Flat | LinkTable)
    counts = ", ".join(map(str, product.counts))
    weight = f"{links.weight:g} everywhere" if isinstance(links, Flat) else f"{links.link_weight:g} for each link"
    label = "".join(f" on nodes with `{key}: {value}`" for key, value in product.nodes)
    pattern = product.product.pattern.replace("|", r"\|")
    return f"| `{pattern}`{label} | {counts} | {weight} | {links.source} |"


def test_every_shipped_machine_is_listed_with_its_source() -> None:
    rows = [row(product) for kind in shipped().kinds for product in kind.products]
    assert [
        line for line in DOCUMENT.splitlines() if line.startswith("| `") and line.count("|") - line.count(r"\|") == 5
    ] == rows
