"""Links of sample machines, and laws of the layers."""

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import DeviceName, DriverName
from extender.model.node import Node
from extender.topology.aliases import Member
from extender.topology.configuration import Configuration
from extender.topology.links import Links, grouped, links_of
from extender.topology.tables import shipped
from tests.topology.configured import configured
from tests.topology.machines import bare, gpus, machine, member, with_values

DUAL = {(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)}
BRIDGED = {(0, 2), (1, 3), (4, 5), (6, 7)}


def sample(name: str, driver: str = "gpu.nvidia.com") -> Links:
    return links_of(*machine(name, driver), shipped())


def pairs_with(links: Links, weight: float) -> set[tuple[int, int]]:
    return {pair for pair in combinations(range(len(links.devices)), 2) if links.weights[pair] == weight}


def test_a_dgx_1v_has_the_eight_dual_links_of_its_cube_mesh() -> None:
    links = sample("dgx-1v")
    assert pairs_with(links, 50) == DUAL
    assert links.link_weight == 25
    assert links.links.sum(axis=1).tolist() == [6] * 8
    assert len(pairs_with(links, 25)) == 8
    assert len(pairs_with(links, 10)) == 12


def test_two_dual_links_of_a_dgx_1v_cross_sockets() -> None:
    links = sample("dgx-1v")
    crossing = {pair for pair in DUAL if links.places[pair[0]].first_numa != links.places[pair[1]].first_numa}
    assert crossing == {(0, 4), (1, 5)}


@pytest.mark.parametrize(
    ("name", "driver", "weight"),
    [
        pytest.param("dgx-h100", "gpu.nvidia.com", 450, id="A-dgx-h100"),
        pytest.param("gb200-tray", "gpu.nvidia.com", 900, id="C-gb200"),
        pytest.param("mi300x", "gpu.amd.com", 64, id="E-mi300x"),
    ],
)
def test_every_pair_of_a_flat_machine_has_the_same_bandwidth(name: str, driver: str, weight: float) -> None:
    links = sample(name, driver)
    assert links.is_flat
    assert np.array_equal(links.weights, weight * (1 - np.eye(len(links.devices))))


@pytest.mark.parametrize(("name", "driver"), [("dgx-h100", "gpu.nvidia.com"), ("mi300x", "gpu.amd.com")])
def test_devices_of_two_sockets_know_their_numa_node(name: str, driver: str) -> None:
    places = sample(name, driver).places
    assert [place.first_numa for place in places] == [0] * 4 + [1] * 4
    assert len({place.root for place in places}) == 8


def test_each_gpu_of_a_dgx_h100_has_a_nic_on_its_root() -> None:
    node, nics = machine("dgx-h100", "dra.net")
    gpu, nic = sample("dgx-h100"), links_of(node, nics, shipped())
    assert [place.root for place in gpu.places] == [place.root for place in nic.places]
    assert not nic.is_known


def test_no_gpu_of_a_gb200_tray_shares_a_root_with_a_nic() -> None:
    node, nics = machine("gb200-tray", "dra.net")
    roots = {root for place in links_of(node, nics, shipped()).places for root in place.root}
    places = sample("gb200-tray").places
    assert all(place.root.isdisjoint(roots) for place in places)
    assert [place.first_numa for place in places] == [0, 0, 1, 1]


@pytest.mark.parametrize("product", ["NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB"])
def test_bridges_are_seen_under_the_label_that_tells_of_them_only(product: str) -> None:
    node, members = machine("a100-pcie")
    members = [with_values(one, {"productName": product}) for one in members]
    assert pairs_with(links_of(node, members, shipped()), 300) == BRIDGED
    unlabelled = links_of(bare(), members, shipped())
    assert pairs_with(unlabelled, 300) == set()
    assert not unlabelled.is_known
    assert pairs_with(unlabelled, 18) == {*combinations(range(4), 2), *combinations(range(4, 8), 2)}


