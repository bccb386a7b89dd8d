"""What must hold, read off the API server's own objects. Nothing of the product is imported here.

*At once*, after every write: no device is in two claims of ours, nor in one of ours and in a stranger's if our pod is
bound; and a bound pod has its devices on its node, and they are ready. *In time*: no device is in two claims at all, no
claim keeps devices that no pod wants, and no pod waits that fits. What is shared is enough for all that have a share.
"""

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

from tests.interleavings.law import Device
from tests.interleavings.stock import Part, Stock, given, has_failed, is_complete, unready

Json = dict[str, Any]
FINISHED = ("Succeeded", "Failed")
RESOURCE = "example.com/gpu"
STRANGER = "stranger-"
# On a claim that was made for extended resources.
COUNTED = "resource.kubernetes.io/extended-resource-claim"


class Objects:
    """Pods, claims and what is published as they are stored, at one moment."""

    def __init__(self, pods: list[Json], claims: list[Json], stock: Stock) -> None:
        self.pods = pods
        self.claims = {_name(claim): claim for claim in claims}
        self.stock = stock
        self._places: dict[str, dict[str, Json]] = {}

    def doubles(self) -> Iterator[str]:
        """Name the devices that are in two claims."""
        return (_double(part) for part in self._overdrawn())

    def doubles_in_use(self) -> Iterator[str]:
        """Name what is in two claims of ours, and what a pod of ours is bound with though a stranger has it.

        A stranger gives what looks free to it while our write of the same device is on its way: one is taken back then,
        before our pod is bound. Of a shared claim that is given anew, a pod that has finished uses nothing any more.
        """
        bound = [pod for pod in self.pods if pod["spec"].get("nodeName") and pod["status"].get("phase") not in FINISHED]
        used = {name for pod in bound for name in self.wanted(pod)}
        for part in self._overdrawn():
            ours = [name for name in part.taken if not name.startswith(STRANGER)]
            if part.is_over(ours) or part.is_over(name for name in part.taken if name in used or name not in ours):
                yield _double(part)

    def _overdrawn(self) -> Iterator[Part]:
        return (part for part in self.stock.parts(self.claims) if part.is_over(part.taken))

    def bare(self) -> Iterator[str]:
        """Name the bound pods that lack devices, or have some elsewhere."""
        for pod in self.pods:
            node = pod["spec"].get("nodeName")
            if node and pod["status"].get("phase") not in FINISHED:
                yield from (f"pod {_name(pod)} on {node}: {why}" for why in self._lacks(pod, node))

    def _lacks(self, pod: Json, node: str) -> Iterator[str]:
        for name in self.wanted(pod):
            claim = self.claims.get(name or "")
            if claim is None:
                yield f"claim {name} is not there"
            elif not given(claim):
                yield f"claim {name} has no devices"
            elif _uid(pod) not in _reserved(claim):
                yield f"claim {name} is not reserved for it"
            elif {pool for _, pool, _ in given(claim)} != {node}:
                yield f"claim {name} has devices elsewhere"
            elif not is_complete(claim):
                yield f"claim {name} has {len(given(claim))} devices, which is not what it asks for"
            elif waiting := list(unready(claim)):
                yield f"claim {name} has device {'/'.join(waiting[0])}, which is not ready"

    def wanted(self, pod: Json) -> list[str | None]:
        """Name the claims of *pod*; None for one that is not made yet."""
        status = pod["status"]
        made = {entry["name"]: entry["resourceClaimName"] for entry in status.get("resourceClaimStatuses") or ()}
        names = [
            entry.get("resourceClaimName") or made.get(entry["name"])
            for entry in pod["spec"].get("resourceClaims") or ()
        ]
        mapped = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        return [*names, mapped] if _extended(pod) else names

    def leaks(self) -> Iterator[str]:
        """Name the claims that have devices, while no pod that lives has a use for them.

        One that is deleted before it had a node, and kept by whomever, never will.
        """
        living = {_uid(pod): pod for pod in self.pods if not _has_ended(pod)}
        named = {name for pod in living.values() for name in self.wanted(pod)}
        for name, claim in self.claims.items():
            if given(claim) and name not in named and not (_reserved(claim) & living.keys()):
                yield f"claim {name}"

    def waiting(self) -> list[Json]:
        """Return the pods that could be bound if their devices were free."""
        return [
            pod
            for pod in self.pods
            if not pod["spec"].get("nodeName")
            and not pod["metadata"].get("deletionTimestamp")
            and all(self._is_usable(name) for name in self._asked(pod))
            and not self._is_hindered(pod)
        ]

    def _is_hindered(self, pod: Json) -> bool:
        """Tell whether a claim for extended resources is left of an earlier attempt, and somebody keeps it."""
        owned = (self.claims[name]["metadata"] for name in self._made_for(_uid(pod)))
        return any(item.get("deletionTimestamp") and COUNTED in (item.get("annotations") or {}) for item in owned)

    def fitting(self) -> list[str]:
        """Name the pods that wait although they fit on some node as it is now. A pool has the name of its node."""
        nodes = sorted({pool for _, pool, _ in self.stock.devices})
        return [_name(pod) for pod in self.waiting() if any(self._fits(node, pod) for node in nodes)]

    def without(self, gone: frozenset[str]) -> "Objects":
        """Return what is left once the pods *gone* have gone, and what they alone had is free."""
        claims = (_without(claim, gone) for claim in self.claims.values())
        pods = [pod for pod in self.pods if _uid(pod) not in gone]
        return Objects(pods, [claim for claim in claims if claim is not None], self.stock)

    def pod(self, uid: str) -> Json | None:
        return next((pod for pod in self.pods if _uid(pod) == uid), None)

    def can_be(self, node: str, *pods: Json | None) -> bool:
        """Tell whether *pods* wait, and have their devices on *node* beside one another.

        What they have there already they are bound with, whatever is said of it by now, unless that has failed.
        """
        waiting = self.waiting()
        known = [pod for pod in pods if pod is not None and pod in waiting]
        ways = ({"is_at_most": True, "is_kept": is_kept} for is_kept in (False, True))
        return len(known) == len(pods) and any(self._fits(node, *known, **way) for way in ways)

    def had_on(self, node: str) -> dict[str, list[Device]]:
        """Return what claims have on *node*."""
        return {name: given(claim) for name, claim in self._at(node).items()}

    def are_there(self, pods: frozenset[str]) -> bool:
        """Tell whether one of *pods* is on a node, or has devices, still."""
        return any(_uid(pod) in pods and pod["spec"].get("nodeName") for pod in self.pods) or any(
            _reserved(claim) & pods for claim in self.claims.values()
        )

    def is_bound_to_others(self, pod: Json) -> bool:
        """Tell whether others have what *pod* is to share with them."""
        claims = (self.claims[name] for name in self._asked(pod) if name)
        return any(given(claim) and _reserved(claim) - {_uid(pod)} for claim in claims)

    def priority_of(self, claim: str) -> int:
        """Return how important those are who have *claim*."""
        users = _reserved(self.claims[claim])
        return max((pod["spec"]["priority"] for pod in self.pods if _uid(pod) in users), default=0)

    def _asked(self, pod: Json) -> list[str | None]:
        names = self.wanted(pod)
        return names[:-1] if _extended(pod) else names

    def _is_usable(self, name: str | None) -> bool:
        claim = self.claims.get(name or "")
        return claim is not None and not claim["metadata"].get("deletionTimestamp")

    def _fits(self, node: str, *pods: Json, is_at_most: bool = False, is_kept: bool = False) -> bool:
        """Tell whether *pods* fit on *node*. What they alone have, here or elsewhere, could be freed.

        *is_at_most*: shares may be of one device; *is_kept*: nothing is freed but what has failed.
        """
        uids = set(map(_uid, pods))
        claims = [self.claims[name] for name in dict.fromkeys(chain(*map(self._asked, pods))) if name]
        shared = [claim for claim in claims if given(claim) and _reserved(claim) - uids]
        kept = [claim for claim in claims if is_kept and given(claim) and claim not in shared and not has_failed(claim)]
        fixed = [*shared, *kept]
        if any({pool for _, pool, _ in given(claim)} != {node} for claim in fixed):
            return False
        if any(self._is_kept(claim) for claim in shared):
            return False
        own = {_name(claim) for claim in claims if claim not in fixed}.union(*map(self._made_for, uids))
        others = {name: claim for name, claim in self._at(node).items() if name not in own}
        asking = [claim for claim in claims if claim not in fixed]
        for number in filter(None, map(_extended, pods)):
            classes = self.stock.law.behind(RESOURCE)
            if not classes:
                return False
            asking.append(_by_number(classes[0], number))
        choices = product(*(self.stock.ways(claim, node) for claim in asking))
        return any(self.stock.suffices([*chain(*ways)], others, node, is_at_most=is_at_most) for ways in choices)

    def _at(self, node: str) -> dict[str, Json]:
        """Return the claims that have devices of *node*."""
        if not self._places:
            for name, claim in self.claims.items():
                for _, pool, _ in given(claim):
                    self._places.setdefault(pool, {})[name] = claim
        return self._places.get(node, {})

    def _is_kept(self, claim: Json) -> bool:
        """Tell whether *claim* cannot be made ready, and is not given up: who has it is never tried."""
        return any(unready(claim)) and not {_uid(pod) for pod in self.waiting()}.issuperset(_reserved(claim))

    def _made_for(self, uid: str) -> set[str]:
        return {
            name
            for name, claim in self.claims.items()
            if any(owner["uid"] == uid for owner in claim["metadata"].get("ownerReferences") or ())
        }


