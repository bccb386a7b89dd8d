"""Why some devices are good, in plain units for people."""

from itertools import combinations
from typing import Final

from extender.allocation.masks import places_of
from extender.topology.appraisal import Part
from extender.topology.choice import Ranker
from extender.topology.grades import Grades
from extender.topology.machine import Group
from extender.topology.policy import Placing, Policy, graded
from extender.topology.quality import ONE
from extender.topology.rings import rings_at_once

# Links between two devices that are told one by one.
FEW: Final = 4


def parts_of(group: Group, ranker: Ranker, free: int, mask: int) -> tuple[Part, ...]:
    """Say what speaks for a set out of *free* devices, and against it."""
    summands = ranker.summands(free, mask)
    texts = {
        "links": links_text(group, ranker, mask),
        "zones": zones_text(group, mask),
        "kept": kept_text(ranker, free, mask) if group.links.is_known else "",
    }
    own = tuple(Part(name, summands._asdict()[name], text) for name, text in texts.items())
    told = (part for part in own if part.value or part.text)
    return (*told, *graded_parts(ranker.policy, ranker.make.grades, mask))


def graded_parts(policy: Policy, grades: Grades, mask: int) -> tuple[Part, ...]:
    """Say what a policy that prefers and avoids devices thinks of some."""
    avoided, generation = grades.worth(mask)
    late, bad = graded(policy, generation, avoided)
    parts = (
        Part("generation", late, _preferred_text(policy, generation) if policy.prefer else ""),
        Part("avoided", bad, f"{avoided} to be avoided" if avoided else ""),
    )
    return tuple(part for part in parts if part.value or part.text)


def links_text(group: Group, ranker: Ranker, mask: int) -> str:
    """Tell the bandwidth of a set beside the best that its machine has."""
    places = places_of(mask)
    if len(places) < 2:
        return ""
    pair = min(combinations(places, 2), key=lambda two: float(group.links.weights[two]))
    source, weight = group.links.source(*pair), float(group.links.weights[pair])
    if group.links.is_flat and source.layer == "products":
        return f"links of {weight:g} GB/s between all"
    mine, best = ranker.quality.parts(mask).bandwidth / 1000, ranker.quality.best(len(places)).bandwidth / 1000
    if len(places) > 2 and group.shape.links and rings_at_once(group.shape.links, places):
        return f"links in rings {mine:g} GB/s of best {best:g}"
    if source.layer not in ("peers", "products"):
        return f"{source.read}, {mine:g} GB/s of best {best:g}" if source.layer == "levels" else ""
    count, one = int(group.links.links[pair]), group.links.link_weight or 0
    said = "+".join([f"{one:g}"] * count) if 0 < count <= FEW else f"{mine:g}"
    return f"links {said} GB/s of best {best:g}"


def zones_text(group: Group, mask: int) -> str:
    """Tell on which NUMA nodes a set is, where that is known."""
    found = [group.links.places[place].first_numa for place in places_of(mask)]
    zones = sorted({zone for zone in found if zone is not None})
    if None in found or not zones:
        return ""
    return f"on NUMA {zones[0]} alone" if len(zones) == 1 else f"over NUMA {' and '.join(map(str, zones))}"


def kept_text(ranker: Ranker, free: int, mask: int) -> str:
    """Tell how many good sets of those that were there are left, by size."""
    if ranker.policy.placing is not Placing.PROTECT:
        return f"{ranker.policy.placing}: {mask.bit_count()} of {free.bit_count()} free devices"
    sizes = [size for size, _ in ranker.residual.mix.weights if size <= free.bit_count()]
    rest = free & ~mask
    counts = [(size, _whole(ranker, rest, size), _whole(ranker, free, size)) for size in sizes]
    said = [f"{after} of {before} sets of {size}" for size, after, before in counts if after]
    return f"keeps whole {', '.join(said)}" if said else ""


def _whole(ranker: Ranker, free: int, size: int) -> int:
    """Count the sets of *size* that can be had at once with all the quality that there is."""
    return ranker.residual.packed(free, size) // ONE


def _preferred_text(policy: Policy, generation: int) -> str:
    if generation == len(policy.prefer):
        return "not of a preferred kind"
    trait = policy.prefer[generation]
    return f"preferred {trait.attribute} {' or '.join(trait.values)}"
