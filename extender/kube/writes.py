"""Every write that owning allocations takes: one request each, and one more where a patch cannot say it.

What gives, frees, nominates or binds lands on the version that was read, or not at all; a touch or an annotation lands
on the object of that UID. Each carries ``?timeout=`` below our own deadline, so that the API server gives up
first.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial

from extender.allocation.extended import Use
from extender.kube import objects, protobuf
from extender.kube.answer import Answer, Json
from extender.kube.api import Api
from extender.kube.fence import Fence
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, outcome_of
from extender.kube.protobuf import PROTOBUF
from extender.kube.request import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, Body, Query
from extender.kube.resource import PODS, Served
from extender.model.claim import Allocation, Consumer, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod, PodClaimStatus
from extender.scheduling.claiming import FINALIZER
from extender.scheduling.steps import Refusal, is_refused

# The part of our deadline that the API server gets.
SERVER_SHARE = 0.8
# How often a claim is written whole that others write meanwhile.
ATTEMPTS = 3
POD = Served(PODS, "v1")
IN_VAIN = f"to touch it changes nothing: something takes the annotation {objects.TOUCHED} away"
# What is applied names its manager; what is patched has the one that is our user agent.
APPLIED: Query = (("fieldManager", "dra-extender"),)


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes to one API server; *claims* tells in which version it has claims, *timeout_s* our deadline for each.

    What the *fence* keeps back was not sent, and is refused as such.
    """

    api: Api
    claims: Callable[[], Served]
    timeout_s: float = 4.0
    fence: Fence = field(default_factory=Fence)

    async def add_finalizer(self, claim: ResourceClaim) -> RequestOutcome:
        """Keep *claim* from going while it is in use. Ask for it only where it is missing."""
        outcome = await self._patch_claim(claim, objects.with_finalizer(claim))
        return await self._put_claim(claim, outcome, partial(protobuf.with_finalizer, finalizer=FINALIZER))

    async def write_allocation(
        self, claim: ResourceClaim, allocation: Allocation, consumer: Consumer
    ) -> RequestOutcome:
        """Give *claim* its devices and reserve it for *consumer*, both or neither.

        A patch has each ``<``, ``>`` and ``&`` of what configures drivers count as six, for which this may be too long.
        """
        outcome = await self._patch_claim(claim, objects.with_allocation(claim, allocation, consumer), "status")
        if not is_refused(outcome, Refusal.INVALID):
            return outcome
        served = self.claims()
        whole = objects.allocated(claim, served.version, allocation, consumer)
        return _with_both(outcome, await self._send("PUT", served.path(*claim.key, "status"), whole))

    async def reserve_shared(self, claim: ResourceClaim, consumer: Consumer) -> RequestOutcome:
        """Reserve an allocated *claim* for one more *consumer*."""
        outcome = await self._patch_claim(claim, objects.with_consumer(claim, consumer), "status")
        return await self._put_reserved(claim, outcome, objects.consumers_with(claim, consumer))

    async def release(self, claim: ResourceClaim, uid: Uid, *, deallocate: bool) -> RequestOutcome:
        """Take the reservation of *uid* back, and the allocation too if *deallocate*."""
        outcome = await self._patch_claim(claim, objects.without_consumer(claim, uid, deallocate=deallocate), "status")
        # Without its allocation a claim has nothing left in its status that may not change.
        return (
            outcome if deallocate else await self._put_reserved(claim, outcome, objects.consumers_without(claim, uid))
        )

    async def touch_claim(self, claim: ResourceClaim, mark: str) -> RequestOutcome:
        """Move the claim's resourceVersion on, so that no earlier write can land; *mark* differs each time."""
        patch = objects.annotated(claim.uid, objects.TOUCHED, mark)
        refused = put = await self._merge(self.claims().path(*claim.key), patch)
        touched = partial(protobuf.with_annotation, name=objects.TOUCHED, value=mark)
        for _ in range(ATTEMPTS):
            # Whatever version it has by then: what moves on meanwhile is touched again.
            put = await self._put_claim(replace(claim, resource_version=""), refused, touched)
            if not is_refused(put, Refusal.CONFLICT):
                break
        return _moved(put, mark)

    async def touch_pod(self, pod: Pod, mark: str) -> RequestOutcome:
        """Move the pod's resourceVersion on, so that no earlier Binding can land; *mark* differs each time."""
        return _moved(await self.annotate_pod(pod, objects.TOUCHED, mark), mark)

    async def bind_pod(self, pod: Pod, node: NodeName) -> RequestOutcome:
        """Bind *pod*, as it was read, to *node*. A pod that moved on, is bound, gated or going is a CONFLICT."""
        return await self._send("POST", POD.path(*pod.key, "binding"), objects.binding(pod, node))

    async def nominate(self, pod: Pod, node: NodeName | None) -> RequestOutcome:
        """Set or clear the node that kube-scheduler tries first for *pod*, as it was read; that wakes the pod."""
        return await self._merge(POD.path(*pod.key, "status"), objects.nomination(pod, node))

    async def map_extended(self, pod: Pod, claim: str, uses: Sequence[Use]) -> RequestOutcome:
        """Tell in the status of *pod*, as it was read, which *claim* has its extended resources."""
        return await self._merge(POD.path(*pod.key, "status"), objects.extended_status(pod, claim, uses))

    async def name_claims(self, pod: Pod, statuses: Sequence[PodClaimStatus]) -> RequestOutcome:
        """Tell in the status of *pod* which claims were made for it; nobody else takes back what is applied by us.

        Where the status names another claim for an entry, that is a CONFLICT, however late this arrives.
        """
        path = POD.path(*pod.key, "status")
        return await self._send("PATCH", path, objects.claims_named(pod, statuses), APPLY_PATCH, APPLIED)

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> RequestOutcome:
        """Set an *annotation* of *pod*, which wakes it too."""
        return await self._merge(POD.path(*pod.key), objects.annotated(pod.uid, annotation, value))

    async def create_claim(self, namespace: str, claim: Json) -> RequestOutcome:
        """Create *claim* (see ``objects.extended_claim``); a name that is taken is EXISTS."""
        return await self._send("POST", self.claims().path(namespace), claim)

    async def delete_claim(self, key: ObjectKey, uid: Uid, version: str) -> RequestOutcome:
        """Delete the claim *key* if it is still the one with *uid*, and as it was in *version*."""
        return await self._send("DELETE", self.claims().path(*key), objects.delete_options(uid, version))

    async def create_taint(self, rules: Served, driver: str, key: str) -> RequestOutcome:
        """Create the rule that puts the taint *key* on all devices of *driver*; one that is there already is EXISTS."""
        return await self._send("POST", rules.path(), objects.taint_rule(driver, key, rules.version))

    async def restore_taint(self, rules: Served, driver: str, key: str) -> RequestOutcome:
        """Have the rule of that name say the same again, whatever it says now."""
        return await self._merge(rules.path(name=objects.rule_name(driver)), objects.kept(driver, key))

    async def create_event(self, namespace: str, event: Json) -> RequestOutcome:
        """Create *event* of events.k8s.io/v1 (see ``objects.event``). No one waits for what may still arrive."""
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        return await self._sent("POST", path, Body(event, JSON, self.fence.why_not), ())

    async def read_claim(self, key: ObjectKey) -> RequestOutcome:
        """Read a claim as it is now, to find out what became of a write."""
        return await self._read(self.claims().path(*key))

    async def read_pod(self, key: ObjectKey) -> RequestOutcome:
        """Read a pod as it is now, to find out what became of a write."""
        return await self._read(POD.path(*key))

    async def _put_reserved(
        self, claim: ResourceClaim, outcome: RequestOutcome, consumers: Sequence[Consumer]
    ) -> RequestOutcome:
        return await self._put_claim(claim, outcome, partial(protobuf.reserved, consumers=consumers), "status")

    async def _put_claim(
        self, claim: ResourceClaim, outcome: RequestOutcome, change: Callable[[bytes], bytes], subresource: str = ""
    ) -> RequestOutcome:
        """Where a patch ended in *outcome* for what it did to *claim* itself, write that whole, with this *change*.

        Parameters of drivers are stored as they were sent, with every space. A patch is applied to the claim as JSON,
        without them, and so what must not change does: the spec, and the allocation. Protobuf keeps what we do not
        change; where none is sent to us, all is as it was.
        """
        if not is_refused(outcome, Refusal.INVALID):
            return outcome
        # What is read in one version of the API is not written in another, which may be preferred by then.
        served = self.claims()
        read = await self.api.read_as(PROTOBUF, served.path(*claim.key), timeout_s=self.timeout_s)
        if not isinstance(read, Answer) or not read.is_success:
            return outcome_of(read)
        try:
            found = protobuf.sent(read.body)
            version = protobuf.version_of(found)
            whole = protobuf.to_send(read.body, change(found) + protobuf.guard(claim.uid))
        except ValueError:
            return outcome
        if claim.resource_version not in ("", version):
            # It has moved on. Or who answered is behind: by the version that is known, others' writes would be undone.
            why = f"the claim was read in version {version}, not in {claim.resource_version}"
            return Refused(Refusal.CONFLICT, why)
        return _with_both(outcome, await self._send("PUT", served.path(*claim.key, subresource), whole, PROTOBUF))

    async def _patch_claim(self, claim: ResourceClaim, patch: list[Json], subresource: str = "") -> RequestOutcome:
        return await self._send("PATCH", self.claims().path(*claim.key, subresource), patch, JSON_PATCH)

    async def _merge(self, path: str, patch: Json) -> RequestOutcome:
        return await self._send("PATCH", path, patch, MERGE_PATCH)

    async def _read(self, path: str) -> RequestOutcome:
        return outcome_of(await self.api.call("GET", path, timeout_s=self.timeout_s))

    async def _send(
        self, method: str, path: str, content: object, content_type: str = JSON, query: Query = ()
    ) -> RequestOutcome:
        return await self.fence.passed(self._sent(method, path, Body(content, content_type, self.fence.why_not), query))

    async def _sent(self, method: str, path: str, body: Body, query: Query) -> RequestOutcome:
        query = (*query, *_terms(self.timeout_s))
        return outcome_of(await self.api.call(method, path, query=query, body=body, timeout_s=self.timeout_s))


def _with_both(patched: RequestOutcome, put: RequestOutcome) -> RequestOutcome:
    """Return what became of a *put* in place of a patch that was refused, with what both say where nobody may put."""
    if is_refused(put, Refusal.FORBIDDEN) and isinstance(patched, Refused):
        # Where only a right is missing that older roles do not have, it may be the patch that was wrong.
        return replace(put, message=f"{patched.message}; {put.message}")
    return put


def _moved(outcome: RequestOutcome, mark: str) -> RequestOutcome:
    """Return what became of a touch: where a policy of admission takes the *mark* away it may have changed nothing."""
    if not isinstance(outcome, Succeeded) or objects.mark_of(outcome.object) == mark:
        return outcome
    return Refused(Refusal.IN_VAIN, IN_VAIN)


@lru_cache(maxsize=8)
def _terms(timeout_s: float) -> Query:
    """Ask for an answer in time, and for no look at unknown fields: we write none, and nobody reads the warnings."""
    return ("timeout", f"{timeout_s * SERVER_SHARE * 1000:.0f}ms"), ("fieldValidation", "Ignore")