def test_instances_of_mig_have_no_link_and_whole_gpus_stand_apart() -> None:
    node, members = machine("mig-a100")
    whole, instances = sorted(grouped(node, members, shipped()), key=len)
    assert [member.key.device for member in whole] == ["gpu-0"]
    assert not links_of(node, instances, shipped()).weights.any()


def test_seven_instances_of_mig_on_several_gpus_are_no_machine_of_seven_gpus() -> None:
    members = gpus(7, type="mig", productName="NVIDIA A100-SXM4-40GB")
    assert not links_of(bare(), members, shipped()).weights.any()


def test_partitions_of_one_mi300x_are_nearer_than_the_next_chip() -> None:
    names = ("gpu-0-a", "0000:05:00.0"), ("gpu-0-b", "0000:05:00.0"), ("gpu-1-a", "0000:26:00.0")
    driver = DriverName("gpu.amd.com")
    parts = [member(name, driver, bus=bus, productName="AMD Instinct MI300X") for name, bus in names]
    weights = links_of(bare(), parts, shipped()).weights
    assert weights[0, 1] == 1200
    assert weights[0, 2] == weights[1, 2] == 64


@pytest.mark.parametrize(
    ("product", "count", "weight"),
    [
        ("NVIDIA A100-SXM4-80GB", 8, 300),
        ("NVIDIA A100-SXM4-80GB", 7, 300),
        ("NVIDIA A100-SXM4-80GB", 4, 100),
        ("NVIDIA H100 80GB HBM3", 4, 150),
        ("NVIDIA H200", 8, 450),
        ("NVIDIA B200", 8, 900),
        ("NVIDIA GB300", 4, 900),
        ("Tesla V100-SXM3-32GB", 16, 150),
        ("NVIDIA H100 PCIe", 8, 10),
        ("NVIDIA H200 NVL", 8, 10),
        ("NVIDIA L40S", 8, 10),
    ],
)
def test_products_are_known_by_name_and_number(product: str, count: int, weight: float) -> None:
    links = links_of(bare(), gpus(count, type="gpu", productName=product), shipped())
    assert set(links.weights[~np.eye(count, dtype=bool)]) == {weight}
    assert links.is_known == (weight != 10)


@pytest.mark.parametrize(("model", "weight"), [("Gaudi3", 75), ("Gaudi2", 37.5), ("Gaudi", 12.5)])
def test_gaudi_is_known_by_its_model(model: str, weight: float) -> None:
    driver = DriverName("gaudi.intel.com")
    cards = [member(f"accel{index}", driver, model=model) for index in range(8)]
    assert links_of(bare(), cards, shipped()).weights[0, 7] == weight


def named_alike(product: str) -> Links:
    """Return the links of eight AMD devices of one name."""
    _, members = machine("mi300x", "gpu.amd.com")
    return links_of(bare(), [with_values(one, {"productName": product}) for one in members], shipped())


# The driver of AMD writes underscores for blanks, and no brackets.
@pytest.mark.parametrize("product", ["AMD Instinct MI300X", "AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_VF"])
def test_an_mi300x_is_known_however_its_name_is_spelt(product: str) -> None:
    assert set(named_alike(product).weights[~np.eye(8, dtype=bool)]) == {64}


@pytest.mark.parametrize("product", ["AMD_Instinct_MI300A", "AMD_Instinct_MI300XT", "AMD_Instinct_1MI300X"])
def test_what_is_named_like_an_mi300x_in_part_is_none(product: str) -> None:
    assert not named_alike(product).is_known


@pytest.mark.parametrize("product", ["AMD Instinct MI250X", "AMD_Instinct_MI250X", "AMD_INSTINCT_MI250X_MCM_OAM"])
def test_the_dies_of_an_mi250x_have_seven_links_each(product: str) -> None:
    links = named_alike(product)
    assert links.links.sum(axis=1).tolist() == [7] * 8
    assert pairs_with(links, 200) == {(0, 1), (2, 3), (4, 5), (6, 7)}


