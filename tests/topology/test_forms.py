"""Matrices of links are large: nodes that are alike have them in common, and those of others are not kept for ever."""

import gc
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest

from extender.allocation.board import Board, board_of
from extender.allocation.features import Features
from extender.allocation.tainting import Tainting
from extender.model.change import Changed
from extender.model.device import Attribute, ResourceSlice
from extender.topology import atlas, memo
from extender.topology.atlas import Atlas
from extender.topology.choice import Ranker
from extender.topology.demand import EXPECTED
from extender.topology.document import document_of
from extender.topology.machine import Group, groups_of
from extender.topology.quality import ONE
from extender.topology.shape import Shape
from extender.topology.tables import shipped
from tests.scheduling.cast import belief_of, node
from tests.scheduling.machines import NUMA, sample
from tests.scheduling.mixed import H100, NET, gpus, published
from tests.topology.machines import bare, member

MANY = 40


def board(name: str, *slices: ResourceSlice) -> Board:
    return board_of(node(name), slices, Tainting((), {}), Features())


def unlike(name: str, near: int) -> ResourceSlice:
    """Return devices of which the first *near* are on one NUMA node, all others on another."""
    plain = published(name, NET, MANY)
    numbered = enumerate(plain.devices)
    devices = (
        replace(device, attributes=(*device.attributes[1:], (NUMA, Attribute("int", int(index >= near)))))
        for index, device in numbered
    )
    return replace(plain, devices=tuple(devices))


def group_on(known: Atlas, laid: Board) -> Group:
    (group,) = known.on(laid)
    return group


def test_nodes_that_are_alike_have_their_matrices_in_common_and_names_of_their_own() -> None:
    known = Atlas(shipped())
    here, there = (group_on(known, board(name, published(name, NET, MANY))) for name in "ab")
    for matrix in ("weights", "links", "origin"):
        assert getattr(here.links, matrix) is getattr(there.links, matrix)
    assert here.form is there.form
    assert here.shape is there.shape
    assert {device.pool for device in here.links.devices} == {"a"}
    assert {device.pool for device in there.links.devices} == {"b"}


def test_a_board_has_them_in_common_with_the_machine_that_its_node_is() -> None:
    known, slices = Atlas(shipped()), sample("dgx-1v", "a")
    belief = belief_of(node("a"), slices)
    ((number,),) = (known.numbers(belief.cluster.snapshot).tolist(),)
    ((machine,), laid) = known.machines[number], board("a", slices)
    assert group_on(known, laid).form is machine.form


def test_what_differs_is_told_apart() -> None:
    known = Atlas(shipped())
    one, other = (group_on(known, board(name, unlike(name, near))) for name, near in (("a", 3), ("b", 5)))
    assert one.form is not other.form
    assert one.shape != other.shape
    # Behind a switch weights are alike, and NUMA nodes make the difference.
    flat = gpus("c", 8)
    moved = replace(flat, devices=(replace(flat.devices[0], attributes=flat.devices[-1].attributes), *flat.devices[1:]))
    left, right = (group_on(known, board("c", item)) for item in (flat, moved))
    assert left.links.is_flat
    assert left.shape != right.shape


def test_each_weight_is_kept_once() -> None:
    shape = group_on(Atlas(shipped()), board("a", published("a", NET, MANY))).shape
    weights = [weight for row in shape.weights for weight in row]
    assert len(set(map(id, weights))) == len(set(weights))


def test_boards_that_are_unlike_are_kept_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "CELLS", 3 * MANY * MANY)
    known, boards = Atlas(shipped()), [board(f"n{near}", unlike(f"n{near}", near)) for near in range(1, 9)]
    forms = [ref(group_on(known, laid).form) for laid in boards]
    gc.collect()
    assert [form() is not None for form in forms] == [False] * 5 + [True] * 3


def test_machines_that_are_large_are_forgotten_the_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas, "CELLS", 3 * MANY * MANY)
    known, belief = Atlas(shipped()), belief_of(node("n"))
    for near in range(1, 9):
        belief.apply(Changed(unlike("n", near)))
        known.numbers(belief.cluster.snapshot)
        assert len(known.machines) <= 4


def test_a_device_without_a_numa_node_leaves_the_others_a_tree() -> None:
    count = 16
    plain = gpus("a", count)
    unknown = tuple(pair for pair in plain.devices[0].attributes if pair[0] != NUMA)
    odd = replace(plain, devices=(replace(plain.devices[0], attributes=unknown), *plain.devices[1:]))
    document = document_of(
        {"deviceTopology": [{"match": {}, "products": [{"product": "H100", "count": 16, "flat": 450}]}]}
    )
    shape = group_on(Atlas(document.configuration), board("a", odd)).shape
    assert shape.is_tree
    assert (shape.weights[0][1], shape.weights[1][2]) == (405_000, 450_000)


def test_behind_a_switch_a_socket_of_several_numa_nodes_is_less_far_than_the_other() -> None:
    lists = {3: (3, 0, 1, 2), 1: (1, 0, 2, 3), 7: (7, 4, 5, 6), 5: (5, 4, 6, 7)}

    def shape(zones: list[Any]) -> Shape:
        members = [
            member(f"gpu-{place}", bus=f"0000:{place + 16:02x}:00.0", type="gpu", productName=H100, numa=zone)
            for place, zone in enumerate(zones)
        ]
        (group,) = groups_of(bare(), members, shipped())
        assert group.links.is_flat
        return group.shape

    firsts = [3, 3, 1, 1, 7, 7, 5, 5]
    listed, plain = shape([lists[zone] for zone in firsts]), shape(list(firsts))
    assert [listed.weights[4][other] for other in (5, 6, 0)] == [450_000, 427_500, 405_000]
    assert [plain.weights[4][other] for other in (5, 6, 0)] == [450_000, 405_000, 405_000]
    # Two GPUs of the first socket are taken: the second is there as a whole.
    best = Ranker(listed, EXPECTED).best(listed.full & ~0b1100, 4)
    assert best is not None
    assert (best.mask, best.quality) == (0b11110000, ONE)


def test_where_no_numa_node_is_known_none_makes_a_difference() -> None:
    plain = gpus("a", 8)
    devices = (
        replace(item, attributes=tuple(pair for pair in item.attributes if pair[0] != NUMA)) for item in plain.devices
    )
    shape = group_on(Atlas(shipped()), board("a", replace(plain, devices=tuple(devices)))).shape
    assert {shape.weights[0][other] for other in range(1, 8)} == {450_000}


def test_links_that_are_counted_are_as_strong_beside_a_switch() -> None:
    products = ["Tesla V100-SXM2-32GB"] * 8 + ["NVIDIA H200"] * 2
    members = [
        member(f"gpu-{place}", bus=f"0000:{place + 16:02x}:00.0", type="gpu", productName=product, numa=place // 4 % 2)
        for place, product in enumerate(products)
    ]
    (alone,), (beside,) = (groups_of(bare(), members[:count], shipped()) for count in (8, 10))
    assert beside.links.is_flat
    counted = [(one, other) for one in range(8) for other in range(8) if alone.links.links[one, other]]
    assert {alone.shape.weights[one][other] for one, other in counted} == {25_000, 50_000}
    assert all(beside.shape.weights[one][other] == alone.shape.weights[one][other] for one, other in counted)
