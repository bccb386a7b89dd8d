"""Pods that cannot be read are known as long as that is so."""

from dataclasses import replace

import pytest

from extender.model.change import Change, Changed, Gone, Listed
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.state.unread import MOST, Unread

KEY = ObjectKey("ns", "p")
POD = Pod(key=KEY, uid=Uid("u"))
BROKEN = Problem("Pod", KEY, "spec", "is broken")


def told(*changes: Change) -> int:
    unread = Unread()
    for change in changes:
        unread.apply(change)
    return len(unread)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ((Changed(POD),), 0),
        ((Changed(BROKEN),), 1),
        ((Changed(BROKEN), Changed(BROKEN)), 1),
        ((Listed(Pod, (POD, BROKEN)),), 1),
        ((Changed(BROKEN), Changed(POD)), 0),
        ((Changed(BROKEN), Gone(Pod, KEY)), 0),
        ((Changed(BROKEN), Listed(Pod, ())), 0),
        ((Changed(BROKEN), Listed(Footprint, ())), 1),
        ((Changed(BROKEN), Changed(Problem("Footprint", KEY, "spec", "is broken"))), 2),
        ((Changed(BROKEN), Gone(Footprint, KEY)), 1),
    ],
)
def test_a_pod_that_cannot_be_read_is_known_until_it_can_be_or_is_gone(changes: tuple[Change, ...], known: int) -> None:
    assert told(*changes) == known


def test_a_pod_that_cannot_be_read_is_found_by_its_name_whether_it_waits_or_not() -> None:
    unread = Unread()
    assert not unread.has(KEY)
    for kind in ("Pod", "Footprint"):
        unread.apply(Changed(replace(BROKEN, kind=kind)))
        assert unread.has(KEY)
        assert not unread.has(ObjectKey("other", "p"))
        unread.apply(Gone(Pod if kind == "Pod" else Footprint, KEY))
        assert not unread.has(KEY)


def test_of_pods_that_cannot_be_read_as_many_as_there_may_be_are_known() -> None:
    many = tuple(Problem("Pod", ObjectKey("ns", f"p{index}"), "spec", "is broken") for index in range(MOST + 5))
    assert told(Listed(Pod, many)) == MOST
    assert told(*map(Changed, many)) == MOST