def _by_number(name: str, number: int) -> Json:
    """Return what *number* of the extended resource are asked for with."""
    request = {"name": "counted", "exactly": {"deviceClassName": name, "count": number}}
    return {"metadata": {"name": ""}, "spec": {"devices": {"requests": [request]}}}


def _without(claim: Json, gone: frozenset[str]) -> Json | None:
    """Return *claim* as it is once the pods *gone* have gone; None where it goes with one of them."""
    if any(owner["uid"] in gone for owner in claim["metadata"].get("ownerReferences") or ()):
        return None
    users = (claim.get("status") or {}).get("reservedFor") or ()
    left = [user for user in users if user["uid"] not in gone]
    if len(left) == len(users):
        return claim
    return {**claim, "status": {**claim["status"], "reservedFor": left} if left else {}}


def _has_ended(pod: Json) -> bool:
    is_lost = bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")
    return is_lost or pod["status"].get("phase") in FINISHED


def _double(part: Part) -> str:
    return f"device {'/'.join(part.place)} is in {' and '.join(sorted(part.taken))}"


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _uid(item: Json) -> str:
    return str(item["metadata"]["uid"])


def _reserved(claim: Json) -> set[str]:
    return {entry["uid"] for entry in (claim.get("status") or {}).get("reservedFor") or ()}


def _extended(pod: Json) -> int:
    """Count the devices that *pod* asks for by number."""
    listed = [container.get("resources") or {} for container in pod["spec"]["containers"]]
    return sum(int((amounts.get("requests") or {}).get(RESOURCE, 0)) for amounts in listed)
