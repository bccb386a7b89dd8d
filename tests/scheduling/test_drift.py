"""Ghosts, doubles and leaks are found, each with its claim and its pod; what goes together is not."""

from dataclasses import replace
from math import inf

import pytest

from extender.model.change import Changed, Gone, Listed
from extender.model.claim import Consumer, ResourceClaim
from extender.model.device import Capacity, Counter, CounterConsumption, CounterSet, ResourceSlice, Traits
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.scheduling.drift import LEAK_S, PIECE, Audit, Auditor, Kind, findings, leavers
from extender.state.belief import Belief
from extender.state.ledger import UNMADE, ClaimHold, Promise
from tests.scheduling.cast import OURS, THEIRS, belief_of, claim, consumer, device, gpus, held, node, pod

POD, OTHER = pod("p", "a"), pod("q", "b")
KEY = ObjectKey("ns", "a")
GROUP = Consumer(resource="podgroups", name="g", uid=Uid("uid-g"))


def believing(*claims: ResourceClaim, pods: tuple[Pod, ...] = (POD, OTHER)) -> Belief:
    belief = belief_of(node("n1"), gpus("n1", 4), *pods, *claims)
    belief.apply(Listed(Footprint, ()))
    return belief


def found(belief: Belief) -> list[tuple[Kind, ObjectKey | None, ObjectKey | None]]:
    return [(item.kind, item.claim, item.pod) for item in findings(belief)]


def audited(auditor: Auditor, now: float, bound_at: float = inf) -> Audit:
    work = auditor.audit(lambda: now, bound_at)
    try:
        while True:
            next(work)
    except StopIteration as end:
        audit: Audit = end.value
        return audit


def promise_of(belief: Belief) -> None:
    belief.ledger.reserve(Promise(POD.uid, NodeName("n1"), (ClaimHold(claim("a").uid, (), version=1),)))


def test_what_goes_together_is_no_finding() -> None:
    belief = believing(held(claim("a"), device("n1", 0), by=POD), claim("b"))
    belief.ledger.offer(Promise(OTHER.uid, NodeName("n1"), (ClaimHold(claim("b").uid, ()),)))
    assert found(belief) == []


def test_a_hold_for_a_pod_that_is_gone_is_a_ghost() -> None:
    belief = believing(claim("a"))
    promise_of(belief)
    belief.apply(Gone(Pod, POD.key))
    assert found(belief) == [(Kind.GHOST, KEY, None)]


def test_a_hold_for_a_claim_that_is_gone_is_a_ghost() -> None:
    belief = believing()
    promise_of(belief)
    assert found(belief) == [(Kind.GHOST, None, POD.key)]


@pytest.mark.parametrize(("uid", "unseen"), [(f"{UNMADE}a", None), ("uid-a", KEY)], ids=["to be made", "not shown yet"])
def test_a_hold_for_a_claim_that_is_yet_to_be_shown_is_a_ghost_once_the_pod_is_gone(
    uid: str, unseen: ObjectKey | None
) -> None:
    belief = believing()
    belief.ledger.reserve(Promise(POD.uid, NodeName("n1"), (ClaimHold(Uid(uid), (), version=1, unseen=unseen),)))
    assert found(belief) == []
    belief.apply(Gone(Pod, POD.key))
    assert found(belief) == [(Kind.GHOST, unseen, None)]


def test_a_device_that_looks_taken_and_is_in_no_claim_is_a_ghost() -> None:
    belief = believing(held(claim("a"), device("n1", 0), by=POD))
    belief.cluster.claims.drop(KEY)
    assert found(belief) == [(Kind.GHOST, None, None)]


def test_a_device_in_two_claims_is_a_double() -> None:
    second = replace(held(claim("b", version=2), device("n1", 0)), reserved_for=(GROUP, consumer(OTHER)))
    belief = believing(held(claim("a"), device("n1", 0), by=POD), second)
    assert found(belief) == [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)]


def test_a_device_that_is_published_no_more_is_a_double_only_in_two_claims() -> None:
    belief = believing(held(claim("a"), device("gone", 0), by=POD))
    assert found(belief) == []
    belief.apply(Changed(held(claim("b"), device("gone", 0), by=OTHER)))
    assert found(belief) == [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)]


