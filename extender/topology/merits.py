"""What the devices of a whole pod are worth together, in parts that add up, and in words."""

from collections.abc import Iterator, Sequence
from typing import Final

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.topology.aliases import Place
from extender.topology.alignment import FIRST_NUMA, NODE, ROOT, SOME_NUMA, affinity, cover, paired, zones_of
from extender.topology.appraisal import Appraisal, Part
from extender.topology.companions import PARTNERED, ZONED, Companions
from extender.topology.ground import Anchored, Kind
from extender.topology.memo import Memo
from extender.topology.policy import ZONE
from extender.topology.quality import ONE
from extender.topology.scene import Role
from extender.topology.words import parts_of

# Sets of which it is remembered how good they are for one ask.
UNITIES: Final = 1 << 14
# The nouns of devices, by the words that the names of their drivers have in them.
NOUNS: Final = (
    ("gpu", "GPU"), ("cpu", "CPUs"), ("memory", "memory"),
    ("net", "NIC"), ("nic", "NIC"), ("network", "NIC"), ("sriovnetwork", "NIC"),
)  # fmt: skip
SHARED: Final = (
    (ROOT, "on the same PCIe root as its {lead}"),
    (FIRST_NUMA, "on the NUMA node of its {lead}"),
    (SOME_NUMA, "near the NUMA node of its {lead}"),
    (NODE, "on the same node as its {lead}, and nothing closer is known"),
)


