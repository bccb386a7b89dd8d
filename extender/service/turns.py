"""Pods looked after one by one, so that none holds up the others.

A webhook that hangs does so for the pods of some namespaces. Each write for one of them takes as long as we wait for an
answer: whoever is of another namespace goes before, and of these pods one has its turn.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Final

from extender.model.names import Uid
from extender.state.belief import Belief
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# How long the pods of a namespace come last, however important they are: what was slow once may be so no more.
LAPSE_S: Final = 30.0


@contextmanager
def apart(pod: object) -> Iterator[None]:
    """Have what goes wrong with *pod* end what is done for it, and nothing else."""
    try:
        yield
    except Exception:
        LOG.exception("looking after a pod failed", extra={keys.POD: str(pod)})


@dataclass(slots=True)
class Turns:
    """Remembers for whom the API server had no answer. *now* is a clock that only goes forward.

    patience_s: how long one pod may take; *slow*: when a pod of a namespace took longer, or had no answer, last.
    """

    belief: Belief
    now: Callable[[], float]
    patience_s: float
    slow: dict[str, float] = field(default_factory=dict)
    _began: float = inf

    def begin(self) -> None:
        """Begin a round: in each, a namespace holds up the others once."""
        self._began = self.now()
        for namespace in [name for name, at in self.slow.items() if self._began - at > LAPSE_S]:
            del self.slow[namespace]

    def has_had(self, pod: Uid) -> bool:
        """Tell whether one of the namespace of *pod* has held up the others in this round."""
        return self._slow_at(pod) > self._began

    async def each(self, pods: Iterable[Uid], work: Callable[[Uid], Awaitable[bool | None]]) -> None:
        """Do *work* for each of *pods* until one holds us up: the others have the next turn."""
        for uid in sorted(pods, key=self._slow_at):
            if self.has_had(uid) or await self.holds_up(uid, work(uid)):
                return

    async def holds_up(self, pod: Uid, work: Awaitable[bool | None]) -> bool:
        """Do *work* for *pod*, which tells whether there was an answer, and None where nothing was asked."""
        known, since = self.belief.pods.with_uid(pod), self.now()
        namespace = known.key.namespace if known else ""
        try:
            is_answered = await work
        except Exception:
            # Whatever went wrong with one pod, the others are looked after.
            LOG.exception("looking after a pod failed", extra={keys.POD: str(known.key) if known else pod})
            return False
        is_slow = is_answered is False or self.now() - since > self.patience_s
        if is_slow:
            self.slow[namespace] = self.now()
        elif is_answered:
            self.slow.pop(namespace, None)
        return is_slow

    def _slow_at(self, pod: Uid) -> float:
        known = self.belief.pods.with_uid(pod)
        return self.slow.get(known.key.namespace, -inf) if known else -inf
