"""Stands in for the controllers that look after claims: makes them from templates, and lets go of them afterwards."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import DRA, POD, Json
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import Key, key_of

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
FINISHED: Final = ("Succeeded", "Failed")


class Controller:
    """Puts right what it finds, whenever something happens to pods, claims or templates."""

    def __init__(self, server: ApiServer) -> None:
        self._registry = server.registry
        self._store = server.store
        self._claim = server.kinds[DRA, "v1", "resourceclaims"]
        self._since = 0
        self._uids: dict[Key, str] = {}
        self._template = server.kinds[DRA, "v1", "resourceclaimtemplates"]

    async def run(self) -> NoReturn:
        """Reconcile for ever."""
        woken = self._store.listen(POD, self._claim, self._template)
        try:
            while True:
                woken.clear()
                self.reconcile()
                await woken.wait()
        finally:
            self._store.leave(woken)

    def reconcile(self) -> None:
        """Look after what has changed since the last time."""
        since, self._since = self._since, self._store.revision
        if self._store.changed(self._template, since):
            since = 0
        pods = self._store.changed(POD, since)
        for key in sorted(pods):
            self._attempt(self._make, self._store.get(POD, key))
        for key in sorted(self._store.changed(self._claim, 0 if self._have_ended(pods) else since)):
            self._attempt(self._release, self._store.get(self._claim, key))
            self._attempt(self._collect, self._store.get(self._claim, key))

    def _have_ended(self, pods: Iterable[Key]) -> bool:
        """Tell whether any of *pods* needs its devices no more; another of its name may be there by now."""
        is_any = False
        for key in pods:
            pod, before = self._store.get(POD, key), self._uids.pop(key, None)
            is_any = is_any or _is_done(pod)
            if pod is not None:
                self._uids[key] = pod["metadata"]["uid"]
                is_any = is_any or before not in (None, self._uids[key])
        return is_any

    def _attempt(self, act: Callable[[Json], None], item: Json | None) -> None:
        """Act on *item* if it is still there. Somebody else may have been faster: the next event brings us back."""
        if item is not None:
            with suppress(Failure):
                act(item)

    def _make(self, pod: Json) -> None:
        """Make the claims that *pod* has templates for and that its status does not name yet."""
        if _is_done(pod):
            return
        made = {entry["name"] for entry in pod["status"].get("resourceClaimStatuses") or ()}
        for entry in pod["spec"].get("resourceClaims") or ():
            if entry.get("resourceClaimTemplateName") and entry["name"] not in made:
                status = self._made(pod, entry)
                self._registry.update(POD, key_of(pod), "status", partial(_with_claim, status=status))

    def _made(self, pod: Json, entry: Json) -> Json:
        namespace, name = key_of(pod)
        template = self._registry.get(self._template, (namespace, entry["resourceClaimTemplateName"]))["spec"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": True}
        given = template.get("metadata") or {}
        metadata = {
            **given,
            "generateName": f"{name}-{entry['name']}-",
            "annotations": {**(given.get("annotations") or {}), CLAIM_NAME: entry["name"]},
            "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
        }
        made = self._registry.create(self._claim, namespace, {"metadata": metadata, "spec": template["spec"]})
        return {"name": entry["name"], "resourceClaimName": made["metadata"]["name"]}

    def _release(self, claim: Json) -> None:
        """Drop reservations of pods that need them no more; with the last one the allocation goes too."""
        status = claim["status"]
        reserved = status.get("reservedFor") or []
        kept = [entry for entry in reserved if not self._has_ended(claim, entry)]
        # One that is being deleted is let go of also where nobody ever reserved it.
        is_abandoned = bool(claim["metadata"].get("deletionTimestamp")) and not kept
        if kept == reserved and not is_abandoned:
            return
        is_free = not kept and FINALIZER in (claim["metadata"].get("finalizers") or ())
        left = {name: value for name, value in status.items() if name not in ("reservedFor", "allocation", "devices")}
        new = left if is_free else {**status, "reservedFor": kept}
        self._registry.update(self._claim, key_of(claim), "status", lambda old: {**old, "status": new})
        if is_free:
            self._registry.update(self._claim, key_of(claim), "", _without_finalizer)

    def _collect(self, claim: Json) -> None:
        """Delete a claim whose pod is gone or finished."""
        owners = claim["metadata"].get("ownerReferences") or []
        if owners and all(self._has_ended(claim, owner) for owner in owners):
            self._registry.delete(self._claim, key_of(claim), {})
        if claim["metadata"].get("deletionTimestamp") and not claim["status"].get("allocation"):
            self._registry.update(self._claim, key_of(claim), "", _without_finalizer)

    def _has_ended(self, claim: Json, named: Json) -> bool:
        """Tell whether the pod that *claim* names needs it no more."""
        pod = self._store.get(POD, (key_of(claim)[0], named["name"]))
        return pod is None or pod["metadata"]["uid"] != named["uid"] or _is_done(pod)


def _with_claim(pod: Json, status: Json) -> Json:
    listed = [*(pod["status"].get("resourceClaimStatuses") or ()), status]
    return {**pod, "status": {**pod["status"], "resourceClaimStatuses": listed}}


def _without_finalizer(claim: Json) -> Json:
    kept = [name for name in claim["metadata"].get("finalizers") or () if name != FINALIZER]
    return {**claim, "metadata": {**claim["metadata"], "finalizers": kept}}


def _is_done(pod: Json | None) -> bool:
    """Tell whether *pod* needs its devices no more: it is gone, has finished, or goes without having had a node."""
    if pod is None:
        return True
    is_going = bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")
    return is_going or pod["status"].get("phase") in FINISHED