class Merits:
    """Tells what some picks are worth."""

    def __init__(self, companions: Companions) -> None:
        self.scene, self.ground = companions.scene, companions.scene.ground
        self.companions = companions
        self._unities: Memo[int, int] = Memo(UNITIES)

    def appraisal(self, picks: Sequence[Pick], beside: Sequence[Pick] = ()) -> Appraisal:
        """Appraise *picks*, and how close they are to the parts and shares *beside* them, which others value."""
        parts = tuple(self._parts(picks, beside))
        return Appraisal(sum(part.value for part in parts), parts)

    def base(self, leads: int) -> int:
        """Return what leads are worth by themselves: links, what is left, NUMA nodes, and parts for others."""
        worth = sum(group.ranking.of(free, mask).value for group, free, mask in self._linked(leads))
        return worth + self.apart(leads) - (leads & self.scene.divided).bit_count()

    def unity(self, devices: int) -> int:
        """Return how good devices are for one ask: their links, and NUMA nodes."""
        known = self._unities.get(devices)
        if known is None:
            links = (group.ranking.quality_of(group.inward(devices)) for group in self.ground.anchored)
            known = self._unities[devices] = sum(links) + self.apart(devices)
        return known

    def apart(self, devices: int) -> int:
        """Return what it counts that devices are on several NUMA nodes."""
        further = max(1, zones_of(self.ground.at(places_of(devices)))) - 1
        return -ZONE * further

    def _parts(self, picks: Sequence[Pick], beside: Sequence[Pick]) -> Iterator[Part]:
        leads = self.scene.given(picks, Role.LEAD)
        for group, free, mask in self._linked(leads):
            told = parts_of(group.group, group.ranking, free, mask)
            # On which NUMA nodes they are is told of all that leads.
            yield from (part for part in told if part.value or part.name != "zones")
        every = (*picks, *beside)
        leads, partners = (self.scene.given(every, role) for role in (Role.LEAD, Role.PARTNER))
        placed = leads or partners or self.scene.given(picks, Role.ZONE)
        if placed:
            yield Part("numa", self.apart(placed), _zones(self.ground.at(places_of(placed))))
        for kind in self.ground.kinds:
            yield from self._partnered(kind, every, leads)
        yield from self._zoned(picks, leads or partners, leads)

    def _linked(self, leads: int) -> Iterator[tuple[Anchored, int, int]]:
        """Yield each group that leads are of, what is free of it, and the leads; masks are of its shape."""
        for group in self.ground.anchored:
            mask = group.inward(leads)
            if mask:
                yield group, group.inward(self.scene.whole | leads), mask

    def _partnered(self, kind: Kind, picks: Sequence[Pick], leads: int) -> Iterator[Part]:
        # Of a partner that is shared the pod may have several shares, one for each that leads.
        shares = [pick for pick in picks if pick.place in kind.places and self.scene.roles[pick.at] is Role.PARTNER]
        partners = mask_of({pick.place for pick in shares})
        lost, text = self.companions.pairs.lost(kind, leads, partners), self._stranded(kind, leads, partners)
        if lost or text:
            yield Part("stranding", -lost, text)
        if leads and partners:
            # Nodes are compared by what the pod has as a whole; what is told is what each claim has of it.
            pairing = paired(self.ground.at(places_of(leads)), self.ground.at(sorted(pick.place for pick in shares)))
            near = [value for claim in _claims_of(picks, partners) for value in self._near(claim, picks, partners)]
            words = _pairs(near, noun_of(kind.driver), self._noun(places_of(leads)))
            yield Part("partners", PARTNERED * pairing.mean // 1000, words)

    def _stranded(self, kind: Kind, leads: int, partners: int) -> str:
        """Tell of anchors that had no partner to lose, or lose theirs though they stay."""
        scene, lead, partner = self.scene, self._noun(kind.anchors), noun_of(kind.driver)
        before, after = (
            kind.pairs(scene.free_anchors(ones), scene.left(others)) for ones, others in ((0, 0), (leads, partners))
        )
        lost = before - after
        number = (scene.free_anchors(0) & ~scene.free_anchors(leads)).bit_count() - lost
        if number < 0:
            return f"{-number} x {lead} left for which no {partner} is free"
        if number:
            return f"{number} x {lead} taken for which no {partner} is left over"
        if lost > partners.bit_count():
            return f"{lost - partners.bit_count()} x {lead} taken for which a {partner} is left over"
        if lost:
            return f"{lost} x {lead} and {partner} taken together"
        is_worse = self.companions.pairs.lost(kind, leads, partners)
        return f"{lead}s and {partner}s that stay free are less close to each other" if is_worse else ""

    def _near(self, claim: int, picks: Sequence[Pick], partners: int) -> list[int]:
        """Tell how close the partners of a claim are to what leads for it, pair by pair."""
        own = sorted(pick.place for pick in picks if pick.at.claim == claim and partners >> pick.place & 1)
        ones, others = self.ground.at(places_of(self.scene.led(claim, picks))), self.ground.at(own)
        return [affinity(ones[one], others[other]) for one, other in paired(ones, others).pairs]

    def _zoned(self, picks: Sequence[Pick], led: int, leads: int) -> Iterator[Part]:
        asks = {pick.at: pick.place for pick in picks if self.scene.roles[pick.at] is Role.ZONE}
        lost = sum(self.companions.stranding(at, leads, [pick.place for pick in picks if pick.at == at]) for at in asks)
        if lost:
            yield Part("zones", -lost, "taken on NUMA nodes where other devices stay free")
        drivers = {self.ground.driver(place) for place in asks.values()}
        for driver in sorted(drivers) if led else ():
            zoned = [pick.place for pick in picks if pick.at in asks and self.ground.driver(pick.place) == driver]
            covered = cover(self.ground.at(places_of(led)), self.ground.at(zoned))
            lead = self._noun(places_of(led))
            few = f"for {100 * covered // ONE}% of the {lead}s on their NUMA nodes"
            where = f"on the {lead}s' NUMA nodes" if covered == ONE else few
            yield Part("cover", ZONED * covered // 1000, f"{noun_of(driver)} {where}")

    def _noun(self, places: Sequence[int]) -> str:
        return noun_of(self.ground.driver(places[0])) if places else "device"


def _claims_of(picks: Sequence[Pick], places: int) -> list[int]:
    """Return the claims that have any of *places*."""
    return sorted({pick.at.claim for pick in picks if places >> pick.place & 1})


def noun_of(driver: str) -> str:
    """Call the devices of *driver* by a word of its name."""
    labels = driver.lower().split(".")
    # The last label is the domain of whoever made it, as in example.net; but for names like dra.net.
    labels = labels if labels[:-1] in ([], ["dra"]) else labels[:-1]
    words = "-".join(labels).split("-")
    return next((noun for word, noun in NOUNS if word in words), f"device of {driver}")


def _zones(places: Sequence[Place]) -> str:
    zones = sorted({place.first_numa for place in places if place.first_numa is not None})
    if any(place.first_numa is None for place in places):
        return "on NUMA nodes that are not all known"
    return f"on NUMA {zones[0]} alone" if len(zones) == 1 else f"on NUMA {', '.join(map(str, zones))}"


def _pairs(near: Sequence[int], partner: str, lead: str) -> str:
    """Say for how many pairs what they share, the closest first."""
    told = ((text, near.count(value)) for value, text in SHARED)
    return "; ".join(f"{partner} {text.format(lead=lead)} ({count} of {len(near)})" for text, count in told if count)
