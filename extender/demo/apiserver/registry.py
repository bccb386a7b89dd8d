"""What requests do to objects: create, update and delete, with the checks that all kinds share."""

import string
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from random import SystemRandom
from uuid import uuid4

from extender.demo.apiserver.failure import Failure, already_exists, conflict, invalid, modified, not_found
from extender.demo.apiserver.kinds import Json, Kind
from extender.demo.apiserver.store import Key, Store
from extender.demo.apiserver.strategy import on_create, on_status, on_update, signed

CHANCE = SystemRandom()
ALPHABET = string.ascii_lowercase + string.digits
# What a write cannot change of an object's metadata.
KEPT = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "generateName", "managedFields")


class Registry:
    """Objects as requests see them. Every method answers with the object as it is then, or raises a Failure."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, kind: Kind, key: Key) -> Json:
        found = self.store.get(kind, key)
        if found is None:
            raise not_found(kind, key[1])
        return found

    def create(self, kind: Kind, namespace: str, item: Json) -> Json:
        """Store a new object, under a generated name where only its beginning is given."""
        metadata = dict(item.get("metadata") or {})
        if metadata.pop("resourceVersion", ""):
            raise Failure(400, "resourceVersion should not be set on objects to be created")
        if not metadata.get("name"):
            metadata["name"] = _generated(kind, metadata)
        if self.store.get(kind, (namespace, metadata["name"])):
            raise already_exists(kind, metadata["name"])
        metadata |= {"uid": str(uuid4()), "creationTimestamp": now(), "generation": 1}
        if namespace:
            metadata["namespace"] = namespace
        whole = {**item, "kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
        return self.store.put(kind, (namespace, metadata["name"]), on_create(kind, deepcopy(whole)))

    def update(  # noqa: PLR0913 - all that a request says
        self,
        kind: Kind,
        key: Key,
        part: str,
        change: Callable[[Json], Json],
        *,
        is_patch: bool = False,
        manager: str = "unknown",
    ) -> Json:
        """Put what *change* makes of an object in its place, or of its *part* "status"; *manager* is who does so."""
        old = self.get(kind, key)
        new = change(old)
        self._check(kind, old, new, is_patch=is_patch)
        written = on_status(kind, old, new) if part == "status" else on_update(kind, old, new)
        written = signed(kind, old, {**written, "metadata": _metadata(old, written)}, manager)
        if written == old:
            return old
        if written["metadata"].get("deletionTimestamp") and not written["metadata"].get("finalizers"):
            self.store.put(kind, key, written)
            return self.store.remove(kind, key)
        return self.store.put(kind, key, written)

    def delete(self, kind: Kind, key: Key, options: Json) -> Json:
        """Delete an object, or mark it where something keeps it: finalizers, or a node on which its pod runs."""
        old = self.get(kind, key)
        self._precondition(kind, old, options.get("preconditions") or {})
        runs = kind.name == "Pod" and "nodeName" in old["spec"] and options.get("gracePeriodSeconds") != 0
        if not runs and not old["metadata"].get("finalizers"):
            return self.store.remove(kind, key)
        if old["metadata"].get("deletionTimestamp"):
            return old
        marked = {**old, "metadata": {**old["metadata"], "deletionTimestamp": now()}}
        return self.store.put(kind, key, marked)

    def _check(self, kind: Kind, old: Json, new: Json, *, is_patch: bool) -> None:
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise Failure(400, f"the object provided is no {kind.name}")
        have, given = old["metadata"], new["metadata"]
        if given.get("name") != have["name"]:
            raise Failure(400, "the name of the object does not match the name on the URL")
        if given.get("uid", have["uid"]) != have["uid"]:
            if is_patch:
                raise invalid(kind, have["name"], "metadata.uid", "Invalid value: field is immutable")
            raise conflict(kind, have["name"], _wrong_uid(given["uid"], have["uid"]))
        if given.get("resourceVersion") not in (None, "", have["resourceVersion"]):
            raise modified(kind, have["name"])

    def _precondition(self, kind: Kind, old: Json, asked: Json, part: str = "") -> None:
        have = old["metadata"]
        if asked.get("uid") not in (None, "", have["uid"]):
            raise conflict(kind, have["name"], _wrong_uid(asked["uid"], have["uid"]), part)
        if asked.get("resourceVersion") not in (None, "", have["resourceVersion"]):
            raise conflict(kind, have["name"], _wrong_version(asked["resourceVersion"], have["resourceVersion"]), part)

    def bind(self, kind: Kind, key: Key, binding: Json) -> None:
        """Assign a pod to the node that *binding* names, which need not exist."""
        pod = self.get(kind, key)
        self._precondition(kind, pod, binding.get("metadata") or {}, "binding")
        if why := _unbindable(pod, key[1]):
            raise conflict(kind, key[1], why, "binding")
        given = (binding.get("metadata") or {}).get("annotations") or {}
        annotations = {**(pod["metadata"].get("annotations") or {}), **given}
        metadata = {**pod["metadata"], **({"annotations": annotations} if annotations else {})}
        spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
        self.store.put(kind, key, {**pod, "metadata": metadata, "spec": spec, "status": _scheduled(pod["status"])})


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _generated(kind: Kind, metadata: Json) -> str:
    if not metadata.get("generateName"):
        raise invalid(kind, "", "metadata.name", "Required value: name or generateName is required")
    return f"{metadata['generateName']}{''.join(CHANCE.choices(ALPHABET, k=5))}"


def _metadata(old: Json, new: Json) -> Json:
    kept = {name: old["metadata"][name] for name in KEPT if name in old["metadata"]}
    metadata = {**new["metadata"], **kept, "resourceVersion": old["metadata"]["resourceVersion"]}
    return {name: value for name, value in metadata.items() if value is not None}


def _unbindable(pod: Json, name: str) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""


def _scheduled(status: Json) -> Json:
    others = [entry for entry in status.get("conditions") or () if entry.get("type") != "PodScheduled"]
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}
    kept = {name: value for name, value in status.items() if name != "nominatedNodeName"}
    return {**kept, "conditions": [*others, condition]}


def _wrong_uid(asked: str, have: str) -> str:
    return f"Precondition failed: UID in precondition: {asked}, UID in object meta: {have}"


def _wrong_version(asked: str, have: str) -> str:
    return f"Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in object meta: {have}"
