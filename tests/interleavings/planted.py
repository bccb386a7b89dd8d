"""Bugs to plant, one line each: in the ledger, in belief, on the way of a binding. The play has to find every one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import modules
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from extender.allocation import attempt, eligibility, node_state, question, result, usage
from extender.allocation.inventory import Inventory
from extender.kube.fence import Fence
from extender.kube.writes import Writes
from extender.model import taint
from extender.model.parse import claim
from extender.scheduling import assigning, binding, claiming, conditions, exposed, preferring, remedy, veto
from extender.scheduling.binding import Binder
from extender.scheduling.hopeless import Hopeless
from extender.scheduling.recall import World
from extender.service.ahead import Ahead
from extender.service.alone import Alone
from extender.service.lapses import Lapses
from extender.service.wakes import Wakes
from extender.state import contest, ledger, questions
from extender.state.belief import Belief
from extender.state.cluster import Cluster
from extender.state.ledger import Ledger
from extender.state.taken import Taken
from extender.state.tenure import Tenure
from extender.topology.policies import Policies


class Bug(NamedTuple):
    """A line of a function, and what stands there instead. *first*: the play that is looked through first.

    Of what shows in few plays that is one in which it has shown: to get there takes minutes.
    """

    function: Callable[..., Any]
    line: str
    instead: str
    first: int = 1


BUGS: Final = {
    "what is promised looks free": Bug(Taken.over, "return self._seen[1]\n", "return snapshot\n"),
    "an event that a phase does not know ends the hold": Bug(ledger._after, "return hold\n", "return None\n"),
    "what happens to one claim ends the holds of the pod's others": Bug(
        Ledger.tell, "if claim in (None, hold.claim) else hold", "if hold.claim else hold"
    ),
    "nobody remembers which version a write is based on": Bug(Ledger.rebase, "replace(hold, version=version)", "hold"),
    "no answer is taken for a refusal": Bug(Belief.unanswered, "else Event.UNANSWERED", "else Event.REFUSED"),
    "an old event ends the hold of a newer write": Bug(Belief._conclude, "version(claim) > hold.version", "True"),
    "a claim in use can be deleted": Bug(
        claiming._next_write, "if FINALIZER not in claim.finalizers:", "if not claim:"
    ),
    "an old reservation is believed": Bug(
        claiming.reserve,
        "= yield from patiently(TouchClaim(claim) if is_had else Reserve(claim, consumer_of(pod)))",
        "= Done(claim) if is_had else (yield Reserve(claim, consumer_of(pod)))",
    ),
    "a Binding without an answer is not made impossible": Bug(
        assigning._after_binding, "== pod.uid and not fresh.node_name:", "== pod.uid and not fresh:"
    ),
    "a Binding that may land is taken for refused": Bug(assigning._after_binding, ", is_open=True)", ")"),
    "a pod is bound with claims that it names no more": Bug(
        assigning.renamed, 'return "" if is_same else', 'return "" if is_same or after else'
    ),
    "what a stranger was given first is bound all the same": Bug(
        Belief.contested, "if before else None", "if not mine else None"
    ),
    "nobody finds out about writes without an answer": Bug(
        remedy._unsettled, "if is_open and key", "if not is_open and key"
    ),
}
# Those that only show where one process follows another.
RESTARTED: Final = {
    "what an earlier process has sent is not waited for": Bug(Alone.__init__, "now() + linger_s", "now()"),
    "what is free is left as it was by the next process": Bug(
        exposed.exposed, "(claim.allocation is None or waiting) and", "waiting and"
    ),
}
# Those that only show where pods are nominated ahead.
AHEAD: Final = {
    "a pod is nominated whatever has become of it": Bug(
        Ahead._nominate, "nominate(pod, sent.node)", 'nominate(replace(pod, resource_version=""), sent.node)'
    ),
    "what another has nominated is taken back": Bug(Lapses._take_back, "not in nominators(read.object)", "in ()"),
    "what another has nominated is overwritten": Bug(Wakes._is_kept, "not in managers", "in ()"),
    "a pod is remembered as it was before it was nominated": Bug(
        Ahead._nominate, "version, nominated_node=sent.node)", "version)"
    ),
}
# Those that only show where devices are of all kinds.
VARIED: Final = {
    "who waits with others for what cannot be made ready leaves it to them": Bug(
        Binder._left, "if is_reserved_for(claim, pod)]", "if not is_reserved_for(claim, pod)]"
    ),
    "a pod is bound before its devices are ready": Bug(
        binding._Work._finished, "standing.readiness is Readiness.WAITING", "standing.readiness is None"
    ),
    "who makes nothing ready is waited for for ever": Bug(
        conditions._in_time, "-SKEW_S <= now - since <= within_s", "True"
    ),
    "the devices of a claim that makes no sense look free": Bug(
        claim._said_in, "devices_of(allocation) if has_devices else None, users", "None, users"
    ),
    "others are evicted where the pod has no devices without them, either": Bug(
        veto.helped, "ground.has(asked, node, gone[node], first[node])", "asked"
    ),
}
# Those that only show where slices are left over of an older generation.
LEFT: Final = {
    "what is left over of a generation counts": Bug(
        contest._Stock.__init__, "sorted(slices, key=lambda item: -item.generation)", "slices"
    ),
    "what is left over of a generation says how much there is of a device": Bug(
        Inventory.newest, "if len(rows) > 1:", "if False:"
    ),
}
# Those that only show where strangers take a part of what we take a part of, by what that is.
PARTED: Final = {
    "shares": Bug(contest._contested, "(use.shares and _is_overdrawn(use, earlier, inventory.newest(key)))", "False"),
    "partitions": Bug(contest._contested, "yield from _partitions(", "() and _partitions("),
}
# Those that only show where taint rules and classes come and go, and where some only look at devices.
RULED: Final = {
    "what was offered is had whatever was decreed since": Bug(
        World.is_like, "and all(map(is_, self[1:], other[1:]))", "and True"
    ),
    "a rule that is gone goes on": Bug(
        Cluster._remove, "self._set(rules=_without(self.snapshot.rules, key.name))", "..."
    ),
    "who fitted nowhere is not looked at again when a decree is taken back": Bug(
        Hopeless.of,
        "if self._at[0] is not snapshot or",
        "if getattr(self._at[0], 'usage', None) is not snapshot.usage or",
    ),
    "a class is known by its name alone": Bug(
        questions._class, "(item.name, item.selectors, item.unknown_fields, flaws_in(item.config))", "(item.name,)"
    ),
    "devices are configured as their class said when it was first asked for": Bug(
        question.asked_by, "{name: classes[name] for name in question.classes}", "question.classes"
    ),
    "who only looks takes what he looks at": Bug(usage.holds_of, "if not result.admin_access", "if result"),
    "who only looks is shown nothing that others have": Bug(
        eligibility._counted, "if usage.dedicated and not ask.is_admin:", "if usage.dedicated:"
    ),
    "a toleration of one effect is one of all": Bug(taint.is_about, 'toleration.effect in ("", taint.effect) and', ""),
}
# Those that only show where claims tie devices together.
TIED: Final = {
    "a constraint of one alternative binds nobody": Bug(
        question.Rule.covers, "slot.name in self.requests or ask.name in self.requests", "slot.name in self.requests"
    ),
    "nodes that say otherwise of their devices are taken for one another": Bug(
        node_state._published, "paths |= {path_of(rule.attribute) for rule in part.rules}", "..."
    ),
    "what has to differ may be the same": Bug(attempt._joined, "if bits & state & ~OPAQUE or", "if"),
    "what was offered is had whatever its driver says of it since": Bug(
        World.is_like, "are_same(self.slices, other.slices) and", ""
    ),
}
# Those that only show where policies have some sets not at all.
STRICT: Final = {
    "what one policy was given on a node is given by all": Bug(
        preferring.basis_of, "return tuple(policies), tuple(", "return tuple(", first=27
    ),
    "what another document has not is given as it was offered": Bug(
        World.is_like, "map(is_, self[1:], other[1:])", "map(is_, self[1:-1], other[1:-1])"
    ),
    "a claim names what it may not": Bug(Policies.policy_for, "if named in self.allowed:", "if named:"),
}
# Those that only show where pods are evicted for taints.
EVICTING: Final = {
    "what a claim tolerates is not written down": Bug(result._device, "tolerations=ask.tolerations", "tolerations=()"),
    "a device that pods are evicted from is given to the next": Bug(
        taint.blocking, "in (NO_SCHEDULE, NO_EXECUTE) and", "== NO_SCHEDULE and"
    ),
}
# Those that only show where pods and claims are deleted and do not go.
LINGERING: Final = {
    "what is deleted and stays is deleted again and again": Bug(
        remedy._is_going, "return claim.is_deleting and", "return not claim and"
    ),
}
# Those that only show where there are two replicas.
CONTENDED: Final = {
    "a leader relies on a renewal for ever": Bug(
        Tenure.why_not, "if self.is_held and now < self._trusted_until:", "if self.is_held:"
    ),
    "whoever knows its pod takes any other process for ended": Bug(
        Tenure._has_ended, 'record.holder.rpartition(".")[0] == self.before', "True"
    ),
    "what an earlier leader has sent is not waited for": Bug(
        Tenure._cleared_at, "return self._free_at() + self.times.linger_s if self.record.holder else now", "return now"
    ),
    "what is free is left as it was when somebody takes over": Bug(
        exposed.exposed, "(claim.allocation is None or waiting) and", "waiting and"
    ),
    "who waits with devices is left as he was when somebody takes over": Bug(
        exposed.exposed, "yield from bound_next.values()", "yield from ()"
    ),
    "that there was no Lease is taken for proof that nobody led": Bug(
        Tenure._clear, "self._clear_at = now + self.times.lease_s + self.times.linger_s", "self._clear_at = now"
    ),
    "writes leave without being asked about": Bug(
        Writes._send, "Body(content, content_type, self.fence.why_not)", "Body(content, content_type)"
    ),
    "a Lease is given up while something is on its way": Bug(
        Tenure.next, "Step(Act.RELEASE) if is_quiet else", "Step(Act.RELEASE) if is_idle else"
    ),
    "what has no answer is not waited for before a Lease is given up": Bug(
        Fence.passed, "if isinstance(outcome, Unknown):", "if False:"
    ),
}
# Those that only show where one of two is followed, and devices are of all kinds.
FOLLOWED: Final = {
    "what is kept for who waits is left as it was when somebody takes over": Bug(
        exposed.exposed,
        "(claim.allocation is None or waiting) and",
        "claim.allocation is None and",
        first=9,
    ),
}


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """Have *bug* in the product until the end of the block: for everybody who has imported the function."""
    function = getattr(bug.function, "__wrapped__", bug.function)
    assert isinstance(function, FunctionType)
    path = modules[function.__module__].__file__
    assert path is not None
    text = Path(path).read_text()
    begin = text.index(f"def {function.__name__}(")
    place = text.index(bug.line, begin)
    spoilt = text[:place] + bug.instead + text[place + len(bug.line) :]
    sound, function.__code__ = function.__code__, _code(compile(spoilt, path, "exec"), function.__qualname__)
    assert sound != function.__code__, "the bug is elsewhere"
    try:
        yield
    finally:
        function.__code__ = sound


def _code(whole: CodeType, name: str) -> CodeType:
    """Find the code of the function *name* in that of its module."""
    for part in whole.co_consts:
        if isinstance(part, CodeType):
            if part.co_qualname == name:
                return part
            if name.startswith(f"{part.co_qualname}."):
                return _code(part, name)
    raise AssertionError(name)
