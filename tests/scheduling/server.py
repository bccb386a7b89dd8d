"""An API server as far as steps see it, with a watch that delivers when it is told to."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from extender.allocation.extended import ANNOTATION
from extender.model.change import Change, Changed, Gone, Listed, Noun
from extender.model.claim import Allocation, OwnerReference, ResourceClaim
from extender.model.names import DeviceKey, NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.claiming import FINALIZER
from extender.scheduling.steps import (
    AddFinalizer,
    AwaitShown,
    BindPod,
    CreateClaim,
    DeleteClaim,
    Done,
    MapExtended,
    Outcome,
    Pause,
    ReadClaim,
    ReadPod,
    Refusal,
    Refused,
    Release,
    Reserve,
    Step,
    TouchClaim,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of

R = TypeVar("R")
NOT_FOUND = Refused(Refusal.NOT_FOUND, "not found")
CONFLICT = Refused(Refusal.CONFLICT, "moved on")
# More steps than any work takes: one that goes on longer would go on for ever.
MOST_STEPS = 200


@dataclass
class Server:
    """Claims and pods, each in its version; *log* is what the watch has to tell, *late* what may land yet."""

    fixed: tuple[Noun, ...] = ()
    claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)
    pods: dict[ObjectKey, Pod] = field(default_factory=dict)
    revision: int = 100
    log: list[Change] = field(default_factory=list)
    late: list[Step] = field(default_factory=list)

    def put(self, noun: ResourceClaim | Pod) -> ResourceClaim | Pod:
        self.revision += 1
        noun = replace(noun, resource_version=str(self.revision))
        if isinstance(noun, Pod):
            self.pods[noun.key] = noun
        else:
            self.claims[noun.key] = noun
            if noun.is_deleting and not noun.finalizers:
                self.drop(noun)
                return noun
        self.log.append(Changed(noun))
        return noun

    def drop(self, noun: ResourceClaim | Pod) -> None:
        self.revision += 1
        if isinstance(noun, Pod):
            self.pods.pop(noun.key, None)
        else:
            self.claims.pop(noun.key, None)
        self.log.append(Gone(type(noun), noun.key))

    def believed(self) -> Belief:
        """Begin anew: know nothing but what a list tells."""
        self.log.clear()
        belief = belief_of(*self.fixed)
        belief.apply(Listed(ResourceClaim, tuple(self.claims.values())))
        belief.apply(Listed(Pod, tuple(self.pods.values())))
        return belief

    def deliver(self, belief: Belief) -> None:
        """Let the watch tell all that it has to tell."""
        while self.log:
            belief.apply(self.log.pop(0))

    def do(self, step: Step) -> Outcome:  # noqa: PLR0911 - a table of steps
        """Take a step as the API server does: guarded by the version that it was based on, where it is."""
        match step:
            case ReadClaim(key):
                return Done(self.claims[key]) if key in self.claims else NOT_FOUND
            case ReadPod(key):
                return Done(self.pods[key]) if key in self.pods else NOT_FOUND
            case AwaitShown() | Pause():
                return Done()
            case BindPod(pod, node):
                return self._bind(pod, node)
            case TouchPod(pod):
                return self._of_pod(pod, lambda known: known)
            case MapExtended(pod, name, _):
                known = self.pods.get(pod.key)
                if known is not None and known.resource_version != pod.resource_version:
                    return CONFLICT
                return self._of_pod(pod, lambda known: replace(known, extended_claim=name))
            case CreateClaim(pod, hidden):
                return Done(self.put(_hidden(pod, self.revision + 1, hidden.spec)))
        return self._of_claim(step)

    def land(self) -> None:
        """Let every write that nobody knows of arrive now."""
        for step in self.late:
            self.do(step)
        self.late.clear()

    def bind(self, pod: Pod, node: NodeName) -> None:
        self.put(replace(self.pods[pod.key], node_name=node))

    def holders(self) -> dict[DeviceKey, list[str]]:
        found: dict[DeviceKey, list[str]] = {}
        for claim in self.claims.values():
            for item in claim.allocation.devices if claim.allocation else ():
                found.setdefault(item.device, []).append(claim.key.name)
        return found

    def control(self) -> None:
        """Do what kube-controller-manager does: end the reservations of pods that are gone, and what follows."""
        uids = {pod.uid for pod in self.pods.values()}
        for claim in tuple(self.claims.values()):
            left = tuple(item for item in claim.reserved_for if item.uid in uids)
            owned = claim.owners and not any(owner.uid in uids for owner in claim.owners)
            if left != claim.reserved_for or (claim.is_deleting and not left) or owned:
                kept = claim.finalizers if left else ()
                allocation = claim.allocation if left else None
                is_going = claim.is_deleting or bool(owned)
                changed = replace(claim, reserved_for=left, allocation=allocation, is_deleting=is_going)
                self.put(replace(changed, finalizers=kept if is_going else claim.finalizers))

    def _bind(self, pod: Pod, node: NodeName) -> Outcome:
        known = self.pods.get(pod.key)
        if known is None:
            return NOT_FOUND
        is_open = not (known.node_name or known.scheduling_gates or known.is_deleting)
        if known.uid != pod.uid or known.resource_version != pod.resource_version or not is_open:
            return CONFLICT
        self.bind(pod, node)
        return Done()

    def _of_pod(self, pod: Pod, change: Callable[[Pod], Pod]) -> Outcome:
        known = self.pods.get(pod.key)
        if known is None:
            return NOT_FOUND
        return Done(self.put(change(known))) if known.uid == pod.uid else CONFLICT

    def _of_claim(self, step: Step) -> Outcome:
        assert isinstance(step, AddFinalizer | WriteAllocation | Reserve | Release | TouchClaim | DeleteClaim)
        known = self.claims.get(step.claim.key)
        if known is None:
            return NOT_FOUND
        is_current = known.resource_version == step.claim.resource_version
        if known.uid != step.claim.uid or not (is_current or isinstance(step, TouchClaim)):
            return CONFLICT
        changed = _changed(known, step)
        return changed if isinstance(changed, Refused) else Done(self.put(changed))


def _changed(known: ResourceClaim, step: Step) -> ResourceClaim | Refused:  # noqa: PLR0911 - a table of steps
    match step:
        case AddFinalizer():
            return replace(known, finalizers=(*known.finalizers, FINALIZER))
        case WriteAllocation(_, allocation, consumer):
            assert FINALIZER in known.finalizers
            if known.allocation is not None or known.is_deleting:
                return Refused(Refusal.INVALID, "field is immutable")
            return replace(known, allocation=allocation, reserved_for=(*known.reserved_for, consumer))
        case Reserve(_, consumer):
            if known.allocation is None or known.is_deleting:
                return Refused(Refusal.INVALID, "not allocated")
            return replace(known, reserved_for=(*known.reserved_for, consumer))
        case Release(_, uid, deallocate):
            left = tuple(item for item in known.reserved_for if item.uid != uid)
            if deallocate and left:
                return Refused(Refusal.INVALID, "reserved")
            return replace(known, reserved_for=left, allocation=None if deallocate else known.allocation)
        case DeleteClaim():
            return replace(known, is_deleting=True)
    return known


def _hidden(pod: Pod, number: int, spec: object) -> ResourceClaim:
    owner = OwnerReference(kind="Pod", uid=pod.uid)
    return ResourceClaim(
        key=ObjectKey(pod.key.namespace, f"{pod.key.name}-extended-resources-{number}"),
        uid=Uid(f"made-{number}"),
        spec=spec,  # type: ignore[arg-type]  # handed through unread
        owners=(owner,),
        annotations=((ANNOTATION, "true"),),
    )


Fault = Callable[[Server, Step], Outcome | None]


@dataclass
class World:
    """A server, what one process believes of it, and a fault that comes with the step of a number."""

    server: Server
    belief: Belief
    fault: Fault | None = None
    at: int = -1
    taken: list[Step] = field(default_factory=list)
    # Whether the watch tells everything at once, or nothing before somebody waits for it.
    is_prompt: bool = True

    def carry(self, work: Generator[Step, Outcome, R], *, until: int = MOST_STEPS) -> R | None:
        """Take the steps of *work*; stop as a process stops that dies before the step *until*."""
        try:
            step = next(work)
            for _ in range(until):
                step = work.send(self._outcome(step))
        except StopIteration as end:
            result: R = end.value
            return result
        assert until < MOST_STEPS, f"goes on for ever: {self.taken[-8:]}"
        return None

    def _outcome(self, step: Step) -> Outcome:
        number = len(self.taken)
        self.taken.append(step)
        outcome = self.fault(self.server, step) if self.fault and number == self.at else None
        outcome = outcome or self.server.do(step)
        if self.is_prompt or isinstance(step, AwaitShown | MapExtended):
            self.server.deliver(self.belief)
        return outcome


def landed(server: Server, step: Step) -> Outcome:
    """The step is taken, and nobody hears of it."""
    server.do(step)
    return Unknown("lost")


def lost(server: Server, step: Step) -> Outcome:
    """The step is not taken yet."""
    server.late.append(step)
    return Unknown("lost")


def allocation_of(server: Server, name: str) -> Allocation | None:
    return server.claims[ObjectKey("ns", name)].allocation
