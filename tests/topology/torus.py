"""A torus: each device is linked with four, and a ring goes through them in many ways."""

from collections.abc import Iterator
from typing import Any


def edges(side: int) -> Iterator[tuple[int, int]]:
    for row in range(side):
        for column in range(side):
            one = side * row + column
            for other in (side * row + (column + 1) % side, side * ((row + 1) % side) + column):
                yield min(one, other), max(one, other)


def torus(side: int, driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    """Return an entry of deviceTopology for side x side devices of the product Torus."""
    links = [list(edge) for edge in sorted(set(edges(side)))]
    product = {"product": "Torus", "count": side * side, "linkWeight": 50, "links": links}
    return {"match": {"driver": driver}, "products": [product]}
