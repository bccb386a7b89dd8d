"""Which claims a pod asks for, and when it has to wait."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import pytest

from extender.model.change import Changed, Gone, Listed
from extender.model.claim import Allocation, ClaimSpec, Consumer, OwnerReference, ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.state.claims import Asked, Claims, Unclear, Waiting
from extender.state.cluster import Cluster

OWNER = OwnerReference(kind="Pod", uid=Uid("p1"))
POD = Pod(key=ObjectKey("ns", "pod"), uid=Uid("p1"))


def claim(name: str, *, uid: str = "", allocated: bool = False, owner: OwnerReference | None = OWNER) -> ResourceClaim:
    return ResourceClaim(
        key=ObjectKey("ns", name),
        uid=Uid(uid or name),
        spec=ClaimSpec(),
        allocation=Allocation() if allocated else None,
        owners=(owner,) if owner else (),
    )


def asked(claims: list[ResourceClaim], *entries: PodClaim, statuses: tuple[PodClaimStatus, ...] = ()) -> object:
    known = Claims()
    for item in claims:
        known.put(item)
    return known.asked_by(replace(POD, claims=entries, claim_statuses=statuses))


DIRECT = PodClaim(name="a", claim_name="direct")
MADE = PodClaim(name="b", template_name="template")


def test_a_pod_without_claims_asks_for_none() -> None:
    assert asked([claim("direct")]) == Asked((), ())


def test_claims_are_found_by_name_and_through_their_template_in_the_order_of_the_pod() -> None:
    direct, made = claim("direct", owner=None), claim("pod-b")
    statuses = (PodClaimStatus(name="b", claim_name="pod-b"),)
    assert asked([direct, made], MADE, DIRECT, statuses=statuses) == Asked((made, direct), ())


def test_what_is_allocated_is_kept_apart() -> None:
    direct = claim("direct", allocated=True)
    assert asked([direct], DIRECT) == Asked((), (direct,))


@pytest.mark.parametrize(
    ("entry", "status", "is_lacking"),
    [
        (DIRECT, None, True),
        (PodClaim(name="a", claim_name="known"), None, False),
        (MADE, PodClaimStatus(name="b", claim_name="pod-b"), True),
        (MADE, PodClaimStatus(name="b", claim_name="known"), False),
        # None was needed, and one of which nobody knows yet how it will be called.
        (MADE, PodClaimStatus(name="b"), False),
        (MADE, None, False),
    ],
)
def test_a_pod_lacks_a_claim_that_it_names_by_itself_or_by_its_status(
    entry: PodClaim, status: PodClaimStatus | None, *, is_lacking: bool
) -> None:
    known = Claims()
    known.put(claim("known"))
    named = replace(POD, claims=(entry,), claim_statuses=(status,) if status else ())
    assert known.lack(named) is is_lacking


def test_an_entry_for_which_no_claim_was_needed_is_passed_over() -> None:
    assert asked([], MADE, statuses=(PodClaimStatus(name="b"),)) == Asked((), ())


@pytest.mark.parametrize(
    ("claims", "entry", "statuses", "message"),
    [
        ([], DIRECT, (), "there is no claim direct"),
        ([replace(claim("direct"), is_deleting=True)], DIRECT, (), "claim direct is being deleted"),
        ([], MADE, (), "the claim of resourceClaims[b] has not been created yet"),
        ([], MADE, (PodClaimStatus(name="b", claim_name="pod-b"),), "there is no claim pod-b"),
        (
            [claim("pod-b", owner=replace(OWNER, uid=Uid("p0")))],
            MADE,
            (PodClaimStatus(name="b", claim_name="pod-b"),),
            "claim pod-b was not made for this pod",
        ),
    ],
    ids=["absent", "deleting", "not-created", "lost", "of-another"],
)
def test_a_pod_waits_for_its_claims(
    claims: list[ResourceClaim], entry: PodClaim, statuses: tuple[PodClaimStatus, ...], message: str
) -> None:
    assert asked(claims, entry, statuses=statuses) == Waiting(message)


@pytest.mark.parametrize(
    "entry",
    [
        PodClaim(name="a"),
        PodClaim(name="a", claim_name="direct", template_name="template"),
        PodClaim(name="a", claim_name="direct", unknown_fields=("newThing",)),
    ],
    ids=["nothing", "both", "unknown"],
)
def test_an_entry_that_is_not_understood_is_never_passed_over(entry: PodClaim) -> None:
    assert isinstance(asked([claim("direct")], entry), Unclear)


def test_the_cluster_keeps_claims_as_it_is_told() -> None:
    cluster = Cluster()
    first, second = claim("a", uid="1"), claim("a", uid="2")
    cluster.apply(Changed(first))
    cluster.apply(Changed(second))
    assert cluster.claims.with_uid(Uid("1")) is None
    assert cluster.claims.with_uid(Uid("2")) == cluster.claims.get(second.key) == second
    cluster.apply(Listed(ResourceClaim, (claim("b"),)))
    assert cluster.claims.get(second.key) is None
    cluster.apply(Gone(ResourceClaim, ObjectKey("ns", "b")))
    assert cluster.claims.get(ObjectKey("ns", "b")) is None


def test_claims_stay_in_the_order_in_which_they_came() -> None:
    known, first, second = Claims(), claim("a"), claim("b")
    for item in (first, second, replace(first, resource_version="2")):
        known.put(item)
    assert [(item.key.name, item.resource_version) for item in known] == [("a", "2"), ("b", "")]
    again = claim("a", uid="another")
    known.put(again)
    assert list(known) == [second, again]
    assert known.with_uid(first.uid) is None


def test_of_a_claim_that_has_changed_it_is_not_remembered_whose_it_was() -> None:
    known, first = Claims(), claim("a")
    known.put(first)
    known.put(replace(first, owners=()))
    assert list(known.owned_by(POD)) == []


def test_a_claim_of_another_namespace_was_not_made_for_a_pod_whatever_it_says() -> None:
    known, own = Claims(), claim("a")
    known.put(own)
    known.put(replace(claim("a", uid="2"), key=ObjectKey("another", "a")))
    assert list(known.owned_by(POD)) == [own]


class Counted(tuple[PodClaimStatus, ...]):
    """Counts how many of its entries were looked at."""

    __slots__ = ()
    looks: ClassVar[int] = 0

    def __iter__(self) -> Iterator[PodClaimStatus]:
        for status in super().__iter__():
            Counted.looks += 1
            yield status


def test_what_was_made_for_each_of_very_many_entries_is_found_in_one_go() -> None:
    names = [f"e{number}" for number in range(1000)]
    statuses = Counted(PodClaimStatus(name=name, claim_name=name) for name in names)
    entries = [PodClaim(name=name, template_name="t") for name in names]
    found = asked([claim(name) for name in names], *entries, statuses=statuses)
    assert isinstance(found, Asked)
    assert [item.key.name for item in found.pending] == names
    assert Counted.looks <= 2 * len(names)


@pytest.mark.parametrize("is_deleting", [False, True])
def test_of_thousands_of_claims_of_one_owner_no_other_is_looked_at_when_one_changes(*, is_deleting: bool) -> None:
    user = Consumer(resource="pods", name=POD.key.name, uid=POD.uid)
    owned = [replace(claim(f"c{number}"), is_deleting=is_deleting, reserved_for=(user,)) for number in range(5000)]
    known = Claims()
    for each in owned:
        known.put(each)
    tracemalloc.start()
    known.put(owned[7])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5000
    assert len(list(known.owned_by(POD))) == 5000
    assert len(known.kept_by(POD)) == 5000 * is_deleting
    for each in owned:
        known.drop(each.key)
    assert not list(known.owned_by(POD))
    assert not known.kept_by(POD)
    assert not known.keepers()
