"""What is ours, what others have allocated of it, and what is closed because of that."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Change, Changed, Gone, Listed, Noun
from extender.model.claim import ResourceClaim
from extender.model.device import PLAIN, ResourceSlice, Seal, Traits
from extender.model.names import DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from extender.state.foreign import BORNE, Foreign
from extender.state.ledger import ClaimHold, Phase, Promise
from extender.state.ownership import Ownership
from extender.state.sealing import PIECE
from tests.scheduling.cast import DRIVER, OURS, claim, consumer, device, gpus, held, node, pod

OWNER = "example.com/owner"
ME = writer_of((OURS,))
POD, BOUND = pod("p", "a"), pod("q", "b")
RULE = DeviceTaintRule(name="owned", selector=TaintSelector(driver=DRIVER), taint=Taint(key=OWNER, effect="NoSchedule"))


def believing(*, rule: DeviceTaintRule | None = RULE, domain: Domain | None = None) -> Belief:
    belief = Belief((OURS,), Features(), domain=domain or Domain(taint=OWNER, writer=ME))
    belief.apply(Listed(ResourceClaim, (claim("a"), claim("b"))))
    nouns: list[Noun] = [node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 2), POD, *([rule] if rule else [])]
    for noun in nouns:
        belief.apply(Changed(noun))
    return belief


def allocated(name: str = "a", *, by: str = "", where: str = "n1", **changes: object) -> ResourceClaim:
    given = held(claim(name, version=2), device(where, 0))
    whole: ResourceClaim = replace(given, writers=(by,) if by else (), **changes)  # type: ignore[arg-type]  # of a claim
    return whole


def shown(belief: Belief, item: ResourceClaim) -> tuple[Foreign, ...]:
    """Show *item* as the service does, and return what was foreign about it."""
    found = belief.foreign_in(Changed(item))
    belief.apply(Changed(item))
    belief.sealing.close(found)
    return found


def closed(belief: Belief) -> list[str]:
    return [item.pool for item in belief.cluster.snapshot.inventory.slices if item.seal is Seal.CLOSED]


@pytest.mark.parametrize("writer", ["kube-scheduler", "dra-extender.another-scheduler", ""])
def test_an_allocation_by_somebody_else_closes_its_pool_alone(writer: str) -> None:
    belief = believing()
    (found,) = shown(belief, allocated(by=writer))
    assert found.writers == ((writer,) if writer else ())
    assert (found.devices, found.untainted) == ((device("n1", 0),), frozenset())
    assert closed(belief) == ["n1"]


def test_where_the_owner_taint_was_missing_the_whole_driver_is_closed() -> None:
    belief = believing(rule=None)
    (found,) = shown(belief, allocated(by="kube-scheduler"))
    assert found.untainted == {DRIVER}
    assert closed(belief) == ["n1", "n2"]


def test_a_taint_that_is_put_back_later_changes_nothing_about_what_was_closed_before() -> None:
    belief = believing(rule=None)
    shown(belief, allocated(by="kube-scheduler"))
    belief.apply(Changed(RULE))
    assert closed(belief) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("rule", "covers"),
    [
        (RULE, True),
        (replace(RULE, selector=TaintSelector()), True),
        (replace(RULE, selector=TaintSelector(driver=DRIVER, pool=PoolName("n1"))), True),
        (replace(RULE, selector=TaintSelector(driver=DRIVER, pool=PoolName("n2"))), False),
        (replace(RULE, selector=TaintSelector(driver=DriverName("other.example.com"))), False),
        (replace(RULE, selector=None), False),
        (replace(RULE, taint=Taint(key=OWNER, effect="None")), False),
        # Claims may tolerate that of everything: base/tolerations.yaml lets them.
        (replace(RULE, taint=Taint(key=OWNER, effect="NoExecute")), False),
        (replace(RULE, taint=Taint(key="example.com/else", effect="NoSchedule")), False),
    ],
    ids=[
        "driver",
        "everything",
        "pool",
        "another-pool",
        "another-driver",
        "nothing",
        "no-effect",
        "eviction",
        "another-key",
    ],
)
def test_the_taint_was_there_where_a_rule_put_it_on_the_device(rule: DeviceTaintRule, *, covers: bool) -> None:
    (found,) = shown(believing(rule=rule), allocated(by="kube-scheduler"))
    assert found.untainted == (frozenset() if covers else {DRIVER})


def test_without_their_owners_taint_devices_are_as_plain_as_those_of_which_nothing_is_said() -> None:
    belief = believing(rule=None)
    belief.apply(Changed(gpus("n3", 2, Traits(taints=(Taint(key=OWNER, effect="NoSchedule"),)))))
    (published,) = (each for each in belief.cluster.snapshot.inventory.slices if each.pool == "n3")
    assert [device.traits is PLAIN for device in published.devices] == [True, True]


def test_the_taint_was_there_where_the_driver_itself_put_it_on() -> None:
    belief = believing(rule=None)
    belief.apply(Changed(gpus("n1", 2, Traits(taints=(Taint(key=OWNER, effect="NoSchedule"),)))))
    (found,) = shown(belief, allocated(by="kube-scheduler"))
    assert found.untainted == frozenset()
    assert closed(belief) == ["n1"]


def test_what_was_closed_in_a_term_before_is_open_in_the_next() -> None:
    belief = believing(rule=None)
    found = shown(belief, allocated(by="kube-scheduler"))
    belief.sealing.close(found)
    assert closed(belief)
    belief.sealing.open_all()
    while belief.sealing.go_on():
        pass
    assert closed(belief) == []
    assert belief.ownership.foreign == {}


def ours_by(belief: Belief, phase: Phase) -> None:
    """Have claim a promised to its pod, in *phase*."""
    hold = ClaimHold(claim("a").uid, (Hold(device("n1", 0), WHOLE),), phase, 1)
    belief.ledger._replace(POD.uid, Promise(POD.uid, NodeName("n1"), (hold,)))


@pytest.mark.parametrize("phase", Phase)
def test_an_allocation_that_names_us_is_ours_whatever_the_ledger_knows(phase: Phase) -> None:
    belief = believing()
    ours_by(belief, phase)
    assert shown(belief, allocated(by=ME)) == ()


def test_a_late_write_of_an_earlier_process_or_of_another_replica_is_ours() -> None:
    belief = believing()  # no hold, and no pod that waits
    assert shown(belief, allocated("b", by=ME)) == ()
    assert closed(belief) == []


def test_an_allocation_that_names_somebody_else_is_foreign_even_where_we_were_about_to_write() -> None:
    belief = believing()
    ours_by(belief, Phase.UNKNOWN)
    assert len(shown(belief, allocated(by="kube-scheduler"))) == 1


def test_without_a_name_what_we_have_promised_is_ours_and_other_devices_are_not() -> None:
    belief = believing()
    ours_by(belief, Phase.UNKNOWN)
    assert shown(belief, allocated()) == ()
    belief = believing()
    ours_by(belief, Phase.UNKNOWN)
    assert len(shown(belief, allocated(where="n2"))) == 1


def test_without_a_name_what_we_have_promised_is_ours_beside_what_is_only_looked_at() -> None:
    belief, given = believing(), allocated()
    ours_by(belief, Phase.UNKNOWN)
    assert given.allocation is not None
    had = given.allocation.devices
    seen = replace(had[0], device=device("n1", 1), admin_access=True)
    assert shown(belief, replace(given, allocation=replace(given.allocation, devices=(*had, seen)))) == ()


def test_without_a_name_and_a_hold_what_is_reserved_for_a_waiting_pod_of_ours_is_ours() -> None:
    assert shown(believing(), allocated(reserved_for=(consumer(POD),))) == ()
    assert len(shown(believing(), allocated("b", reserved_for=(consumer(BOUND),)))) == 1


def test_what_the_first_list_shows_was_allocated_before_we_listened() -> None:
    belief = Belief((OURS,), Features())
    assert belief.foreign_in(Listed(ResourceClaim, (allocated(by="kube-scheduler"),))) == ()


def test_what_a_list_shows_after_a_gap_may_be_foreign() -> None:
    belief = believing()
    change = Listed(ResourceClaim, (allocated(by="kube-scheduler"), claim("b")))
    assert [item.claim.key.name for item in belief.foreign_in(change)] == ["a"]
    belief.apply(change)
    assert belief.foreign_in(change) == ()


def test_what_a_list_shows_after_a_gap_may_be_foreign_though_there_was_no_claim_before() -> None:
    belief = Belief((OURS,), Features())
    belief.apply(Listed(ResourceClaim, ()))
    change = Listed(ResourceClaim, (allocated(by="kube-scheduler"),))
    assert [item.claim.key.name for item in belief.foreign_in(change)] == ["a"]


def test_what_is_shown_once_claims_are_served_again_was_allocated_before_we_listened() -> None:
    belief = believing()
    belief.apply(Listed(ResourceClaim, (), is_served=False))
    assert belief.foreign_in(Listed(ResourceClaim, (allocated(by="kube-scheduler"),))) == ()


def test_admin_access_is_no_allocation() -> None:
    item = allocated(by="kube-scheduler")
    assert item.allocation is not None
    looked = tuple(replace(given, admin_access=True) for given in item.allocation.devices)
    assert shown(believing(), replace(item, allocation=replace(item.allocation, devices=looked))) == ()


def test_a_foreign_claim_is_told_of_once() -> None:
    belief = believing()
    assert len(shown(belief, allocated(by="kube-scheduler"))) == 1
    assert shown(belief, allocated(by="kube-scheduler", resource_version="3")) == ()
    assert closed(belief) == ["n1"]


@pytest.mark.parametrize("what", ["gone", "deallocated", "borne", "not listed", "given anew by us in a gap"])
def test_the_pool_opens_when_the_foreign_claim_is_over(what: str) -> None:
    belief = believing()
    item = allocated(by="kube-scheduler")
    shown(belief, item)
    changes: dict[str, Change] = {
        "gone": Gone(ResourceClaim, item.key),
        "deallocated": Changed(claim("a", version=3)),
        "borne": Changed(replace(item, annotations=((BORNE, item.uid),))),
        "not listed": Listed(ResourceClaim, (claim("b"),)),
        "given anew by us in a gap": Listed(ResourceClaim, (allocated(by=ME, where="n2"),)),
    }
    belief.apply(changes[what])
    assert closed(belief) == []
    assert belief.ownership.foreign == {}


def test_a_pool_stays_closed_while_claims_are_not_served_and_where_the_foreign_one_is_there_still() -> None:
    belief = believing()
    item = allocated(by="kube-scheduler")
    shown(belief, item)
    for change in (Listed(ResourceClaim, (), is_served=False), Listed(ResourceClaim, (item,))):
        belief.apply(change)
        assert closed(belief) == ["n1"]
    belief.apply(Listed(ResourceClaim, ()))
    assert closed(belief) == []


def test_a_pool_stays_closed_as_long_as_one_foreign_claim_is_left() -> None:
    belief = believing()
    shown(belief, allocated("a", by="kube-scheduler"))
    shown(belief, allocated("b", by="kube-scheduler"))
    belief.apply(Gone(ResourceClaim, claim("a").key))
    assert closed(belief) == ["n1"]


def test_nobody_can_bear_with_a_claim_that_is_not_there_yet() -> None:
    item = allocated(by="kube-scheduler", annotations=((BORNE, "true"),))
    assert len(shown(believing(), item)) == 1


def test_who_bears_with_a_claim_no_longer_closes_its_pool_again() -> None:
    belief, item = believing(), allocated(by="kube-scheduler")
    borne = replace(item, annotations=((BORNE, item.uid),))
    for told in (item, borne):
        shown(belief, told)
    assert closed(belief) == []
    assert len(shown(belief, item)) == 1
    assert closed(belief) == ["n1"]
    shown(belief, borne)
    assert closed(belief) == []


def test_what_we_allocated_ourselves_closes_nothing_whatever_was_said_about_bearing_with_it() -> None:
    belief, item = believing(), allocated(by=ME)
    for told in (item, replace(item, annotations=((BORNE, item.uid),)), item):
        assert shown(belief, told) == ()
    assert closed(belief) == []


def test_a_slice_that_is_published_anew_stays_closed() -> None:
    belief = believing()
    shown(belief, allocated(by="kube-scheduler"))
    belief.apply(Changed(gpus("n1", 4)))
    belief.apply(Listed(ResourceSlice, (gpus("n1", 3), gpus("n2", 3))))
    assert closed(belief) == ["n1"]


def test_what_is_not_ours_is_sealed_and_foreign_to_nobody() -> None:
    belief = believing(domain=Domain(drivers=frozenset({"other.example.com"}), taint=OWNER, writer=ME))
    assert [item.seal for item in belief.cluster.snapshot.inventory.slices] == [Seal.NOT_OURS, Seal.NOT_OURS]
    assert shown(belief, allocated(by="kube-scheduler")) == ()


@pytest.mark.parametrize(
    ("selector", "is_stray"),
    [
        (TaintSelector(driver=DRIVER), True),
        (TaintSelector(), True),
        (TaintSelector(driver=DRIVER, pool=PoolName("n1")), False),
        (TaintSelector(pool=PoolName("n1")), False),
        (TaintSelector(driver=DriverName("unpublished.example.com")), False),
        (None, False),
    ],
    ids=["driver", "everything", "pool", "pool-of-any", "unpublished", "nothing"],
)
def test_a_rule_on_all_of_a_driver_that_publishes_is_a_stray_unless_that_is_ours(
    selector: TaintSelector | None, *, is_stray: bool
) -> None:
    rule = replace(RULE, selector=selector)
    other = Domain(drivers=frozenset({"other.example.com"}), taint=OWNER, writer=ME)
    for domain in (other, Domain(heeded=OWNER)):
        belief = believing(rule=rule, domain=domain)
        found = belief.ownership.strays(belief.cluster.snapshot.inventory)
        assert found == (((rule.name, DRIVER),) if is_stray else ())
    for domain in (Domain(taint=OWNER), Domain(drivers=frozenset({DRIVER}), taint=OWNER), Domain()):
        belief = believing(rule=rule, domain=domain)
        assert belief.ownership.strays(belief.cluster.snapshot.inventory) == ()


def test_who_owns_nothing_heeds_the_owner_taint_like_any_other() -> None:
    plain, heeding = believing(domain=Domain()), believing(domain=Domain(heeded=OWNER))
    for belief in (plain, heeding):
        assert [item.taint.key for item in belief.cluster.snapshot.rules.values()] == [OWNER]


def test_only_what_is_asked_for_by_our_classes_is_ours() -> None:
    assert len(shown(believing(domain=Domain(classes=frozenset({"gpu"}), writer=ME)), allocated(by="them"))) == 1
    assert shown(believing(domain=Domain(classes=frozenset({"else"}), writer=ME)), allocated(by="them")) == ()


def test_a_driver_that_is_shared_needs_no_taint_and_what_others_have_of_it_closes_nothing() -> None:
    drivers = frozenset({DRIVER, "other.example.com"})
    domain = Domain(drivers=drivers, classes=frozenset({"else"}), shared=frozenset({DRIVER}), taint=OWNER, writer=ME)
    belief = believing(rule=None, domain=domain)
    assert belief.ownership.unkept(belief.cluster.snapshot.inventory) == ("other.example.com",)
    assert shown(belief, allocated(by="kube-scheduler")) == ()
    assert closed(belief) == []


def test_of_a_driver_that_is_shared_what_others_have_by_a_class_of_ours_is_foreign_all_the_same() -> None:
    domain = Domain(
        drivers=frozenset({DRIVER}), classes=frozenset({"gpu"}), shared=frozenset({DRIVER}), taint=OWNER, writer=ME
    )
    bare, barred = believing(rule=None, domain=domain), believing(domain=domain)
    for belief in (bare, barred):
        assert len(shown(belief, allocated(by="kube-scheduler"))) == 1
    assert (closed(bare), closed(barred)) == (["n1", "n2"], ["n1"])


def test_of_a_driver_that_is_ours_alone_what_others_have_is_foreign_whatever_class_they_ask_for() -> None:
    alone, other = Domain(drivers=frozenset({DRIVER}), classes=frozenset({"else"}), taint=OWNER, writer=ME), "other"
    beside = replace(alone, drivers=frozenset({DRIVER, other}), shared=frozenset({other}))
    for belief in (believing(domain=alone), believing(domain=beside)):
        assert len(shown(belief, allocated(by="kube-scheduler"))) == 1
        assert closed(belief) == ["n1"]


def test_replicas_write_under_one_name_and_another_deployment_under_another() -> None:
    assert writer_of(("b", "a")) == writer_of(("a", "b")) == "dra-extender.a,b"
    assert writer_of(("a",)) != writer_of(("b",))
    assert len(writer_of(("a" * 253,))) == 128


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [
        (RULE, True),
        (replace(RULE, selector=TaintSelector(driver=DRIVER, pool=PoolName("n1"))), False),
        (replace(RULE, selector=TaintSelector(driver=DRIVER, expressions=("true",))), False),
        (replace(RULE, taint=Taint(key=OWNER, effect="NoExecute")), False),
        (None, False),
    ],
    ids=["whole", "pool", "expression", "eviction", "none"],
)
def test_a_rule_keeps_a_driver_if_it_taints_all_of_it(rule: DeviceTaintRule | None, *, keeps: bool) -> None:
    belief = believing(rule=rule)
    assert belief.ownership.keeps(DRIVER) is keeps
    belief.apply(Gone(DeviceTaintRule, ObjectKey("", RULE.name)))
    assert belief.ownership.keeps(DRIVER) is False


def test_a_rule_that_cannot_be_read_any_more_keeps_nobody_away() -> None:
    belief = believing()
    assert belief.ownership.keeps(DRIVER)
    unread = Problem(kind="DeviceTaintRule", key=ObjectKey("", RULE.name), path="spec.taint", message="is no object")
    belief.apply(Changed(unread))
    assert not belief.ownership.keeps(DRIVER)


def test_uids_are_of_claims_not_of_names() -> None:
    belief = believing()
    shown(belief, allocated(by="kube-scheduler"))
    belief.apply(Changed(replace(claim("a"), uid=Uid("made-anew"))))
    assert closed(belief) == []


def test_a_driver_with_many_slices_is_closed_and_opened_in_pieces_and_the_pool_concerned_at_once() -> None:
    belief, many = believing(rule=None), 3 * PIECE
    for number in range(3, many + 1):
        belief.apply(Changed(gpus(f"n{number}", 1)))
    last = f"n{many}"
    before = belief.cluster.snapshot.generation
    shown(belief, allocated(by="kube-scheduler", where=last))
    assert last in closed(belief)
    assert len(closed(belief)) <= PIECE + 1
    while belief.sealing.go_on():
        assert last in closed(belief)
    assert len(closed(belief)) == many
    assert belief.cluster.snapshot.generation > before
    belief.apply(Gone(ResourceClaim, ObjectKey("ns", "a")))
    assert len(closed(belief)) == many - PIECE
    while belief.sealing.go_on():
        pass
    assert closed(belief) == []


def test_a_driver_is_closed_once_however_many_come() -> None:
    belief, many = believing(rule=None), 8 * PIECE
    for number in range(3, many + 1):
        belief.apply(Changed(gpus(f"n{number}", 1)))
    for number in range(4):
        shown(belief, allocated(f"their-{number}", by="kube-scheduler", where=f"n{number + 1}"))
    rounds = 1
    while belief.sealing.go_on():
        rounds += 1
    assert len(closed(belief)) == many
    assert rounds <= many // PIECE


def test_what_is_published_anew_while_a_driver_is_closed_is_closed_and_what_is_gone_is_no_trouble() -> None:
    belief, many = believing(rule=None), 3 * PIECE
    for number in range(3, many + 1):
        belief.apply(Changed(gpus(f"n{number}", 1)))
    shown(belief, allocated(by="kube-scheduler"))
    gone, anew = gpus(f"n{many}", 1), gpus(f"n{many - 1}", 2)
    belief.apply(Gone(ResourceSlice, ObjectKey("", gone.name)))
    belief.apply(Changed(anew))
    while belief.sealing.go_on():
        pass
    assert len(closed(belief)) == many - 1


def test_further_claims_of_a_closed_driver_have_their_own_pools_looked_at_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    belief, many, looked = believing(rule=None), 8 * PIECE, list[str]()
    for number in range(3, many + 1):
        belief.apply(Changed(gpus(f"n{number}", 1)))
    shown(belief, allocated("a", by="kube-scheduler"))
    judged = Ownership.seal_of

    def seal_of(ownership: Ownership, published: ResourceSlice) -> Seal | None:
        looked.append(published.pool)
        return judged(ownership, published)

    monkeypatch.setattr(Ownership, "seal_of", seal_of)
    shown(belief, allocated("b", by="kube-scheduler", where="n7"))
    assert looked == ["n7"]
    while belief.sealing.go_on():
        pass
    belief.apply(Gone(ResourceClaim, claim("b").key))
    assert not belief.sealing.is_due


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2", ""]), st.booleans()), max_size=8))
def test_what_is_closed_is_what_the_foreign_claims_that_are_left_close_between_them(
    steps: list[tuple[str, str, bool]],
) -> None:
    belief = believing()
    for number, (name, where, is_tainted) in enumerate(steps):
        belief.apply(Changed(RULE) if is_tainted else Gone(DeviceTaintRule, ObjectKey("", RULE.name)))
        if where:
            shown(belief, allocated(name, by="kube-scheduler", where=where, resource_version=str(number)))
        else:
            belief.apply(Gone(ResourceClaim, claim(name).key))
        while belief.sealing.go_on():
            pass
        left = belief.ownership.foreign.values()
        pools = {pool.pool for item in left for pool in item.pools}
        assert closed(belief) == (["n1", "n2"] if any(item.untainted for item in left) else sorted(pools))
