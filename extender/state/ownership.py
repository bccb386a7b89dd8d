"""What is ours, the taint that keeps others away from it, and what is closed because somebody came nevertheless."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from extender.allocation.inventory import Inventory
from extender.allocation.snapshot import Snapshot
from extender.model.change import Change, Changed, Gone, Listed, Noun, kind_of
from extender.model.claim import ResourceClaim
from extender.model.device import Device, ResourceSlice, Seal, common
from extender.model.names import DeviceKey, DriverName, ObjectKey, Uid
from extender.model.problem import Problem
from extender.model.taint import NO_SCHEDULE, OWNED, DeviceTaintRule, Taint, selects
from extender.state.domain import Domain
from extender.state.foreign import Foreign, Part, is_borne

# Drivers that are neither named as ours nor publish anything, where something is counted by driver.
OTHERS: Final = "others"


@dataclass(slots=True)
class Ownership:
    """One writer. *rules* are the owner's own, by name, *foreign* claims that others allocated, by uid.

    After a change of rules *rules* is another mapping.
    *lost* counts, by driver, how often no rule kept others from it any more: between two looks one can come and go.
    """

    domain: Domain
    rules: Mapping[str, DeviceTaintRule] = field(default_factory=dict)
    foreign: dict[Uid, Foreign] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    # How many foreign claims close each part, as far as any does.
    _closed: Counter[Part] = field(default_factory=Counter)

    def told(self, change: Change) -> Change:
        """Return *change* as allocation sees it: without the owner's taint, and with what is not given sealed."""
        if kind_of(change) == DeviceTaintRule.__name__:
            self._note(change)
        match change:
            case Changed(DeviceTaintRule() as rule) if self._is_owners(rule.taint):
                return Gone(DeviceTaintRule, ObjectKey("", rule.name))
            case Changed(ResourceSlice() as published):
                return Changed(self._shown(published))
            case Listed(kind, items) if kind is DeviceTaintRule:
                return Listed(kind, tuple(item for item in items if not self._is_owners_rule(item)))
            case Listed(kind, items) if kind is ResourceSlice:
                shown = (self._shown(item) if isinstance(item, ResourceSlice) else item for item in items)
                return Listed(kind, tuple(shown))
        return change

    def bare(self, published: ResourceSlice) -> ResourceSlice:
        """Return a slice without the owner's taint; whether that is on all of its devices is told by the slice then."""
        if not any(self._is_owners(taint) for device in published.devices for taint in device.traits.taints):
            return published
        is_barred = all(any(map(self._bars, device.traits.taints)) for device in published.devices)
        return replace(published, devices=tuple(map(self._bare, published.devices)), is_barred=is_barred)

    def _bare(self, device: Device) -> Device:
        kept = tuple(taint for taint in device.traits.taints if not self._is_owners(taint))
        return replace(device, traits=common(replace(device.traits, taints=kept)))

    def seal_of(self, published: ResourceSlice) -> Seal | None:
        """Say why nothing of a slice is given, if that is so."""
        if not self.domain.has_driver(published.driver):
            return Seal.NOT_OURS
        if self._closed and ((published.driver,) in self._closed or published.pool_key in self._closed):
            return Seal.CLOSED
        return None

    def keeps(self, driver: str) -> bool:
        """Tell whether a rule keeps others away from all devices of *driver*."""
        return any(rule.selector is not None and _is_whole(rule, driver) for rule in self.rules.values())

    def _whole(self) -> set[str]:
        """Name the drivers that rules about nothing else keep others away from."""
        chosen = (rule.selector.driver for rule in self.rules.values() if rule.selector and rule.selector.driver)
        return {driver for driver in chosen if self.keeps(driver)}

    def unkept(self, inventory: Inventory) -> tuple[str, ...]:
        """Name the drivers of ours from which nothing keeps others away: of those named, or of all that publish.

        A driver that puts the taint on each of its devices itself needs no rule.
        """
        bare = {item.driver for item in inventory.slices if item.devices and not item.is_barred}
        tainting = {key.driver for key in inventory.keys} - bare
        drivers = self.ours_alone(inventory) - tainting
        return tuple(sorted(name for name in drivers if not self.keeps(name)))

    def ours_alone(self, inventory: Inventory) -> frozenset[str]:
        """Name the drivers from which nobody else is to allocate: of those named, or of all that publish."""
        return (self.domain.drivers or frozenset(key.driver for key in inventory.keys)) - self.domain.shared

    def barring(self) -> tuple[str, ...]:
        """Name the rules that keep others from all of a driver that is shared with them."""
        shared = self.domain.shared
        return tuple(sorted(name for name, rule in self.rules.items() if any(_is_whole(rule, each) for each in shared)))

    def strays(self, inventory: Inventory) -> tuple[tuple[str, DriverName], ...]:
        """Name the rules that keep everybody from all of a driver that publishes and is not ours, with the driver."""
        return tuple(
            sorted(
                (name, driver)
                for name, rule in self.rules.items()
                for driver in _chosen(rule, inventory)
                if _is_whole(rule, driver) and not (self.domain.taint and self.domain.has_driver(driver))
            )
        )

    def outdated(self, snapshot: Snapshot) -> tuple[tuple[str, DriverName], ...]:
        """Name the owner's rules that keep everybody from all of a driver of ours by an earlier key, with the driver.

        Rules are never deleted by us, and a taint of another key is to us, too, a taint like any other.
        """
        return tuple(
            sorted(
                (name, driver)
                for name, rule in snapshot.rules.items()
                if name.startswith(OWNED) and rule.taint.effect == NO_SCHEDULE and not self._bars(rule.taint)
                for driver in _chosen(rule, snapshot.inventory)
                if _is_whole(rule, driver) and self.domain.has_driver(driver)
            )
        )

    def counted_as(self, devices: Iterable[DeviceKey], inventory: Inventory) -> frozenset[str]:
        """Say as which drivers *devices* are counted: whoever writes claims can make up as many as he likes."""
        return frozenset(
            driver if driver in self.domain.drivers or inventory.has_driver(driver) else OTHERS
            for driver, _, _ in devices
        )

    def judged(self, claim: ResourceClaim, inventory: Inventory) -> Foreign:
        """Say what a foreign *claim* closes."""
        devices = self.domain.devices_in(claim)
        untainted = frozenset(device.driver for device in devices if not self._is_kept(device, inventory))
        return Foreign(claim=claim, devices=devices, untainted=untainted)

    def close(self, found: Iterable[Foreign]) -> frozenset[Part]:
        """Remember what others have allocated; return what is closed now and was open, or the other way round."""
        fresh = {item.claim.uid: item for item in found}
        over = [self.foreign[uid] for uid in fresh if uid in self.foreign]
        self.foreign |= fresh
        return self._count(fresh.values(), over)

    def open(self, uids: set[Uid], with_uid: Callable[[Uid], ResourceClaim | None]) -> frozenset[Part]:
        """Forget those of *uids* that no longer hold what they did, or are to be borne; return what is open now."""
        known = [self.foreign[uid] for uid in uids if uid in self.foreign]
        if not known:
            return frozenset()
        over = [item for item in known if _is_over(item.claim, with_uid(item.claim.uid))]
        for item in over:
            del self.foreign[item.claim.uid]
        return self._count((), over)

    def open_all(self) -> frozenset[Part]:
        """Forget what others have allocated; return what is open now."""
        over, self.foreign = self.foreign, {}
        return self._count((), over.values())

    def _count(self, fresh: Iterable[Foreign], over: Iterable[Foreign]) -> frozenset[Part]:
        moves = Counter(part for item in fresh for part in item.parts)
        moves.subtract(part for item in over for part in item.parts)
        before = self._closed.keys() & moves.keys()
        self._closed.update(moves)
        for part in moves:
            if not self._closed[part]:
                del self._closed[part]
        return frozenset(before ^ (self._closed.keys() & moves.keys()))

    def _shown(self, published: ResourceSlice) -> ResourceSlice:
        bare, seal = self.bare(published), self.seal_of(published)
        return bare if bare.seal is seal else replace(bare, seal=seal)

    def _is_owners_rule(self, item: Noun | Problem) -> bool:
        return isinstance(item, DeviceTaintRule) and self._is_owners(item.taint)

    def _is_owners(self, taint: Taint) -> bool:
        return bool(self.domain.taint) and taint.key == self.domain.taint

    def _note(self, change: Change) -> None:
        """Remember the rules that put the owner's taint somewhere: afterwards nobody is told."""
        kept = self._whole()
        match change:
            case Changed(DeviceTaintRule() as rule):
                self.rules = {**_others(self.rules, rule.name), **self._barring_among((rule,))}
            case Changed(Problem(key=key)) | Gone(_, key):
                self.rules = _others(self.rules, key.name)
            case Listed(_, items):
                self.rules = self._barring_among(items)
        self.lost.update(kept - self._whole())

    def _barring_among(self, items: Iterable[Noun | Problem]) -> dict[str, DeviceTaintRule]:
        rules = (item for item in items if isinstance(item, DeviceTaintRule))
        return {rule.name: rule for rule in rules if self._bars(rule.taint)}

    def _bars(self, taint: Taint) -> bool:
        # NoExecute alone keeps nobody away for sure: claims may tolerate that of every key, to outlive a fault.
        key = self.domain.taint or self.domain.heeded
        return bool(key) and taint.key == key and taint.effect == NO_SCHEDULE

    def _is_kept(self, device: DeviceKey, inventory: Inventory) -> bool:
        """Tell whether the owner's taint is on *device*, by a rule or by its driver."""
        by_name = (rule.selector for rule in self.rules.values() if rule.selector and not rule.selector.asks_attributes)
        if any(selects(selector, device) for selector in by_name):
            return True
        slices = (inventory.slices[inventory.slice_at(row)] for row in inventory.rows_of(device))
        return any(item.is_barred for item in slices)


def _is_over(before: ResourceClaim, now: ResourceClaim | None) -> bool:
    """Tell whether *now* it does not hold what it did *before*: what it was given since is judged anew."""
    return now is None or now.allocation != before.allocation or is_borne(now)


def _is_whole(rule: DeviceTaintRule, driver: str) -> bool:
    """Tell whether *rule* taints every device of *driver*."""
    chosen = rule.selector
    if chosen is None or chosen.asks_attributes:
        return False
    return chosen.driver in (None, DriverName(driver)) and chosen.pool is None and chosen.device is None


def _chosen(rule: DeviceTaintRule, inventory: Inventory) -> Iterable[DriverName]:
    """Name the drivers that publish and that *rule* is about."""
    if rule.selector is None or rule.selector.driver is None:
        return {key.driver for key in inventory.keys}
    return (rule.selector.driver,) if inventory.has_driver(rule.selector.driver) else ()


def _others(rules: Mapping[str, DeviceTaintRule], name: str) -> dict[str, DeviceTaintRule]:
    return {key: rule for key, rule in rules.items() if key != name}
