"""Pods that wait for a node: which is next, and which are not to be tried yet."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from extender.demo.apiserver.kinds import Json
from extender.model.frozen import dataclass

BACKOFF_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A pod in the queue. It is tried from *ready_at* on if it *is_woken*; *seen* is what it looked like last."""

    uid: str
    priority: int
    since: float
    seen: Json
    is_woken: bool = True
    ready_at: float = 0.0


class Queue:
    """Pods by priority, then by how long they wait. One that was tried in vain is left alone until it is woken."""

    def __init__(self, backoff_s: float = BACKOFF_S) -> None:
        self._backoff_s = backoff_s
        self._pods: dict[str, Waiting] = {}

    def update(self, pods: Iterable[Json], now: float) -> None:
        """Take over which pods wait; one that has changed in what can matter is woken."""
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        self._pods = {uid: waiting for uid, waiting in self._pods.items() if uid in there}
        for uid, pod in there.items():
            known, look = self._pods.get(uid), look_of(pod)
            if known is None:
                priority = pod["spec"].get("priority") or 0
                self._pods[uid] = Waiting(uid=uid, priority=priority, since=now, seen=look)
            elif known.seen != look:
                self._pods[uid] = replace(known, seen=look, is_woken=True)

    def wake_all(self) -> None:
        """Wake every pod: something happened that may help any of them."""
        self._pods = {uid: replace(waiting, is_woken=True) for uid, waiting in self._pods.items()}

    def next(self, now: float) -> str | None:
        """Return the uid of the pod to try now, None where there is none."""
        ready = [waiting for waiting in self._pods.values() if waiting.is_woken and waiting.ready_at <= now]
        first = min(ready, key=lambda waiting: (-waiting.priority, waiting.since), default=None)
        return first.uid if first else None

    def next_at(self) -> float | None:
        """Return when the next pod can be tried, None where all of them wait to be woken."""
        return min((waiting.ready_at for waiting in self._pods.values() if waiting.is_woken), default=None)

    def failed(self, uid: str, now: float, *, again: bool) -> None:
        """Let a pod wait that was tried in vain: to be woken, or where it is to be tried *again*, for its back-off."""
        if uid in self._pods:
            self._pods[uid] = replace(self._pods[uid], is_woken=again, ready_at=now + self._backoff_s)


def look_of(pod: Json) -> Json:
    """Return what of a pod wakes it when it changes: kube-scheduler's own words about it too, if they are new."""
    conditions = [
        {name: entry.get(name) for name in ("type", "status", "reason", "message")}
        for entry in pod["status"].get("conditions") or ()
    ]
    metadata = pod["metadata"]
    return {
        "annotations": metadata.get("annotations"),
        "labels": metadata.get("labels"),
        "conditions": conditions,
        "nominated": pod["status"].get("nominatedNodeName"),
        "claims": pod["status"].get("resourceClaimStatuses"),
        "gates": pod["spec"].get("schedulingGates"),
    }
