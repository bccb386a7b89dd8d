"""What there is of devices, and what claims take of it. Nothing of the product is imported here.

A device is for one claim, or for as many as its capacity is enough for; partitions draw from counters of their pool.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tests.interleavings.law import Device, Law, newest
from tests.interleavings.policies import ANY, Policy, policy_for
from tests.interleavings.terms import Term, Wish, terms_of, ways, wishes

Json = dict[str, Any]
# What is had of a share, and what partitions draw from.
MEMORY: Final = "memory"
# What a driver says of a device that is made ready, or cannot be.
READY: Final = "example.com/ready"
FAILED: Final = "example.com/failed"
# Under which what drivers say stands where nobody can read it.
STRANGE: Final = "strange"


class Part(NamedTuple):
    """What is not enough for everybody: how much there is, and how much of it each claim has."""

    place: tuple[str, ...]
    limit: int
    taken: Mapping[str, int]

    def is_over(self, names: Iterable[str]) -> bool:
        return sum(self.taken.get(name, 0) for name in names) > self.limit


# A device that is not published.
NOWHERE: Final[Device] = ("", "", "")


class Ask(NamedTuple):
    """A device that is asked for: so much of it or all, or only to look at it.

    *request*: what it may be; *only*: which one it has to be; *terms*: what it has to have in common with others.
    """

    amount: int | None = None
    is_admin: bool = False
    request: Json | None = None
    only: Device | None = None
    terms: tuple[Term, ...] = ()
    # Which request of which claim, and what the policy of that has.
    place: tuple[str, str] = ("", "")
    policy: Policy = ANY


class Given(NamedTuple):
    """A device that somebody who asks is given."""

    ask: Ask
    device: Device


class Stock:
    """The devices that are published, and the counters of their pools.

    *law* says who may have which, beside the placement *document*.
    """

    def __init__(self, slices: Iterable[Json], law: Law | None = None, document: Json | None = None) -> None:
        self.law, self.document = law or Law((), (), ()), document
        self.devices: dict[Device, Json] = {}
        self.counters: dict[str, int] = {}
        for item in newest(slices):
            spec = item["spec"]
            pool = spec["pool"]["name"]
            self.devices |= {(spec["driver"], pool, each["name"]): each for each in spec.get("devices") or ()}
            for shared in spec.get("sharedCounters") or ():
                self.counters[pool] = int(shared["counters"][MEMORY]["value"])
        self.capacities = {device: _capacity(item) for device, item in self.devices.items()}
        self.drawn = {device: drawn for device, item in self.devices.items() if (drawn := _draws(item))}

    def parts(self, claims: Mapping[str, Json]) -> Iterator[Part]:
        """Yield all that *claims* have anything of."""
        taken: dict[Device, dict[str, int]] = {}
        drawn: dict[str, dict[str, int]] = {}
        for name, claim in claims.items():
            for device, amount in had(claim) if claim["status"].get("allocation") else ():
                given = taken.setdefault(device, {})
                given[name] = given.get(name, 0) + self._taken(device, amount)
                if device in self.drawn:
                    draws = drawn.setdefault(device[1], {})
                    draws[name] = draws.get(name, 0) + self.drawn[device]
        for device, given in taken.items():
            yield Part(device, self.limit(device), given)
        for pool, given in drawn.items():
            yield Part((pool, MEMORY), self.counters.get(pool, 0), given)

    def said_of(self, node: str) -> tuple[object, ...]:
        """Return all that decides who may be given what of *node*."""
        devices = {device: item for device, item in self.devices.items() if device[1] == node}
        return devices, self.counters.get(node), self.law.rules, self.law.classes, self.document

    def _taken(self, device: Device, amount: int | None) -> int:
        """Return how much of *device* is taken; nobody knows what a share is of that is not published."""
        return self.limit(device) if amount is None else amount if device in self.devices else 0

    def limit(self, device: Device) -> int:
        """Return how much there is of *device*: where it has no capacity, it is one."""
        return self.capacities.get(device) or 1

    def free(self, claims: Mapping[str, Json]) -> list[Device]:
        """Return the devices of which *claims* have nothing, and for which nothing that they draw from is missing."""
        return [
            device
            for device in self.devices
            if not any(device in dict(had(claim)) for claim in claims.values())
            and self.suffices([Ask()], claims, device[1], device)
        ]

    def shares(self, claims: Mapping[str, Json]) -> dict[Device, int]:
        """Return the shared devices, each with what *claims* leave of it, where that is anything."""
        taken = {part.place: sum(part.taken.values()) for part in self.parts(claims)}
        left = {device: self.limit(device) - taken.get(device, 0) for device in self.devices if self.is_shared(device)}
        return {device: amount for device, amount in left.items() if amount > 0}

    def is_shared(self, device: Device) -> bool:
        return self.capacities.get(device, 0) > 0

    def ways(self, claim: Json, pool: str) -> list[list[Ask]]:
        """Return all that *claim* may be given of *pool*, an entry for each device; one will do."""
        policy = policy_for(self.document, claim)
        if policy is None or not self.law.is_askable(wish.item for listed in wishes(claim) for wish in listed):
            return []
        return [[ask for wish in way for ask in self._asked(claim, wish, pool, policy)] for way in ways(claim)]

    def _asked(self, claim: Json, wish: Wish, pool: str, policy: Policy) -> list[Ask]:
        """Return what is asked for of *pool*: where that is all, each device that is selected, or one of none."""
        item = wish.item
        amount = (item.get("capacity") or {}).get("requests")
        ask = Ask(
            int(amount[MEMORY]) if amount else None, bool(item.get("adminAccess")), item, None,
            terms_of(claim, wish.name), (claim["metadata"]["name"], wish.name), policy,
        )  # fmt: skip
        if not _is_for_all(item):
            return [ask] * int(item.get("count", 1))
        chosen = [device for device in self.devices if device[1] == pool and self.law.selects(item, device)]
        return [ask._replace(only=device) for device in chosen or [NOWHERE]]

    def suffices(
        self,
        asked: list[Ask],
        claims: Mapping[str, Json],
        pool: str,
        only: Device | None = None,
        *,
        is_at_most: bool = False,
    ) -> bool:
        """Tell whether all that is *asked* can be had of *pool* beside *claims*: so much of a share, or any device.

        *only* of one device, if one is named.

        Whoever asks for several is given different devices, which is more than has to be, unless that *is_at_most* so:
        then several may have shares of one device, and look at one that somebody has.
        """
        left = {part.place: part.limit - sum(part.taken.values()) for part in self.parts(claims)}
        memory = left.get((pool, MEMORY), self.counters.get(pool, 0))
        free = {device: left.get(device, self.limit(device)) for device in self.devices}
        rooms = {device: room for device, room in free.items() if device[1] == pool and only in (None, device)}
        return self._suffices(asked, rooms, memory, is_at_most=is_at_most)

    def _suffices(
        self,
        asked: list[Ask],
        free: Mapping[Device, int],
        memory: int,
        given: tuple[Given, ...] = (),
        *,
        is_at_most: bool,
    ) -> bool:
        if not asked:
            return True
        for device, room in free.items():
            draws = 0 if asked[0].is_admin else self.drawn.get(device, 0)
            more = (*given, Given(asked[0], device))
            if draws <= memory and self._is_enough(device, room, asked[0]) and self._is_kept(more):
                others = {other: left for other, left in free.items() if other != device}
                if is_at_most:
                    others[device] = room - self._taken_by(asked[0], device)
                if self._suffices(asked[1:], others, memory - draws, more, is_at_most=is_at_most):
                    return True
        return False

    def _taken_by(self, ask: Ask, device: Device) -> int:
        """Return how much of *device* nobody else has who is given it for *ask*."""
        if ask.is_admin:
            return 0
        return self.limit(device) if ask.amount is None else ask.amount

    def _is_kept(self, given: tuple[Given, ...]) -> bool:
        """Tell whether the last that is *given* may be beside the others."""
        last = given[-1].ask
        beside = [each.device for each in given if each.ask.place == last.place]
        if not last.policy.has([(device[2], self.devices[device]) for device in beside]):
            return False
        return all(
            term.holds(
                term.value(each.device[0], self.devices[each.device]) for each in given if term in each.ask.terms
            )
            for term in given[-1].ask.terms
        )

    def _is_enough(self, device: Device, room: int, asked: Ask) -> bool:
        if asked.only not in (None, device) or (asked.request and not self.law.admits(asked.request, device)):
            return False
        if asked.is_admin or asked.amount is None:
            return asked.is_admin or room >= self.limit(device)
        return room >= asked.amount and self.is_shared(device)


def _capacity(device: Json) -> int:
    capacity = device.get("capacity")
    return int(capacity[MEMORY]["value"]) if capacity else 0


def _draws(device: Json) -> int:
    return sum(int(item["counters"][MEMORY]["value"]) for item in device.get("consumesCounters") or ())


def had(claim: Json) -> Iterator[tuple[Device, int | None]]:
    """Yield the devices that *claim* has, and how much it has of each; None for all of it.

    What somebody only looks at, with admin access, he does not have.
    """
    for item in (item for item in results(claim) if not item.get("adminAccess")):
        consumed = item.get("consumedCapacity")
        yield (item["driver"], item["pool"], item["device"]), int(consumed[MEMORY]) if consumed else None


def given(claim: Json) -> list[Device]:
    """Return the devices that *claim* has or only looks at."""
    return [(item["driver"], item["pool"], item["device"]) for item in results(claim)]


def results(claim: Json) -> list[Json]:
    allocation = (claim.get("status") or {}).get("allocation")
    listed: list[Json] = allocation["devices"]["results"] if allocation else []
    return listed


def is_complete(claim: Json) -> bool:
    """Tell whether *claim* has what it asks for in one of its ways; of all devices nobody knows how many these are."""
    had = Counter(result["request"] for result in results(claim))
    return any(
        had.keys() == {wish.name for wish in way} and all(_is_met(wish.item, had[wish.name]) for wish in way)
        for way in ways(claim)
    )


def _is_met(item: Json, number: int) -> bool:
    return _is_for_all(item) or number == item.get("count", 1)


def _is_for_all(item: Json) -> bool:
    return bool(item.get("allocationMode") == "All")


def unready(claim: Json) -> Iterator[Device]:
    """Yield the devices that have to be made ready, of which the driver does not say that they are."""
    said = dict(reports(claim))
    for item in results(claim):
        device = item["driver"], item["pool"], item["device"]
        if item.get("bindingConditions") and said.get(device) != {READY}:
            yield device


def has_failed(claim: Json) -> bool:
    """Tell whether the driver says of a device of *claim* that it cannot be made ready."""
    said = dict(reports(claim))
    return any(FAILED in said.get(device, ()) for device in unready(claim))


def reports(claim: Json) -> Iterator[tuple[Device, set[str]]]:
    """Yield what drivers say of each device, in whatever words."""
    said = (claim.get("status") or {}).get("devices") or ()
    for item in said[STRANGE] if isinstance(said, dict) else said:
        yield (item["driver"], item["pool"], item["device"]), {entry["type"] for entry in item["conditions"]}