def test_a_table_by_position_is_left_out_where_bus_ids_are_unknown_and_that_is_told() -> None:
    members = [member(f"gpu-{index}", type="gpu", productName="Tesla V100-SXM2-32GB") for index in range(8)]
    links = links_of(bare(), members, shipped())
    assert not links.is_known
    assert links.complaints == (
        "shipped deviceTopology[1].products[0] goes by PCI bus ids, which are not all published or not all distinct",
    )


def test_devices_stand_in_the_order_of_their_bus_ids_and_others_follow_by_name() -> None:
    members = [
        member("gpu-10"),
        member("gpu-2"),
        member("gpu-0", bus="0001:00:00.0"),
        member("gpu-1", bus="0000:F0:00.0"),
        member("gpu-3", bus="0000:0a:00.0"),
    ]
    order = [key.device for key in links_of(bare(), members, shipped()).devices]
    assert order == ["gpu-3", "gpu-1", "gpu-0", "gpu-2", "gpu-10"]


def test_every_edge_tells_where_its_weight_comes_from() -> None:
    links = sample("dgx-1v")
    table = "table for 8 of Tesla V100-SXM2-32GB (shipped deviceTopology[1].products[0])"
    assert str(links.source(0, 3)) == str(links.source(3, 0)) == table
    assert str(links.source(0, 5)) == "the same node (shipped deviceTopology[4].levels[3])"
    assert links.source(0, 0).layer == "none"


def test_machines_of_one_shape_share_its_name_and_others_do_not() -> None:
    node, members = machine("dgx-1v")
    moved = [with_values(one, {"uuid": f"GPU-x{index}"}) for index, one in enumerate(members)]
    assert links_of(bare("node-2"), moved, shipped()).shape == links_of(node, members, shipped()).shape
    shapes = {sample(name).shape for name in ("dgx-1v", "dgx-h100", "a100-pcie", "gb200-tray")}
    assert len(shapes) == 4


def test_no_devices_have_no_links() -> None:
    assert links_of(bare(), [], shipped()).weights.shape == (0, 0)


def with_peers(**peers: object) -> Configuration:
    return configured({"deviceTopology": [{"match": {}, "peers": {"linkWeight": 25, **peers}}]})


PEERS = "example.com/nvlinkPeers"


def test_peers_tell_links_and_one_side_is_enough() -> None:
    one, other, third = gpus(3)
    told = [with_values(one, {PEERS: ("gpu-1:2", "gpu-2", "gpu-9:4", "gpu-0:1", "gpu-1:x")}), other, third]
    links = links_of(bare(), told, with_peers(attribute=PEERS))
    assert links.weights.tolist() == [[0, 50, 25], [50, 0, 10], [25, 10, 0]]
    assert links.links[0].tolist() == [0, 2, 1]
    assert str(links.source(0, 1)) == f"attribute {PEERS} (deviceTopology[0].peers)"


def test_where_peers_contradict_each_other_the_lesser_counts_and_that_is_told() -> None:
    one, other = gpus(2)
    told = [with_values(one, {PEERS: ("gpu-1:4",)}), with_values(other, {PEERS: ("gpu-0:2",)})]
    links = links_of(bare(), told, with_peers(attribute=PEERS))
    assert links.weights[0, 1] == 50
    assert links.complaints == (f"attribute {PEERS}: gpu-0 and gpu-1 differ about their links",)


def scored(scores: object) -> Links:
    members = [with_values(one, {"uuid": f"GPU-{index}"}) for index, one in enumerate(gpus(3, type="gpu"))]
    return links_of(bare(node_nvidia_score=json.dumps(scores)), members, shipped())


