"""What is ours to allocate, by which taint it is kept from others, and by which name we know what we wrote."""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.model.claim import AllocatedDevice, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey

# What a field manager may be called at most.
MOST_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Drivers and classes that we own; none named means all.

    Of *shared* drivers others allocate, too, by other classes.
    *taint* is the key of the taint that keeps other allocators away, *writer* the field manager of our own writes.
    *heeded* is the key of that taint to who owns nothing: it keeps him away like any other, and is only told of.
    """

    drivers: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    taint: str = ""
    heeded: str = ""
    writer: str = ""

    def has_driver(self, driver: str) -> bool:
        """Tell whether devices of *driver* are ours."""
        return not self.drivers or driver in self.drivers

    def has_class(self, name: ClassName) -> bool:
        """Tell whether we serve requests for the class *name*."""
        return not self.classes or name in self.classes

    def gives(self, claim: ResourceClaim) -> bool:
        """Tell whether all that *claim* asks for is ours to allocate."""
        return all(map(self.has_class, classes_of(claim).values()))

    def devices_in(self, claim: ResourceClaim) -> tuple[DeviceKey, ...]:
        """Name the devices of ours that *claim* holds. Who has admin access only looks, and holds nothing."""
        if claim.allocation is None:
            return ()
        # Of a claim that cannot be read nobody knows the classes: they may be ours.
        asked = classes_of(claim) if self.classes and claim.problem is None else None
        return tuple(item.device for item in claim.allocation.devices if self._is_held(item, asked))

    def _is_held(self, item: AllocatedDevice, asked: Mapping[str, ClassName] | None) -> bool:
        """Tell whether *item* is a device of ours that somebody holds; *asked* are the classes, where these tell."""
        driver = item.device.driver
        if item.admin_access or not self.has_driver(driver):
            return False
        # Nobody else is to have devices of a driver that is ours alone, whatever class he asks for.
        is_alone = driver in self.drivers - self.shared
        return asked is None or is_alone or self.has_class(asked.get(item.request, ClassName("")))


def writer_of(schedulers: Iterable[str]) -> str:
    """Name the field manager of whoever serves *schedulers*: replicas have one name, another deployment another."""
    return f"dra-extender.{','.join(sorted(schedulers))}"[:MOST_CHARACTERS]


def classes_of(claim: ResourceClaim) -> dict[str, ClassName]:
    """Return the class of each request of *claim*, by the name that an allocation has for it."""
    found: dict[str, ClassName] = {}
    for slot in claim.spec.requests:
        if slot.exactly:
            found[slot.name] = slot.exactly.class_name
        found |= {f"{slot.name}/{item.name}": item.class_name for item in slot.first_available}
    return found
