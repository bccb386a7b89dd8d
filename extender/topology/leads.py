"""The devices that lead, over all asks for them: good ones, around which what else is asked for is free."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import heappop, heappush, merge
from itertools import islice
from math import comb
from typing import Final, NamedTuple

from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import REST, Preference
from extender.allocation.question import At
from extender.topology.alignment import affinity
from extender.topology.assignment import assigned
from extender.topology.candidates import EXACT
from extender.topology.cast import Cast, Sets, Wanted
from extender.topology.companions import PARTNERED, ZONED
from extender.topology.ground import Anchored, Kind
from extender.topology.policy import ZONE
from extender.topology.quality import ONE
from extender.topology.scene import Role, Want

# Sets for which companions are looked for; the others go by their own worth.
LOOKED: Final = 128
# So many of them are looked at without a pause.
WORKED: Final = 8
# A value of ONE and a mask of candidates.
Valued = tuple[int, int]


class Partnered(NamedTuple):
    """What the pod was *given* of a kind of partners, a mask, and what later asks *want* of it."""

    kind: Kind
    given: int
    want: Want


class Leads:
    """Chooses for one ask what leads, with those that lead already and those that will."""

    def __init__(self, cast: Cast, wanted: Wanted, otherwise: Preference) -> None:
        self.cast, self.scene, self.ground = cast, cast.scene, cast.scene.ground
        self.wanted = wanted
        self.otherwise = otherwise
        self.before = self.scene.given(wanted.picks, Role.LEAD)
        self.taken = wanted.taken & ~self.before
        later = self.scene.later(wanted.at, Role.PARTNER, wanted.picks)
        # What takes all there is has chosen before.
        self.partnered = [
            Partnered(kind, self.taken & mask_of(kind.places), self.scene.wanted(kind, later))
            for kind in self.ground.kinds
        ]

    def sets(self) -> Sets:
        """Yield sets for the ask: out of the best for all that lead, then for itself."""
        later = [at for at in self._later if at not in self._others]
        if later:
            yield from self._jointly(later)
        yield from self._jointly(())

    @cached_property
    def _later(self) -> list[At]:
        return self.scene.later(self.wanted.at, Role.LEAD, self.wanted.picks)

    @cached_property
    def _others(self) -> list[At]:
        """Those of later asks that are for parts of chips where this one is not, or the reverse: no set has both."""
        anchors = self.ground.anchors
        is_whole = bool(self.wanted.mask & anchors)
        return [at for at in self._later if bool(self.scene.mask(at) & anchors) is not is_whole]

    def _jointly(self, later: Sequence[At]) -> Sets:
        beside, size = (
            self.scene.united(later) & ~self.wanted.taken,
            self.wanted.size + sum(map(self.scene.size, later)),
        )
        for every in self._ranked(size, self.wanted.mask | beside):
            yield from self._cut(every & ~self.before, beside) if every else (REST,)

    def _cut(self, every: int, beside: int) -> Sets:
        """Yield the sets for the ask out of what is for later asks, too: those first that leave good ones as well."""
        portions, unity = self.wanted.portions(every, beside), self.cast.merits.unity
        if not beside or comb(every.bit_count(), self.wanted.size) > LOOKED:
            return portions
        return iter(sorted(portions, key=lambda places: -unity(mask_of(places)) - unity(every & ~mask_of(places))))

    def _ranked(self, size: int, among: int) -> Iterator[int]:
        """Yield the masks of all that leads, the best first, as soon as it is sure that no other can be better.

        Nothing, as often as much was worked out.
        """
        candidates = self._candidates(size, among)
        bounded = [(self._bound(mask), mask) for mask in islice(candidates, LOOKED)]
        known: list[tuple[int, int, int]] = []
        for number, (bound, mask) in enumerate(sorted(bounded, key=lambda one: (-one[0], self._crowd(one[1])))):
            while known and -known[0][0] >= bound:
                yield heappop(known)[2]
            heappush(known, (-self.worth(mask), number, mask))
            if number % WORKED == WORKED - 1:
                yield 0
        while known:
            yield heappop(known)[2]
        yield from candidates

    def worth(self, leads: int) -> int:
        """Return what devices that lead are worth with the best that can go along."""
        value = self.cast.worths.get((leads, self.taken))
        if value is None:
            value = self.cast.worths[leads, self.taken] = self._worth(leads)
        return value

    def _worth(self, leads: int) -> int:
        return self.cast.merits.base(leads) + self._along(leads) - ZONE * self._apart(leads)

    def _along(self, leads: int) -> int:
        """Return what the best is worth that can go along with leads."""
        value = self.cast.zoning(leads)
        for one in self.partnered:
            partners = (*places_of(one.given), *self._partners(one, leads))
            value += self.cast.companions.partnered(one.kind, leads, partners)
        return value

    def _partners(self, one: Partnered, leads: int) -> Sequence[int]:
        """Return the best that later asks can have of a kind; shares of it strand nobody."""
        count, shares = one.want.number, one.want.shares
        if not count or not shares:
            among = one.want.among & ~self.taken
            return self.cast.companions.partners(one.kind, leads, self.taken, among, count) if count else ()
        sites, rows = self.ground.sites, places_of(leads)
        weights = [[affinity(sites[row], sites[place]) for place in shares] for row in rows]
        return [shares[column] for _, column in assigned(weights, min(len(rows), len(shares), count))]

    def along(self, places: Sequence[int]) -> int:
        """Return what it counts where *places* are, which others value, and what can go along with them."""
        leads = self.before | mask_of(places)
        return self.cast.merits.apart(leads) + self._along(leads)

    def _apart(self, leads: int) -> int:
        """Count the later asks, if in no set with this one, for which the NUMA nodes of *leads* have too little."""
        if not self._others:
            return 0
        sites = self.ground.at(places_of(leads))
        zones, chips = {site.first_numa for site in sites} - {None}, {site.bus for site in sites} - {None}
        near = mask_of(
            place
            for place, site in enumerate(self.ground.sites)
            if site.first_numa in zones and site.bus not in chips and not (leads | self.taken) >> place & 1
        )
        return sum((self.scene.mask(at) & near).bit_count() < self.scene.size(at) for at in self._others)

    def _bound(self, leads: int) -> int:
        """Return what leads are worth at most: as if each had the closest partner for itself, and all had zones."""
        bound = self.cast.merits.base(leads)
        for kind, given, want in self.partnered:
            pairs, among = self.cast.companions.pairs, want.among & ~self.taken
            bound -= pairs.lost(kind, leads, given)
            bound -= pairs.cheapest(kind, leads, among, want.number) if want.number else 0
        for count, near in self._nearest:
            best = sorted((near[place] for place in places_of(leads)), reverse=True)[:count]
            bound += PARTNERED * sum(best) // max(1, len(best)) // 1000
        return bound + ZONED * len(self.cast.zoned) * ONE // 1000

    @cached_property
    def _nearest(self) -> list[tuple[int, dict[int, int]]]:
        """For each kind of partners that the pod has or wants: how many, and how close to each device one is."""
        sites, anchors = self.ground.sites, self.ground.anchors | self.before | self.wanted.mask
        found = []
        for _, given, want in self.partnered:
            others = self.ground.at(places_of(given | (want.among & ~self.taken)))
            near = {
                place: max((affinity(sites[place], other) for other in others), default=0)
                for place in places_of(anchors)
            }
            if want.number or given:
                found.append((want.number + given.bit_count(), near))
        return found

    def _candidates(self, size: int, among: int) -> Iterator[int]:
        """Yield sets, roughly the best first by their own worth."""
        among &= ~self.scene.cut
        groups = [group for group in self.ground.anchored if (group.mask & (among | self.before)).bit_count() >= size]
        close = list(dict.fromkeys(mask for group in groups for mask in self._close(group, size, among)))
        yield from close
        valued = [self._of_group(group, size, among) for group in groups]
        yield from (mask for _, mask in merge(*valued, key=lambda entry: -entry[0]) if mask not in close)
        if not self.ground.anchored:
            wanted = self.wanted
            others = self.otherwise.sets(self.scene.situation, wanted.at, among, size, wanted.picks)
            yield from (mask_of(places) | self.before for places in others)

    def _of_group(self, group: Anchored, size: int, among: int) -> Iterator[Valued]:
        """Yield sets of one group with those of it that lead already."""
        inside = self.before & group.mask
        allowed = group.inward(among | inside)
        free = group.inward(self.scene.whole) | allowed
        for choice in group.ranking.choices(free, size + inside.bit_count(), allowed):
            mask = group.outward(choice.mask)
            if not inside & ~mask:
                yield choice.value, mask | self.before

    def _close(self, group: Anchored, size: int, among: int) -> Iterator[int]:
        """Yield sets of each NUMA node, and of all, that are closest to partners, where there are too many sets."""
        allowed = places_of(group.mask & among & ~self.before)
        is_small = len(group.places) <= EXACT and comb(len(allowed), size) <= LOOKED
        if is_small or len(allowed) < size:
            return
        sites = self.ground.sites
        near = {place: sum(known[place] for _, known in self._nearest) for place in allowed}
        for zone in sorted({sites[place].first_numa for place in allowed}, key=lambda zone: (zone is None, zone)):
            ranked = sorted(allowed, key=lambda place: (sites[place].first_numa != zone, -near[place], place))
            yield mask_of(ranked[:size]) | self.before
        yield mask_of(sorted(allowed, key=lambda place: (-near[place], place))[:size]) | self.before

    def _crowd(self, leads: int) -> int:
        """Count the free devices that stay in the NUMA nodes of a set: where they are few, others are left whole."""
        zones = {self.ground.sites[place].first_numa for place in places_of(leads)}
        return sum(site.first_numa in zones for site in self.ground.at(places_of(self.scene.free_anchors(leads))))