def test_scores_of_hami_are_a_hundred_for_each_link() -> None:
    links = scored([
        {"uuid": "GPU-0", "score": {"GPU-1": 210, "GPU-2": 20}},
        {"uuid": "GPU-1", "score": {"GPU-0": 210, "GPU-2": 10, "GPU-gone": 1800}},
    ])  # fmt: skip
    assert links.weights.tolist() == [[0, 50, 10], [50, 0, 10], [10, 10, 0]]
    assert str(links.source(0, 1)).startswith("annotation hami.io/node-nvidia-score ")


@pytest.mark.parametrize("scores", [None, {}, 7, [[]], [{"uuid": []}], [{"uuid": "GPU-0", "score": {"GPU-1": "many"}}]])
def test_scores_that_make_no_sense_change_nothing(scores: object) -> None:
    assert not scored(scores).is_known


def test_an_annotation_that_is_no_json_is_told() -> None:
    links = links_of(bare(node_nvidia_score="{"), gpus(2, type="gpu"), shipped())
    assert links.complaints == ("annotation hami.io/node-nvidia-score cannot be read",)


def test_a_table_comes_after_peers_unless_it_leaves_the_word_to_them() -> None:
    node, members = machine("dgx-1v")
    told = [with_values(members[0], {PEERS: ("gpu-5:6",)}), *members[1:]]
    peers = {"attribute": PEERS, "linkWeight": 25}
    entry = {"match": {"driver": "gpu.nvidia.com"}, "peers": peers}
    assert links_of(node, told, configured({"deviceTopology": [entry]})).weights[0, 5] == 10
    left = entry | {"products": [{"product": "V100", "count": 8, "links": "published"}]}
    links = links_of(node, told, configured({"deviceTopology": [left]}))
    assert links.weights[0, 5] == 150
    assert links.weights[0, 3] == 22


A100, DISPLAY = "NVIDIA A100-SXM4-80GB", "NVIDIA DGX Display"


def beside(count: int, product: str, *others: str, **values: Any) -> list[Member]:
    """Make devices of a product, and some of others whose bus ids are in the midst of these."""
    extra = [
        member(f"other-{index}", bus=f"0000:{index + 16:02x}:01.0", type="gpu", productName=other, **values)
        for index, other in enumerate(others)
    ]
    return [*gpus(count, type="gpu", productName=product, **values), *extra]


def test_a_table_holds_for_its_product_whatever_stands_beside_it() -> None:
    alone = links_of(bare(), gpus(4, type="gpu", productName=A100), shipped())
    links = links_of(bare(), beside(4, A100, DISPLAY), shipped())
    assert [key.device for key in links.devices] == ["gpu-0", "other-0", "gpu-1", "gpu-2", "gpu-3"]
    mine = [0, 2, 3, 4]
    assert np.array_equal(links.weights[np.ix_(mine, mine)], alone.weights)
    assert links.weights[1].tolist() == [10, 0, 10, 10, 10]
    assert links.is_known
    assert str(links.source(0, 4)) == str(alone.source(0, 3))
    assert links.source(0, 1).layer == "levels"


def test_positions_of_a_table_count_the_devices_of_its_product() -> None:
    links = links_of(bare(), beside(8, "Tesla V100-SXM2-32GB", DISPLAY), shipped())
    mine = [0, *range(2, 9)]
    assert {(mine.index(one), mine.index(other)) for one, other in pairs_with(links, 50)} == DUAL
    assert not links.links[1].any()


def test_two_products_of_a_driver_have_a_table_each() -> None:
    links = links_of(bare(), beside(8, A100, *["NVIDIA H200"] * 2), shipped())
    cards = [key.device.startswith("gpu") for key in links.devices]
    assert {links.weights[one, other] for one, other in combinations(range(10), 2) if cards[one] and cards[other]} == {
        300
    }
    assert pairs_with(links, 150) == {tuple(index for index, is_card in enumerate(cards) if not is_card)}
    assert len(pairs_with(links, 10)) == 16


def test_a_table_that_names_two_products_holds_for_both_together() -> None:
    members = [*gpus(4, type="gpu", productName="NVIDIA A100-SXM4-40GB"), *beside(0, "", *[A100] * 4, DISPLAY)]
    assert len(pairs_with(links_of(bare(), members, shipped()), 300)) == 28


