"""What pods ask, remembered by what it says: pods made from one template ask one question."""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from operator import is_
from typing import NamedTuple

from extender.allocation.configuration import ENTRIES, excess, least
from extender.allocation.extended import Groups, by_service
from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.question import Question, ask, asked_by, formulas
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Manner
from extender.model.claim import ClaimSpec, DeviceClass, DeviceRequest, ResourceClaim, flaws_in
from extender.model.names import ClassName
from extender.topology.memo import Memo

# Questions that are remembered, each with the states of nodes that it has seen.
MOST = 256
# What all of them may take, in bytes: whoever writes claims may write hundreds that each tell all devices apart.
ROOM = 256 << 20
# Pods that ask between two looks at what that is.
LOOK_EVERY = 64
# Changes of the cluster after which going on from what it was is no cheaper than looking at all nodes, about, and those
# between two looks at who would have to.
AGE = 1 << 12
PAUSE = 1 << 10
# Sets of extended resources by which nodes are grouped.
SERVED = 64


class _Asked(NamedTuple):
    """What was asked last."""

    claims: Sequence[ResourceClaim]
    classes: Mapping[ClassName, DeviceClass]
    question: Question
    fitter: Fitter

    def is_of(self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> bool:
        is_same = self.classes is classes and len(self.claims) == len(claims)
        return is_same and all(map(is_, self.claims, claims))


class Questions:
    """Compiled questions and what was found out about them. One writer.

    Where they are too many the least recently asked is forgotten first; where they take too much, the largest.
    """

    def __init__(self, features: Features, manner: Manner = BEST, most: int = MOST, room: int = ROOM) -> None:
        self.manner = manner
        self.features, self._most, self._room = features, most, room
        self._asked = 0
        self._fitters: OrderedDict[Hashable, Fitter] = OrderedDict()
        # Who places a pod asks what was asked when nodes were looked at.
        self._last: _Asked | None = None
        self._layout: object = None
        self._laid_out = self._looked = 0
        self._served: tuple[object, object, Memo[tuple[str, ...], Groups]] = ((), {}, Memo(SERVED))

    def __len__(self) -> int:
        return len(self._fitters)

    @property
    def size(self) -> int:
        """About how many bytes all of them take, and their texts, which some have in common."""
        texts = {item for fitter in self._fitters.values() for item in formulas(fitter.question)}
        return sum(fitter.size for fitter in self._fitters.values()) + sum(item.size for item in texts)

    def question(self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> Question:
        """Return what *claims* ask, for results: names and configuration are theirs. Raise Refusal."""
        return ask(claims, classes, self.features)

    def is_known(self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> bool:
        """Tell whether anybody has asked what *claims* ask."""
        return self.known(claims, classes) is not None

    def known(
        self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]
    ) -> tuple[Question, Fitter] | None:
        """Return what *claims* ask, and what is known of that, if anybody has asked it."""
        last = self._last
        if last is not None and last.is_of(claims, classes):
            return last.question, last.fitter
        fitter = self._fitters.get(_key(claims, classes))
        return None if fitter is None else (asked_by(fitter.question, claims, classes), fitter)

    def asked(
        self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]
    ) -> tuple[Question, Fitter]:
        """Return what *claims* ask, and what is known of that, without compiling again what was asked before.

        Raise Refusal.
        """
        last = self._last
        if last is None or not last.is_of(claims, classes):
            fitter = self.fitter(claims, classes)
            last = self._last = _Asked(claims, classes, asked_by(fitter.question, claims, classes), fitter)
        elif next(reversed(self._fitters.values())) is not last.fitter:
            self._fitters.move_to_end(_key(claims, classes))
        return last.question, last.fitter

    def by_service(self, snapshot: Snapshot, resources: tuple[str, ...]) -> Groups:
        """Group the nodes by which of *resources* they serve by devices, once for all pods until a node changes."""
        names, nodes = snapshot.layout.nodes, snapshot.nodes
        if self._served[0] is not names or self._served[1] is not nodes:
            self._served = names, nodes, Memo(SERVED)
        known = self._served[2]
        if resources not in known:
            known[resources] = by_service(names, nodes, resources)
        return known[resources]

    def late(self) -> list[Fitter]:
        """Return the questions that take too long to be answered while somebody waits."""
        return [fitter for fitter in self._fitters.values() if fitter.is_late]

    def fitter(self, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> Fitter:
        """Return what is known of the question that *claims* ask; raise Refusal where it makes no sense.

        It is shared by all who ask the same: its own question has the names of who asked first.
        """
        key = _key(claims, classes)
        fitter = self._fitters.get(key)
        if fitter is None:
            fitter = self._fitters[key] = Fitter(self.question(claims, classes), self.manner)
            if len(self._fitters) > self._most:
                self._evict(next(iter(self._fitters)))
            self.make_room()
        self._fitters.move_to_end(key)
        self._asked += 1
        if self._asked % LOOK_EVERY == 0:
            self.make_room()
        return fitter

    def move_on(self, snapshot: Snapshot) -> None:
        """Let idle questions let go of clusters that are past, now that it is *snapshot*.

        Other layouts are large, and each idle question may keep one: of two that are past one is enough.
        """
        generation = snapshot.generation
        if self._served[1] is not snapshot.nodes:
            self._served = (), {}, Memo(SERVED)
        if snapshot.layout is not self._layout:
            before, self._layout, self._laid_out = self._laid_out, snapshot.layout, generation
        elif generation - self._looked >= PAUSE:
            before = generation - AGE
        else:
            return
        self._looked = generation
        for fitter in self._fitters.values():
            fitter.let_go(snapshot, before)

    def make_room(self) -> None:
        """Forget the largest questions where all take too much, but for the one that was asked last."""
        total = self.size
        if total <= self._room:
            return
        holders = Counter(item for fitter in self._fitters.values() for item in formulas(fitter.question))
        for key in sorted(list(self._fitters)[:-1], key=lambda key: -_weight(self._fitters[key])):
            if total <= self._room:
                break
            fitter = self._fitters[key]
            texts = formulas(fitter.question)
            total -= fitter.size + sum(item.size for item in texts if holders[item] == 1)
            holders.subtract(texts)
            self._evict(key)

    def _evict(self, key: Hashable) -> None:
        """Forget a question; nobody catches up with what is forgotten."""
        gone = self._fitters.pop(key)
        if self._last is not None and self._last.fitter is gone:
            self._last = None


def _weight(fitter: Fitter) -> int:
    return fitter.size + sum(item.size for item in formulas(fitter.question))


def _key(claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> Hashable:
    named = _named(claims, classes)
    most = sum(len(item.config) for item in named if item)
    said = ((claim.is_classic, claim.problem, asked(claim.spec), _excess(claim, classes, most)) for claim in claims)
    return tuple(said), tuple(map(_class, named))


def asked(spec: ClaimSpec) -> Hashable:
    """Return all of *spec* that decides where it can be satisfied; configuration is for drivers, if they can have it.

    Amounts are equal however they are written, but a policy's default is what is spelled like it.
    """
    amounts = (amount for request in _requests(spec) for _, amount in request.capacity or ())
    strange = spec.unknown_fields, flaws_in(spec.config)
    return spec.requests, spec.constraints, strange, tuple(amount.spelling for amount in amounts)


def asked_in_full(spec: ClaimSpec) -> Hashable:
    """Return what of *spec* decides whether it can be had, where an allocation may not hold all that it configures."""
    return asked(spec), tuple(entry.requests for entry in spec.config)


def _excess(claim: ResourceClaim, classes: Mapping[ClassName, DeviceClass], most: int) -> str:
    """Say that *claim* has too much configuration, which needs no counting where all its classes have only *most*."""
    return excess(least(claim.spec, classes)) if most + len(claim.spec.config) > ENTRIES else ""


def _named(claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> tuple[DeviceClass | None, ...]:
    """Return the classes that *claims* name."""
    names = sorted({request.class_name for claim in claims for request in _requests(claim.spec)})
    return tuple(map(classes.get, names))


def _class(item: DeviceClass | None) -> Hashable:
    """Return what a class says that decides: once it changes it makes another question."""
    return (item.name, item.selectors, item.unknown_fields, flaws_in(item.config)) if item else None


def _requests(spec: ClaimSpec) -> list[DeviceRequest]:
    return [
        request
        for slot in spec.requests
        for request in (*slot.first_available, *([slot.exactly] if slot.exactly else []))
    ]
