"""A question out of production: a folder of `kubectl get -o json` lists, and a claim or a pod of theirs."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from extender.allocation.extended import served_by_classes, wanted
from extender.allocation.features import Features
from extender.allocation.tainting import Tainting
from extender.allocation.usage import holds_of
from extender.cli.case import Case, usage_by_device
from extender.cli.documents import NotJson, objects
from extender.model.change import Changed, problem_in
from extender.model.claim import ClaimTemplate, DeviceClass, OwnerReference, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node, Pod, PodClaim, PodClaimStatus
from extender.model.parse import Readable, key_of
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule
from extender.scheduling.needs import Needs
from extender.state.claims import Asked, Claims
from extender.state.domain import Domain
from extender.state.ownership import Ownership

N = TypeVar("N")
# Upstream's name for the claim that serves a pod's extended resources; no entry of a pod can be called so.
EXTENDED: Final = "<extended-resources>"


class Unanswerable(ValueError):  # noqa: N818 - tells the user what to give instead
    """The folder does not hold what the question needs."""


@dataclass(slots=True)
class Recording:
    """Everything that a folder holds, and complaints about what could not be read."""

    nouns: list[Readable] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def all(self, kind: type[N]) -> tuple[N, ...]:
        return tuple(noun for noun in self.nouns if isinstance(noun, kind))


def recording(folder: Path) -> Recording:
    """Read every .json file of *folder*. What is there more than once counts once, as it was read last."""
    found = Recording()
    known: dict[tuple[type, ObjectKey], Readable] = {}
    files = sorted(folder.glob("*.json"))
    if not files:
        raise Unanswerable(f"{folder}: {'holds no .json file' if folder.is_dir() else 'is no folder'}")
    for file in files:
        for item in objects(file.read_bytes()):
            complaint = item if isinstance(item, NotJson) else problem_in(item)
            if complaint:
                found.complaints.append(f"{file.name}: {complaint}")
            if not isinstance(item, Problem | NotJson):
                kind, key = type(item), key_of(item)
                if known.get((kind, key), item) != item:
                    found.complaints.append(
                        f"{file.name}: {kind.__name__} {key} was read before, and differs from this"
                    )
                known[kind, key] = item
    found.nouns.extend(known.values())
    return found


def owned(found: Recording, taint: str) -> Recording:
    """Return *found* as the owner of the devices sees it: without the taint of the key *taint*, which is for others."""
    ownership = Ownership(Domain(taint=taint))
    nouns: list[Readable] = []
    for noun in found.nouns:
        if not isinstance(noun, DeviceTaintRule | ResourceSlice):
            nouns.append(noun)
            continue
        told = ownership.told(Changed(noun))
        if isinstance(told, Changed) and not isinstance(told.what, Problem):
            nouns.append(told.what)
    return Recording(nouns, found.complaints)


def pod_of(found: Recording, key: ObjectKey) -> Pod:
    """Return a pod that names its claims as they are called here, made or not."""
    pod = _named(found.all(Pod), key, "pod")
    fresh = (PodClaimStatus(name=name, claim_name=made.name) for name, _, made in _unmade(pod))
    return replace(pod, claim_statuses=(*pod.claim_statuses, *fresh))


def pod_for(claim: ObjectKey, scheduler: str) -> Pod:
    """Return a pod of *scheduler* that asks for *claim* and nothing else."""
    entry = PodClaim(name=claim.name, claim_name=claim.name)
    return Pod(key=claim, uid=Uid(str(claim)), scheduler=scheduler, claims=(entry,))


def case_of_claim(found: Recording, key: ObjectKey, features: Features) -> Case:
    """Ask for one claim, as if it held nothing."""
    claim = _named(found.all(ResourceClaim), key, "claim")
    return _case(found, str(key), (replace(claim, allocation=None),), features)


def case_of_pod(found: Recording, key: ObjectKey, features: Features) -> Case:
    """Ask for all claims of a pod that hold nothing yet, made or not, on the nodes where those that do can be used."""
    known = Claims()
    for claim in (*found.all(ResourceClaim), *_made(found, _named(found.all(Pod), key, "pod"))):
        known.put(claim)
    pod = _with_extended(pod_of(found, key))
    asked = known.asked_by(pod)
    if not isinstance(asked, Asked):
        raise Unanswerable(f"pod {key}: {asked.message}")
    claims = {claim.key.name: claim for claim in (*asked.allocated, *asked.pending)}
    # In the order of the pod, but for two entries that name one claim: that is allocated once.
    statuses = {status.name: status.claim_name for status in pod.claim_statuses}
    names = dict.fromkeys(entry.claim_name or statuses.get(entry.name) for entry in pod.claims)
    case = _case(found, str(key), tuple(claims[name] for name in names if name in claims), features)
    return case if pod.extended_claim else replace(case, unmade=_unmade_extended(pod, case))


def _unmade_extended(pod: Pod, case: Case) -> Needs | None:
    """Say what a pod needs without a claim: extended resources that device classes stand behind."""
    classes = served_by_classes(case.classes.values())
    extended = wanted(pod, classes)
    return Needs(pod, extended=extended, classes=classes) if extended else None


def _with_extended(pod: Pod) -> Pod:
    """Let the claim that was made for extended resources count as one made from a template, after the others."""
    if pod.extended_claim is None:
        return pod
    entry = PodClaim(name=EXTENDED, template_name=EXTENDED)
    status = PodClaimStatus(name=EXTENDED, claim_name=pod.extended_claim)
    return replace(pod, claims=(*pod.claims, entry), claim_statuses=(*pod.claim_statuses, status))


def _named(nouns: tuple[N, ...], key: ObjectKey, word: str) -> N:
    for noun in nouns:
        if getattr(noun, "key", None) == key:
            return noun
    raise Unanswerable(f"there is no {word} {key}")


def _unmade(pod: Pod) -> Iterator[tuple[str, str, ObjectKey]]:
    """Yield the entries that wait for a claim from a template: name, template, and what the claim is called here."""
    made = {status.name for status in pod.claim_statuses}
    for entry in pod.claims:
        if entry.template_name and entry.name not in made:
            key = ObjectKey(pod.key.namespace, f"{pod.key.name}-{entry.name}")
            yield entry.name, entry.template_name, key


def _made(found: Recording, pod: Pod) -> Iterator[ResourceClaim]:
    """Yield the claims that would be made for a pod."""
    owner = OwnerReference(kind="Pod", uid=pod.uid)
    for _, name, key in _unmade(pod):
        template = _named(found.all(ClaimTemplate), ObjectKey(pod.key.namespace, name), "template")
        named = template.annotations
        yield ResourceClaim(key=key, uid=Uid(str(key)), spec=template.spec, owners=(owner,), annotations=named)


def _case(found: Recording, name: str, asked: tuple[ResourceClaim, ...], features: Features) -> Case:
    pending = {(claim.key, claim.uid) for claim in asked if claim.allocation is None}
    others = (claim for claim in found.all(ResourceClaim) if (claim.key, claim.uid) not in pending)
    holding = (claim.allocation for claim in others if claim.allocation)
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
        usage=usage_by_device(
            hold for held in holding for hold in holds_of(held, sharing=features.consumable_capacity)
        ),
        features=features,
    )