def test_a_double_names_the_other_claim_with_its_namespace() -> None:
    elsewhere = replace(held(claim("a"), device("n1", 0)), key=ObjectKey("elsewhere", "a"))
    belief = believing(elsewhere, held(claim("b", version=2), device("n1", 0), by=OTHER))
    (double,) = [item for item in findings(belief) if item.kind is Kind.DOUBLE]
    assert double.detail == f"{'/'.join(device('n1', 0))} is also in claim elsewhere/a"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_double_stays_the_same_however_often_its_claims_are_changed(name: str) -> None:
    claims = held(claim("a"), device("n1", 0), by=POD), held(claim("b"), device("n1", 0), by=OTHER)
    belief = believing(*claims)
    before = list(findings(belief))
    (changed,) = (item for item in claims if item.key.name == name)
    belief.apply(Changed(replace(changed, resource_version="7")))
    assert list(findings(belief)) == before


@pytest.mark.parametrize("whole", ["a", "b"])
def test_a_device_that_one_claim_has_and_another_shares_is_a_double(whole: str) -> None:
    claims = [
        made if made.key.name == whole else shared(made, 1)
        for made in (held(claim("a"), device("n1", 0), by=POD), held(claim("b"), device("n1", 0), by=OTHER))
    ]
    assert found(believing(*claims)) == [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)]


@pytest.mark.parametrize(("units", "doubles"), [(5, []), (6, [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)])])
def test_a_share_that_is_not_left_of_a_device_is_a_double(units: int, doubles: list[object]) -> None:
    belief = believing(
        shared(held(claim("a"), device("n1", 0), by=POD), 5),
        shared(held(claim("b"), device("n1", 0), by=OTHER), units),
        shared(held(claim("c"), device("n1", 0), by=POD), 0),
    )
    belief.apply(Changed(with_memory(gpus("n1", 4, Traits(allow_multiple_allocations=True)), 10)))
    belief.apply(Changed(gpus("n0", 4)))
    assert found(belief) == doubles


@pytest.mark.parametrize(("units", "doubles"), [(2, []), (1, [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)])])
def test_a_partition_that_the_counters_do_not_suffice_for_is_a_double(units: int, doubles: list[object]) -> None:
    draws = CounterConsumption("slices", (Counter("units", parse_quantity("1")),))
    counters = (CounterSet(name="slices", counters=(Counter("units", parse_quantity(str(units))),)),)
    belief = believing(held(claim("a"), device("n1", 0), by=POD), held(claim("b"), device("n1", 1), by=OTHER))
    belief.apply(Changed(replace(gpus("n1", 4, Traits(consumes_counters=(draws,))), shared_counters=counters)))
    assert found(belief) == doubles


def test_the_claim_that_was_seen_later_is_the_one_that_overdraws() -> None:
    first = shared(held(claim("a"), device("n1", 0), by=POD), 5)
    belief = believing(first, shared(held(claim("b"), device("n1", 0), by=OTHER), 6))
    belief.apply(Changed(with_memory(gpus("n1", 4, Traits(allow_multiple_allocations=True)), 10)))
    belief.apply(Changed(replace(first, resource_version="3", reserved_for=(consumer(POD), consumer(OTHER)))))
    assert found(belief) == [(Kind.DOUBLE, ObjectKey("ns", "b"), OTHER.key)]


def shared(item: ResourceClaim, units: int) -> ResourceClaim:
    """Return *item* with shares of what it holds, each of so many units of memory."""
    assert item.allocation is not None
    used = (("memory", parse_quantity(str(units))),)
    shares = (replace(given, share_id=item.uid, consumed_capacity=used) for given in item.allocation.devices)
    return replace(item, allocation=replace(item.allocation, devices=tuple(shares)))


def with_memory(published: ResourceSlice, units: int) -> ResourceSlice:
    capacity = (("memory", Capacity(parse_quantity(str(units)))),)
    return replace(published, devices=tuple(replace(item, capacity=capacity) for item in published.devices))


