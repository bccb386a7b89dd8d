"""Pods that wait for a node, of the schedulers that we serve."""

from collections.abc import Iterable, Iterator

from extender.model.names import ObjectKey, Uid
from extender.model.node import FINISHED, Pod


class Pods:
    """Waiting pods by name and by identity. One writer."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self._by_uid: dict[Uid, Pod] = {}
        self._uid_of: dict[ObjectKey, Uid] = {}

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

    def serves(self, pod: Pod) -> bool:
        """Tell whether *pod* is of a scheduler that we serve."""
        return pod.scheduler in self._schedulers

    def put(self, pod: Pod) -> Uid | None:
        """Take *pod* over; return which pod of that name waits no longer."""
        before = self._uid_of.get(pod.key)
        if pod.node_name or pod.phase in FINISHED or not self.serves(pod):
            return self.drop(pod.key)
        self._by_uid[pod.uid] = pod
        self._uid_of[pod.key] = pod.uid
        if before is None or before == pod.uid:
            return None
        del self._by_uid[before]
        return before

    def drop(self, key: ObjectKey) -> Uid | None:
        """Forget a pod; return which one it was."""
        uid = self._uid_of.pop(key, None)
        if uid is not None:
            del self._by_uid[uid]
        return uid

    def keep_only(self, keys: Iterable[ObjectKey]) -> list[Uid]:
        """Forget all other pods; return which ones these were."""
        gone = self._uid_of.keys() - set(keys)
        return [uid for key in gone if (uid := self.drop(key)) is not None]
