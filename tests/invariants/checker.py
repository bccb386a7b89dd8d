"""The rules. *At once*: at no moment is anything given twice, and a bound pod always has its devices on its node.

*In time*: no claim keeps devices that no pod wants, no pod waits that fits, nothing is held for ever.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from tests.invariants.published import Counter, Published
from tests.invariants.reading import (
    Device,
    Json,
    Result,
    allocatable,
    amounts,
    is_alive,
    is_allocated,
    mapped,
    name,
    named,
    reach,
    reserved,
    results,
    selects,
    uid,
    wanted,
)
from tests.invariants.renaming import bound_with

Use = tuple[str, Result]


class Moment:
    """A cluster at one moment: its objects as one revision of the API server has them."""

    def __init__(
        self,
        *,
        pods: Iterable[Json] = (),
        claims: Iterable[Json] = (),
        slices: Iterable[Json] = (),
        nodes: Iterable[Json] = (),
        classes: Iterable[Json] = (),
    ) -> None:
        self.pods = [*pods]
        self.claims = named(claims)
        self.published = Published(slices)
        self.nodes = named(nodes)
        self.classes = named(classes)
        self.extended = {
            spec["extendedResourceName"]: key
            for key, item in self.classes.items()
            if (spec := item.get("spec") or {}).get("extendedResourceName")
        }

    @cached_property
    def usable(self) -> dict[str, list[Device]]:
        """The devices that can be used on each node, in one order."""
        devices = sorted(self.published.devices)
        return {
            key: [device for device in devices if self.published.is_on(device, node)]
            for key, node in self.nodes.items()
        }

    @cached_property
    def uses(self) -> dict[Device, list[Use]]:
        """Each device with the claims that have it; one looked at by an administrator is not taken."""
        found: dict[Device, list[Use]] = defaultdict(list)
        for key, claim in self.claims.items():
            for result in results(claim):
                if not result.is_admin:
                    found[result.device].append((key, result))
        return found

    def asked_by_number(self, pod: Json) -> dict[str, Fraction]:
        """Return the extended resources of *pod* that devices stand for."""
        return {key: value for key, value in amounts(pod).items() if key in self.extended and value}


def at_once(moment: Moment) -> list[str]:
    """Name everything that must not be at any moment."""
    return [*doubles(moment), *overdrawn(moment), *bare(moment)]


def doubles(moment: Moment) -> Iterator[str]:
    """Name the devices that are given twice, though they are for one."""
    for device, uses in moment.uses.items():
        if len(uses) > 1 and not moment.published.is_shared(device):
            yield f"device {device} is in {' and '.join(sorted(key for key, _ in uses))}"


def doubles_in_use(moment: Moment) -> Iterator[str]:
    """Name the devices that bound pods have by two claims: two allocators may write both, but not bind by both."""
    used = in_use(moment)
    for device, uses in moment.uses.items():
        claims = sorted(key for key, _ in uses if key in used)
        if len(claims) > 1 and not moment.published.is_shared(device):
            yield f"device {device} is used by {' and '.join(claims)}"


def in_use(moment: Moment) -> set[str | None]:
    """Return the claims that bound pods name; what is reserved for a pod that does not name it, it does not use."""
    bound = [pod for pod in moment.pods if pod["spec"].get("nodeName") and is_alive(pod)]
    return {key for pod in bound for key in (*wanted(pod), mapped(pod))}


def overdrawn(moment: Moment) -> Iterator[str]:
    """Name the shared devices and the counters of which more is taken than there is."""
    drawn: dict[Counter, Fraction] = defaultdict(Fraction)
    for device, uses in moment.uses.items():
        yield from _over_capacity(moment.published, device, uses)
        for counter, amount in moment.published.drawn(device).items():
            drawn[counter] += amount
    for counter, amount in drawn.items():
        there = moment.published.counters.get(counter, Fraction(0))
        if amount > there:
            yield f"counter {'/'.join(counter)}: {amount} of {there} taken"


def _over_capacity(published: Published, device: Device, uses: list[Use]) -> Iterator[str]:
    if not published.is_shared(device):
        return
    for key, there in published.capacity(device).items():
        taken = sum((result.consumed.get(key, Fraction(0)) for _, result in uses), Fraction(0))
        if taken > there:
            yield f"device {device}: {taken} of {there} {key} taken"


def bare(moment: Moment) -> Iterator[str]:
    """Name the bound pods that lack devices, or have some that they cannot use."""
    for pod in moment.pods:
        node = pod["spec"].get("nodeName")
        if node and is_alive(pod) and not pod["metadata"].get("deletionTimestamp"):
            yield from (f"pod {name(pod)} on {node}: {why}" for why in _lacks(moment, pod, node))


def _lacks(moment: Moment, pod: Json, node: str) -> Iterator[str]:
    named_claims: list[str | None] = [*wanted(pod)]
    by_number = {key for key in moment.asked_by_number(pod) if not _plugin_serves(moment, node, key)}
    if by_number:
        named_claims.append(mapped(pod))
    for given in named_claims:
        key = bound_with(moment.claims, pod, given)
        claim = moment.claims.get(key or "")
        if claim is None:
            yield f"claim {key} is not there"
        elif not is_allocated(claim):
            yield f"claim {key} has no devices"
        elif uid(pod) not in reserved(claim):
            yield f"claim {key} is not reserved for it"
        else:
            yield from _unusable(moment, claim, node)


def _plugin_serves(moment: Moment, node: str, resource: str) -> bool:
    return node in moment.nodes and bool(allocatable(moment.nodes[node]).get(resource))


def _unusable(moment: Moment, claim: Json, node: str) -> Iterator[str]:
    here = moment.nodes.get(node)
    if here is None:
        yield "there is no such node"
    elif not selects(reach(claim), here):
        yield f"claim {name(claim)} is allocated for other nodes"
    else:
        for result in results(claim):
            if not moment.published.is_on(result.device, here):
                yield f"claim {name(claim)} has {result.device}, which is not there"
    yield from _short(claim)


def _short(claim: Json) -> Iterator[str]:
    """Say of which request there are fewer devices than asked for."""
    given = [result.request for result in results(claim)]
    for request in claim["spec"]["devices"].get("requests") or ():
        exactly = request.get("exactly") or {}
        fewest = exactly.get("count", 1) if exactly.get("allocationMode", "ExactCount") == "ExactCount" else 1
        found = sum(each.partition("/")[0] == request["name"] for each in given)
        if found < fewest:
            yield f"claim {name(claim)} has {found} devices for {request['name']}, not {fewest}"


def unwanted(moment: Moment) -> Iterator[str]:
    """Name the claims that have devices, while no living pod has a use for them."""
    living = [pod for pod in moment.pods if is_alive(pod)]
    uids = {uid(pod) for pod in living}
    wishes = {key for pod in living for key in (*wanted(pod), mapped(pod))}
    for key, claim in moment.claims.items():
        owners = {owner["uid"] for owner in claim["metadata"].get("ownerReferences") or ()}
        if is_allocated(claim) and key not in wishes and not (reserved(claim) | owners) & uids:
            yield f"claim {key} ({uid(claim)})"


@dataclass(slots=True)
class Lingering:
    """What may be for a while, and since when it was seen to be, look after look."""

    since: dict[str, float] = field(default_factory=dict)

    def look(self, found: Iterable[str], now: float) -> None:
        self.since = {what: self.since.get(what, now) for what in found}

    def overdue(self, limit: float, now: float) -> list[str]:
        """Name what was there at every look for longer than *limit*."""
        return sorted(what for what, since in self.since.items() if now - since > limit)


def counted(metrics: str, metric: str) -> float:
    """Add up a metric over all its labels, from the text that Prometheus reads."""
    return sum(float(found) for found in re.findall(rf"^{metric}(?:\{{.*\}})? (\S+)$", metrics, re.MULTILINE))


def held(metrics: str) -> float:
    """Return how many claims the extender says that it holds devices for."""
    if "dra_extender_holds" not in metrics:
        raise ValueError("no metric dra_extender_holds")
    return counted(metrics, "dra_extender_holds")
