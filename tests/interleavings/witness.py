"""What each binding had been told before it began: what was not true any more then, nothing may be allocated by.

What a watch tells later nobody can know. Nothing of the product is imported here but the API server of the play.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, Kind
from extender.demo.apiserver.server import ApiServer
from tests.interleavings.law import Device, Law, newest
from tests.interleavings.policies import policy_for
from tests.interleavings.stock import given, results
from tests.interleavings.terms import terms, terms_of, wishes

Json = dict[str, Any]
RESOURCES: Final = ("resourceslices", "devicetaintrules", "deviceclasses")
# Beside them: how many placement documents there had been.
DOCUMENTS: Final = "documents"
# Up to which revision each of them had been told.
Told = Mapping[str, int]


@dataclass(slots=True)
class Witness:
    """Bindings under way, by who carries them out and for which pod."""

    api: ApiServer
    _told: dict[tuple[object, str], Told] = field(default_factory=dict)

    def begins(self, who: object, pod: str, told: Told) -> None:
        """Remember what had been told when the binding of *pod* began; of one that goes on it is known."""
        self._told.setdefault((who, pod), told)

    def ends(self, who: object, pod: str) -> None:
        self._told.pop((who, pod), None)

    def told(self, who: object) -> dict[str, Told]:
        """Return what is known of the bindings of *who*, by pod."""
        return {pod: told for (other, pod), told in self._told.items() if other is who}

    def objections(
        self, told: Mapping[str, Told], preferred: Sequence[Json | None], before: Json, after: Json
    ) -> Iterator[str]:
        """Say what is wrong with what is allocated by the step from *before* to *after*, for all that was told.

        *preferred*: the placement documents of whoever did it, one after the other.
        """
        if results(before) or not results(after):
            return
        users = [entry["uid"] for entry in after["status"]["reservedFor"]]
        known = told.get(users[0])
        name = after["metadata"]["name"]
        if known is None:
            yield f"claim {name} is allocated by no binding"
        else:
            since = preferred[known[DOCUMENTS] - 1 :]
            yield from (f"claim {name}: {why}" for why in self._objections(after, known, since))

    def _objections(self, claim: Json, told: Told, preferred: Sequence[Json | None]) -> Iterator[str]:
        changed = {resource: self._changed(resource, told[resource]) for resource in RESOURCES}
        present = {resource: self.api.store.each(self._kind(resource)) for resource in RESOURCES}
        # What is left over of a pool says nothing of it, also where what counts has changed.
        present["resourceslices"] = newest(present["resourceslices"])
        settled = {
            resource: [item for item in present[resource] if _name(item) not in names]
            for resource, names in changed.items()
        }
        law = Law(*(settled[resource] for resource in RESOURCES))
        requests = {wish.name: wish.item for listed in wishes(claim) for wish in listed}
        yield from _untied(law, claim)
        if not any(_is_had(law, claim, document) for document in preferred):
            yield f"{', '.join('/'.join(device) for device in given(claim))} are given, which its policy does not have"
        for result in results(claim):
            request, device = requests[result["request"]], (result["driver"], result["pool"], result["device"])
            if bool(result.get("adminAccess")) != bool(request.get("adminAccess")):
                yield f"{'/'.join(device)} is given with the wrong access"
            if result.get("tolerations", []) != request.get("tolerations", []):
                yield f"{'/'.join(device)} is given with other tolerations than were asked for"
            if taint := law.barred(request, device):
                yield f"{'/'.join(device)} is given in spite of {taint}"
            if request["deviceClassName"] not in changed["deviceclasses"]:
                yield from _by_class(law, request, device, claim)

    def _changed(self, resource: str, revision: int) -> set[str]:
        """Name what has changed since *revision*."""
        return {name for _, name in self.api.store.changed(self._kind(resource), revision)}

    def _kind(self, resource: str) -> Kind:
        return self.api.kinds[DRA, "v1", resource]


def _is_had(law: Law, claim: Json, document: Json | None) -> bool:
    """Tell whether the policy of *claim* by *document* has its devices; of slices that have changed nobody knows."""
    policy, asked = policy_for(document, claim), dict[str, list[Device]]()
    for result, device in zip(results(claim), given(claim), strict=True):
        asked.setdefault(result["request"], []).append(device)
    return policy is not None and all(
        policy.has([(device[2], law.devices[device]) for device in devices])
        for devices in asked.values()
        if law.devices.keys() >= set(devices)
    )


def _untied(law: Law, claim: Json) -> Iterator[str]:
    """Say which constraints the devices of *claim* do not keep; those of a slice that has changed say nothing."""
    listed = [(result["request"], (result["driver"], result["pool"], result["device"])) for result in results(claim)]
    for term, _ in terms(claim):
        devices = [device for name, device in listed if term in terms_of(claim, name)]
        known = [law.devices.get(device) for device in devices]
        if None not in known and not term.holds(
            term.value(device[0], said or {}) for device, said in zip(devices, known, strict=True)
        ):
            names = ", ".join("/".join(device) for device in devices)
            yield f"{names} are given together, which {term.attribute} forbids"


def _by_class(law: Law, request: Json, device: Device, claim: Json) -> Iterator[str]:
    name = request["deviceClassName"]
    known = law.classes.get(name)
    if known is None:
        yield f"{'/'.join(device)} is given by class {name}, which is gone"
    elif device in law.devices and not law.selects(request, device):
        yield f"{'/'.join(device)} is given, which class {name} or its request does not select"
    given = [entry["opaque"] for entry in claim["status"]["allocation"]["devices"].get("config") or ()]
    if known is not None and any(entry["opaque"] not in given for entry in known.get("config") or ()):
        yield f"{'/'.join(device)} is not configured as class {name} says"


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])
