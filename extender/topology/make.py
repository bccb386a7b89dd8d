"""What makes one set of devices better than another to a policy, by number: shared by all nodes alike."""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np

from extender.allocation.masks import mask_of, places_of
from extender.model.frozen import dataclass
from extender.topology.grades import EVEN, Grades
from extender.topology.links import Links
from extender.topology.machine import Group
from extender.topology.policy import Policy, Wish
from extender.topology.quality import Quality
from extender.topology.rings import SEARCHED, rings_at_once
from extender.topology.shape import Shape
from extender.topology.traits import generation_of, is_avoided, is_forbidden
from extender.topology.webs import meshes, rings, webs

# Strides in which a ring is looked for over devices of which there are too many for that to be exact.
STRIDES: Final = 20


@dataclass(frozen=True)
class Make:
    """*zones*: the NUMA node of each device; empty where the policy does not care, as is what else it leaves alone.

    *peers*: for each device a mask of those that it is linked with; *forbidden*: a mask of those that are never taken.
    """

    shape: Shape
    zones: tuple[int | None, ...] = ()
    peers: tuple[int, ...] = ()
    grades: Grades = EVEN
    forbidden: int = 0

    def zones_of(self, mask: int) -> int:
        """Count the NUMA nodes that a set is on; of a device without a known one nobody knows where it is."""
        if not self.zones or not mask & mask - 1:
            return 1
        found = [self.zones[place] for place in places_of(mask)]
        return len({zone for zone in found if zone is not None}) + found.count(None)

    def parts(self, mask: int) -> list[int]:
        """Part a mask by NUMA nodes; not at all where the policy does not care."""
        found: dict[int | None, int] = {}
        for place in places_of(mask) if self.zones else ():
            found[self.zones[place]] = found.get(self.zones[place], 0) | 1 << place
        return list(found.values())

    def is_linked(self, mask: int) -> bool:
        """Tell whether each two of a set are linked; where links lead to none of that size, whether a ring is there."""
        if not self.peers or not mask & mask - 1 or self._is_meshed(mask):
            return True
        web = next(web for web in self._webs if mask & web)
        if mask & ~web or self._has_mesh(web, mask.bit_count()):
            return False
        return bool(self.shape.links) and (
            rings_at_once(self.shape.links, places_of(mask)) > 0
            or (mask.bit_count() > SEARCHED and any(islice(rings(self._near, mask, mask.bit_count()), STRIDES)))
        )

    def linked_sets(self, among: int, size: int) -> Iterator[int]:
        """Yield the sets of *size* that are linked, grown along links; 0 as often as a stride was made in vain."""
        yield from meshes(self.peers, among, size)
        for web in self._webs if self.shape.links and size > 2 else ():
            if (web & among).bit_count() >= size and not self._has_mesh(web, size):
                yield from rings(self._near, web & among, size)

    def _has_mesh(self, web: int, size: int) -> bool:
        """Tell whether each two of any set of *size* out of *web* are linked."""
        known = self._meshes.get((web, size))
        if known is None:
            known = self._meshes[web, size] = self._finds_mesh(web, size)
        return known

    def _finds_mesh(self, web: int, size: int) -> bool:
        every = meshes(self.peers, web, size)
        found = list(islice(every, STRIDES))
        if any(found) or len(found) < STRIDES:
            return any(found)
        # Links lead to too many sets to follow all: those that are worth a look speak for them.
        return any(map(self._is_meshed, Quality(self.shape).sets(web, size)))

    @cached_property
    def _webs(self) -> tuple[int, ...]:
        """The masks of what is linked with each other, over others too: machines of two products may be one node."""
        return webs(self.peers)

    @cached_property
    def _near(self) -> tuple[int, ...]:
        """For each device a mask of those to which links are counted."""
        return tuple(mask_of(other for other, count in enumerate(row) if count) for row in self.shape.links)

    @cached_property
    def _meshes(self) -> dict[tuple[int, int], bool]:
        """For each web and size that was asked about whether there is such a set: it is asked about every set."""
        return {}

    def _is_meshed(self, mask: int) -> bool:
        return all(mask & ~(1 << place) & ~self.peers[place] == 0 for place in places_of(mask))


def make_of(group: Group, policy: Policy) -> Make:
    """Return what *policy* sees of the devices of *group*."""
    members = group.members
    return Make(
        shape=group.shape,
        zones=() if policy.numa is Wish.IGNORED else tuple(place.first_numa for place in group.links.places),
        peers=_peers(group.links) if policy.links is Wish.STRICT else (),
        grades=Grades(
            generations=tuple(generation_of(policy, member) for member in members) if policy.prefer else (),
            avoided=mask_of(index for index, member in enumerate(members) if is_avoided(policy, member)),
        ),
        forbidden=mask_of(index for index, member in enumerate(members) if is_forbidden(policy, member)),
    )


def _peers(links: Links) -> tuple[int, ...]:
    """Tell with which others each device is linked: levels are no links, but what tables leave to them is one chip."""
    is_link = np.array([source.layer in ("peers", "products") for source in links.sources])
    linked = is_link[links.origin] & (links.weights > 0)
    peers = [mask_of(np.flatnonzero(row).tolist()) for row in linked]
    for index, place in enumerate(links.places):
        # Another product may stand beside them, of which no table tells.
        if links.is_flat and place.bus is not None and (linked[index].any() or not linked.any()):
            chip = mask_of(other for other, beside in enumerate(links.places) if beside.bus == place.bus)
            peers[index] |= chip & ~(1 << index)
    return tuple(peers)
