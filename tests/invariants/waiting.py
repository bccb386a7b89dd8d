"""Pods that wait although they fit, found by trying: every node, every choice of devices.

What cannot be judged is said. A doubt is decided against the pod: who is named here fits for certain.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from tests.invariants.checker import Moment
from tests.invariants.published import Counter
from tests.invariants.reading import (
    Device,
    Json,
    allocatable,
    amounts,
    is_alive,
    is_allocated,
    mapped,
    name,
    quantity,
    reach,
    reserved,
    selects,
    uid,
    wanted,
)

BY_DRIVER: Final = re.compile(r"""device\.driver == (?:"([^"]+)"|'([^']+)')""")
MAX_STEPS: Final = 20_000


class Unjudged(Exception):  # noqa: N818 - says what these rules do not know; nobody's error
    """Something is asked that these rules do not know."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One device of a driver, alike in an attribute with the other wishes of each of *groups*."""

    driver: str
    request: tuple[str, str]
    capacity: tuple[tuple[str, Fraction], ...] = ()
    groups: tuple[tuple[str, int, str], ...] = ()


@dataclass(slots=True)
class Free:
    """What nobody else has."""

    taken: set[Device]
    consumed: dict[tuple[Device, str], Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    drawn: dict[Counter, Fraction] = field(default_factory=lambda: defaultdict(Fraction))


def fitting(moment: Moment, scheduler: str) -> list[str]:
    """Name the pods of *scheduler* that wait although they fit on some node as it is now."""
    room = _room(moment)
    return sorted(name(pod) for pod in waiting(moment, scheduler) if _fits(moment, pod, room))


def waiting(moment: Moment, scheduler: str) -> Iterator[Json]:
    """Yield the pods that could be bound if there were devices."""
    for pod in moment.pods:
        spec, metadata = pod["spec"], pod["metadata"]
        barred = spec.get("nodeName") or spec.get("schedulingGates") or metadata.get("deletionTimestamp")
        if spec.get("schedulerName") == scheduler and is_alive(pod) and not barred:
            claims = [moment.claims.get(key or "") for key in wanted(pod)]
            if all(claim and not claim["metadata"].get("deletionTimestamp") for claim in claims):
                yield pod


def _room(moment: Moment) -> dict[str, dict[str, Fraction]]:
    """Return what is left on each node of what nodes have."""
    room = {key: allocatable(node) for key, node in moment.nodes.items()}
    for pod in moment.pods:
        here = room.get(pod["spec"].get("nodeName") or "")
        if here is not None and is_alive(pod):
            for key, amount in amounts(pod).items():
                here[key] = here.get(key, Fraction(0)) - amount
    return room


def _fits(moment: Moment, pod: Json, room: dict[str, dict[str, Fraction]]) -> bool:
    claims = [moment.claims[key] for key in dict.fromkeys(wanted(pod)) if key]
    fixed = [claim for claim in claims if is_allocated(claim) and reserved(claim) - {uid(pod)}]
    wishes = [wish for claim in claims if claim not in fixed for wish in _wishes(moment, claim)]
    by_number = moment.asked_by_number(pod)
    wishes += [
        Wish(_driver(moment, moment.extended[key], []), (key, str(number)))
        for key, amount in by_number.items()
        for number in range(int(amount))
    ]
    # What the pod has itself, elsewhere perhaps, can be taken back.
    own = {name(claim) for claim in claims if claim not in fixed} | {mapped(pod) or ""} | _made_for(moment, pod)
    free = _free(moment, own)
    return any(
        _has_room(node, pod, room[key], set(by_number))
        and all(selects(reach(claim), node) for claim in fixed)
        and Search(moment, free, _offered(moment, key, free)).succeeds(wishes)
        for key, node in moment.nodes.items()
    )


def _made_for(moment: Moment, pod: Json) -> set[str]:
    return {
        key
        for key, claim in moment.claims.items()
        if any(owner["uid"] == uid(pod) for owner in claim["metadata"].get("ownerReferences") or ())
    }


def _has_room(node: Json, pod: Json, room: dict[str, Fraction], by_number: set[str]) -> bool:
    spec, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    wish = pod["spec"].get("nodeSelector") or {}
    return (
        not spec.get("unschedulable")
        and not spec.get("taints")
        and not pod["spec"].get("affinity")
        and wish.items() <= labels.items()
        and all(amount <= room.get(key, 0) for key, amount in amounts(pod).items() if key not in by_number)
    )


def _free(moment: Moment, own: set[str]) -> Free:
    free = Free(set())
    for device, uses in moment.uses.items():
        others = [result for key, result in uses if key not in own]
        if others:
            free.taken.add(device)
            for counter, amount in moment.published.drawn(device).items():
                free.drawn[counter] += amount
        for result in others:
            for key, amount in result.consumed.items():
                free.consumed[device, key] += amount
    return free


def _offered(moment: Moment, node: str, free: Free) -> list[Device]:
    published = moment.published
    return [
        device
        for device in moment.usable[node]
        if not published.devices[device].get("taints") and (device not in free.taken or published.is_shared(device))
    ]


def _wishes(moment: Moment, claim: Json) -> Iterator[Wish]:
    spec = claim["spec"]["devices"]
    for request in spec.get("requests") or ():
        exactly = request.get("exactly")
        if not exactly or exactly.get("allocationMode", "ExactCount") != "ExactCount" or exactly.get("adminAccess"):
            raise Unjudged(f"claim {name(claim)}: request {request['name']}")
        driver = _driver(moment, exactly["deviceClassName"], exactly.get("selectors") or [])
        asked = ((exactly.get("capacity") or {}).get("requests") or {}).items()
        capacity = tuple((key, quantity(value)) for key, value in asked)
        groups = tuple(_groups(claim, request["name"]))
        for _ in range(exactly.get("count", 1)):
            yield Wish(driver, (name(claim), request["name"]), capacity, groups)


def _groups(claim: Json, request: str) -> Iterator[tuple[str, int, str]]:
    for number, constraint in enumerate(claim["spec"]["devices"].get("constraints") or ()):
        if "matchAttribute" not in constraint:
            raise Unjudged(f"claim {name(claim)}: constraint {number}")
        if request in (constraint.get("requests") or [request]):
            yield name(claim), number, constraint["matchAttribute"]


def _driver(moment: Moment, device_class: str, selectors: list[Json]) -> str:
    """Return the one driver that a class and a request select."""
    item = moment.classes.get(device_class)
    listed = [*((item or {}).get("spec", {}).get("selectors") or ()), *selectors]
    found = [BY_DRIVER.fullmatch(each["cel"]["expression"].strip()) for each in listed]
    drivers = {each[1] or each[2] for each in found if each}
    if len(drivers) != 1 or not all(found):
        raise Unjudged(f"class {device_class}: selectors")
    return str(drivers.pop())


class Search:
    """Every way to give each wish a device, until one is found."""

    def __init__(self, moment: Moment, free: Free, offered: list[Device]) -> None:
        self.published, self.free, self.offered = moment.published, free, offered
        self.steps = 0

    def succeeds(self, wishes: list[Wish]) -> bool:
        return self._given(wishes, [])

    def _given(self, wishes: list[Wish], chosen: list[Device]) -> bool:
        if len(chosen) == len(wishes):
            return True
        for device in self.offered:
            self.steps += 1
            if self.steps > MAX_STEPS:
                return False
            if self._goes(wishes, chosen, device) and self._given(wishes, [*chosen, device]):
                return True
        return False

    def _goes(self, wishes: list[Wish], chosen: list[Device], device: Device) -> bool:
        wish, before = wishes[len(chosen)], wishes[: len(chosen)]
        pairs = [*zip(before, chosen, strict=True)]
        if device.driver != wish.driver or any(
            other == device and (earlier.request == wish.request or not self.published.is_shared(device))
            for earlier, other in pairs
        ):
            return False
        # One request's devices in one order only.
        if pairs and pairs[-1][0].request == wish.request and pairs[-1][1] > device:
            return False
        return self._is_alike(pairs, wish, device) and self._is_there([*pairs, (wish, device)], device)

    def _is_alike(self, pairs: list[tuple[Wish, Device]], wish: Wish, device: Device) -> bool:
        for group in wish.groups:
            value = self.published.attribute(device, group[2])
            others = {self.published.attribute(other, group[2]) for earlier, other in pairs if group in earlier.groups}
            if value is None or others - {value}:
                return False
        return True

    def _is_there(self, pairs: list[tuple[Wish, Device]], device: Device) -> bool:
        """Tell whether capacities and counters last for all that is chosen."""
        drawn: dict[Counter, Fraction] = defaultdict(Fraction, self.free.drawn)
        for other in {other for _, other in pairs} - self.free.taken:
            for counter, amount in self.published.drawn(other).items():
                drawn[counter] += amount
        if any(amount > self.published.counters.get(key, 0) for key, amount in drawn.items()):
            return False
        return not self.published.is_shared(device) or all(
            self.free.consumed.get((device, key), Fraction(0))
            + sum(dict(wish.capacity).get(key, there) for wish, other in pairs if other == device)
            <= there
            for key, there in self.published.capacity(device).items()
        )
