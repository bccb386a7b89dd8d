"""What goes with devices that lead: a partner for each, as close as can be, and zones that cover them.

Whoever is taken away from others costs something: a GPU without its NIC, or without CPUs on its NUMA node, is
stranded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, islice
from math import comb
from typing import Final

from extender.allocation.masks import mask_of, places_of
from extender.allocation.question import At
from extender.topology.alignment import affinity, covered, paired, part, zones_of
from extender.topology.assignment import assigned
from extender.topology.ground import Kind
from extender.topology.lots import Counts, Lot, exchanged, fewest
from extender.topology.pairs import Pairs
from extender.topology.policy import KEEPING, ZONE
from extender.topology.quality import ONE
from extender.topology.residual import measure
from extender.topology.scene import Scene

# Sets of zones that are compared with each other.
COMPARED: Final = 256
# More than whatever closeness or costs come to.
CHOSEN: Final = 1000 * ONE
# What alignment counts beside links, of a thousand: with partners, and with zones.
PARTNERED: Final = 500
ZONED: Final = 200
# What a stranded device loses of its worth, of a thousand.
STRANDED: Final = 700


class Companions:
    """Chooses for one question on one board what goes with what was chosen."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        # Of all devices that pods are placed around, one is worth this much as part of what is left.
        self.loss = KEEPING * STRANDED * ONE // 1_000_000 // measure(scene.ground.anchors.bit_count())
        self._shares: dict[tuple[At, int], int] = {}
        self._groups: dict[tuple[At, int], list[tuple[int, ...]]] = {}
        self._crowds: dict[int, Counter[int | None]] = {}
        self.pairs = Pairs(scene, self.loss)

    def partners(self, kind: Kind, leads: int, taken: int, among: int, count: int) -> tuple[int, ...]:
        """Choose *count* partners out of *among* for *leads*, beside those *taken*; nothing if there are not enough."""
        mask = mask_of(kind.places)
        every, before = places_of(among & mask & ~taken), places_of(taken & mask)
        if len(every) < count:
            return ()
        costs = self._costs(kind, leads, taken)
        columns = self._distinct(every, costs, count)
        chosen = self._assigned(places_of(leads), before, {place: costs[place] for place in columns}, count)
        if self.pairs.adds_up(kind, leads, taken, chosen) or comb(len(columns), count) > COMPARED:
            return chosen
        return self._best(kind, leads, taken, list(combinations(columns, count)))

    def _best(self, kind: Kind, leads: int, taken: int, sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return which of *sets* is worth most, of equal ones the first; what cannot be is not looked at closely."""
        bound, before = self._bounding(kind, leads, taken), places_of(taken & mask_of(kind.places))
        best: tuple[int, int] | None = None
        promising = sorted((-bound(places), index) for index, places in enumerate(sets))
        for promised, index in promising:
            if best is not None and (best[0], -best[1]) > (-promised, -index):
                break
            found = self.partnered(kind, leads, (*before, *sets[index])), index
            best = found if best is None or (found[0], -index) > (best[0], -best[1]) else best
        return sets[best[1]] if best else ()

    def _bounding(self, kind: Kind, leads: int, taken: int) -> Callable[[tuple[int, ...]], int]:
        """Say what partners are worth at most: as if the lead that is closest to each were its own."""
        sites, rows = self.scene.ground.sites, self.scene.ground.at(places_of(leads))
        near = {place: max((affinity(row, sites[place]) for row in rows), default=0) for place in kind.places}
        before = [near[place] for place in places_of(taken & mask_of(kind.places))]
        # Together partners cost no less than one by one.
        gone, losses = self.pairs.gone(kind, leads, taken), self.pairs.losses(kind, leads, taken)

        def bound(places: tuple[int, ...]) -> int:
            close = sorted([*before, *map(near.__getitem__, places)], reverse=True)[: len(rows)]
            lost = self.loss * (gone + sum(losses.get(place, 0) for place in places)) // ONE
            return PARTNERED * (sum(close) // max(1, len(close))) // 1000 - lost

        return bound

    def partnered(self, kind: Kind, leads: int, partners: Sequence[int]) -> int:
        """Return what *partners* are worth to *leads*: how close they are, less what others lose by it.

        One that is shared is there as often as it was given.
        """
        ground = self.scene.ground
        near = paired(ground.at(places_of(leads)), ground.at(partners)).mean
        return PARTNERED * near // 1000 - self.pairs.lost(kind, leads, mask_of(set(partners)))

    def _distinct(self, places: Sequence[int], costs: Mapping[int, int], count: int) -> list[int]:
        """Leave out those of which there are *count* that are as good: of functions of one NIC there are many."""
        alike: dict[object, list[int]] = {}
        for place in places:
            alike.setdefault((self.scene.ground.sites[place], costs[place]), []).append(place)
        return sorted(place for same in alike.values() for place in same[:count])

    def _assigned(
        self, rows: Sequence[int], before: Sequence[int], costs: Mapping[int, int], count: int
    ) -> tuple[int, ...]:
        """Choose *count* of those with *costs*, for *rows* as far as they go, as close and as cheap as can be.

        Those *before* were chosen: they are in any case, and may be closest to any row.
        """
        sites, size = self.scene.ground.sites, count + len(before)
        columns, pairs = (*before, *costs), max(1, min(len(rows), size))
        extra = [-costs[column] if column in costs else CHOSEN for column in columns]
        weights = [
            [
                PARTNERED * affinity(sites[row], sites[column]) // 1000 // pairs + more
                for column, more in zip(columns, extra, strict=True)
            ]
            for row in rows
        ]
        weights += [extra] * (size - len(rows))
        chosen = {columns[column] for _, column in assigned(weights, size)}
        return tuple(sorted(chosen.difference(before)))

    def nearest(self, kind: Kind, leads: int, taken: int, among: int) -> list[int]:
        """Order partners one by one: the closest first, then those that strand nobody."""
        sites = self.scene.ground.sites
        rows = self._alone(leads, taken & mask_of(kind.places))
        costs = self._costs(kind, leads, taken)

        def rank(place: int) -> tuple[int, int, int]:
            near = max((affinity(sites[row], sites[place]) for row in rows), default=0)
            return -near, costs.get(place, 0), place

        return sorted(places_of(among), key=rank)

    def zones(self, at: At, leads: int, taken: int, among: int, count: int) -> Iterator[tuple[int, ...]]:
        """Yield sets of zones, those first that cover most of *leads* and strand fewest others.

        Where nothing leads, those on the fewest NUMA nodes, with the zones *taken* before.
        """
        every, worth = places_of(among), self._worth(at, leads, taken, among)
        rank = self._ranking(at, among, worth)
        if comb(len(every), count) <= COMPARED:
            yield from sorted(combinations(every, count), key=rank)
            return
        aims = self._aims(at, leads, taken, among, count)
        if leads:
            # As if all were covered, by those that cost least.
            least = min(self.stranding(at, leads, places[:1]) for places in self._alike(at, among))
            yield exchanged(aims, count, worth, ZONED * ONE // 1000 - count * least)
        yield from sorted(islice(fewest(aims[0], count), COMPARED), key=rank)
        yield from combinations(sorted(every, key=lambda place: rank((place,))), count)

    def share(self, at: At, place: int) -> int:
        """Return which share of a zone an ask would take, of ONE."""
        known = self._shares.get((at, place))
        if known is None:
            known = self._shares[at, place] = self._share(at, place)
        return known

    def _share(self, at: At, place: int) -> int:
        ground = self.scene.ground
        if not ground.board.shareable >> place & 1:
            return ONE // max(1, ground.zoned_alike[ground.driver(place), ground.sites[place].numa])
        whole = dict(ground.board.candidates[place].device.capacity)
        drawn = self.scene.situation.eligible[at].draws.get(place)
        shares = (
            [ONE * amount.nanos // (whole[name].value.nanos or 1) for name, amount in drawn.amounts] if drawn else []
        )
        return min(ONE, max(shares, default=0))

    def stranding(self, at: At, leads: int, places: Iterable[int]) -> int:
        """Return what it costs those who stay in the zones that an ask takes from."""
        crowd, sites = self._crowd(leads), self.scene.ground.sites
        return sum(
            self.loss * self.share(at, place) * sum(crowd[zone] for zone in sites[place].numa) // ONE
            for place in places
        )

    def _ranking(
        self, at: At, among: int, worth: Callable[[Counts], int]
    ) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        """Say which sets of zones are worth most, the least first: of equal ones those on few NUMA nodes that are full.

        Of many that are alike, as single CPUs are, one speaks for all.
        """
        alike = self._alike(at, among)
        number = {place: one for one, places in enumerate(alike) for place in places}
        known: dict[tuple[int, ...], tuple[int, ...]] = {}

        def rank(places: tuple[int, ...]) -> tuple[int, ...]:
            key = tuple(map(number.__getitem__, places))
            if key not in known:
                used = set(key)
                counts = tuple(map(key.count, range(len(alike))))
                known[key] = -worth(counts), len(used), sum(len(alike[one]) for one in used)
            return known[key]

        return rank

    def _worth(self, at: At, leads: int, taken: int, among: int) -> Callable[[Counts], int]:
        """Say what zones are worth by how many of them are alike."""
        sites, every = self.scene.ground.sites, self._alike(at, among)
        first = [sites[places[0]] for places in every]
        lost = [self.stranding(at, leads, places[:1]) for places in every]
        led = Counter(sites[place].first_numa for place in places_of(leads))
        before = places_of(taken & self.scene.ground.zoned)

        @cache
        def worth(counts: Counts) -> int:
            cost = sum(one * number for one, number in zip(lost, counts, strict=True))
            used = [one for one, number in enumerate(counts) if number]
            if not leads:
                # What nothing leads is near to itself.
                zoned = [first[one] for one in used for _ in range(counts[one])]
                return -ZONE * zones_of((*self.scene.ground.at(before), *zoned)) - cost
            there = Counter(sites[place].numa for place in self._same(before, [every[one][0] for one in used]))
            for one in used:
                there[first[one].numa] += counts[one]
            return ZONED * covered(led, there) // 1000 - cost

        return worth

    def _aims(self, at: At, leads: int, taken: int, among: int, count: int) -> list[tuple[Lot, ...]]:
        """Put zones that are alike together, with what each adds to what counts of a set of *count*.

        That is the less of two shares: of the leads that are covered, and of the zones that are near any. The aims are
        the first, the second, and what adds to both.
        """
        ground, number = self.scene.ground, leads.bit_count()
        led = Counter(site.first_numa for site in ground.at(places_of(leads)))
        before = self._same(places_of(taken & ground.zoned), places_of(among))
        there = Counter(zone for site in ground.at(before) for zone in site.numa)
        zoned, total, found = ZONED * ONE // 1000, len(before) + count, list[list[Lot]]()
        for places in self._alike(at, among):
            cost = self.stranding(at, leads, places[:1])
            zones = [one for one in ground.sites[places[0]].numa if led[one]]
            near = sum(led[zone] for zone in zones)
            wanted = part(total, near, number) if near else 0
            gain, each = (zoned * near // (number * wanted), zoned // total) if near else (0, 0)
            wanted -= min((there[zone] for zone in zones), default=0)
            # Beyond their part they are at least on the NUMA node of a lead.
            spare = min(1, each)
            worths = (gain, spare), (each, each), (min(gain, each), spare)
            found.append([Lot(places, max(0, wanted), first - cost, then - cost) for first, then in worths])
        return list(zip(*found, strict=True))

    def _alike(self, at: At, among: int) -> list[tuple[int, ...]]:
        """Put zones together that are worth the same."""
        known = self._groups.get((at, among))
        if known is None:
            ground, found = self.scene.ground, dict[object, list[int]]()
            for place in places_of(among):
                alike = ground.driver(place), ground.sites[place].numa, self.share(at, place)
                found.setdefault(alike, []).append(place)
            known = self._groups[at, among] = list(map(tuple, found.values()))
        return known

    def _same(self, some: Sequence[int], places: Sequence[int]) -> list[int]:
        """Return those of *some* that are of the driver of *places*."""
        driver = self.scene.ground.driver
        return [place for place in some if places and driver(place) == driver(places[0])]

    def _crowd(self, leads: int) -> Counter[int | None]:
        """Count by NUMA node the devices that pods are placed around and that stay free beside *leads*."""
        known = self._crowds.get(leads)
        if known is None:
            free = self.scene.ground.at(places_of(self.scene.free_anchors(leads)))
            known = self._crowds[leads] = Counter(site.first_numa for site in free)
        return known

    def _alone(self, leads: int, taken: int) -> list[int]:
        """Return the leads that have none of the partners *taken*."""
        places, ground = places_of(leads), self.scene.ground
        if not taken:
            return list(places)
        pairs = paired(ground.at(places), ground.at(places_of(taken))).pairs
        served = {one for one, _ in pairs}
        return [place for index, place in enumerate(places) if index not in served]

    def _costs(self, kind: Kind, leads: int, taken: int) -> dict[int, int]:
        """Return what taking each partner costs; of equal ones those cost a trifle more that are among many anchors."""
        ground = self.scene.ground
        crowd, lost = self._crowd(leads), self.pairs.losses(kind, leads, taken)
        return {
            place: self.loss * lost.get(place, 0) // ONE + crowd[ground.sites[place].first_numa]
            for place in kind.places
        }
