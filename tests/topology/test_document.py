"""docs/topology.md shows configurations that are valid, every key, and every machine that is shipped."""

import re

import pytest

from extender.config.file import parsed
from extender.model.names import DriverName
from extender.topology.configuration import Flat, LinkTable, Product
from extender.topology.links import links_of
from extender.topology.tables import shipped
from tests.topology.configured import configured
from tests.topology.machines import bare, gpus
from tests.tree import ROOT

DOCUMENT = (ROOT / "docs" / "topology.md").read_text()
CONFIGURATIONS = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
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


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_that_is_shown_is_valid(text: str) -> None:
    assert configured(parsed(text)).kinds


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_explained(key: str) -> None:
    assert f"`{key}`" in DOCUMENT


def row(driver: str, product: Product) -> str:
    """Write a machine as the document does."""
    links = product.links
    assert isinstance(links, Flat | LinkTable)
    counts = ", ".join(map(str, product.counts))
    weight = f"{links.weight:g} everywhere" if isinstance(links, Flat) else f"{links.link_weight:g} for each link"
    label = "".join(f" on nodes with `{key}: {value}`" for key, value in product.nodes)
    pattern = product.product.pattern.replace("|", r"\|")
    return f"| `{pattern}`{label} | `{driver}` | {counts} | {weight} | {links.source} |"


def test_every_shipped_machine_is_listed_with_its_source() -> None:
    rows = [row(kind.match.driver, product) for kind in shipped().kinds for product in kind.products]
    assert [
        line for line in DOCUMENT.splitlines() if line.startswith("| `") and line.count("|") - line.count(r"\|") == 6
    ] == rows


def test_the_entry_that_is_shown_gives_another_driver_the_shipped_tables() -> None:
    (text,) = (text for text in CONFIGURATIONS if "driver: gpu.example.org" in text)
    driver = DriverName("gpu.example.org")
    for product, count, weight in (("Tesla V100-SXM2-32GB", 8, 50), ("NVIDIA A100-SXM4-80GB", 8, 300)):
        members = [one._replace(key=one.key._replace(driver=driver)) for one in gpus(count, productName=product)]
        assert not links_of(bare(), members, shipped()).is_known
        assert links_of(bare(), members, configured(parsed(text))).weights.max() == weight
