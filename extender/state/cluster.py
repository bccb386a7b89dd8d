"""The cluster as the API server tells it. One writer applies changes; readers keep the snapshots that they have."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from extender.allocation.boards import Boards
from extender.allocation.inventory import SliceKey, key_of
from extender.allocation.layout import layout_of
from extender.allocation.publication import differs, published, with_node, with_nodes, with_slice, without
from extender.allocation.reach import carried, reach_of
from extender.allocation.snapshot import Snapshot, empty, free_of, with_usage
from extender.allocation.usage import Hold
from extender.model.change import Change, Changed, Gone, Kind, Listed, Noun, kind_of, problem_in, relisted
from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice, Seal
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey
from extender.model.node import Node, Pod
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule
from extender.state.claims import Claims
from extender.state.occupancy import NOTHING, Occupancy, Touched

K = TypeVar("K")
V = TypeVar("V")


class Cluster:
    """Belief about the cluster. ``snapshot`` is replaced by each change that makes a difference, never modified.

    Without *sharing*, shares that were given before take all of their devices.
    """

    def __init__(self, *, sharing: bool = True) -> None:
        self.snapshot: Snapshot = empty()
        self.claims = Claims()
        self._occupancy = Occupancy(sharing=sharing)
        self._slices: dict[str, SliceKey] = {}
        self._problems: dict[tuple[str, ObjectKey], Problem] = {}

    def apply(self, change: Change) -> Snapshot:
        """Take *change* over and return the cluster as it is then: one generation later, if it differs at all.

        Pods are no part of a snapshot: what concerns them makes no difference here.
        """
        before = self.snapshot
        if kind_of(change) not in OF_PODS:
            self._take(change)
        if self.snapshot is not before:
            self.snapshot = replace(self.snapshot, generation=before.generation + 1)
        return self.snapshot

    def seal(self, keys: Iterable[SliceKey], seal_of: Callable[[ResourceSlice], Seal | None]) -> Snapshot:
        """Seal these slices, as far as they are there, as *seal_of* says, which may say something else than before."""
        before = self.snapshot
        for key in keys:
            known = self.snapshot.inventory.with_key(key)
            if known is not None and known.seal is not (seal := seal_of(known)):
                self.snapshot = with_slice(self.snapshot, replace(known, seal=seal), self._occupancy.usage)
        if self.snapshot is not before:
            self.snapshot = replace(self.snapshot, generation=before.generation + 1)
        return self.snapshot

    @property
    def problems(self) -> Collection[Problem]:
        """Say what cannot be read. It is in no snapshot: of what strangers write there may be any number."""
        return self._problems.values()

    def holds_of(self, claim: ObjectKey) -> tuple[Hold, ...]:
        """Return what the claim takes in ``snapshot``."""
        return self._occupancy.holds_of(claim)

    def _take(self, change: Change) -> None:
        match change:
            case Listed(kind, items):
                self._list(kind, items)
            case Gone(kind, key):
                self._note(kind.__name__, key, None)
                self._remove(kind, key)
            case Changed(what):
                if isinstance(what, Problem):
                    self._complain(what)
                else:
                    self._note(type(what).__name__, key_of_noun(what), problem_in(what))
                    self._put(what)

    def _put(self, noun: Noun) -> None:
        match noun:
            case ResourceSlice():
                self._put_slice(noun)
            case ResourceClaim():
                self._put_claims((noun,), NOTHING)
            case Node():
                self._put_node(noun)
            case DeviceClass():
                self._set(classes=_with(self.snapshot.classes, noun.name, noun))
            case DeviceTaintRule():
                self._set(rules=_with(self.snapshot.rules, noun.name, noun))

    def _remove(self, kind: Kind | None, key: ObjectKey) -> None:
        if kind is ResourceSlice:
            self._remove_slice(key.name)
        elif kind is ResourceClaim:
            self.claims.drop(key)
            self._retake(self._occupancy.drop(key))
        elif kind is Node:
            self._set_nodes(_without(self.snapshot.nodes, key.name))
        elif kind is DeviceClass:
            self._set(classes=_without(self.snapshot.classes, key.name))
        elif kind is DeviceTaintRule:
            self._set(rules=_without(self.snapshot.rules, key.name))

    def _complain(self, problem: Problem) -> None:
        """Remember *problem*. What could be read of the object before no longer holds, but for what a claim holds."""
        if problem.kind != ResourceClaim.__name__:
            self._remove(KINDS.get(problem.kind), problem.key)
        self._note(problem.kind, problem.key, problem)

    def _note(self, kind: str, key: ObjectKey, problem: Problem | None) -> None:
        """Remember what is wrong with an object now, if anything."""
        if problem is None:
            self._problems.pop((kind, key), None)
        else:
            self._problems[kind, key] = problem

    def _list(self, kind: Kind, items: tuple[Noun | Problem, ...]) -> None:
        nouns = [item for item in items if not isinstance(item, Problem)]
        self._problems = {place: old for place, old in self._problems.items() if place[0] != kind.__name__}
        self._problems |= {(kind.__name__, found.key): found for found in map(problem_in, items) if found}
        if kind is ResourceClaim:
            self._list_claims(items)
        else:
            self._replace(kind, nouns)

    def _replace(self, kind: Kind, nouns: list[Any]) -> None:
        if kind is ResourceSlice:
            self.snapshot = published(self.snapshot, nouns, self._occupancy.usage)
            self._slices = {key.name: key for key in self.snapshot.inventory.keys}
        elif kind is Node:
            if any(relisted(self.snapshot.nodes.values(), nouns, key_of_noun)):
                self._set_nodes({node.name: node for node in nouns})
        elif kind is DeviceClass:
            self._set(classes={item.name: item for item in nouns})
        elif kind is DeviceTaintRule:
            self._set(rules={item.name: item for item in nouns})

    def _list_claims(self, items: tuple[Noun | Problem, ...]) -> None:
        """Take over what has changed. What can no longer be read is there, and holds what it did."""
        news, gone = relisted(self.claims, items, key_of_noun)
        for key in gone:
            self.claims.drop(key)
        touched = NOTHING.union(*map(self._occupancy.drop, gone))
        self._put_claims([item for item in news if isinstance(item, ResourceClaim)], touched)

    def _put_claims(self, claims: Sequence[ResourceClaim], touched: Touched) -> None:
        before, is_news = self.snapshot, any(map(self._is_usable_again, claims))
        for claim in claims:
            self.claims.put(claim)
        self._retake(touched.union(*map(self._occupancy.put, claims)))
        if is_news and self.snapshot is before:
            # Whoever waits for it has news, though nothing is taken otherwise.
            self.snapshot = replace(before)

    def _is_usable_again(self, claim: ResourceClaim) -> bool:
        """Tell whether *claim* can be read now and could not before, or is free of what it may not have held."""
        old = self.claims.get(claim.key)
        if old is None:
            return False
        is_free = old.allocation is not None and claim.allocation is None
        return is_free or (old.problem is not None and claim.problem is None)

    def _put_node(self, node: Node) -> None:
        nodes = self.snapshot.nodes
        if node.name in nodes:
            self.snapshot = with_node(self.snapshot, node)
        else:
            self._set_nodes({**nodes, node.name: node})

    def _put_slice(self, item: ResourceSlice) -> None:
        key = key_of(item)
        if self._slices.get(item.name, key) != key:
            self._remove_slice(item.name)
        inventory = self.snapshot.inventory
        if item.name not in self._slices or differs(inventory.slices[inventory.index(key)], item):
            self._slices[item.name] = key
            self.snapshot = with_slice(self.snapshot, item, self._occupancy.usage)

    def _remove_slice(self, name: str) -> None:
        key = self._slices.pop(name, None)
        if key is not None:
            self.snapshot = without(self.snapshot, key)

    def _retake(self, touched: Touched) -> None:
        """Bring the use of the devices *touched* up to date."""
        rows = {
            row: self._occupancy.usage(device) for device in touched for row in self.snapshot.inventory.rows_of(device)
        }
        self.snapshot = with_usage(self.snapshot, rows)

    def _set_nodes(self, nodes: Mapping[Any, Node]) -> None:
        if nodes is self.snapshot.nodes:
            return
        if nodes.keys() == self.snapshot.nodes.keys():
            self.snapshot = with_nodes(self.snapshot, nodes)
            return
        layout = layout_of(self.snapshot.inventory, nodes)
        sights = carried(self.snapshot.reach, self.snapshot.nodes, layout, nodes)
        reach = reach_of(self.snapshot.inventory, layout, nodes, sights)
        free = free_of(layout, self.snapshot.usage)
        self.snapshot = replace(self.snapshot, nodes=nodes, layout=layout, reach=reach, free=free, boards=Boards())

    def _set(self, **parts: Mapping[Any, Any]) -> None:
        if not all(_say_the_same(getattr(self.snapshot, name), part) for name, part in parts.items()):
            self.snapshot = replace(self.snapshot, boards=Boards(), **parts)  # type: ignore[arg-type]  # names of mappings only


KINDS: Mapping[str, Kind] = {
    kind.__name__: kind for kind in (ResourceSlice, ResourceClaim, Node, DeviceClass, DeviceTaintRule)
}
OF_PODS: Final = (Pod.__name__, Footprint.__name__)


def key_of_noun(noun: Noun | Problem) -> ObjectKey:
    return noun.key if isinstance(noun, ResourceClaim | Pod | Footprint | Problem) else ObjectKey("", noun.name)


def _with(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    return mapping if key in mapping and mapping[key] is value else {**mapping, key: value}


def _say_the_same(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> bool:
    """Compare a few nouns word by word: in a driver's configuration, 1 equals true and is not the same."""
    return left == right and all(repr(noun) == repr(right[name]) for name, noun in left.items())


def _without(mapping: Mapping[K, V], key: object) -> Mapping[K, V]:
    return {name: value for name, value in mapping.items() if name != key} if key in mapping else mapping
