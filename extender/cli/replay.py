"""A question out of production: a folder of `kubectl get -o json` lists, and a claim or a pod of theirs."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from extender.allocation.features import ALL
from extender.allocation.tainting import Tainting
from extender.allocation.usage import holds_of
from extender.cli.case import Case, usage_by_device
from extender.cli.documents import NotJson, documents
from extender.model.claim import ClaimTemplate, DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node, Pod, PodClaim
from extender.model.parse import Noun, parse_list
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule

N = TypeVar("N")


class Unanswerable(ValueError):  # noqa: N818 - tells the user what to give instead
    """The folder does not hold what the question needs."""


@dataclass(slots=True)
class Recording:
    """Everything that a folder holds, and complaints about what could not be read."""

    nouns: list[Noun] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def all(self, kind: type[N]) -> tuple[N, ...]:
        return tuple(noun for noun in self.nouns if isinstance(noun, kind))


def recording(folder: Path) -> Recording:
    """Read every .json file of *folder*."""
    found = Recording()
    files = sorted(folder.glob("*.json"))
    if not files:
        raise Unanswerable(f"{folder}: holds no .json file")
    for file in files:
        for item in _objects(file):
            if isinstance(item, Problem | NotJson):
                found.complaints.append(f"{file.name}: {item}")
            else:
                found.nouns.append(item)
    return found


def _objects(file: Path) -> Iterator[Noun | Problem | NotJson]:
    for document in documents(file.read_bytes()):
        if isinstance(document, NotJson):
            yield document
        else:
            yield from parse_list(document)


def case_of_claim(found: Recording, key: ObjectKey) -> Case:
    """Ask for one claim, as if it held nothing."""
    claim = _named(found.all(ResourceClaim), key, "claim")
    return _case(found, str(key), (replace(claim, allocation=None),))


def case_of_pod(found: Recording, key: ObjectKey) -> Case:
    """Ask for all claims of a pod that hold nothing yet, on the nodes where those that do can be used."""
    pod = _named(found.all(Pod), key, "pod")
    claims = tuple(claim for entry in pod.claims for claim in _resolved(found, pod, entry))
    return _case(found, str(key), claims)


def _named(nouns: tuple[N, ...], key: ObjectKey, word: str) -> N:
    for noun in nouns:
        if getattr(noun, "key", None) == key:
            return noun
    raise Unanswerable(f"there is no {word} {key}")


def _resolved(found: Recording, pod: Pod, entry: PodClaim) -> Iterator[ResourceClaim]:
    """Yield the claim behind an entry: by name, made from its template, or as the template would make it."""
    if entry.claim_name:
        yield _named(found.all(ResourceClaim), ObjectKey(pod.key.namespace, entry.claim_name), "claim")
        return
    status = next((status for status in pod.claim_statuses if status.name == entry.name), None)
    if status is not None:
        # An entry for which no claim was needed names none.
        if status.claim_name:
            yield _named(found.all(ResourceClaim), ObjectKey(pod.key.namespace, status.claim_name), "claim")
        return
    if not entry.template_name:
        raise Unanswerable(f"pod {pod.key}: resourceClaims[{entry.name}] names neither a claim nor a template")
    template = _named(found.all(ClaimTemplate), ObjectKey(pod.key.namespace, entry.template_name), "template")
    key = ObjectKey(pod.key.namespace, f"{pod.key.name}-{entry.name}")
    yield ResourceClaim(key=key, uid=Uid(""), spec=template.spec)


def _case(found: Recording, name: str, asked: tuple[ResourceClaim, ...]) -> Case:
    keys = {claim.key for claim in asked if claim.allocation is None}
    holding = (claim.allocation for claim in found.all(ResourceClaim) if claim.allocation and claim.key not in keys)
    classes = {item.name: item for item in found.all(DeviceClass)}
    nodes = found.all(Node)
    if not nodes:
        raise Unanswerable("there are no nodes")
    return Case(
        name=name,
        nodes=nodes,
        classes=classes,
        slices=found.all(ResourceSlice),
        claims=asked,
        tainting=Tainting(found.all(DeviceTaintRule), classes),
        usage=usage_by_device(hold for held in holding for hold in holds_of(held)),
        features=ALL,
    )
