"""What a list or a watch tells of the cluster, one step at a time."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.footprint import Footprint
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey
from extender.model.node import Node, Pod
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule

Noun = ResourceSlice | DeviceClass | ResourceClaim | DeviceTaintRule | Node | Pod | Footprint
Kind = type[Noun]

A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Changed:
    """An object is there, new or not; a Problem where it is and cannot be read, not even what a claim holds."""

    what: Noun | Problem


@dataclass(frozen=True, slots=True)
class Gone:
    """An object is no more."""

    kind: Kind
    key: ObjectKey


@dataclass(frozen=True, slots=True)
class Listed:
    """These are all objects of a kind: what is not among them is no more. Of one that is not served there are none."""

    kind: Kind
    items: tuple[Noun | Problem, ...]
    is_served: bool = True


Change = Changed | Gone | Listed


def problem_in(what: object) -> Problem | None:
    """Return what is wrong with an object, if anything."""
    return what.problem if isinstance(what, ResourceClaim) else what if isinstance(what, Problem) else None


def relisted(known: Iterable[A], items: Iterable[B], key: Callable[[A | B], K]) -> tuple[list[B], set[K]]:
    """Return which of the *items*, no two of one key, are none of those *known*, and the keys that are not listed now.

    Objects are compared, not what they say: of tens of thousands that are listed again nothing is looked at.
    """
    before, now = list(known), list(items)
    old, new = set(map(id, before)), set(map(id, now))
    # Nearly always there are none, which sets find out many times as fast as a loop.
    news = [item for item in now if id(item) not in old] if new - old else []
    lost = [noun for noun in before if id(noun) not in new] if old - new else []
    return news, set(map(key, lost)).difference(map(key, news))


def kind_of(change: Change) -> str:
    """Name the kind of the objects that *change* is about."""
    if not isinstance(change, Changed):
        return change.kind.__name__
    return change.what.kind if isinstance(change.what, Problem) else type(change.what).__name__
