"""What a pod asks for, was given and has, as it is written: while it is resized in place these are not the same."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Json = Mapping[str, Any]
# Requests as they are written, and those of a container with whether it is an init container and a sidecar.
Written = tuple[tuple[str, Any], ...]
Asking = tuple[bool, bool, Written]
Side = tuple[Asking, ...]

# What a pod can request as a whole; other resources are those of its containers, whatever else is written.
OF_PODS: Final = ("cpu", "memory")
OF_PODS_PREFIX: Final = "hugepages-"
STATUSES: Final = ("initContainerStatuses", "containerStatuses")
# Says of a pod that its node can never have what it asks for.
INFEASIBLE: Final = ("PodResizePending", "Infeasible")
UNTOLD: Final[Json] = {}


def sides_of(spec: Json, status: Json) -> tuple[Side, ...]:
    """Return what the pod asks for, was given and has, each once: kube-scheduler counts the most of each resource.

    What the node can never have does not count. Newer kubelets tell of the pod what others tell of its containers.
    """
    told = status.get("allocatedResources"), _had(status)
    is_told = None not in told
    sides = tuple(((False, False, items_of(each)),) for each in told) if is_told else _by_container(spec, status)
    asked = () if _is_vain(status) else (tuple(_asking(spec, requests_of)),)
    return tuple(dict.fromkeys((*asked, *sides)))


def _by_container(spec: Json, status: Json) -> tuple[Side, Side]:
    """Return what the containers were given, and have; those of which nothing is told, what they ask for."""
    statuses = {each.get("name"): each for name in STATUSES for each in status.get(name) or ()}
    is_vain = _is_vain(status)

    def given(container: Json) -> Written:
        amounts = statuses.get(container.get("name"), UNTOLD).get("allocatedResources")
        return items_of(amounts) if amounts is not None else () if is_vain else requests_of(container)

    def had(container: Json) -> Written:
        amounts = _had(statuses.get(container.get("name"), UNTOLD))
        return given(container) if amounts is None else items_of(amounts)

    return tuple(_asking(spec, given)), tuple(_asking(spec, had))


def wholes_of(spec: Json, status: Json) -> tuple[Written, ...]:
    """Return what the pod requests as a whole, was given and has, as far as that can be asked for as a whole."""
    whole = _of_pods(requests_of(spec))
    if not whole or status.get("resources") is None:
        return (whole,)
    told = _of_pods(items_of(status.get("allocatedResources"))), _of_pods(items_of(_had(status)))
    return told if _is_vain(status) else (whole, *told)


def _of_pods(written: Written) -> Written:
    return tuple((name, amount) for name, amount in written if name in OF_PODS or name.startswith(OF_PODS_PREFIX))


def requests_of(entry: Json) -> Written:
    """Return what a container requests, or a pod as a whole."""
    resources = entry.get("resources")
    return items_of(resources.get("requests")) if resources else ()


def items_of(amounts: Json | None) -> Written:
    return tuple(amounts.items()) if amounts else ()


def _asking(spec: Json, written: Callable[[Json], Written]) -> Iterator[Asking]:
    for entry in spec.get("initContainers") or ():
        yield True, entry.get("restartPolicy") == "Always", written(entry)
    for entry in spec.get("containers") or ():
        yield False, False, written(entry)


def _had(status: Json) -> Json | None:
    amounts: Json | None = (status.get("resources") or UNTOLD).get("requests")
    return amounts


def _is_vain(status: Json) -> bool:
    return any((each.get("type"), each.get("reason")) == INFEASIBLE for each in status.get("conditions") or ())
