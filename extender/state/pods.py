"""Pods that wait for a node, of the schedulers that we serve; of others no more than that they are there."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from extender.model.names import ObjectKey, Uid
from extender.model.node import FINISHED, Pod


class Pods:
    """Waiting pods by name and by identity. One writer."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self._by_uid: dict[Uid, Pod] = {}
        self._uid_of: dict[ObjectKey, Uid] = {}
        self._moved: dict[Uid, tuple[str, str]] = {}
        self._others: dict[ObjectKey, Uid] = {}

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._by_uid.values())

    def __len__(self) -> int:
        return len(self._by_uid)

    def get(self, key: ObjectKey) -> Pod | None:
        uid = self._uid_of.get(key)
        return None if uid is None else self._by_uid[uid]

    def with_uid(self, uid: Uid) -> Pod | None:
        """Return the pod with *uid*; one of the same name that was made later is another."""
        return self._by_uid.get(uid)

    def waits(self, key: ObjectKey, uid: Uid) -> bool:
        """Tell whether the pod *key* with *uid* waits for a node, whichever scheduler it is of."""
        return uid in self._by_uid or self._others.get(key) == uid

    def moved(self, pod: Pod, to: str) -> None:
        """Remember that a write of ours, and nothing else, has brought *pod* to the version *to*."""
        if pod.uid in self._by_uid:
            self._moved[pod.uid] = pod.resource_version, to

    def current(self, pod: Pod) -> Pod:
        """Return *pod* in the version to which our own write has brought it, if it is known before that."""
        before, after = self._moved.get(pod.uid, ("", ""))
        return replace(pod, resource_version=after) if after and pod.resource_version == before else pod

    def seen(self, uid: str, version: str) -> Pod | None:
        """Return the pod with *uid* if *version* is the one that the watch has shown."""
        pod = self._by_uid.get(Uid(uid))
        return pod if pod is not None and pod.resource_version == version else None

    def serves(self, pod: Pod) -> bool:
        """Tell whether *pod* is of a scheduler that we serve."""
        return self.has_scheduler(pod.scheduler)

    def has_scheduler(self, scheduler: str) -> bool:
        """Tell whether we serve *scheduler*."""
        return scheduler in self._schedulers

    def put(self, pod: Pod) -> Uid | None:
        """Take *pod* over; return which pod of that name waits no longer."""
        before = self._uid_of.get(pod.key)
        does_wait = not pod.node_name and pod.phase not in FINISHED
        if not does_wait or not self.serves(pod):
            self.drop(pod.key)
            if does_wait:
                self._others[pod.key] = pod.uid
            return before
        self._others.pop(pod.key, None)
        self._by_uid[pod.uid] = pod
        self._uid_of[pod.key] = pod.uid
        if before is None or before == pod.uid:
            return None
        del self._by_uid[before]
        self._moved.pop(before, None)
        return before

    def drop(self, key: ObjectKey) -> Uid | None:
        """Forget a pod; return which one it was."""
        self._others.pop(key, None)
        uid = self._uid_of.pop(key, None)
        if uid is not None:
            del self._by_uid[uid]
            self._moved.pop(uid, None)
        return uid

    def keep_only(self, keys: Iterable[ObjectKey]) -> list[Uid]:
        """Forget all other pods; return which ones these were."""
        gone = (self._uid_of.keys() | self._others.keys()) - set(keys)
        return [uid for key in gone if (uid := self.drop(key)) is not None]
