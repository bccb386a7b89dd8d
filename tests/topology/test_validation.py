"""A configuration of topology is refused with everything that is wrong with it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.configuration import Configuration, LinkTable, Tier
from extender.topology.reading import InvalidDocument
from extender.topology.tables import NAMED, shipped
from tests.topology.configured import configured

SITE = {"example.com/bridges": "yes"}


def complaints(raw: object) -> tuple[str, ...]:
    with pytest.raises(InvalidDocument) as caught:
        configured(raw)
    return caught.value.complaints


def of_entry(**keys: Any) -> dict[str, Any]:
    return {"deviceTopology": [{"match": {}, **keys}]}


def of_product(**keys: Any) -> dict[str, Any]:
    return of_entry(products=[{"product": "A100", "count": 4, **keys}])


PRODUCT = "deviceTopology[0].products[0]"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([], "document: must be keys with values", id="no-keys"),
        pytest.param(
            {"devices": []},
            "devices: is no key; there are clusterTopology, deviceTopology, mix, policies",
            id="unknown",
        ),
        pytest.param({"deviceTopology": {}}, "deviceTopology: must be a list", id="no-list"),
        pytest.param({"deviceTopology": [7]}, "deviceTopology[0]: must be keys with values", id="no-entry"),
        pytest.param(
            {"deviceTopology": [{}]}, "deviceTopology[0].match: is needed; {} is about all devices", id="match"
        ),
        pytest.param(
            {"deviceTopology": [{"match": {"kind": "gpu"}}]},
            "deviceTopology[0].match.kind: is no key; there are driver, nodeSelector, type",
            id="unknown-in-match",
        ),
        *(
            pytest.param(
                {"deviceTopology": [{"match": {"driver": value}}]},
                "deviceTopology[0].match.driver: must be the name of a driver, as gpu.example.com",
                id=f"driver-{name}",
            )
            for name, value in (("accent", "é"), ("stars", "***"), ("empty", ""), ("blank", " a.b"), ("no", 7))
        ),
        pytest.param(
            of_entry(aliases={"numa": []}), "deviceTopology[0].aliases.numa: must be names of attributes", id="no-names"
        ),
        pytest.param(
            of_entry(aliases={"numa": ["a b"]}),
            "deviceTopology[0].aliases.numa: must be the name of an attribute, as example.com/name",
            id="no-attribute",
        ),
        pytest.param(
            of_entry(levels=[{"weight": 1}]),
            "deviceTopology[0].levels[0]: needs exactly one of attribute, key and node",
            id="level-of-nothing",
        ),
        pytest.param(
            of_entry(levels=[{"key": "rack", "weight": 1}]),
            "deviceTopology[0].levels[0].key: must be one of bus, root, numa",
            id="level-key",
        ),
        pytest.param(
            of_entry(levels=[{"node": False, "weight": 1}]),
            "deviceTopology[0].levels[0].node: must be true",
            id="level-node",
        ),
        pytest.param(
            of_entry(levels=[{"key": "root", "match": "first", "weight": 1}]),
            "deviceTopology[0].levels[0].match: goes with key: numa only",
            id="level-match",
        ),
        pytest.param(
            of_entry(levels=[{"node": True}]), "deviceTopology[0].levels[0].weight: is needed", id="level-weight"
        ),
        *(
            pytest.param(
                of_entry(levels=[{"node": True, "weight": value}]),
                "deviceTopology[0].levels[0].weight: must be a number of GB/s, from 0 to 1000000",
                id=f"weight-{value}",
            )
            for value in (-1, float("nan"), float("inf"), True, "25", 1e7)
        ),
        pytest.param(
            of_entry(peers={"linkWeight": 25}),
            "deviceTopology[0].peers: needs attribute, annotation or both",
            id="peers-nowhere",
        ),
        pytest.param(
            of_entry(peers={"attribute": "example.com/peers"}),
            "deviceTopology[0].peers.linkWeight: is needed",
            id="peers-weight",
        ),
        pytest.param(of_product(), f"{PRODUCT}: needs exactly one of links, flat and pairs", id="product-of-nothing"),
        pytest.param(
            of_product(flat=1, links="dgx1v"), f"{PRODUCT}: needs exactly one of links, flat and pairs", id="two-tables"
        ),
        pytest.param(
            of_product(links="dgx2"), f"{PRODUCT}.links: must be one of dgx1v, mi250x, published", id="unknown-table"
        ),
        pytest.param(
            of_product(links="dgx1v"), f"{PRODUCT}.links: dgx1v is a table of 8 devices, not of 4", id="other-size"
        ),
        pytest.param(
            of_product(flat=1, order="name"), f"{PRODUCT}.order: must be one of pciBusID", id="order"
        ),
        pytest.param(
            of_product(flat=1, count=1), f"{PRODUCT}.count: must be an integer from 2 to 1024", id="count"
        ),
        pytest.param(
            of_product(flat=1, product="("),
            f"{PRODUCT}.product: is no regular expression: missing ), unterminated subpattern at position 0",
            id="pattern",
        ),
        pytest.param(
            of_product(pairs=[[0, 1]], weight=300),
            f"{PRODUCT}.nodeSelector: is needed with pairs: bridges differ from site to site",
            id="pairs-everywhere",
        ),
        pytest.param(
            of_product(pairs=[[0, 1], [2, 4]], weight=300, nodeSelector=SITE),
            f"{PRODUCT}.pairs[1]: must be positions from 0 to 3",
            id="pair-out-of-range",
        ),
        pytest.param(
            of_product(pairs=[[0, 1, 2]], weight=300, nodeSelector=SITE),
            f"{PRODUCT}.pairs[0]: must be two positions",
            id="no-pair",
        ),
        pytest.param(
            of_product(pairs=[[0, 1], [1, 2]], weight=300, nodeSelector=SITE),
            f"{PRODUCT}.pairs: 1 is in two pairs",
            id="two-bridges",
        ),
        pytest.param(
            of_product(links=[[2, 2]], linkWeight=25), f"{PRODUCT}.links[0]: 2 cannot be linked to itself", id="self"
        ),
        pytest.param(
            of_product(links=[[0, 1], [1, 0]], linkWeight=25),
            f"{PRODUCT}.links[1]: 0 and 1 are there twice",
            id="edge-twice",
        ),
        pytest.param(
            of_product(links=[[0, 1, 2], [1, 0, 1]], linkWeight=25),
            f"{PRODUCT}.links[1]: 0 and 1 have another number of links above: not symmetric",
            id="asymmetric",
        ),
        pytest.param(
            of_product(links=[[0, 1, 99]], linkWeight=25), f"{PRODUCT}.links[0]: must have 1 to 64 links", id="links"
        ),
        pytest.param(
            of_product(links=[[0, "1"]], linkWeight=25), f"{PRODUCT}.links[0]: must be integers", id="no-integers"
        ),
        pytest.param(
            of_product(links=[[0, 1]], linkWeight=25, count=[4, 8]),
            f"{PRODUCT}.count: must be one number where positions are named",
            id="two-counts",
        ),
        pytest.param(
            of_product(flat=1, nodeSelector={"a": 1}),
            f"{PRODUCT}.nodeSelector: a must have the value of a label, as text",
            id="selector",
        ),
        pytest.param(
            {"clusterTopology": [{"label": "a/b/c", "weight": 1}]},
            "clusterTopology[0].label: must be the key of a label or an annotation, as example.com/name",
            id="label",
        ),
        pytest.param(
            {"clusterTopology": [{"label": "rack", "weight": 2}, {"label": "rack", "weight": 1}]},
            "clusterTopology[1].label: rack is there twice",
            id="label-twice",
        ),
        pytest.param(
            {"clusterTopology": [{"label": "rack", "weight": 2, "maxNodes": 0}]},
            "clusterTopology[0].maxNodes: must be an integer from 1 to 100000",
            id="max-nodes",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_path(raw: object, expected: str) -> None:
    assert complaints(raw) == (expected,)


def test_everything_wrong_is_told_at_once() -> None:
    raw = of_entry(levels=[{"node": True, "weight": -1}], products=[{"product": "A", "count": 0, "flat": 1}], more=1)
    assert [text.partition(": ")[0] for text in complaints(raw)] == [
        "deviceTopology[0].levels[0].weight",
        "deviceTopology[0].products[0].count",
        "deviceTopology[0].more",
    ]


def test_nothing_configured_is_what_is_shipped() -> None:
    assert configured(None) == configured({}) == shipped()


def test_tiers_that_are_configured_replace_those_that_are_shipped() -> None:
    own = configured({"clusterTopology": [{"label": "rack", "weight": 2, "maxNodes": 4}]})
    assert own.tiers == (Tier("rack", 2, 4),)


def test_every_shipped_table_tells_its_source() -> None:
    tables = [product.links for kind in shipped().kinds for product in kind.products]
    assert all(table.source for table in (*tables, *NAMED.values()))  # type: ignore[union-attr]  # none is published


@pytest.mark.parametrize("table", NAMED.values(), ids=NAMED)
def test_a_shipped_table_names_each_pair_once_and_within_its_size(table: LinkTable) -> None:
    pairs = [edge[:2] for edge in table.edges]
    assert len(set(pairs)) == len(pairs)
    assert all(0 <= one < other < table.devices for one, other in pairs)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["gpu", "dgx1v", "", "numa", "a/b"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "deviceTopology", "clusterTopology", "match", "aliases", "levels", "peers", "products", "numa", "weight",
            "links", "pairs", "flat", "count", "product", "label", "nodeSelector", "key", "node",
        ]),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


def read(raw: object) -> Configuration | tuple[str, ...]:
    try:
        return configured(raw)
    except InvalidDocument as error:
        return error.complaints


@given(JSON)
def test_any_value_passes_or_is_refused_with_paths(raw: object) -> None:
    outcome = read(raw)
    if isinstance(outcome, tuple):
        assert outcome
        assert all(re.match(r"[\w./\[\]-]*: .", text) for text in outcome)
