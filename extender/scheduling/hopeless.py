"""Pods that fit nowhere, and what they are told as long as nothing changes: these are asked about again and again."""

from dataclasses import dataclass, field

from extender.allocation.snapshot import Snapshot
from extender.model.names import Uid
from extender.scheduling.needs import Needs
from extender.scheduling.plans import Rejection
from extender.scheduling.taste import Taste


@dataclass(slots=True)
class Hopeless:
    """Remembers rejections by what was asked. One writer.

    Which nodes are asked about makes no difference to them, but where the scheduler has a pod on one that we think it
    is kept from: such a node may be nearer to a success than those that the pod was told of first.
    """

    _at: tuple[Snapshot | None, Taste | None] = None, None
    rejections: dict[Uid, tuple[tuple[object, ...], Rejection]] = field(default_factory=dict)

    def of(self, needs: Needs, snapshot: Snapshot, taste: Taste | None) -> Rejection | None:
        """Return what the pod was told in *snapshot*, if it asks the same."""
        if self._at[0] is not snapshot or self._at[1] is not taste:
            self._at, self.rejections = (snapshot, taste), {}
            return None
        asked, told = self.rejections.get(needs.pod.uid, ((), None))
        return told if told is not None and asked == _asked(needs) else None

    def put(self, needs: Needs, told: Rejection) -> None:
        """Remember what a pod was told in the snapshot that was seen last; not where it fits, or nobody knows."""
        if told.is_hopeless and told.fitting is None:
            self.rejections[needs.pod.uid] = _asked(needs), told

    def drop(self, pod: Uid) -> None:
        """Forget a pod that waits no longer."""
        self.rejections.pop(pod, None)


def _asked(needs: Needs) -> tuple[object, ...]:
    return needs.pending, needs.allocated, needs.extended, needs.pod.terms