def test_peers_are_asked_of_those_of_whom_no_table_tells() -> None:
    told = [with_values(one, {PEERS: ("other-0", "other-1", "gpu-1:6")}) for one in beside(4, A100, *["L40S"] * 2)]
    entry = {"match": {"driver": "gpu.nvidia.com"}, "peers": {"attribute": PEERS, "linkWeight": 25}}
    links = links_of(bare(), told, configured({"deviceTopology": [entry]}))
    others = [index for index, key in enumerate(links.devices) if key.device.startswith("other")]
    assert pairs_with(links, 25) == {tuple(others)}
    assert len(pairs_with(links, 100)) == 6


def test_links_of_two_weights_on_one_machine_are_told_and_one_counts() -> None:
    pair = {"product": "L40S", "count": 2, "links": [[0, 1]], "linkWeight": 7}
    entry = {"match": {"driver": "gpu.nvidia.com"}, "products": [pair]}
    members = beside(8, "Tesla V100-SXM2-32GB", *["L40S"] * 2)
    links = links_of(bare(), members, configured({"deviceTopology": [entry]}))
    assert len(pairs_with(links, 7)) == 1
    assert not pairs_with(links, 50)
    assert links.complaints == (
        "shipped deviceTopology[1].products[0] has links of another weight than what stands beside it",
    )


def test_what_a_configuration_leaves_open_is_as_shipped() -> None:
    node, members = machine("dgx-1v")
    own = {"deviceTopology": [{"match": {}, "levels": [{"attribute": "productName", "weight": 3}]}]}
    links = links_of(node, members, configured(own))
    assert pairs_with(links, 50) == DUAL
    assert pairs_with(links, 3) == pairs_with(sample("dgx-1v"), 10)


def test_a_bare_name_of_an_alias_is_of_the_devices_driver() -> None:
    _, members = machine("mi300x", "gpu.amd.com")
    assert links_of(bare(), [with_values(members[0], {"numaNode": 5})], shipped()).places[0].first_numa == 5
    foreign = links_of(bare(), [with_values(member("cpu-0"), {"other.example.com/numaNode": 5})], shipped())
    assert foreign.places[0].first_numa is None


@pytest.mark.parametrize(
    ("published", "first", "every"),
    [
        pytest.param({}, None, (), id="absent-is-unknown"),
        pytest.param({"numa": 1}, 1, (1,), id="scalar"),
        pytest.param({"numa": (3, 2)}, 3, (3, 2), id="list-physical-node-first"),
        pytest.param({"numa": -1}, None, (), id="minus-one-is-unknown"),
        pytest.param({"numa": (-1, 1)}, None, (1,), id="a-first-that-is-unknown-is-not-the-second"),
        pytest.param({"numa": (1, -1)}, 1, (1,), id="a-second-that-is-unknown-is-none"),
        pytest.param({"numa": (-1, -1), "dra.net/numaNode": 1}, 1, (1,), id="next-alias-where-all-are-unknown"),
        pytest.param({"numa": "0"}, None, (), id="text-is-no-node"),
        pytest.param({"numa": "0", "dra.net/numaNode": 1}, 1, (1,), id="next-alias"),
        pytest.param({"numa": 0, "dra.net/numaNode": 1}, 0, (0,), id="first-alias-wins"),
    ],
)
def test_numa_nodes_are_read(published: dict[str, Any], first: int | None, every: tuple[int, ...]) -> None:
    place = links_of(bare(), [member("gpu-0", **published)], shipped()).places[0]
    assert (place.first_numa, place.numa) == (first, frozenset(every))


