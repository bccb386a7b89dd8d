"""Machines that we know: plain values, as a configuration file would have them, each with its source.

Weights are peak GB/s in one direction. Vendors often tell the sum of both directions: half of that stands here.
"""

from functools import cache
from types import MappingProxyType
from typing import Any, Final

from extender.topology.configuration import Configuration, Edge, LinkTable
from extender.topology.reading import Entry, read
from extender.topology.validation import configuration_in

CUBE_MESH: Final = LinkTable(
    devices=8,
    edges=tuple(
        Edge(*edge)
        for edge in (
            (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
            (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
        )
    ),
    link_weight=25,
    source="NVIDIA/go-gpuallocator gpuallocator/common_test.go, NewDGX1VoltaNode; six links of 25 GB/s for each GPU: "
    "NVIDIA DGX-1 With Tesla V100 System Architecture",
)  # fmt: skip
DUAL_DIES: Final = LinkTable(
    devices=8,
    edges=tuple(
        Edge(*edge)
        for edge in (
            (0, 1, 4), (2, 3, 4), (4, 5, 4), (6, 7, 4), (0, 6, 2), (2, 4, 2), (1, 3, 2), (5, 7, 2),
            (0, 2, 1), (4, 6, 1), (1, 5, 1), (3, 7, 1),
        )
    ),
    link_weight=50,
    source="pairs: ROCm/rccl tools/topo_expl/models/topo_8p_90a_1.xml; 200 GB/s within a package, 50 to 100 between: "
    "docs.olcf.ornl.gov, Frontier User Guide; which pairs have two links is not confirmed",
)  # fmt: skip
NAMED: Final = MappingProxyType({"dgx1v": CUBE_MESH, "mi250x": DUAL_DIES})

# PCIe, nominal: gen 4 under one root, less where the way leads through a socket, or from one to the other. Lists of
# NUMA nodes, the physical one first, have some in common within a socket that is several of them.
PCIE: Final = (
    {"key": "root", "weight": 22},
    {"key": "numa", "match": "first", "weight": 18},
    {"key": "numa", "match": "intersect", "weight": 14},
    {"node": True, "weight": 10},
)
BRIDGES: Final = "topology.dra-extender.x-k8s.io/bridges"
A100_PCIE: Final = r"A100.*PCI[eE]"
HOPPER: Final = "nvidia.com/technologies/hopper-architecture: NVLink, 900 GB/s both ways"
# Where no page of the vendor was at hand, the source says so.
SECONDARY: Final = "secondary, alpha-one-index.github.io/ai-infra-index, networking interconnects:"
SHARED: Final = "derived, not confirmed: the links of a GPU shared by three peers on a board for four"
NVIDIA: Final[tuple[dict[str, Any], ...]] = (
    {"product": r"V100-SXM2", "count": 8, "links": "dgx1v"},
    {
        "product": r"V100-SXM3", "count": 16, "flat": 150,
        "source": "secondary, pcper.com/2018/03, DGX-2: 300 GB/s both ways",
    },
    {"product": r"A100-SXM", "count": [2, 3, 4], "flat": 100, "source": SHARED},
    {"product": r"A100-SXM", "count": [5, 6, 7, 8], "flat": 300, "source": f"{SECONDARY} NVLink 3, 600 GB/s both ways"},
    {
        "product": r"H100 80GB HBM3|H100.*SXM", "count": [2, 3, 4], "flat": 150,
        "source": SHARED,
    },
    {
        "product": r"H100 80GB HBM3|H100.*SXM", "count": [5, 6, 7, 8], "flat": 450,
        "source": HOPPER,
    },
    {
        "product": r"\bH200\b(?!.*NVL)", "count": [5, 6, 7, 8], "flat": 450,
        "source": HOPPER,
    },
    {
        "product": r"\bH200\b(?!.*NVL)", "count": [2, 3, 4], "flat": 150,
        "source": SHARED,
    },
    {
        "product": r"\bB[23]00\b", "count": [2, 3, 4, 5, 6, 7, 8], "flat": 900,
        "source": f"{SECONDARY} NVLink 5, 1,800 GB/s both ways",
    },
    {
        "product": r"\bGB[23]00\b", "count": [2, 3, 4], "flat": 900,
        "source": f"{SECONDARY} NVLink 5, 1,800 GB/s both ways; four in a tray",
    },
    {
        "product": A100_PCIE, "count": 8, "nodeSelector": {BRIDGES: "02-13-45-67"},
        "pairs": [[0, 2], [1, 3], [4, 5], [6, 7]], "weight": 300,
        "source": "NVIDIA/k8s-device-plugin#546: twelve links in each of these pairs",
    },
    {
        "product": A100_PCIE, "count": 8, "nodeSelector": {BRIDGES: "01-23-45-67"},
        "pairs": [[0, 1], [2, 3], [4, 5], [6, 7]], "weight": 300,
        "source": "the label tells the pairs; twelve links of 25 GB/s",
    },
    {
        "product": A100_PCIE, "count": 4, "nodeSelector": {BRIDGES: "03-12"},
        "pairs": [[0, 3], [1, 2]], "weight": 300,
        "source": "the label tells the pairs; twelve links of 25 GB/s",
    },
    {
        "product": A100_PCIE, "count": 4, "nodeSelector": {BRIDGES: "01-23"},
        "pairs": [[0, 1], [2, 3]], "weight": 300,
        "source": "the label tells the pairs; twelve links of 25 GB/s",
    },
)  # fmt: skip
# AMD's driver writes underscores for blanks, and these are part of words for a regular expression.
AMD: Final[tuple[dict[str, Any], ...]] = (
    {"product": r"(?<![A-Za-z0-9])MI250X(?![A-Za-z0-9])", "count": 8, "links": "mi250x"},
    {
        "product": r"(?<![A-Za-z0-9])MI300X(?![A-Za-z0-9])", "count": [*range(2, 9), 16, 32, 64], "flat": 64,
        "source": "secondary, gpu.blog/gpus/instinct-mi300x-mi300x: a mesh of eight, 896 GB/s both ways to seven peers",
    },
)  # fmt: skip
GAUDI: Final[tuple[dict[str, Any], ...]] = (
    {
        "product": r"(?i)gaudi[ -]?3|hl-?3\d\d", "count": [*range(2, 9)], "flat": 75,
        "source": "docs.habana.ai, Network Configuration: three ports of 200 Gb/s to each of seven",
    },
    {
        "product": r"(?i)gaudi[ -]?2|hl-?225", "count": [*range(2, 9)], "flat": 37.5,
        "source": "docs.habana.ai, Network Configuration: three ports of 100 Gb/s to each of seven",
    },
    {
        "product": r"(?i)gaudi\b|hl-?205", "count": [*range(2, 9)], "flat": 12.5,
        "source": "docs.habana.ai, Distributed Training Overview: seven of ten ports of 100 Gb/s, one to each of seven",
    },
)  # fmt: skip
ALIASES: Final = {
    "numa": ["resource.kubernetes.io/numaNode", "numaNode", "numa", "dra.net/numaNode", "dra.cpu/numaNodeID"],
    "root": ["resource.kubernetes.io/pcieRoot"],
    "bus": ["resource.kubernetes.io/pciBusID", "pciBusID", "pcieBusID", "pciAddr", "pciAddress", "dra.net/pciAddress"],
    "product": ["productName", "model"],
    "uuid": ["uuid"],
}
KNOWN: Final = {
    "deviceTopology": [
        # Instances of MIG have no way to each other but through memory.
        {"match": {"driver": "gpu.nvidia.com", "type": "mig"}, "levels": [{"node": True, "weight": 0}]},
        {
            "match": {"driver": "gpu.nvidia.com", "type": "gpu"},
            "peers": {"annotation": "hami.io/node-nvidia-score", "linkWeight": 25},
            "products": NVIDIA,
        },
        {
            "match": {"driver": "gpu.amd.com"},
            # Partitions of one chip share its memory. Nominal: far more than any link.
            "levels": [{"key": "bus", "weight": 1200}, *PCIE],
            "products": AMD,
        },
        {"match": {"driver": "gaudi.intel.com"}, "products": GAUDI},
        {"match": {}, "aliases": ALIASES, "levels": PCIE},
    ],
    "clusterTopology": [
        {"label": "nvidia.com/gpu.clique", "weight": 100, "maxNodes": 18},
        {"label": "network.topology.nvidia.com/leaf", "weight": 10},
        {"label": "network.topology.nvidia.com/spine", "weight": 3},
    ],
}


@cache
def shipped() -> Configuration:
    """Return what is known without any configuration."""
    return read(KNOWN, lambda top: configuration_in(top, NAMED, "shipped "))


def with_shipped(top: Entry) -> Configuration:
    """Read the keys of topology among those of a document; what they leave open is as shipped."""
    own = configuration_in(top, NAMED)
    return Configuration((*own.kinds, *shipped().kinds), own.tiers or shipped().tiers)
