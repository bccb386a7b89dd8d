"""Pods woken at the API server: nominated for a node where it is known which, otherwise annotated."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from extender.kube.outcome import Done, Unknown
from extender.kube.writes import Writes
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.steps import Later
from extender.service.remaking import WOKEN
from extender.telemetry.metrics import Metrics


@dataclass(slots=True)
class Wakes:
    """Wakes one pod after another, with a pause of *pause_s*. *now* is a clock that only goes forward."""

    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    pause_s: float
    nominates: bool

    async def wake(self, pod: Pod, node: NodeName | None = None) -> bool:
        """Have the scheduler try *pod* again; tell whether there was an answer to that."""
        if node and self.nominates and pod.nominated_node != node:
            way, outcome = "nomination", await self.writes.nominate(pod, node)
        else:
            way, outcome = "annotation", await self.writes.annotate_pod(pod, WOKEN, f"{self.now():.3f}")
        self.metrics.wake(way, "done" if isinstance(outcome, Done) else "failed")
        await asyncio.sleep(self.pause_s)
        return not isinstance(outcome, Unknown | Later)
