"""The best sets of devices of a machine that is empty, in plain units."""

from itertools import islice
from typing import Any, Final

from extender.allocation.masks import places_of
from extender.topology.choice import Choice, Ranker
from extender.topology.forms import Forms
from extender.topology.links import Links
from extender.topology.quality import ONE, Quality
from extender.topology.residual import Mix
from extender.topology.shape import shape_of

SHOWN: Final = 10
MEGA_PER_GIGA: Final = 1000


def best_sets(links: Links, size: int, mix: Mix) -> list[dict[str, Any]]:
    """List the best sets in the order in which the policy protect takes them."""
    ranker = Ranker(Forms().shared(links)[1].shape, mix)
    # What people read are links as they are, behind a switch across NUMA nodes too.
    plain = Quality(shape_of(links.weights, links.links, links.link_weight))
    full = ranker.quality.shape.full
    if not 0 < size <= len(links.devices):
        return []
    return [_told(links, ranker, plain, choice) for choice in islice(ranker.choices(full, size), SHOWN)]


def _told(links: Links, ranker: Ranker, plain: Quality, choice: Choice) -> dict[str, Any]:
    parts, whole = plain.parts(choice.mask), ranker.residual.value(ranker.quality.shape.full)
    is_single = choice.mask.bit_count() == 1
    return {
        "devices": [links.devices[place].device for place in places_of(choice.mask)],
        "ringsGBps": None if is_single else parts.bandwidth / MEGA_PER_GIGA,
        "allPairsGBps": None if is_single else parts.aggregate / MEGA_PER_GIGA,
        "percentOfBest": _percent(choice.quality, ONE),
        "percentLeft": _percent(whole + choice.change, whole) if whole else None,
    }


def row_of(told: dict[str, Any]) -> tuple[str, ...]:
    """Write a set as a row of a table."""
    rings, pairs, left = told["ringsGBps"], told["allPairsGBps"], told["percentLeft"]
    return (
        " ".join(told["devices"]),
        "-" if rings is None else f"{rings:g} GB/s",
        "-" if pairs is None else f"{pairs:g} GB/s",
        f"{told['percentOfBest']:g} %",
        "-" if left is None else f"{left:g} %",
    )


def _percent(part: int, whole: int) -> float:
    # In tenths, and downwards: nothing but the whole is shown as a hundred.
    return part * 1000 // whole / 10
