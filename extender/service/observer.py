"""What following tells, put into the log and the metrics: gaps, and objects that cannot be read."""

import logging
from dataclasses import dataclass
from typing import Final

from extender.kube.resource import RESOURCES
from extender.kube.told import Told, Trouble, Unserved
from extender.model.change import Changed, Listed, Noun, problem_in
from extender.model.problem import Problem
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
NAMES: Final = {resource.kind: resource.name for resource in RESOURCES}


@dataclass(slots=True)
class Observer:
    """Looks on."""

    metrics: Metrics

    def note(self, told: Told) -> None:
        """Note troubles, lists, and what cannot be read."""
        match told:
            case Trouble(resource, why):
                LOG.warning("reading goes on later", extra={keys.RESOURCE: str(resource), keys.ERROR: why})
            case Unserved(resource):
                LOG.info("not served", extra={keys.RESOURCE: str(resource)})
            case Listed(kind, items):
                self.metrics.listed(NAMES[kind])
                LOG.info("listed", extra={keys.RESOURCE: NAMES[kind], keys.COUNT: len(items)})
                for item in items:
                    _complain(item)
            case Changed(what):
                _complain(what)


def _complain(what: Noun | Problem) -> None:
    problem = problem_in(what)
    if problem is not None:
        LOG.warning("an object cannot be read", extra={keys.PROBLEM: str(problem)})