def test_what_is_compared_is_looked_at_in_pieces() -> None:
    pods = [pod(f"p{number}") for number in range(3 * PIECE)]
    holding = [shared(held(claim(item.key.name), device("n1", 0), by=item), 0) for item in pods]
    work = Auditor(believing(*holding, pods=tuple(pods))).audit(lambda: 0.0)
    # The claims are gone through for devices, for shares and for leaks.
    assert sum(1 for _ in work) >= 3 * 3


def test_what_comes_during_an_audit_does_not_end_it() -> None:
    pods = [pod(f"p{number}") for number in range(2 * PIECE)]
    belief = believing(*(held(claim(item.key.name), device("n1", 0), by=item) for item in pods), pods=tuple(pods))
    bound = [Footprint(key=item.key, uid=item.uid, node=NodeName("n1"), amounts=(("pods", 1),)) for item in pods]
    belief.apply(Listed(ResourceClaim, tuple(belief.cluster.claims)))
    belief.apply(Listed(Footprint, tuple(bound)))
    for number, _ in enumerate(Auditor(belief).audit(lambda: 0.0)):
        new = pod(f"new{number}")
        belief.apply(Changed(new))
        belief.apply(Changed(held(claim(new.key.name), device("n1", 1), by=new)))
        belief.apply(Changed(replace(bound[0], key=ObjectKey("ns", f"bound{number}"), uid=Uid(f"bound{number}"))))


def test_a_device_in_a_claim_that_looks_free_is_a_double() -> None:
    belief = believing(claim("a"))
    belief.cluster.claims.put(held(claim("a"), device("n1", 0), by=POD))
    assert found(belief) == [(Kind.DOUBLE, KEY, POD.key)]


@pytest.mark.parametrize(
    ("user", "bound", "is_leak"),
    [(None, None, True), (POD, None, True), (POD, "uid-p", False), (POD, "uid-again", True)],
    ids=["nobody", "gone", "runs", "another of its name"],
)
def test_a_claim_that_no_pod_has_a_use_for_is_a_leak(user: Pod | None, bound: str | None, *, is_leak: bool) -> None:
    belief = believing(held(claim("a"), device("n1", 0), by=user), pods=(OTHER,))
    if bound is not None:
        amounts = (("pods", 1),)
        belief.apply(Changed(Footprint(key=POD.key, uid=bound, node=NodeName("n1"), amounts=amounts)))  # type: ignore[arg-type]  # a uid
    assert [kind for kind, _, _ in found(belief)] == [Kind.LEAK] * is_leak


def test_a_claim_that_one_of_its_pods_has_a_use_for_is_no_leak() -> None:
    both = replace(held(claim("c"), device("n1", 0)), reserved_for=(consumer(pod("gone")), consumer(OTHER)))
    assert found(believing(both)) == []


def test_before_it_is_known_which_pods_are_bound_nothing_is_left_to_those_that_are_gone() -> None:
    belief = belief_of(node("n1"), gpus("n1", 4), held(claim("a"), device("n1", 0), by=POD))
    belief.loads.is_known = False
    assert found(belief) == []
    belief.apply(Listed(Footprint, ()))
    assert found(belief) == [(Kind.LEAK, KEY, POD.key)]


def shown(on: Belief, *claims: str, scheduler: str = OURS) -> None:
    """Show POD as one that is bound and has *claims*."""
    footprint = Footprint(
        key=POD.key, uid=POD.uid, node=NodeName("n1"), amounts=(("pods", 1),), claims=" ".join(claims)
    )
    on.apply(Changed(replace(footprint, scheduler=scheduler)))


GIVEN = held(claim("a"), device("n1", 0), by=POD)


@pytest.mark.parametrize(
    ("known", "lacking"),
    [
        (GIVEN, ""),
        (replace(GIVEN, reserved_for=(*GIVEN.reserved_for, consumer(OTHER))), ""),
        (replace(GIVEN, reserved_for=(GROUP,)), ""),
        (Problem("ResourceClaim", KEY, "spec", "is broken"), ""),
        (None, "there is no such claim"),
        (claim("a"), "it has no devices"),
        (replace(GIVEN, reserved_for=(consumer(OTHER),)), "it is not reserved for the pod"),
    ],
    ids=["had", "shared", "of a group", "unreadable", "gone", "emptied", "another's"],
)
def test_a_bound_pod_is_bare_without_devices_in_its_claim(known: ResourceClaim | Problem | None, lacking: str) -> None:
    belief = believing()
    belief.apply(Listed(ResourceClaim, (known,) if known else ()))
    shown(belief, "a")
    expected = [(Kind.BARE, KEY, POD.key, POD.uid)] if lacking else []
    assert [(item.kind, item.claim, item.pod, item.uid) for item in findings(belief)] == expected
    assert all(item.detail.startswith(lacking) for item in findings(belief))


