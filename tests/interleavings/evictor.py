"""Who evicts pods whose devices are tainted with NoExecute, as the controller of Kubernetes does: by results alone.

What a request tolerates counts only as far as it is written into the allocation, and for eviction only where it names
that effect. A pod that has no node yet is left alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, POD
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import key_of
from tests.interleavings.law import Law
from tests.interleavings.stock import given, results
from tests.interleavings.witness import RESOURCES

Json = dict[str, Any]
NO_EXECUTE: Final = "NoExecute"
# Templates of claims that put up with that effect, for ever or for so long.
IMMUNE: Final = [{"operator": "Exists", "effect": NO_EXECUTE}]
PATIENT: Final = [
    {"key": "sick", "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": 30},
    {"key": "worn", "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": 3},
]
ASKED: Final[dict[str, Json]] = {
    "immune": {"tolerations": IMMUNE},
    "patient": {"tolerations": PATIENT},
    "patient-2": {"count": 2, "tolerations": PATIENT},
}
COMMON: Final[dict[str, Json]] = {"shared-patient": {"tolerations": PATIENT}, "shared-immune": {"tolerations": IMMUNE}}
WANTS: Final = (
    ("immune",), ("patient",), ("patient",), ("patient-2",), ("patient", "one"), ("patient", "extended"),
    ("shared-patient",), ("shared-patient",), ("shared-patient", "one"), ("shared-immune", "patient"), ("shared-a",),
    ("shared-a",), ("two",),
)  # fmt: skip


@dataclass(slots=True)
class Evictor:
    """Deletes pods some time after their devices were tainted. *since*: when it saw for which reason which is to go."""

    api: ApiServer
    random: Random
    moment: Callable[[], float]
    since: dict[tuple[str, str], float] = field(default_factory=dict)

    def evict(self, *, is_all: bool = False) -> bool:
        """Delete a pod whose time has come, or all."""
        due = self._due()
        for pod in due if is_all else self.random.sample(due, min(1, len(due))):
            self.api.registry.delete(POD, key_of(pod), {"preconditions": {"uid": pod["metadata"]["uid"]}})
        return bool(due)

    def _due(self) -> list[Json]:
        kinds = [self.api.kinds[DRA, "v1", plural] for plural in RESOURCES]
        law, now = Law(*(self.api.store.each(kind) for kind in kinds)), self.moment()
        found = {
            (pod["metadata"]["uid"], name): (pod, seconds)
            for pod in self.api.store.each(POD)
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
            for name, seconds in self._reasons(pod, law)
        }
        self.since = {key: self.since.get(key, now) for key in found}
        late = {key[0]: pod for key, (pod, seconds) in found.items() if self.since[key] + seconds <= now}
        return list(late.values())

    def _reasons(self, pod: Json, law: Law) -> Iterator[tuple[str, float]]:
        """Yield what *pod* is to go by, and after how long."""
        uid, claims = pod["metadata"]["uid"], self.api.kinds[DRA, "v1", "resourceclaims"]
        made = {entry["name"]: entry["resourceClaimName"] for entry in pod["status"].get("resourceClaimStatuses") or ()}
        for entry in pod["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or made.get(entry["name"]) or ""
            claim = self.api.store.get(claims, (pod["metadata"]["namespace"], name))
            users = [user["uid"] for user in (claim or {}).get("status", {}).get("reservedFor") or ()]
            if claim and uid in users:
                for result, device in zip(results(claim), given(claim), strict=True):
                    for taint in law.evicting(device):
                        seconds = law.lasts(result.get("tolerations") or (), taint)
                        if seconds is not None:
                            yield f"{name}/{'/'.join(device)}/{taint['key']}/{taint.get('value', '')}", seconds
