"""Which sets are as fully linked as their kind of machine can have them."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.model.names import DriverName
from extender.topology import choice, make, webs
from extender.topology.choice import Ranker
from extender.topology.demand import EXPECTED
from extender.topology.machine import Group, groups_of
from extender.topology.make import make_of
from extender.topology.policies import SHIPPED
from extender.topology.policy import Policy
from extender.topology.quality import Quality
from extender.topology.tables import shipped
from tests.topology.configured import configured
from tests.topology.machines import bare, gpus, member
from tests.topology.torus import torus

(LINKED,) = (policy for policy in SHIPPED if policy.name == "linked")


def group_of(count: int, product: str) -> Group:
    (group,) = groups_of(bare(), gpus(count, type="gpu", productName=product), shipped())
    return group


def ranker(group: Group, policy: Policy = LINKED) -> Ranker:
    return Ranker(make_of(group, policy), EXPECTED, policy)


@pytest.mark.parametrize(
    ("product", "is_linked"),
    [
        pytest.param("of no table", False, id="no links are known"),
        pytest.param("NVIDIA B200", True, id="all are linked"),
    ],
)
def test_what_a_machine_can_have_is_looked_up_once_for_each_size(
    product: str, *, is_linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ranker(group_of(8, product))
    lists, listed = 0, Quality.sets

    def counted(quality: Quality, free: int, size: int) -> list[int]:
        nonlocal lists
        lists += 1
        return listed(quality, free, size)

    for free in (0xFF, 0x7F):
        assert (made.best(free, 4) is not None) == is_linked
    monkeypatch.setattr(Quality, "sets", counted)
    assert (made.best(0xFE, 4) is not None) == is_linked
    # Those out of what is free, and no others.
    assert lists == 1


def partitioned(chips: int, parts: int, product: str = "AMD_Instinct_MI300X_OAM") -> Group:
    members = [
        member(f"gpu-{chip}-{part}", DriverName("gpu.amd.com"), bus=f"0000:{chip + 1:02x}:00.0", productName=product)
        for chip in range(chips)
        for part in range(parts)
    ]
    (group,) = groups_of(bare(), members, shipped())
    return group


@pytest.mark.parametrize(("chips", "parts"), [(8, 2), (4, 2), (8, 8), (1, 8)])
def test_partitions_of_one_chip_are_as_linked_as_chips_are(chips: int, parts: int) -> None:
    made = ranker(partitioned(chips, parts))
    for size in (2, 4, 8):
        best = made.best(made.make.shape.full, size)
        assert best is not None
        assert best.mask == mask_of(range(size))


def test_partitions_of_one_chip_are_linked_where_another_product_stands_beside_them() -> None:
    members = [*partitioned(4, 2).members, member("other", DriverName("gpu.amd.com"), productName="Radeon")]
    (group,) = groups_of(bare(), members, shipped())
    best = ranker(group).best(0b111, 2)
    assert best is not None
    assert best.mask == 0b11
    assert ranker(group).best(0b1_0000_0001, 2) is None


def test_partitions_of_a_machine_that_no_table_is_about_are_not_linked() -> None:
    assert ranker(partitioned(4, 2, "AMD_Instinct_MI300A")).best(0xFF, 2) is None


TORUS = configured({"deviceTopology": [torus(4)]})


def torus_group() -> Group:
    (group,) = groups_of(bare(), gpus(16, productName="Torus"), TORUS)
    return group


ON_A_TORUS = ranker(torus_group())


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 15), max_size=12), st.integers(2, 6))
def test_a_linked_set_of_many_devices_is_found_wherever_there_is_one(free: set[int], size: int) -> None:
    make, mask = ON_A_TORUS.make, mask_of(free)
    linked = [places for places in combinations(sorted(free), size) if make.is_linked(mask_of(places))]
    best = ON_A_TORUS.best(mask, size)
    assert (best is not None) == bool(linked)
    assert best is None or places_of(best.mask) in linked
    assert not ON_A_TORUS.is_open(mask, size)


def test_a_ring_over_most_of_a_large_machine_is_found() -> None:
    free = ON_A_TORUS.make.shape.full & ~mask_of((0, 1))
    best = ON_A_TORUS.best(free, 14)
    assert best is not None
    assert ON_A_TORUS.make.is_linked(best.mask)


def test_a_set_that_was_looked_for_in_vain_is_told_from_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "STRIDES", 1)
    monkeypatch.setattr(webs, "STRIDE", 5)
    made = ranker(torus_group())
    ring, apart = mask_of((0, 4, 5, 6, 9, 10, 12, 14, 15)), mask_of((0, 5, 10, 15))
    assert made.best(ring, 4) is made.best(apart, 4) is None
    assert made.is_open(ring, 4)
    assert not made.is_open(apart, 4)


def group_with(count: int, *links: tuple[int, ...]) -> Group:
    product = {"product": "Linked", "count": count, "linkWeight": 50, "links": list(map(list, links))}
    document = configured({"deviceTopology": [{"match": {}, "products": [product]}]})
    (group,) = groups_of(bare(), gpus(count, productName="Linked"), document)
    return group


def test_a_ring_does_not_do_where_links_alone_lead_to_a_set_that_is_fully_linked() -> None:
    """Each device has two links to another one, where sets that are grown by strength go first."""
    pairs = [(place, place + 8, 2) for place in range(8)]
    made = ranker(group_with(16, *pairs, (0, 1), (1, 2), (8, 9), *combinations((2, 3, 5, 7), 2)))
    ring, mesh = mask_of((0, 1, 8, 9)), mask_of((2, 3, 5, 7))
    assert not any(map(made.make.is_linked, made.quality.sets(made.make.shape.full, 4)))
    assert made.best(ring, 4) is None
    assert made.make.is_linked(mesh)
    best = made.best(made.make.shape.full, 4)
    assert best is not None
    assert best.mask == mesh


def test_a_set_that_is_not_found_soon_is_looked_for_where_links_are_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webs, "STRIDE", 1)
    made = ranker(
        group_with(16, *combinations(range(10, 14), 2), *combinations(range(3), 2), *pairwise(range(2, 11)), (3, 6))
    )
    monkeypatch.setattr(make, "STRIDES", 3)
    assert not made.make.is_linked(mask_of((3, 4, 5, 6)))


def test_a_ring_does_though_another_product_is_fully_linked() -> None:
    ring = {"product": "Ring", "count": 4, "linkWeight": 25, "links": [[0, 1], [1, 2], [2, 3], [0, 3]]}
    for count in (4, 12):
        mesh = {"product": "Mesh", "count": count, "flat": 300}
        document = configured({"deviceTopology": [{"match": {}, "products": [ring, mesh]}]})
        others = [
            member(f"other-{place}", bus=f"0001:{place + 16:02x}:00.0", productName="Mesh") for place in range(count)
        ]
        (group,) = groups_of(bare(), [*gpus(4, productName="Ring"), *others], document)
        best = ranker(group).best(0b1111, 4)
        assert best is not None
        assert best.mask == 0b1111
        assert list(filter(None, ranker(group).make.linked_sets(0b1111_1111, 4))) == [0b1111_0000, 0b1111]
        assert not ranker(group).make.is_linked(0b11_0011)
