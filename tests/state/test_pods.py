"""Which pods wait for a node, and who waits no longer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.state.pods import Pods

POD = Pod(key=ObjectKey("ns", "p"), uid=Uid("1"), scheduler="ours")


def pods_of(*items: Pod) -> Pods:
    pods = Pods(("ours", "ours too"))
    for item in items:
        pods.put(item)
    return pods


def test_pods_of_the_schedulers_that_are_served_wait() -> None:
    other = replace(POD, key=ObjectKey("ns", "q"), uid=Uid("2"), scheduler="ours too")
    foreign = replace(POD, key=ObjectKey("ns", "r"), uid=Uid("3"), scheduler="theirs")
    assert list(pods_of(POD, other, foreign)) == [POD, other]


@pytest.mark.parametrize(
    "changed",
    [
        replace(POD, node_name=NodeName("n1")),
        replace(POD, phase="Failed"),
        replace(POD, phase="Succeeded"),
        replace(POD, scheduler="theirs"),
    ],
    ids=["bound", "failed", "done", "handed-over"],
)
def test_a_pod_that_waits_no_longer_is_named_once(changed: Pod) -> None:
    pods = pods_of(POD)
    assert pods.put(changed) == POD.uid
    assert pods.put(changed) is None
    assert (pods.get(POD.key), pods.with_uid(POD.uid), len(pods)) == (None, None, 0)


THEIRS = replace(POD, scheduler="theirs")


@pytest.mark.parametrize("last", [POD, THEIRS], ids=["ours", "theirs"])
def test_of_pods_of_other_schedulers_it_is_known_whether_they_wait(last: Pod) -> None:
    for ended in (replace(last, node_name=NodeName("n1")), replace(last, phase="Failed")):
        pods = pods_of(THEIRS, last)
        assert pods.waits(POD.key, POD.uid)
        assert not pods.waits(POD.key, Uid("2"))
        pods.put(ended)
        assert not pods.waits(POD.key, POD.uid)
    (dropped := pods_of(last)).drop(POD.key)
    (listed := pods_of(last)).keep_only((POD.key,))
    assert [pods.waits(POD.key, POD.uid) for pods in (dropped, listed)] == [False, True]
    listed.keep_only(())
    assert not listed.waits(POD.key, POD.uid)


def test_a_pod_of_the_same_name_that_was_made_later_takes_its_place() -> None:
    pods, second = pods_of(POD), replace(POD, uid=Uid("2"))
    assert pods.put(second) == POD.uid
    assert pods.with_uid(POD.uid) is None
    assert pods.get(POD.key) == pods.with_uid(second.uid) == second


def test_a_pod_that_only_changes_goes_on_waiting() -> None:
    changed = replace(POD, resource_version="2")
    pods = pods_of(POD)
    assert pods.put(changed) is None
    assert pods.get(POD.key) == changed


pods_drawn = st.builds(
    Pod,
    key=st.sampled_from("abc").map(lambda name: ObjectKey("ns", name)),
    uid=st.just(Uid("")),
    scheduler=st.sampled_from(["ours", "theirs"]),
    node_name=st.sampled_from([None, None, NodeName("n1")]),
)
events = st.lists(st.tuples(pods_drawn, st.integers(0, 2), st.sampled_from(["put", "put", "put", "drop", "keep"])))


@given(events)
def test_both_ways_of_finding_pods_agree_and_whoever_goes_was_there(told: list[tuple[Pod, int, str]]) -> None:
    pods, waiting = Pods(("ours",)), set[Uid]()
    for item, number, how in told:
        subject = replace(item, uid=Uid(f"{item.key.name}{number}"))
        if how == "keep":
            gone = set(pods.keep_only([subject.key]))
        else:
            one = pods.put(subject) if how == "put" else pods.drop(subject.key)
            gone = {one} if one else set()
        assert gone <= waiting
        waiting = {found.uid for found in pods}
        assert gone.isdisjoint(waiting)
        assert all(pods.get(found.key) == pods.with_uid(found.uid) == found for found in pods)
        assert len({found.key for found in pods}) == len(pods)
