"""Claims that are yet to be made from templates, as others were made before: pods can be planned sooner.

It is a guess, for a template may be another one by now. Nothing is written by it; what is made is looked at itself.
"""

from collections.abc import Iterator
from typing import Final

from extender.model.claim import ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod, PodClaim
from extender.state.claims import Claims
from extender.state.ledger import UNMADE
from extender.state.pods import Pods
from extender.topology.memo import Memo
from extender.topology.policies import ANNOTATION

# On a claim that was made from a template: for which entry of the pod.
ENTRY: Final = "resource.kubernetes.io/pod-claim-name"
# Templates of which it is remembered which claim was made from them last.
KNOWN: Final = 4096


class Templates:
    """Remembers of each template one claim that was made from it, for as long as that is there. One writer."""

    def __init__(self, claims: Claims, pods: Pods) -> None:
        self._claims, self._pods = claims, pods
        self._made: Memo[ObjectKey, Uid] = Memo(KNOWN)

    def saw(self, claim: ResourceClaim) -> None:
        """Remember which template *claim* was made from, if the pod is known that it was made for."""
        name = dict(claim.annotations).get(ENTRY)
        if name is None:
            return
        for owner in claim.owners:
            pod = self._pods.with_uid(owner.uid) if owner.is_controller else None
            entry = next((entry for entry in pod.claims if entry.name == name), None) if pod else None
            if entry is not None and entry.template_name:
                self._made[ObjectKey(claim.key.namespace, entry.template_name)] = claim.uid

    def foreseen(self, pod: Pod, entry: PodClaim) -> ResourceClaim | None:
        """Return what will be made for *entry* of *pod*; None where nothing is known of its template."""
        made = self._made.get(ObjectKey(pod.key.namespace, entry.template_name or ""))
        like = self._claims.with_uid(made) if made else None
        if like is None:
            return None
        key = ObjectKey(pod.key.namespace, f"{pod.key.name}-{entry.name}")
        policy = tuple(item for item in like.annotations if item[0] == ANNOTATION)
        uid = Uid(f"{UNMADE}{pod.uid}/{entry.name}")
        return ResourceClaim(key=key, uid=uid, spec=like.spec, annotations=policy, is_classic=like.is_classic)

    def last(self, pod: Pod) -> tuple[Uid, ...]:
        """Name what was made last from the templates from which something has yet to be made for *pod*."""
        keys = (ObjectKey(pod.key.namespace, entry.template_name or "") for entry in unnamed_entries(pod))
        return tuple(self._made.get(key, Uid("")) for key in keys)

    def doubt(self, pod: Pod) -> None:
        """Forget what was known of the templates of *pod* from which nothing is made; until something is."""
        for entry in unnamed_entries(pod):
            self._made.pop(ObjectKey(pod.key.namespace, entry.template_name or ""), None)

    def foresees(self, pod: Pod) -> bool:
        """Tell whether all is known that has yet to be made for *pod*."""
        return all(self.foreseen(pod, entry) is not None for entry in unnamed_entries(pod))


def unnamed_entries(pod: Pod) -> Iterator[PodClaim]:
    """Yield the entries of *pod* that wait for a claim from a template, as far as its status tells."""
    named = {status.name for status in pod.claim_statuses}
    return (entry for entry in pod.claims if entry.template_name and entry.name not in named)