def test_of_bound_pods_of_others_and_without_a_view_of_claims_nobody_says_that_they_are_bare() -> None:
    belief = believing()
    shown(belief, "a")
    assert found(belief) == []
    belief.apply(Listed(ResourceClaim, ()))
    assert found(belief) == [(Kind.BARE, KEY, POD.key)]
    shown(belief, "a", scheduler=THEIRS)
    assert found(belief) == []
    shown(belief, "a")
    belief.apply(Listed(ResourceClaim, (), is_served=False))
    assert found(belief) == []


ELSEWHERE = replace(pod("e", "c"), scheduler=THEIRS)
FOREIGN = replace(held(claim("c"), device("n1", 0), by=ELSEWHERE), writers=("kube-scheduler",))


def test_a_claim_of_another_scheduler_is_no_leak_while_its_pod_is_there() -> None:
    belief = believing(FOREIGN)
    belief.apply(Listed(Pod, (POD, ELSEWHERE)))
    assert found(belief) == []
    belief.apply(Gone(Pod, ELSEWHERE.key))
    assert found(belief) == [(Kind.LEAK, FOREIGN.key, ELSEWHERE.key)]
    belief.apply(Changed(ELSEWHERE))
    assert found(belief) == []
    belief.apply(Changed(replace(ELSEWHERE, uid=Uid("uid-again"))))
    assert found(belief) == [(Kind.LEAK, FOREIGN.key, ELSEWHERE.key)]
    belief.apply(Changed(replace(ELSEWHERE, node_name=NodeName("n1"))))
    belief.apply(Changed(Footprint(key=ELSEWHERE.key, uid=ELSEWHERE.uid, node=NodeName("n1"), amounts=(("pods", 1),))))
    assert found(belief) == []


@pytest.mark.parametrize("kind", ["Pod", "Footprint"])
def test_a_claim_of_a_pod_that_cannot_be_read_is_no_leak(kind: str) -> None:
    belief = believing(held(claim("a"), device("n1", 0), by=POD), pods=(OTHER,))
    assert found(belief) == [(Kind.LEAK, KEY, POD.key)]
    belief.apply(Changed(Problem(kind, POD.key, "spec", "is broken")))
    assert found(belief) == []
    belief.apply(Gone(Pod if kind == "Pod" else Footprint, POD.key))
    assert found(belief) == [(Kind.LEAK, KEY, POD.key)]


def test_what_another_scheduler_has_allocated_in_advance_is_no_leak() -> None:
    assert found(believing(replace(FOREIGN, reserved_for=()))) == []


def test_a_claim_that_a_waiting_pod_asks_for_is_no_leak() -> None:
    assert found(believing(held(claim("a"), device("n1", 0)))) == []


def test_a_claim_reserved_for_something_else_than_a_pod_is_no_leak() -> None:
    other = replace(consumer(POD), resource="jobs")
    mine = replace(held(claim("c"), device("n1", 0)), reserved_for=(other,))
    assert found(believing(mine, pods=(OTHER,))) == []


def test_only_what_lasts_is_told_and_only_once() -> None:
    belief = believing(held(claim("c"), device("n1", 0)))
    auditor = Auditor(belief, patience_s=60.0)
    # It says nothing of bound pods, so it is all the same when it was last known which these are.
    assert audited(auditor, 0.0, bound_at=-1.0)[:2] == (frozenset(), frozenset())
    lasting, fresh, leaks = audited(auditor, 60.0, bound_at=-1.0)
    assert (lasting, leaks) == (fresh, frozenset()) == (frozenset(findings(belief)), frozenset())
    assert audited(auditor, 80.0)[:2] == (lasting, frozenset())
    belief.apply(Gone(ResourceClaim, ObjectKey("ns", "c")))
    assert audited(auditor, 100.0)[:2] == (frozenset(), frozenset())


