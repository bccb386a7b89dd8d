"""What following tells, put into the log and the metrics: gaps, once each, and objects that cannot be read."""

import logging
from dataclasses import dataclass, field
from typing import Final

from extender.kube.resource import RESOURCES
from extender.kube.told import Seen, Told, Trouble, Unserved
from extender.model.change import Changed, Listed, problem_in
from extender.model.problem import Problem
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# What cannot be read and was told: with more it is told anew. Whoever writes an object may do so all day.
MOST_TOLD: Final = 10_000
# Reasons why a resource is not read that are told: one that reads otherwise each time is no news for ever.
MOST_REASONS: Final = 8
NAMES: Final = {resource.kind: resource.name for resource in RESOURCES}


@dataclass(slots=True)
class Observer:
    """Logs and counts, and changes nothing."""

    metrics: Metrics
    _told: set[int] = field(default_factory=set)
    # Why each resource is not read, as far as it was told, until it is.
    _troubles: dict[str, set[str]] = field(default_factory=dict)
    # That these are not served has been told, and is so still.
    _unserved: set[str] = field(default_factory=set)

    def note(self, told: Told) -> None:
        """Note troubles, lists, and what cannot be read."""
        match told:
            case Trouble(resource, why):
                self._trouble(resource.name, why)
            case Seen(resource):
                self._unserved.discard(resource.name)
                if self._troubles.pop(resource.name, None):
                    LOG.info("reading goes on again", extra={keys.RESOURCE: str(resource)})
            case Unserved(resource):
                if self._troubles.pop(resource.name, None) or resource.name not in self._unserved:
                    LOG.info("not served", extra={keys.RESOURCE: str(resource)})
                self._unserved.add(resource.name)
            case Listed(kind, items):
                self.metrics.listed(NAMES[kind])
                LOG.info("listed", extra={keys.RESOURCE: NAMES[kind], keys.COUNT: len(items)})
                self._told.clear()
                for problem in filter(None, map(problem_in, items)):
                    self._complain(problem)
            case Changed(what):
                if (found := problem_in(what)) is not None:
                    self._complain(found)

    def _trouble(self, resource: str, why: str) -> None:
        """Tell why *resource* is not read; that is tried again every half minute at least."""
        told = self._troubles.setdefault(resource, set())
        if why not in told and len(told) < MOST_REASONS:
            told.add(why)
            LOG.warning("reading goes on later", extra={keys.RESOURCE: resource, keys.ERROR: why})

    def _complain(self, problem: Problem) -> None:
        if (said := hash(problem)) in self._told:
            return
        if len(self._told) >= MOST_TOLD:
            self._told.clear()
        self._told.add(said)
        LOG.warning("an object cannot be read", extra={keys.PROBLEM: str(problem)})
