"""The cluster and the people in it: what is there at the beginning, and what they do to it later."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, NODE, POD, Kind
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import key_of
from extender.demo.controller import FINALIZER
from tests.interleavings import evictor, regime
from tests.interleavings.law import OWNED, Device
from tests.interleavings.manifests import STRANGER, allocation, claim_spec, node_slice
from tests.interleavings.manifests import pod as pod_of
from tests.interleavings.regime import Regime
from tests.interleavings.stock import Stock
from tests.interleavings.ties import Ties, annotations
from tests.interleavings.variety import DRIVER, left_over, varied

Json = dict[str, Any]
NAMESPACE: Final = "ns"
API: Final = "resource.k8s.io/v1"
# How many devices each node has.
DEVICES: Final = {"n1": 4, "n2": 3, "n3": 2, "n4": 2}
TEMPLATES: Final = {"one": 1, "two": 2, "three": 3}
SHARED: Final = {"shared-a": 1, "shared-b": 2}
# What pods ask for: templates, shared claims, extended resources.
WANTS: Final = (
    ("one",), ("one",), ("two",), ("three",), ("one", "one"), ("one", "two"), ("shared-a",), ("shared-a",),
    ("shared-b",), ("shared-b", "one"), ("extended",), ("extended",), ("extended", "one"), (),
)  # fmt: skip
# Templates for a share, with as much memory; and what pods ask for where there are any.
SHARES: Final = {"share-1": 1, "share-2": 2}
VARIED: Final = (*WANTS, ("share-1",), ("share-1",), ("share-2",), ("share-1", "share-2"), ("share-2", "shared-a"))
# What pods ask for now and then: all the same.
CROWD: Final = (("shared-a",), ("shared-b",), ("one",))
MOST_PODS: Final = 12
# Whoever allocates beside us, and for how many pods at a time; who is picky has one leave for the next.
MOST_STRANGERS: Final = 2
MOST_PICKY: Final = 4
# What they take where devices are of all kinds: at times only what they have to share with us, and more of that.
TASTES: Final = ("all", "shares", "partitions")
# How many of the pods that leave have not been bound.
IMPATIENT: Final = 0.2
# How often something is left over of an older generation, before or after the others, and how much that says there is.
LEFT: Final = 0.5
LEFT_AT: Final = ("a-left", "z-left")
LEFT_SAYS: Final = (1, 8)
GRACE: Final = {"gracePeriodSeconds": 0}


@dataclass(slots=True)
class People:
    """Everybody who writes to the cluster beside the scheduler and the extender."""

    api: ApiServer
    random: Random
    # Whether there are devices that are shared, partitions, and such as have to be made ready.
    is_varied: bool = False
    # Who decrees which devices nobody may have, where anybody does.
    regime: Regime | None = None
    # Who publishes what ties devices together, where anything does.
    ties: Ties | None = None
    # Whether pods are evicted for taints.
    is_evicting: bool = False
    numbers: Iterator[int] = field(default_factory=count)
    wants: Sequence[tuple[str, ...]] = WANTS
    taste: str = "all"

    def change(self) -> None:
        """Have pods ask for something else from now on, and strangers take something else."""
        kinds = (VARIED, VARIED, CROWD) if self.is_varied else ()
        strange = [evictor.WANTS] * 3 if self.is_evicting else []
        self.wants = self.random.choice((*kinds, *([regime.WANTS] * 2 if self.regime else ()), *self._tied(), *strange))
        if self.is_varied:
            self.taste = self.random.choice(TASTES)

    def _tied(self) -> list[Sequence[tuple[str, ...]]]:
        return [self.ties.wants] * 3 if self.ties else []

    def kind(self, plural: str) -> Kind:
        return self.api.kinds[DRA, "v1", plural]

    def furnish(self) -> None:
        """Put up nodes, devices, classes, templates and shared claims."""
        for name, devices in DEVICES.items():
            self.api.registry.create(NODE, "", {"metadata": {"name": name}, "status": {"allocatable": {"pods": "110"}}})
            for item in self.slices_of(name, devices, 1):
                self.api.registry.create(self.kind("resourceslices"), "", item)
        if self.regime:
            self.regime.furnish()
        else:
            selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
            spec: Json = {"selectors": selectors, "extendedResourceName": "example.com/gpu"}
            self.api.registry.create(self.kind("deviceclasses"), "", {"metadata": {"name": "gpu"}, "spec": spec})
        for name, asked in self.templates().items():
            item = {"metadata": {"name": name}, "spec": {"metadata": {"annotations": annotations(name)}, "spec": asked}}
            self.api.registry.create(self.kind("resourceclaimtemplates"), NAMESPACE, item)
        spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": OWNED, "effect": "NoSchedule"}}
        self.api.registry.create(self.kind("devicetaintrules"), "", {"metadata": {"name": "owned"}, "spec": spec})
        self.share()

    def templates(self) -> dict[str, Json]:
        """Return what each template asks for."""
        found = {name: claim_spec(number) for name, number in TEMPLATES.items()}
        found |= {name: claim_spec(1, memory) for name, memory in SHARES.items()}
        found |= {name: claim_spec(**asked) for name, asked in regime.ASKED.items()} if self.regime else {}
        found |= {name: claim_spec(**asked) for name, asked in evictor.ASKED.items()} if self.is_evicting else {}
        return found | (self.ties.asked if self.ties else {})

    def common(self) -> dict[str, Json]:
        """Return what each shared claim asks for."""
        found = {name: claim_spec(number) for name, number in SHARED.items()}
        found |= {name: claim_spec(**asked) for name, asked in regime.COMMON.items()} if self.regime else {}
        found |= {name: claim_spec(**asked) for name, asked in evictor.COMMON.items()} if self.is_evicting else {}
        return found | (self.ties.common if self.ties else {})

    def share(self) -> None:
        """Make the shared claims that are not there."""
        for name, spec in self.common().items():
            if self.api.store.get(self.kind("resourceclaims"), (NAMESPACE, name)) is None:
                item = {"metadata": {"name": name, "annotations": annotations(name)}, "spec": spec}
                self.api.registry.create(self.kind("resourceclaims"), NAMESPACE, item)

    def slices_of(self, node: str, devices: int, generation: int) -> list[Json]:
        """Write what is published of *node*."""
        slices = varied(node, generation) if self.is_varied else [node_slice(node, range(devices), generation)]
        slices = self.regime.marked(slices) if self.regime else slices
        return self.ties.told(slices) if self.ties else slices

    def pods(self) -> list[Json]:
        return self.api.store.all(POD)

    def arrive(self) -> bool:
        """Create a pod; a name that is free again may be used again."""
        name = f"p{next(self.numbers)}" if self.random.random() < 0.7 else f"p-{self.random.randrange(4)}"
        if len(self.pods()) >= MOST_PODS or self.api.store.get(POD, (NAMESPACE, name)) is not None:
            return False
        self.api.registry.create(
            POD, NAMESPACE, pod_of(name, self.random.choice(self.wants), self.common(), self.random)
        )
        return True

    def leave(self) -> bool:
        """Delete a pod, let one finish, or let one end that is being deleted."""
        pods = [pod for pod in self.pods() if pod["spec"].get("nodeName") or self.random.random() < IMPATIENT]
        if not pods:
            return False
        pod = self.random.choice(pods)
        if pod["metadata"].get("deletionTimestamp"):
            self.api.registry.delete(POD, key_of(pod), GRACE)
        elif pod["spec"].get("nodeName") and self.random.random() < 0.3:
            self.finish(pod)
        else:
            self.api.registry.delete(POD, key_of(pod), {})
        return True

    def finish(self, pod: Json) -> None:
        self.api.registry.update(
            POD, key_of(pod), "status", lambda old: {**old, "status": {**old["status"], "phase": "Succeeded"}}
        )

    def clear(self, *, is_all: bool) -> None:
        """End the pods that are being deleted or have finished, or all."""
        for pod in self.pods():
            if is_all or pod["metadata"].get("deletionTimestamp") or pod["status"].get("phase") == "Succeeded":
                self.api.registry.delete(POD, key_of(pod), GRACE)

    def meddle(self) -> None:
        """Touch or delete a claim, or touch a pod."""
        kind = self.kind("resourceclaims")
        what = self.random.choice(("touch", "touch", "delete", "pod", "share", "rename"))
        if what == "rename":
            return self.rename()
        items = self.pods() if what == "pod" else self.api.store.all(kind)
        if what == "share" or not items:
            return self.share()
        item = self.random.choice(items)
        if what == "delete":
            self.api.registry.delete(kind, key_of(item), {})
        else:
            self.touch(POD if what == "pod" else kind, item)
        return None

    def intrude(self) -> bool:
        """Be another allocator, which the owner taint does not keep away: give a device that nobody has to its own pod.

        It looks as ours does, by claims alone, and sees nothing of what is merely promised.
        """
        claims, stock = self.kind("resourceclaims"), Stock(self.api.store.all(self.kind("resourceslices")))
        known = {claim["metadata"]["name"]: claim for claim in self.api.store.all(claims)}
        shares, free = stock.shares(known), self.tasty(stock, known)
        strangers, is_picky = self.strangers(), self.taste != "all"
        if is_picky and len(strangers) == MOST_PICKY:
            self.api.registry.delete(POD, key_of(self.random.choice(strangers)), GRACE)
            return True
        if not free or (len(strangers) >= MOST_STRANGERS and not is_picky):
            return False
        device, name = self.random.choice(free), f"{STRANGER}-{next(self.numbers)}"
        pod = pod_of(name, (), (), self.random)
        pod["spec"] |= {"schedulerName": STRANGER, "resourceClaims": [{"name": "c", "resourceClaimName": name}]}
        uid = self.api.registry.create(POD, NAMESPACE, pod)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        metadata = {"name": name, "ownerReferences": [owner], "finalizers": [FINALIZER]}
        self.api.registry.create(claims, NAMESPACE, {"metadata": metadata, "spec": claim_spec(1)})
        status = {
            "allocation": allocation(*device[1:], self.random.randint(1, shares[device]) if device in shares else 0),
            "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
        }
        key = NAMESPACE, name
        self.api.registry.update(claims, key, "status", partial(_with_status, status=status), manager=STRANGER)
        target = {"apiVersion": "v1", "kind": "Node", "name": device[1]}
        self.api.registry.bind(POD, key, {"metadata": {"name": name}, "target": target})
        return True

    def tasty(self, stock: Stock, known: Mapping[str, Json]) -> list[Device]:
        """Return what strangers take. Of what is shared a part may be left; of the rest whoever comes first has all."""
        if self.taste == "shares":
            return list(stock.shares(known))
        return [device for device in stock.free(known) if self.taste == "all" or device in stock.drawn]

    def strangers(self) -> list[Json]:
        return [pod for pod in self.pods() if pod["spec"]["schedulerName"] == STRANGER]

    def expel(self) -> None:
        """End the pods of the other allocator, so that what is closed for them opens."""
        for pod in self.strangers():
            self.api.registry.delete(POD, key_of(pod), GRACE)

    def rename_any(self) -> None:
        """Do as ``rename`` to any pod, not the oldest."""
        pods = self.pods()
        self.rename(self.random.sample(pods, len(pods)))

    def rename(self, pods: Sequence[Json] | None = None) -> None:
        """Make a second claim for a pod that waits, and name that: as its controller does that heard of no first."""
        for pod in self.pods() if pods is None else pods:
            made: list[Json] = pod["status"].get("resourceClaimStatuses") or []
            key = NAMESPACE, next((entry["resourceClaimName"] for entry in made), "")
            known = self.api.store.get(self.kind("resourceclaims"), key)
            if known is None or pod["spec"].get("nodeName"):
                continue
            copied = {name: known["metadata"][name] for name in ("generateName", "annotations", "ownerReferences")}
            item = {"metadata": copied, "spec": known["spec"]}
            fresh = self.api.registry.create(self.kind("resourceclaims"), NAMESPACE, item)["metadata"]["name"]
            self.api.registry.update(POD, key_of(pod), "status", partial(_renamed, entry=made[0]["name"], claim=fresh))
            return

    def touch(self, kind: Kind, item: Json) -> None:
        mark = {"touched-by-somebody": str(next(self.numbers))}
        self.api.registry.update(kind, key_of(item), "", lambda old: _annotated(old, mark))

    def republish(self, *, is_whole: bool = False) -> None:
        """Publish the devices of a node anew, in a new generation; one may be missing."""
        for name in DEVICES if is_whole else [self.random.choice(tuple(DEVICES))]:
            devices = DEVICES[name] - (0 if is_whole else self.random.randrange(2))
            kind, key = self.kind("resourceslices"), ("", f"{name}-gpus")
            known = self.api.store.get(kind, key)
            if known is None:
                continue
            generation = known["spec"]["pool"]["generation"]
            for item in self.slices_of(name, devices, generation + 1):
                key = "", item["metadata"]["name"]
                self.api.registry.update(kind, key, "", partial(_specified, spec=item["spec"]))
            if self.is_varied:
                self.leave_over(name, self.slices_of(name, devices, generation))

    def leave_over(self, node: str, slices: Sequence[Json]) -> None:
        """Have one of *slices* left over of an older generation, in place of what was before; or nothing."""
        kind, names = self.kind("resourceslices"), [f"{node}-{place}" for place in LEFT_AT]
        for name in names:
            if self.api.store.get(kind, ("", name)) is not None:
                self.api.registry.delete(kind, ("", name), {})
        if self.random.random() < LEFT:
            item = left_over(self.random.choice(slices), self.random.choice(names), self.random.choice(LEFT_SAYS))
            self.api.registry.create(kind, "", item)


def _with_status(item: Json, status: Json) -> Json:
    return {**item, "status": status}


def _specified(item: Json, spec: Json) -> Json:
    return {**item, "spec": spec}


def _renamed(pod: Json, entry: str, claim: str) -> Json:
    listed = pod["status"]["resourceClaimStatuses"]
    named = [{**each, "resourceClaimName": claim} if each["name"] == entry else each for each in listed]
    return {**pod, "status": {**pod["status"], "resourceClaimStatuses": named}}


def _annotated(item: Json, mark: Json) -> Json:
    annotations = {**(item["metadata"].get("annotations") or {}), **mark}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}
