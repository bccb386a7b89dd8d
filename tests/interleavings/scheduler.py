"""A pretend kube-scheduler: pods with back-off, filter, prioritize, bind; it gives up calls, and it is restarted."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from extender.demo.apiserver.kinds import DRA, NODE, POD, Kind
from extender.demo.apiserver.registry import Registry
from extender.demo.apiserver.store import Key, Store, key_of
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.parse import parse_pod
from extender.scheduling.endings import Order
from extender.service.binds import UNDER_WAY
from extender.web.verbs import Failed, Victims
from tests.interleavings import witness
from tests.interleavings.cluster import GRACE
from tests.interleavings.loop import Clock
from tests.interleavings.process import Process
from tests.interleavings.witness import Witness

Json = dict[str, Any]
Agreed = Callable[[Process, Json, Mapping[str, Sequence[Uid]], str], None]
FIRST_BACKOFF_S: Final = 1.0
LAST_BACKOFF_S: Final = 10.0
FLUSH_S: Final = 300.0
HTTP_TIMEOUT_S: Final = 30.0
MANAGER: Final = "kube-scheduler"
# How long volumes may take, and how often they cannot be made.
VOLUMES_S: Final = (0.5, 5.0, 40.0, 300.0)
FAILING: Final = 0.2
CLASSES: Final = Kind(name="DeviceClass", plural="deviceclasses", group=DRA)


@dataclass(slots=True)
class Queued:
    """When a pod is tried next, and what it looked like when it was found to fit nowhere."""

    due: float
    attempts: int = 0
    rejected_at: str = ""
    is_held: bool = False


class Delayed(NamedTuple):
    """A pod that is bound later: its volumes are made first."""

    pod: Pod
    node: NodeName
    until: float


@dataclass(slots=True)
class Scheduler:
    """One kube-scheduler after another. *extender* is whom it calls, None while there is nobody.

    closed: nodes that other plugins refuse; narrowness: how often it looks at some nodes only; spoilt: how many pods
    something else stops after they were let pass; held: how many it does not try at all, as long as *preempts*;
    slowness: how many wait for volumes before they are bound.
    """

    clock: Clock
    store: Store
    claims: Kind
    random: Random
    extender: Callable[[], Process | None]
    registry: Registry
    # Whether it nominates nodes as well, and takes that back: in the plays in which we do so ahead.
    nominates: bool = False
    # Pods for whom others were evicted.
    favoured: set[str] = field(default_factory=set)
    closed: tuple[str, ...] = ()
    narrowness: float = 0.0
    spoilt: float = 0.0
    held: float = 0.0
    # Whether there are volumes that are made once the node is known.
    has_volumes: bool = False
    slowness: float = 0.0
    happened: Counter[str] = field(default_factory=Counter)
    witness: Witness | None = None
    # Told where others may go for a pod, and where they do.
    agreed: Agreed = lambda _process, _pod, _victims, _node: None
    queue: dict[str, Queued] = field(default_factory=dict)
    binding: dict[str, asyncio.Task[str]] = field(default_factory=dict)
    delayed: dict[str, Delayed] = field(default_factory=dict)

    def restart(self) -> None:
        """Forget everything; what was asked of the extender goes on there."""
        for task in self.binding.values():
            task.cancel()
        self.queue.clear()
        self.binding.clear()
        self.delayed.clear()
        self.clock.settle()

    def change(self) -> None:
        """Have other plugins refuse other nodes and other pods from now on."""
        names = [item["metadata"]["name"] for item in self.store.all(NODE)]
        self.closed = tuple(self.random.sample(names, self.random.choice((0, 0, 1, 2))))
        self.narrowness = self.random.choice((0.0, 0.3, 0.9))
        self.spoilt = self.random.choice((0.0, 0.05, 0.3))
        if self.nominates:
            self.held = self.random.choice((0.0, 0.2, 0.5))
        if self.has_volumes:
            self.slowness = self.random.choice((0.0, 0.1, 0.5))

    def relax(self) -> None:
        """Have nobody but the extender refuse anything."""
        self.closed, self.narrowness, self.spoilt, self.held, self.slowness = (), 0.0, 0.0, 0.0, 0.0
        self.delayed = {uid: item._replace(until=self.clock.moment) for uid, item in self.delayed.items()}
        for item in self.queue.values():
            item.is_held = False
        self.event()

    def due(self) -> list[Json]:
        """Return the pods whose turn it is, each with what is known of it brought up to date."""
        waiting = {pod["metadata"]["uid"]: pod for pod in self._waiting()}
        for uid in self.queue.keys() - waiting.keys():
            del self.queue[uid]
        for uid in waiting:
            if uid not in self.queue:
                self.queue[uid] = Queued(self.clock.moment, is_held=self.held > 0 and self.random.random() < self.held)
        tried = [uid for uid in waiting if uid not in self.binding and uid not in self.delayed]
        return [waiting[uid] for uid in tried if self._is_due(self.queue[uid], waiting[uid])]

    def attempt(self, pod: Json) -> None:
        """Try *pod* once."""
        process = self.extender()
        noun = parse_pod(pod)
        assert isinstance(noun, Pod)
        everything = [item["metadata"]["name"] for item in self.store.all(NODE)]
        names = [name for name in everything if name not in self.closed]
        if process is None:
            return self._again(noun)
        if not self._is_served(pod):
            # NodeResourcesFit finds no node that has what no class stands behind: extenders are not asked at all.
            return self._reject(noun, is_ours=False)
        nominated = pod["status"].get("nominatedNodeName")
        filtered = process.answers.filter(noun, [nominated]) if nominated in names else None
        if filtered is None or not filtered.names:
            filtered = process.answers.filter(noun, self._window(names))
        if filtered.error:
            return self._again(noun)
        if not filtered.names or self.random.random() < self.spoilt:
            return self._reject(noun, is_ours=not filtered.names)
        node = self._chosen(process, noun, list(filtered.names))
        if self.slowness and self.random.random() < self.slowness:
            return self._wait(noun, node, pod)
        return self._bind(process, noun, node)

    def _wait(self, noun: Pod, node: NodeName, pod: Json) -> None:
        """Have the volumes of a pod made first, and say so."""
        self.happened["waits for volumes"] += 1
        self.delayed[noun.uid] = Delayed(noun, node, self.clock.moment + self.random.choice(VOLUMES_S))
        if pod["status"].get("nominatedNodeName") != node:
            self._nominate(pod, node)

    def _go_on(self) -> None:
        """Bind the pods whose volumes are there, or give up."""
        for uid, item in tuple(self.delayed.items()):
            if item.until > self.clock.moment:
                continue
            del self.delayed[uid]
            process, known = self.extender(), self.store.get(POD, item.pod.key)
            if known is None or known["metadata"]["uid"] != uid or uid not in self.queue:
                continue
            if process is None or self.random.random() < FAILING:
                self._delay(self.queue[uid])
                self._nominate(known, None)
            else:
                self._bind(process, item.pod, item.node)

    def _bind(self, process: Process, pod: Pod, node: NodeName) -> None:
        task = process.loop.create_task(self._bound(process, pod, node), name=f"scheduler binds {pod.key}")
        self.binding[pod.uid] = task
        self.clock.settle()

    def preempt(self) -> bool:
        """Nominate a node for some pod, as where others have to make room for it."""
        waiting = [pod for pod in self._waiting() if pod["metadata"]["uid"] not in self.binding]
        if waiting:
            node = self.random.choice(self.store.all(NODE))["metadata"]["name"]
            self._nominate(self.random.choice(waiting), node)
        return bool(waiting)

    def evict(self) -> bool:
        """Have others make room for a pod on a node that other plugins refuse, if the extender sees a use in that.

        It may be refused only as long as others are there that wait for volumes.
        """
        process, waiting = self.extender(), [pod for pod in self._waiting() if self._may_preempt(pod)]
        if process is None or not waiting:
            return False
        pod = self.random.choice(waiting)
        crowded = self.random.choice(self.store.all(NODE))["metadata"]["name"]
        full = dict.fromkeys((*self.closed, crowded, *(item.node for item in self.delayed.values())))
        known, noun = {name: self._lesser(pod, name) for name in full}, parse_pod(pod)
        assert isinstance(noun, Pod)
        victims = {name: self._enough(tuple(found)) for name, found in known.items() if found}
        left = process.answers.preempt(noun, victims) if victims else {}
        if isinstance(left, Failed) or not left:
            return bool(victims)
        node = self.random.choice(sorted(left))
        self.agreed(process, pod, {name: items.pods for name, items in left.items()}, node)
        for uid in left[node].pods:
            self._go(uid, known[node][uid])
        self.happened["makes room"] += 1
        self.favoured.add(noun.uid)
        self._nominate(pod, node)
        # Where they were there is room for the pod.
        self.closed = tuple(name for name in self.closed if name != node)
        return True

    def _enough(self, pods: tuple[Uid, ...]) -> Victims:
        """Return those of *pods* who have to go: it may be that others can stay."""
        return Victims(tuple(self.random.sample(pods, self.random.randint(1, len(pods)))))

    def _may_preempt(self, pod: Json) -> bool:
        """Tell whether *pod* is not on its way to a node, and could be on one if others went."""
        uid = pod["metadata"]["uid"]
        return uid not in self.binding and uid not in self.delayed and self._is_served(pod)

    def _go(self, uid: Uid, key: Key) -> None:
        """Make room for another: who waits for volumes is merely tried again later, unless it was bound meanwhile."""
        delayed = self.delayed.pop(uid, None)
        if delayed is None or uid not in self.queue:
            self.registry.delete(POD, key, self.random.choice(({}, GRACE)))
            return
        self.happened["goes without its volumes"] += 1
        self._again(delayed.pod)

    def _lesser(self, pod: Json, node: str) -> dict[Uid, Key]:
        """Return the pods on *node*, and those that wait for volumes there, that are less important than *pod*."""
        delayed = {uid for uid, item in self.delayed.items() if item.node == node and uid in self.queue}
        there = (
            item
            for item in self.store.each(POD)
            if item["spec"].get("nodeName") == node or item["metadata"]["uid"] in delayed
        )
        return {
            Uid(item["metadata"]["uid"]): key_of(item)
            for item in there
            if item["spec"]["priority"] < pod["spec"]["priority"] and not item["metadata"].get("deletionTimestamp")
        }

    def poll(self) -> int:
        """See which bindings have ended, and count those that ended well; begin those that had to wait."""
        self._go_on()
        ended = [(uid, task) for uid, task in self.binding.items() if task.done()]
        for uid, task in ended:
            del self.binding[uid]
            if task.result() and uid in self.queue:
                self._delay(self.queue[uid])
                self._clear(uid)
        return sum(not task.result() for _, task in ended)

    def event(self) -> None:
        """Let something happen in the cluster that has the rejected pods tried again."""
        for item in self.queue.values():
            item.due = min(item.due, self.clock.moment + LAST_BACKOFF_S)

    def _waiting(self) -> Iterator[Json]:
        for pod in self.store.each(POD):
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp") and self._is_ready(pod):
                yield pod

    def _is_ready(self, pod: Json) -> bool:
        """Tell whether the claims of *pod* are there: PreEnqueue keeps it until they are."""
        made = {entry["name"]: entry["resourceClaimName"] for entry in pod["status"].get("resourceClaimStatuses") or ()}
        names = [
            entry.get("resourceClaimName") or made.get(entry["name"])
            for entry in pod["spec"].get("resourceClaims") or ()
        ]
        claims = [self.store.get(self.claims, (pod["metadata"]["namespace"], name or "")) for name in names]
        return all(claim and not claim["metadata"].get("deletionTimestamp") for claim in claims)

    def _is_served(self, pod: Json) -> bool:
        """Tell whether classes stand behind all extended resources that *pod* asks for; no node has any."""
        listed = [(container.get("resources") or {}).get("requests") or {} for container in pod["spec"]["containers"]]
        known = {item["spec"].get("extendedResourceName") for item in self.store.each(CLASSES)}
        return known.issuperset(name for amounts in listed for name in amounts)

    def _is_due(self, item: Queued, pod: Json) -> bool:
        if item.rejected_at and item.rejected_at != _told(pod):
            item.rejected_at, item.due = "", min(item.due, self.clock.moment)
        return item.due <= self.clock.moment and not item.is_held

    def _window(self, names: list[str]) -> list[str]:
        if self.random.random() >= self.narrowness:
            return names
        return sorted(self.random.sample(names, self.random.randint(1, len(names))))

    def _chosen(self, process: Process, pod: Pod, names: list[str]) -> NodeName:
        if len(names) == 1:
            return NodeName(names[0])
        scores = process.answers.prioritize(pod, names) if self.random.random() < 0.9 else None
        if not isinstance(scores, list):
            return NodeName(self.random.choice(names))
        return NodeName(max(zip(scores, names, strict=True))[1])

    async def _bound(self, process: Process, pod: Pod, node: NodeName) -> str:
        if self.witness:
            documents = {witness.DOCUMENTS: len(process.line.preferred)}
            self.witness.begins(process.line, pod.uid, process.told(witness.RESOURCES) | documents)
        try:
            async with asyncio.timeout(HTTP_TIMEOUT_S):
                why = await process.answers.bind(Order(pod.key, pod.uid, node))
                if self.witness and not why.startswith(UNDER_WAY):
                    self.witness.ends(process.line, pod.uid)
                return why
        except TimeoutError:
            return "no answer"
        except asyncio.CancelledError:
            if process.line.is_dead:
                return "connection lost"
            raise

    def _again(self, pod: Pod) -> None:
        self._delay(self.queue[pod.uid])
        self._clear(pod.uid)

    def _reject(self, pod: Pod, *, is_ours: bool) -> None:
        item = self.queue[pod.uid]
        self._delay(item)
        self._clear(pod.uid)
        if is_ours:
            known = self.store.get(POD, pod.key)
            item.rejected_at, item.due = _told(known), self.clock.moment + FLUSH_S

    def _clear(self, uid: str) -> None:
        """Take a nomination back, as after every attempt that fails, whoever made it."""
        known = next((pod for pod in self.store.each(POD) if pod["metadata"]["uid"] == uid), None)
        if self.nominates and known and known["status"].get("nominatedNodeName"):
            self._nominate(known, None)

    def _nominate(self, pod: Json, node: str | None) -> None:
        def nominated(old: Json) -> Json:
            return {**old, "status": {**old["status"], "nominatedNodeName": node}}

        self.registry.update(POD, key_of(pod), "status", nominated, manager=MANAGER)

    def _delay(self, item: Queued) -> None:
        item.attempts += 1
        item.due = self.clock.moment + min(LAST_BACKOFF_S, FIRST_BACKOFF_S * (1 << min(item.attempts - 1, 4)))


def _told(pod: Json | None) -> str:
    """Return what an update of *pod* shows in."""
    return pod["metadata"]["resourceVersion"] if pod else ""
