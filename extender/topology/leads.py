"""The devices that lead, over all asks for them: good ones, around which what else is asked for is free."""

from collections.abc import Iterator, Sequence
from functools import reduce
from heapq import heappop, heappush, merge
from itertools import combinations, islice
from operator import or_
from typing import Final

from extender.allocation.preference import Preference
from extender.allocation.question import At
from extender.topology.alignment import cover, paired
from extender.topology.cast import Cast, Sets, Wanted
from extender.topology.ground import Group
from extender.topology.quality import ONE
from extender.topology.scene import Role
from extender.topology.shape import mask_of, places_of

# Sets for which companions are looked for; the others go by their own worth.
LOOKED: Final = 128
# A value of ONE and a mask of candidates.
Valued = tuple[int, int]


class Leads:
    """Chooses for one ask what leads, with those that lead already and those that will."""

    def __init__(self, cast: Cast, wanted: Wanted, otherwise: Preference) -> None:
        self.cast, self.scene, self.ground = cast, cast.scene, cast.scene.ground
        self.wanted = wanted
        self.otherwise = otherwise
        self.before = self.scene.given(wanted.picks, Role.LEAD)
        self.taken = wanted.taken & ~self.before
        asks = self.scene.asks.values()
        self.zoned = [at for at in asks if self.scene.roles[at] is Role.ZONE]
        partners = [at for at in asks if self.scene.roles[at] is Role.PARTNER]
        self.partnered = {kind.driver: (among, count) for kind, among, count in self.scene.by_kind(partners)}

    def sets(self) -> Sets:
        """Yield sets for the ask: out of the best for all that lead, then for itself."""
        later = self.scene.later(self.wanted.at, Role.LEAD, self.wanted.picks)
        if later:
            yield from self._jointly(later)
        yield from self._jointly(())

    def _jointly(self, later: Sequence[At]) -> Sets:
        beside = reduce(or_, map(self.scene.mask, later), 0) & ~self.wanted.taken
        size = self.wanted.size + sum(map(self.scene.size, later))
        for every in self._ranked(size, self.wanted.mask | beside):
            fresh = every & ~self.before
            for places in combinations(places_of(fresh & self.wanted.mask), self.wanted.size):
                if not fresh & ~mask_of(places) & ~beside:
                    yield places

    def _ranked(self, size: int, among: int) -> Iterator[int]:
        """Yield the masks of all that leads, the best first, as soon as it is sure that no other can be better."""
        candidates = self._candidates(size, among)
        looked = sorted(islice(candidates, LOOKED), key=lambda entry: (-entry[0], self._crowd(entry[1])))
        known: list[tuple[int, int, int]] = []
        gain = self._most(size)
        for number, (bound, mask) in enumerate(looked):
            while known and -known[0][0] >= bound + gain:
                yield heappop(known)[2]
            heappush(known, (-self.worth(mask), number, mask))
        while known:
            yield heappop(known)[2]
        yield from (mask for _, mask in candidates)

    def worth(self, leads: int) -> int:
        """Return what devices that lead are worth with the best that can go along."""
        value = self.cast.merits.base(leads)
        for kind in self.ground.kinds:
            among, count = self.partnered.get(kind.driver, (0, 0))
            chosen = self.cast.companions.partners(kind, leads, self.taken, among, count) if count else ()
            value += self.cast.merits.stranding(kind, leads, mask_of(chosen))
            mean = paired(self.ground.at(places_of(leads)), self.ground.at(chosen)).mean
            value += self.cast.companions.weights.partner * mean // 1000
        return value + self._zoning(leads)

    def _zoning(self, leads: int) -> int:
        """Return what the best zones are worth, each ask beside those before it."""
        companions, chosen = self.cast.companions, dict[str, int]()
        cost = 0
        for at in self.zoned:
            taken = reduce(or_, chosen.values(), 0)
            places = next(companions.zones(at, leads, taken, self.scene.mask(at), self.scene.size(at)), ())
            for place in places:
                driver = self.ground.board.candidates[place].key.driver
                chosen[driver] = chosen.get(driver, 0) | 1 << place
            cost += companions.stranding(at, leads, places)
        led = self.ground.at(places_of(leads))
        covered = sum(cover(led, self.ground.at(places_of(mask))) for mask in chosen.values())
        return companions.weights.zoned * covered // 1000 - cost

    def _most(self, size: int) -> int:
        """Return the most that can come to a set's own worth."""
        weights = self.cast.companions.weights
        aligned = weights.partner * len(self.partnered) + weights.zoned * len(self.zoned)
        free = self.scene.free_anchors(0)
        alone = sum(kind.stranded(free, self.scene.unheld) for kind in self.ground.kinds)
        most = (size + self.before.bit_count()) * len(self.ground.kinds)
        return aligned * ONE // 1000 + self.cast.companions.loss * min(alone, most)

    def _candidates(self, size: int, among: int) -> Iterator[Valued]:
        """Yield sets with their own worth, roughly the best first."""
        groups = [group for group in self.ground.anchored if (group.mask & (among | self.before)).bit_count() >= size]
        valued = [self._of_group(group, size, among) for group in groups]
        for value, mask in merge(*valued, key=lambda entry: -entry[0]):
            yield value + self.cast.merits.apart(mask), mask
        if not self.ground.anchored:
            wanted = self.wanted
            others = self.otherwise.sets(self.scene.situation, wanted.at, among, size, wanted.picks)
            for places in others:
                mask = mask_of(places) | self.before
                yield self.cast.merits.apart(mask), mask

    def _of_group(self, group: Group, size: int, among: int) -> Iterator[Valued]:
        """Yield sets of one group with those of it that lead already."""
        inside = self.before & group.mask
        allowed = group.inward(among | inside)
        free = group.inward(self.scene.unheld) | allowed
        for choice in group.chooser.choices(free, size + inside.bit_count(), allowed):
            mask = group.outward(choice.mask)
            if not inside & ~mask:
                yield choice.value, mask | self.before

    def _crowd(self, leads: int) -> int:
        """Count the free devices that stay in the NUMA nodes of a set: where they are few, others are left whole."""
        zones = {self.ground.sites[place].first_numa for place in places_of(leads)}
        return sum(site.first_numa in zones for site in self.ground.at(places_of(self.scene.free_anchors(leads))))
