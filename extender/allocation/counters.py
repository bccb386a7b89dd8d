"""What partitions draw from their pool: counters, and the groups that may be active together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.allocation.pools import CounterKey, Pool
from extender.model.device import Device, Traits

# The groups that all devices of a counter set have in common; an empty one where none of them has any.
Groups = frozenset[str]
# What devices have in common that should never have been active together: nothing, and yet not no groups.
CLASH: Groups = frozenset(("",))


@dataclass(slots=True)
class Balance:
    """One pool during a search: what is left of each counter, and who is active. Every step can be undone.

    *overdrawn* is how many counters are; *taken*: what was taken since the balance was copied, which is little of much.
    """

    left: dict[CounterKey, int]
    overdrawn: int
    groups: dict[str, Groups] = field(default_factory=dict)
    taken: dict[CounterKey, int] = field(default_factory=dict)

    def copy(self) -> "Balance":
        return Balance(dict(self.left), self.overdrawn, dict(self.groups))

    def admits(self, device: Device, *, grouped: bool) -> bool:
        """Tell whether *device* may become active. Nothing does that would leave its pool overdrawn anywhere."""
        drawn = drawn_by(device.traits)
        if any(self.left[key] < amount for key, amount in drawn.items()):
            return False
        if self.overdrawn and any(left < drawn.get(key, 0) for key, left in self.left.items()):
            return False
        return not grouped or all(
            are_compatible(self.groups.get(item.counter_set), frozenset(item.compatibility_groups))
            for item in device.traits.consumes_counters
        )

    def take(self, device: Device) -> dict[str, Groups]:
        """Make *device* active; return what ``give_back`` needs."""
        before = dict(self.groups)
        self._draw(device, 1)
        for item in device.traits.consumes_counters:
            groups = frozenset(item.compatibility_groups)
            self.groups[item.counter_set] = joined(self.groups.get(item.counter_set), groups)
        return before

    def give_back(self, device: Device, before: dict[str, Groups]) -> None:
        """Undo ``take``."""
        self._draw(device, -1)
        self.groups = before

    def _draw(self, device: Device, times: int) -> None:
        for key, amount in drawn_by(device.traits).items():
            before = self.left.get(key, 0)
            after = self.left[key] = before - times * amount
            self.overdrawn += (after < 0) - (before < 0)
            taken = self.taken.pop(key, 0) + times * amount
            if taken:
                self.taken[key] = taken


def balance_of(pool: Pool, active: Iterable[Device]) -> Balance:
    """Return the balance of *pool*, from which *active* devices draw already."""
    balance = Balance(dict(pool.counters), sum(amount < 0 for _, amount in pool.counters))
    for device in active:
        balance.take(device)
    return balance


def drawn_by(traits: Traits) -> dict[CounterKey, int]:
    """Add up what each device with *traits* draws."""
    drawn: dict[CounterKey, int] = {}
    for item in traits.consumes_counters:
        for counter in item.counters:
            key = (item.counter_set, counter.name)
            drawn[key] = drawn.get(key, 0) + counter.value.nanos
    return drawn


def joined(active: Groups | None, groups: Groups) -> Groups:
    """Return what the active devices of a counter set have in common once one with *groups* is among them."""
    if active is None:
        return groups
    return (active & groups or CLASH) if active and groups else active


def are_compatible(active: Groups | None, groups: Groups) -> bool:
    """Tell whether a device with *groups* may join: no groups go with no groups only."""
    if active is None:
        return True
    return bool(active & groups) if active and groups else not active and not groups