def test_what_is_left_to_a_pod_is_told_once_it_was_known_since_which_pods_are_bound() -> None:
    belief = believing(held(claim("c"), device("n1", 0), by=POD))
    belief.apply(Gone(Pod, POD.key))
    belief.apply(Listed(Footprint, ()))
    auditor = Auditor(belief, patience_s=60.0)
    for now in (10.0, 100.0):
        assert audited(auditor, now, bound_at=9.0) == (frozenset(), frozenset(), frozenset())
    lasting, _, leaks = audited(auditor, 120.0, bound_at=10.0)
    assert lasting == leaks == frozenset(findings(belief))


def test_who_goes_while_an_audit_rests_may_be_bound_though_bound_pods_were_known_since_it_began() -> None:
    belief, now = believing(held(claim("a"), device("n1", 0), by=POD)), [10.0]
    auditor = Auditor(belief, patience_s=0.0)
    work = auditor.audit(lambda: now[0], 10.0)
    next(work)
    now[0] = 12.0
    belief.apply(Gone(Pod, POD.key))
    assert sum(1 for _ in work)
    assert audited(auditor, 30.0, bound_at=11.0) == (frozenset(), frozenset(), frozenset())
    lasting, _, leaks = audited(auditor, 50.0, bound_at=31.0)
    assert lasting == leaks == frozenset(findings(belief))


def test_what_is_left_to_a_pod_is_acted_upon_sooner_than_told_but_not_at_once() -> None:
    belief = believing(held(claim("c"), device("n1", 0), by=POD))
    belief.apply(Gone(Pod, POD.key))
    belief.apply(Listed(Footprint, ()))
    auditor = Auditor(belief, patience_s=60.0)
    assert [len(audited(auditor, now).leaks) for now in (0.0, LEAK_S - 1, LEAK_S)] == [0, 0, 1]


def test_who_is_bare_is_told_once_it_was_known_since_that_the_pod_is_bound() -> None:
    belief = believing()
    belief.apply(Listed(ResourceClaim, ()))
    shown(belief, "a")
    auditor = Auditor(belief, patience_s=60.0)
    for now in (10.0, 100.0):
        assert audited(auditor, now, bound_at=9.0)[:2] == (frozenset(), frozenset())
    assert [item.kind for item in audited(auditor, 120.0, bound_at=10.0).fresh] == [Kind.BARE]


def test_what_comes_back_has_to_last_again() -> None:
    belief = believing(held(claim("c"), device("n1", 0)))
    auditor = Auditor(belief, patience_s=60.0)
    audited(auditor, 0.0)
    belief.apply(Gone(ResourceClaim, ObjectKey("ns", "c")))
    audited(auditor, 30.0)
    belief.apply(Changed(held(claim("c"), device("n1", 0))))
    assert audited(auditor, 60.0)[:2] == (frozenset(), frozenset())


def test_who_begins_anew_tells_all_that_lasts() -> None:
    auditor = Auditor(believing(held(claim("c"), device("n1", 0))), patience_s=0.0)
    assert audited(auditor, 0.0).fresh
    auditor.forget()
    assert audited(auditor, 1.0).fresh


def test_who_is_gone_leaves_claims_with_devices_that_are_reserved_for_him_still() -> None:
    taken = held(claim("a"), device("n1", 0), by=OTHER)
    shared = replace(taken, reserved_for=(consumer(OTHER), consumer(POD), GROUP))
    bare = replace(claim("b"), reserved_for=(consumer(OTHER),))
    belief = believing(shared, bare, pods=(POD, replace(OTHER, scheduler=THEIRS)))
    assert list(leavers(belief)) == []
    belief.apply(Gone(Pod, OTHER.key))
    assert list(leavers(belief)) == [(OTHER.uid, shared)]
    belief.apply(Changed(Footprint(key=OTHER.key, uid=OTHER.uid, node=NodeName("n1"), amounts=(("pods", 1),))))
    assert list(leavers(belief)) == []
