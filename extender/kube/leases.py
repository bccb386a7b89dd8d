"""Leases of coordination.k8s.io/v1, read and written: each write replaces the version that was read, or nothing."""

import math
from collections.abc import Callable
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from extender.kube.answer import Json
from extender.kube.api import Api
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown, outcome_of
from extender.kube.request import Body
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey
from extender.scheduling.steps import Later, Refusal, is_refused
from extender.state.tenure import Record

API = "coordination.k8s.io/v1"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What a write meets where somebody else was faster.
CONFLICTS = (Refusal.CONFLICT, Refusal.EXISTS, Refusal.NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as the API server has it, None in place of a record where it has none."""

    record: Record | None = None
    raw: Json | None = None


Failure = Refused | Later | Unknown


@dataclass(slots=True)
class Leases:
    """Leases at one API server. *wall* is the time of the day, which is written for people.

    Nobody compares it here; but by it a write is known again that has landed unheard, and so no two have the same, even
    where the clock is set back. written: that of the last one.
    """

    api: Api
    timeout_s: float
    wall: Callable[[], float]
    written: str = ""
    _microseconds: int = field(default=0, init=False)

    async def read(self, key: ObjectKey) -> Lease | Failure:
        """Read a Lease as it is now."""
        outcome = outcome_of(await self.api.call("GET", path_of(key), timeout_s=self.timeout_s))
        if is_refused(outcome, Refusal.NOT_FOUND):
            return Lease()
        return _lease_in(outcome)

    async def hold(self, key: ObjectKey, known: Lease, holder: str, lease_s: float) -> Lease | Failure:
        """Write that *holder* has the Lease from now on, or nobody; only where it still is as it was *known*."""
        method, path = ("PUT", path_of(key)) if known.raw else ("POST", path_of(key, is_whole=False))
        query = (("timeout", f"{self.timeout_s * 1000:.0f}ms"),)
        self.written = self._now()
        body = Body(_written(key, known, holder, lease_s, self.written))
        outcome = outcome_of(await self.api.call(method, path, query=query, body=body, timeout_s=self.timeout_s))
        if is_refused(outcome, Refusal.NOT_FOUND) and not known.raw:
            # It is the namespace that is not there.
            return replace(outcome, kind=Refusal.REJECTED)
        return _lease_in(outcome)

    def _now(self) -> str:
        """Spell the time as the API server does, and later than ever before."""
        self._microseconds = max(self._microseconds + 1, round(self.wall() * 1e6))
        return (EPOCH + timedelta(microseconds=self._microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def path_of(key: ObjectKey, *, is_whole: bool = True) -> str:
    """Spell the path of a Lease, or of all in its namespace."""
    return f"/apis/{API}/namespaces/{key.namespace}/leases" + (f"/{key.name}" if is_whole else "")


def is_conflict(failure: Failure) -> bool:
    """Tell whether somebody else has written since."""
    return is_refused(failure, *CONFLICTS)


def _lease_in(outcome: RequestOutcome) -> Lease | Failure:
    if not isinstance(outcome, Succeeded):
        return outcome
    spec = outcome.object.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    seconds = spec.get("leaseDurationSeconds")
    holder = str(spec.get("holderIdentity") or "")
    transitions = int(spec.get("leaseTransitions") or 0)
    written = str(spec.get("renewTime") or "")
    return Lease(Record(outcome.resource_version, holder, float(seconds or 0), transitions, written), outcome.object)


def _written(key: ObjectKey, known: Lease, holder: str, lease_s: float, at: str) -> Json:
    """Spell the Lease: what we do not know of it stays. Its uid keeps a PUT from making one that was deleted."""
    raw = known.raw or {"metadata": {"namespace": key.namespace, "name": key.name}}
    before = raw.get("spec")
    spec = dict(before) if isinstance(before, dict) else {}
    if holder != spec.get("holderIdentity", ""):
        spec |= {"acquireTime": at, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + bool(holder)}
    spec |= {"renewTime": at, "leaseDurationSeconds": math.ceil(lease_s), "holderIdentity": holder}
    if not holder:
        del spec["holderIdentity"]  # which may be missing, but not empty
    return {**raw, "apiVersion": API, "kind": "Lease", "spec": spec}
