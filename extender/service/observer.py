"""What following tells, put into the log and the metrics: gaps, unreadable objects, allocations by others."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.kube.resource import RESOURCES
from extender.kube.told import Told, Trouble, Unserved
from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.problem import Problem
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
NAMES: Final = {resource.kind: resource.name for resource in RESOURCES}


@dataclass(slots=True)
class Observer:
    """Looks on. *before* is told what comes before belief has taken it over, *after* afterwards."""

    belief: Belief
    metrics: Metrics
    leads: Callable[[], bool] = lambda: True
    _is_foreign: bool = False

    def before(self, told: Told) -> None:
        """Note troubles, lists, and whether an allocation comes that we did not write."""
        self._is_foreign = False
        match told:
            case Trouble(resource, why):
                LOG.warning("reading goes on later", extra={keys.RESOURCE: str(resource), keys.ERROR: why})
            case Unserved(resource):
                LOG.info("not served", extra={keys.RESOURCE: str(resource)})
            case Listed(kind, items):
                self.metrics.listed(NAMES[kind])
                LOG.info("listed", extra={keys.RESOURCE: NAMES[kind], keys.COUNT: len(items)})
                for item in items:
                    if isinstance(item, Problem):
                        _complain(item)
            case Changed(Problem() as problem):
                _complain(problem)
            case Changed(ResourceClaim() as claim):
                self._is_foreign = claim.allocation is not None and self._is_news(claim)

    def _is_news(self, claim: ResourceClaim) -> bool:
        # While another replica leads, allocations are its own.
        known = self.belief.cluster.claims.with_uid(claim.uid)
        is_new = known is None or known.allocation is None
        return is_new and self.leads() and not self.belief.ledger.is_binding(claim.uid)

    def after(self, told: Told) -> None:
        """Note an allocation by somebody else of devices that an earlier claim holds."""
        if not (self._is_foreign and isinstance(told, Changed) and isinstance(told.what, ResourceClaim)):
            return
        device = self.belief.contested(told.what)
        if device is not None:
            self.metrics.foreign_conflict(device.driver)
            fields = {keys.CLAIM: str(told.what.key), keys.DRIVER: device.driver}
            LOG.error("another allocator has given a device that is held", extra=fields)


def _complain(problem: Problem) -> None:
    LOG.warning("an object cannot be read", extra={keys.PROBLEM: str(problem)})
