"""Extended resources that device classes stand behind: the claim that nobody wrote, and who uses what of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.question import RESULTS
from extender.model.claim import ClaimSpec, DeviceClass, DeviceRequest, RequestSlot
from extender.model.frozen import dataclass
from extender.model.names import ClassName, NodeName
from extender.model.node import Container, Node, Pod

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
# What a pod is told of in place of the claim that nobody wrote, and the names of the requests in it: whatever else may
# stand in a text, these are short.
UNMADE: Final = "the claim for extended resources"
REQUEST: Final = re.compile(r"container-(\d{1,9})-request-(\d{1,9})")
Classes = Mapping[str, ClassName]
# Nodes, and which of some extended resources they serve by devices.
Groups = tuple[tuple[Flags, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A container's extended resource, and the request of the claim that serves it."""

    container: str
    resource: str
    request: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a pod's claim for some of its extended resources says."""

    spec: ClaimSpec
    mappings: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one container needs beside what it can use of others."""

    name: str
    count: int


def served_by_classes(classes: Iterable[DeviceClass]) -> Classes:
    """Map extended resources to the classes behind them: the newest where several claim one, then the first by name."""
    found: dict[str, ClassName] = {}
    # Stable sorts: by name backwards first, so that of equally new ones the first by name is written last.
    by_name = sorted(classes, key=lambda item: item.name, reverse=True)
    for item in sorted(by_name, key=lambda item: item.created):
        found[IMPLICIT + item.name] = item.name
        if item.extended_resource:
            found[item.extended_resource] = item.name
    return found


def wanted(pod: Pod, classes: Classes) -> tuple[str, ...]:
    """Return which of its extended resources *pod* wants that classes stand behind, sorted."""
    if not classes:
        return ()
    asked = {name for item in pod.containers for name, amount in item.requests if amount.nanos > 0 and name in classes}
    return tuple(sorted(asked))


def through_devices(resources: tuple[str, ...], node: Node) -> tuple[str, ...]:
    """Return which of *resources* the node has no device plugin for."""
    plugged = [name for name, amount in node.allocatable if name in resources and amount.nanos > 0]
    return tuple(name for name in resources if name not in plugged) if plugged else resources


def by_service(names: Sequence[NodeName], nodes: Mapping[NodeName, Node], resources: tuple[str, ...]) -> Groups:
    """Group the nodes by which of *resources* they serve by devices, rather than by a device plugin."""
    places: dict[tuple[str, ...], list[int]] = {}
    for index, name in enumerate(names):
        places.setdefault(through_devices(resources, nodes[name]), []).append(index)
    return tuple((_flags(len(names), group), served) for served, group in places.items())


def _flags(count: int, places: Sequence[int]) -> Flags:
    flags = np.zeros(count, np.bool_)
    flags[places] = True
    flags.setflags(write=False)
    return flags


def unmade_name(pod: Pod) -> str:
    """Return how the claim of *pod* for extended resources is called as long as there is none."""
    return f"{pod.key.name}-extended-resources"


def in_words(text: str, pod: Pod) -> str:
    """Say in *text* what *pod* asks for in place of the claim that nobody wrote, and of its requests."""
    name = unmade_name(pod)
    if name not in text:
        return text
    several = rf"{REQUEST.pattern}(?:(?:, | and ){REQUEST.pattern})*"
    # After an "and" it is the last of several claims.
    written = re.compile(rf"(?:claim |(?<= and )){re.escape(name)}(?:, requests? ({several}))?(?![-\w]|\.\w)")

    def told(found: re.Match[str]) -> str:
        return REQUEST.sub(lambda each: _asked(pod.containers, *map(int, each.groups())), found[1] or "") or UNMADE

    return written.sub(told, text)


def _asked(containers: Sequence[Container], index: int, place: int) -> str:
    """Say what a container asks for by one of its resources, of which there may be thousands in a pod."""
    item = containers[index] if index < len(containers) else None
    if item is None or place >= len(item.requests):
        return UNMADE
    return f"{sorted(name for name, _ in item.requests)[place]} of container {item.name}"


def _request_name(container: int, place: int) -> str:
    return f"container-{container}-request-{place}"


def hidden_claim(pod: Pod, resources: Sequence[str], classes: Classes) -> Hidden:
    """Write the claim of *pod* for *resources*."""
    requests: list[RequestSlot] = []
    mappings: list[Use] = []
    for resource in sorted(resources):
        parts, uses = _of_resource(pod.containers, resource, RESULTS - len(requests))
        requests.extend(_request(part, classes[resource]) for part in parts)
        mappings.extend(uses)
    return Hidden(ClaimSpec(requests=tuple(sorted(requests, key=lambda slot: slot.name))), tuple(mappings))


def _of_resource(containers: Sequence[Container], resource: str, most: int) -> tuple[list[_Part], list[Use]]:
    """Say what to ask for, and who uses it: containers that last ask for themselves, init containers borrow.

    Where these ask for more than the *most* that a claim can be given nobody borrows: thousands could, each of all.
    """
    lasting: list[_Part | None] = [None] * len(containers)
    uses: list[Use] = []
    for index, item in enumerate(containers):
        if not item.is_init or item.is_sidecar:
            lasting[index], used = _of_container(containers, index, resource, ())
            uses.extend(used)
    asked = [part for part in lasting if part]
    if len(asked) > most:
        return asked, uses
    passing: list[_Part] = []
    borrowed: list[Use] = []
    for index, item in enumerate(containers):
        if item.is_init and not item.is_sidecar:
            part, used = _of_container(containers, index, resource, lasting[index:])
            passing.extend([part] if part else [])
            borrowed.extend(used)
    largest = max(passing, key=lambda part: part.count, default=None)
    own = {part.name for part in passing}
    # Init containers run one after the other: the largest request serves them all.
    shared = [Use(use.container, resource, largest.name) if largest and use.request in own else use for use in borrowed]
    return [*([largest] if largest else []), *asked], uses + shared


def _of_container(
    containers: Sequence[Container], index: int, resource: str, usable: Sequence[_Part | None]
) -> tuple[_Part | None, list[Use]]:
    """Say what one container needs of *resource* beyond *usable*, and what it uses."""
    item = containers[index]
    amount = dict(item.requests).get(resource)
    needed = (amount.as_int64 if amount else None) or 0
    uses: list[Use] = []
    if needed == 0:
        return None, uses
    for part in filter(None, usable):
        uses.append(Use(item.name, resource, part.name))
        needed -= part.count
        if needed <= 0:
            return None, uses
    place = sorted(name for name, _ in item.requests).index(resource)
    own = _Part(_request_name(index, place), needed)
    return own, [*uses, Use(item.name, resource, own.name)]


def _request(part: _Part, class_name: ClassName) -> RequestSlot:
    exactly = DeviceRequest(name=part.name, class_name=class_name, mode="ExactCount", count=part.count)
    return RequestSlot(name=part.name, exactly=exactly)