@pytest.mark.parametrize(
    ("zones", "weight"),
    [
        pytest.param([3, (3, 0)], 18, id="the same physical one"),
        pytest.param([(3, 0, 1, 2), (1, 0, 2, 3)], 14, id="one socket"),
        pytest.param([(3, 0, 1, 2), (7, 4, 5, 6)], 10, id="two sockets"),
        pytest.param([3, 1], 10, id="no lists"),
        pytest.param([(3,), 1], 10, id="lists of one"),
    ],
)
def test_numa_nodes_of_one_socket_are_nearer_than_others(zones: list[Any], weight: float) -> None:
    members = [member(f"gpu-{index}", type="gpu", numa=zone) for index, zone in enumerate(zones)]
    assert links_of(bare(), members, shipped()).weights[0, 1] == weight


@pytest.mark.parametrize(("match", "weight"), [("first", 10), ("intersect", 18)])
def test_numa_lists_are_compared_as_told(match: str, weight: float) -> None:
    levels = [{"key": "numa", "match": match, "weight": 18}, {"node": True, "weight": 10}]
    own = configured({"deviceTopology": [{"match": {}, "levels": levels}]})
    two = [member("gpu-0", numa=(0, 1)), member("gpu-1", numa=(1, 0))]
    assert links_of(bare(), two, own).weights[0, 1] == weight


def drawn_member(index: int, values: dict[str, Any]) -> Member:
    return member(f"gpu-{index}", **values)


VALUES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.just("gpu"), "productName": st.sampled_from(["NVIDIA B200", "Tesla V100-SXM2-16GB", "NVIDIA L4"])},
    optional={
        "bus": st.integers(0, 12).map("0000:{:02x}:00.0".format),
        "root": st.sampled_from(["pci0", "pci1", ("pci0", "pci1")]),
        "numa": st.sampled_from([0, 1, (0, 1), (1, 0)]),
        PEERS: st.lists(st.builds("gpu-{}:{}".format, st.integers(0, 8), st.integers(0, 9)), min_size=1).map(tuple),
    },
)
MEMBERS = st.lists(VALUES, min_size=1, max_size=8).map(
    lambda drawn: [drawn_member(index, values) for index, values in enumerate(drawn)]
)


@given(MEMBERS)
def test_weights_are_symmetric_whatever_is_published(members: list[Member]) -> None:
    links = links_of(bare(), members, with_peers(attribute=PEERS))
    for matrix in (links.weights, links.links, links.origin):
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
    assert (links.weights >= 0).all()


@given(MEMBERS, st.randoms(use_true_random=False))
def test_the_order_in_which_devices_are_given_changes_nothing(members: list[Member], random: object) -> None:
    shuffled = list(members)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis has no type for its random numbers
    one, other = (links_of(bare(), some, with_peers(attribute=PEERS)) for some in (members, shuffled))
    assert (one.devices, one.shape, one.complaints) == (other.devices, other.shape, other.complaints)


def by_place(links: Links, names: dict[str, int]) -> list[list[float]]:
    order = np.argsort([names[key.device] for key in links.devices])
    matrix: list[list[float]] = links.weights[np.ix_(order, order)].tolist()
    return matrix


@given(MEMBERS, st.permutations(range(8)))
def test_other_names_change_no_weight(members: list[Member], names: list[int]) -> None:
    plain = [
        one._replace(device=replace(one.device, attributes=tuple(a for a in one.device.attributes if a[0] != PEERS)))
        for one in members
    ]
    renamed = [
        one._replace(key=one.key._replace(device=DeviceName(f"gpu-{names[index]}"))) for index, one in enumerate(plain)
    ]
    before = by_place(links_of(bare(), plain, shipped()), {one.key.device: i for i, one in enumerate(plain)})
    after = by_place(links_of(bare(), renamed, shipped()), {one.key.device: i for i, one in enumerate(renamed)})
    assert before == after


def test_the_name_of_a_node_changes_nothing() -> None:
    node, members = machine("dgx-1v")
    other = Node(name=bare("elsewhere").name, labels=node.labels)
    assert np.array_equal(links_of(node, members, shipped()).weights, links_of(other, members, shipped()).weights)
