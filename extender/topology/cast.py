"""What a pod's search has worked out of one situation: who leads, who goes along, and what is worth what."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, reduce
from itertools import combinations, islice
from math import comb
from operator import and_, or_
from typing import Final, NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.allocation.question import At
from extender.allocation.values import OPAQUE
from extender.topology.alignment import cover
from extender.topology.candidates import EXACT
from extender.topology.companions import COMPARED, ZONED, Companions
from extender.topology.ground import Kind
from extender.topology.memo import Memo
from extender.topology.merits import Merits
from extender.topology.scene import Role, Scene

Sets = Iterator[tuple[int, ...]]
# Sets whose worth is remembered: a search meets the same again behind each set that another ask was given.
WORTHS: Final = 1 << 14
# Sets of zones for which those of later asks are looked for.
FORESEEN: Final = 8


class Wanted(NamedTuple):
    """Devices that one ask is to choose, after *picks*."""

    at: At
    mask: int
    size: int
    picks: tuple[Pick, ...]

    @property
    def taken(self) -> int:
        return mask_of({pick.place for pick in self.picks})

    def portions(self, every: int, beside: int) -> Sets:
        """Yield the sets for this ask out of what is for later asks too, which can have what is *beside*."""
        needed = every & ~beside
        free = self.size - needed.bit_count()
        if free >= 0 and not needed & ~self.mask:
            # What nobody can take later is taken now.
            for places in combinations(places_of(every & self.mask & ~needed), free):
                yield tuple(sorted((*places_of(needed), *places)))


class Cast:
    """What is worked out of one situation."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.ground = scene, scene.ground
        self.zoned = [at for at in scene.asks.values() if scene.roles[at] is Role.ZONE]
        self.companions = Companions(scene)
        self.merits = Merits(self.companions)
        # The worth of zones by how many of those for whom they are are where.
        self._zonings: dict[tuple[int, ...], int] = {}
        # The worth of what leads, by what else is taken.
        self.worths: Memo[tuple[int, int], int] = Memo(WORTHS)

    def agree(self, at: At, places: Iterable[int]) -> bool:
        """Tell whether the constraints of an ask would have these devices, if there were no others."""
        situation = self.scene.situation
        ask = situation.asks[at]
        for index in situation.covered[at]:
            values = situation.values[at.claim][index]
            if values.rule.is_match:
                known = [values.at(ask, place) for place in places]
                if not reduce(and_, (bits or 0 for bits in known), -1) & ~OPAQUE:
                    return False
        return True

    def tried(self, at: At) -> list[int]:
        """Return the groups of which an ask was offered all sets that it may have: what was left out is not wanted."""
        groups = self.ground.anchored if self.scene.roles[at] is Role.LEAD else ()
        return [group.mask for group in groups if len(group.places) <= EXACT]

    def partners(self, wanted: Wanted) -> Sets:
        """Yield the set that pairs best, then all sets, closest devices first."""
        leads, kind = self.scene.given(wanted.picks, Role.LEAD), self.scene.kind(wanted.at)
        later = [at for at in self.scene.later(wanted.at, Role.PARTNER, wanted.picks) if self.scene.kind(at) is kind]
        if later:
            yield from self._partnered(kind, leads, wanted, later)
        yield from self._partnered(kind, leads, wanted, ())
        ranked = self.companions.nearest(kind, leads, wanted.taken & ~leads, wanted.mask)
        yield from (tuple(sorted(places)) for places in combinations(ranked, wanted.size))

    def along(self, wanted: Wanted, places: Sequence[int]) -> int:
        """Return what it counts how close partners are to what leads, and what others lose by it."""
        leads, kind = self.scene.given(wanted.picks, Role.LEAD), self.scene.kind(wanted.at)
        given = [pick.place for pick in wanted.picks if pick.place in kind.places]
        return self.companions.partnered(kind, leads, (*given, *places))

    def _partnered(self, kind: Kind, leads: int, wanted: Wanted, later: Sequence[At]) -> Sets:
        """Yield sets out of the best for an ask and for those *later*."""
        taken, beside = wanted.taken & ~leads, self.scene.united(later) & ~wanted.taken
        among, size = wanted.mask | beside, wanted.size + sum(map(self.scene.size, later))
        if leads or comb(among.bit_count(), size) > COMPARED:
            best = self.companions.partners(kind, leads, taken, among, size)
            if best and later:
                yield from self._own(kind, wanted, mask_of(best), beside)
            yield from wanted.portions(mask_of(best), beside) if best else ()
            return
        sets = sorted(combinations(places_of(among), size), key=lambda places: -self._alone(kind, taken, places))
        for places in sets:
            yield from wanted.portions(mask_of(places), beside)

    def _own(self, kind: Kind, wanted: Wanted, every: int, beside: int) -> Sets:
        """Yield what is closest to the claim's own leads, out of the best for all, if others can take the rest."""
        own = self.scene.led(wanted.at.claim, wanted.picks)
        places = self.companions.partners(kind, own, 0, every & wanted.mask, wanted.size) or ()
        if places and not every & ~beside & ~mask_of(places):
            yield tuple(sorted(places))

    def zones(self, wanted: Wanted) -> Sets:
        leads = self.scene.given(wanted.picks, Role.LEAD) or self.scene.given(wanted.picks, Role.PARTNER)
        taken = wanted.taken & ~leads
        found = self.companions.zones(wanted.at, leads, taken, wanted.mask, wanted.size)
        later = () if leads else self.scene.later(wanted.at, Role.ZONE, wanted.picks)
        for places in self._foreseen(wanted, found, later) if later else found:
            yield tuple(sorted(places))

    def _foreseen(self, wanted: Wanted, found: Sets, later: Sequence[At]) -> Sets:
        """Yield zones that nothing leads, those first that are worth most with the best for *later* asks."""
        first: dict[object, tuple[int, ...]] = {}
        for places in islice(found, COMPARED):
            if len(first) == FORESEEN:
                break
            # Single CPUs of one NUMA node are as good as each other.
            first.setdefault(tuple(self.ground.sites[place].numa for place in places), places)
        yield from sorted(first.values(), key=lambda places: -self._with_later(wanted, places, later))
        yield from self.companions.zones(wanted.at, 0, wanted.taken, wanted.mask, wanted.size)

    def _with_later(self, wanted: Wanted, places: tuple[int, ...], later: Sequence[At]) -> int:
        """Return what zones are worth with those that are best for *later* asks, each beside those before it."""
        companions, taken = self.companions, wanted.taken | mask_of(places)
        worth = -companions.stranding(wanted.at, 0, places)
        for at in later:
            among = self.scene.mask(at) & (~taken | self.ground.board.shareable)
            chosen = next(companions.zones(at, 0, taken, among, self.scene.size(at)), ())
            worth -= companions.stranding(at, 0, chosen)
            taken |= mask_of(chosen)
        return worth + self.merits.apart(taken & self.ground.zoned)

    def zoning(self, leads: int) -> int:
        """Return what the best zones for *leads* are worth: the same for all that are on the same NUMA nodes."""
        if not self.zoned:
            return 0
        key = tuple((leads & mask).bit_count() for mask in self._housed)
        known = self._zonings.get(key)
        if known is None:
            known = self._zonings[key] = self._zoning(leads)
        return known

    def _zoning(self, leads: int) -> int:
        """Work it out, each ask beside those before it."""
        companions, chosen = self.companions, dict[str, int]()
        cost = 0
        for at in self.zoned:
            taken = reduce(or_, chosen.values(), 0)
            places = next(companions.zones(at, leads, taken, self.scene.mask(at), self.scene.size(at)), ())
            for place in places:
                driver = self.ground.driver(place)
                chosen[driver] = chosen.get(driver, 0) | 1 << place
            cost += companions.stranding(at, leads, places)
        led = self.ground.at(places_of(leads))
        covered = sum(cover(led, self.ground.at(places_of(mask))) for mask in chosen.values())
        return ZONED * covered // 1000 - cost

    @cached_property
    def _housed(self) -> tuple[int, ...]:
        """For each NUMA node, and for none, the masks of what is there, and of what leads there and is free."""
        found: dict[int | None, int] = {}
        for place, site in enumerate(self.ground.sites):
            found[site.first_numa] = found.get(site.first_numa, 0) | 1 << place
        free = self.scene.free_anchors(0)
        return tuple(part for mask in found.values() for part in (mask, mask & free))

    def _alone(self, kind: Kind, taken: int, places: tuple[int, ...]) -> int:
        """Return what partners are worth where nothing leads; of equal ones those among few free devices come first."""
        every = taken | mask_of(places)
        others = [site.first_numa for site in self.ground.at(places_of(self.scene.free_anchors(0)))]
        crowd = sum(others.count(self.ground.sites[place].first_numa) for place in places)
        return self.merits.apart(every) + self.zoning(every) - self.companions.pairs.lost(kind, 0, every) - crowd
