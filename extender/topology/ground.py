"""What stands where on a board: the devices that pods are placed around, those that go with them, and NUMA zones."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of, within
from extender.allocation.situation import Situation
from extender.model.frozen import dataclass
from extender.topology.aliases import Address, Place
from extender.topology.bundles import Bundles
from extender.topology.choice import Ranker
from extender.topology.forms import Form
from extender.topology.machine import Group


class Anchored(NamedTuple):
    """Linked devices of one kind, by their places among the candidates of a board, and who ranks their sets."""

    ranking: Ranker
    group: Group

    @property
    def places(self) -> tuple[int, ...]:
        return self.group.indices

    @property
    def is_known(self) -> bool:
        """Whether more than levels is known of their links."""
        return self.group.links.is_known

    @property
    def mask(self) -> int:
        return mask_of(self.places)

    def inward(self, mask: int) -> int:
        """Turn a mask of candidates into one of the shape."""
        return within(self.places, mask)

    def outward(self, mask: int) -> int:
        """Turn a mask of the shape into one of candidates."""
        return mask_of(place for index, place in enumerate(self.places) if mask >> index & 1)


class Kind(NamedTuple):
    """Devices of one driver that go with anchors, as NICs do; *bundles* has both by their order in the two tuples."""

    driver: str
    places: tuple[int, ...]
    anchors: tuple[int, ...]
    bundles: Bundles

    def pairs(self, anchors: int, partners: int) -> int:
        """Count the pairs that are near; masks are of candidates."""
        return self.bundles.pairs(within(self.anchors, anchors), within(self.places, partners))

    def worth(self, anchors: int, partners: int) -> int:
        """Return what pairs are worth; masks are of candidates."""
        return self.bundles.worth(within(self.anchors, anchors), within(self.places, partners))

    def losses(self, anchors: int, partners: int) -> dict[int, int]:
        """Return what pairs are worth less without each free partner; masks and places are of candidates."""
        lost = self.bundles.losses(within(self.anchors, anchors), within(self.places, partners))
        return {self.places[index]: one for index, one in lost.items()}


@dataclass(frozen=True, eq=False)
class Ground:
    """Groups of linked devices, and where each candidate of a board is; remembered as long as its board is.

    What is worked out of it depends on nothing else, so boards that are alike can share one.
    """

    board: Board
    groups: tuple[Anchored, ...]
    sites: tuple[Place, ...]

    @cached_property
    def anchored(self) -> tuple[Anchored, ...]:
        """The groups that pods are placed around: those with known links, otherwise those with products on a bus.

        Of the drivers of the former, the latter lead too: parts of chips have no links.
        """
        known = {self.driver(group.places[0]) for group in self.groups if group.is_known}
        products = [group for group in self.groups if any(self._is_product(place) for place in group.places)]
        return tuple(
            group
            for group in self.groups
            if group.is_known or (group in products and (not known or self.driver(group.places[0]) in known))
        )

    @cached_property
    def leading(self) -> int:
        """The mask of the devices that pods are placed around."""
        return mask_of(place for group in self.anchored for place in group.places)

    @cached_property
    def anchors(self) -> int:
        """The mask of those that count where they stay free: parts of chips do not."""
        known = [group for group in self.anchored if group.is_known]
        whole = known or [group for group in self.anchored if not self._is_cut(group)] or self.anchored
        return mask_of(place for group in whole for place in group.places)

    def cut_by(self, devices: int) -> int:
        """Return the mask of the anchors of which *devices* have parts."""
        parts = devices & self._parts
        if not parts:
            return 0
        return reduce(or_, (self._bodies.get(self.sites[place].bus, 0) for place in places_of(parts)), 0)

    @cached_property
    def zoned(self) -> int:
        """The mask of what belongs to NUMA nodes and is on no bus, as CPUs and memory are; a driver has all or none."""
        drivers = [places for places in self._others.values() if all(map(self._is_zoned, places))]
        return mask_of(place for places in drivers for place in places)

    @cached_property
    def zoned_alike(self) -> Counter[tuple[str, frozenset[int]]]:
        """How many of what belongs to NUMA nodes a driver has on the same ones."""
        places = places_of(self.zoned)
        return Counter((self.driver(place), self.sites[place].numa) for place in places)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """What goes with anchors, kind by kind: all but zones of which it is known where it is."""
        anchors = tuple(place for group in self.anchored for place in group.places if self.anchors >> place & 1)
        leading = {self.driver(place) for place in anchors}
        return tuple(
            Kind(driver, tuple(places), anchors, Bundles(self.at(anchors), self.at(places)))
            for driver, places in sorted(self._others.items())
            if driver not in leading
            and not mask_of(places) & self.zoned
            and any(site.root or site.numa for site in self.at(places))
        )

    @cached_property
    def is_mixed(self) -> bool:
        """Whether devices of several drivers stand here, of which some go with others or are zones."""
        drivers = {candidate.key.driver for candidate in self.board.candidates}
        return len(drivers) > 1 and bool(self.kinds or self.zoned)

    @cached_property
    def partners(self) -> int:
        """The mask of all that goes with anchors."""
        return mask_of(place for kind in self.kinds for place in kind.places)

    def driver(self, place: int) -> str:
        return self.board.candidates[place].key.driver

    def at(self, places: Iterable[int]) -> list[Place]:
        """Return where some candidates are."""
        return [self.sites[place] for place in places]

    @cached_property
    def _others(self) -> dict[str, list[int]]:
        """What pods are not placed around, by driver."""
        found: dict[str, list[int]] = {}
        for place, candidate in enumerate(self.board.candidates):
            if not self.leading >> place & 1:
                found.setdefault(candidate.key.driver, []).append(place)
        return found

    @cached_property
    def _parts(self) -> int:
        return self.leading & ~self.anchors

    @cached_property
    def _bodies(self) -> dict[Address | None, int]:
        """The anchors by their buses, which parts of them share."""
        found: dict[Address | None, int] = {}
        for place in places_of(self.anchors):
            bus = self.sites[place].bus
            found[bus] = found.get(bus, 0) | 1 << place
        found.pop(None, None)
        return found

    def _is_cut(self, group: Anchored) -> bool:
        """Tell whether devices of a group are parts of one chip."""
        buses = [site.bus for site in self.at(group.places) if site.bus is not None]
        return len(set(buses)) < len(buses)

    def _is_zoned(self, place: int) -> bool:
        site = self.sites[place]
        # CPUs may tell all PCIe roots of their NUMA node.
        is_wide = bool(self.board.shareable >> place & 1) and len(site.root) > 1
        return site.bus is None and bool(site.numa) and (not site.root or is_wide)

    def _is_product(self, place: int) -> bool:
        return self.sites[place].bus is not None and bool(self.sites[place].product)


Grounds = Callable[[Situation], Ground]


def forms_of(ground: Ground) -> Iterator[Form]:
    """Yield what of a ground is large."""
    return (anchored.group.form for anchored in ground.groups)
