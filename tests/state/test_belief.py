"""Belief: what the watch shows and what was promised, taken together without a moment in between."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.device import ResourceSlice, Traits
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node, Pod
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule, Taint
from extender.state.belief import Belief, version
from extender.state.domain import Domain
from extender.state.ledger import UNMADE, ClaimHold, Event, Phase, Promise
from tests.state.test_cluster import device, free_devices, holder, node_slice

N1 = NodeName("n1")
POD = Pod(key=ObjectKey("ns", "p"), uid=Uid("pod"), scheduler="ours")
CLAIM = ResourceClaim(key=ObjectKey("default", "c"), uid=Uid("c"), spec=holder("c").spec, resource_version="5")
OWNER = "example.com/owner"


def belief_of(*, owner_taint: str = "") -> Belief:
    belief = Belief(("ours",), Features(), domain=Domain(taint=owner_taint))
    for noun in (Node(name=N1), node_slice("n1", "d0", "d1"), POD, CLAIM):
        belief.apply(Changed(noun))
    return belief


def held(phase: Phase, *, base: int = 5, unseen: ObjectKey | None = None) -> Belief:
    belief = belief_of()
    hold = ClaimHold(CLAIM.uid, (Hold(device("n1", "d0"), WHOLE),), phase, base, unseen)
    belief.ledger._replace(POD.uid, Promise(POD.uid, N1, (hold,)))
    return belief


def shown(number: int, *, allocated: bool) -> Changed:
    allocation = holder("c", device("n1", "d0")).allocation if allocated else None
    return Changed(replace(CLAIM, resource_version=str(number), allocation=allocation))


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("allocated", [True, False])
@pytest.mark.parametrize("number", [4, 5, 6])
def test_a_hold_ends_when_what_is_shown_tells_how_its_write_went(phase: Phase, number: int, *, allocated: bool) -> None:
    belief = held(phase)
    belief.apply(shown(number, allocated=allocated))
    is_told = number > 5
    ends = {
        Phase.OFFERED: allocated,
        Phase.RESERVED: allocated and is_told,
        Phase.WRITTEN: is_told,
        Phase.UNKNOWN: is_told,
    }
    assert (belief.ledger.of_claim(CLAIM.uid) is None) is ends[phase]
    seen = free_devices(belief.seen_by())
    assert seen == ({("n1", 1)} if allocated or not ends[phase] else {("n1", 0), ("n1", 1)})


def test_where_versions_are_no_numbers_devices_that_are_shown_end_the_hold() -> None:
    belief = held(Phase.WRITTEN, base=0)
    belief.apply(Changed(replace(CLAIM, resource_version="?", allocation=holder("c", device("n1", "d0")).allocation)))
    assert belief.ledger.of_claim(CLAIM.uid) is None


@pytest.mark.parametrize("phase", [Phase.OFFERED, Phase.WRITTEN, Phase.UNKNOWN])
@pytest.mark.parametrize(
    "change",
    [
        Gone(ResourceClaim, CLAIM.key),
        Changed(replace(CLAIM, uid=Uid("second"))),
        Listed(ResourceClaim, ()),
        Listed(ResourceClaim, (replace(CLAIM, uid=Uid("second")),)),
    ],
    ids=["gone", "replaced", "unlisted", "replaced in a list"],
)
def test_a_claim_that_is_gone_ends_its_hold(phase: Phase, change: Change) -> None:
    belief = held(phase)
    belief.apply(change)
    assert belief.ledger.of_claim(CLAIM.uid) is None


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.UNKNOWN])
@pytest.mark.parametrize("change", [Gone(ResourceClaim, ObjectKey("default", "x")), Listed(ResourceClaim, ())])
def test_a_claim_that_was_never_shown_is_not_taken_for_gone(phase: Phase, change: Change) -> None:
    belief = held(phase, unseen=CLAIM.key)
    belief.cluster.claims.drop(CLAIM.key)
    belief.apply(change)
    assert belief.ledger.of_claim(CLAIM.uid) is not None
    belief.apply(shown(6, allocated=True))
    assert belief.ledger.of_claim(CLAIM.uid) is None


def test_a_claim_that_was_shown_and_is_gone_is_gone_even_if_we_made_it() -> None:
    belief = held(Phase.UNKNOWN, unseen=CLAIM.key)
    belief.apply(shown(5, allocated=False))
    belief.apply(Gone(ResourceClaim, CLAIM.key))
    assert belief.ledger.of_claim(CLAIM.uid) is None


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_claim_that_was_made_takes_over_the_hold_whether_the_watch_was_faster_or_not(*, is_seen: bool) -> None:
    belief = belief_of()
    hold = ClaimHold(Uid(UNMADE + "pod"), (Hold(device("n1", "d0"), WHOLE),))
    assert belief.ledger.reserve(Promise(POD.uid, N1, (hold,)))
    if not is_seen:
        belief.apply(Gone(ResourceClaim, CLAIM.key))
    belief.made(hold.claim, CLAIM)
    found = belief.ledger.hold_of(CLAIM.uid)
    assert found is not None
    assert found.unseen == (None if is_seen else CLAIM.key)
    assert belief.ledger.of_claim(hold.claim) is None


def test_an_offer_of_devices_for_a_claim_that_is_yet_to_be_made_outlasts_a_list_of_claims() -> None:
    belief = belief_of()
    hold = ClaimHold(Uid(UNMADE + "pod"), (Hold(device("n1", "d0"), WHOLE),))
    assert belief.ledger.offer(Promise(POD.uid, N1, (hold,)))
    belief.apply(Listed(ResourceClaim, (CLAIM,)))
    assert belief.ledger.hold_of(hold.claim) == hold


def test_a_claim_that_a_list_lacks_is_in_the_way_of_no_later_one() -> None:
    belief, (first, second) = belief_of(), (holder(name, device("n1", "d0")) for name in ("first", "second"))
    belief.apply(Changed(first))
    belief.apply(Changed(second))
    assert belief.contested(second) == device("n1", "d0")
    belief.apply(Listed(ResourceClaim, (second,)))
    assert belief.contested(second) is None


def test_nobody_works_on_a_pod_beside_another_however_many_have_tried() -> None:
    belief = belief_of()
    with belief.alone_with(POD.uid) as is_first_alone:
        for _ in range(2):
            with belief.alone_with(POD.uid) as is_alone:
                assert not is_alone
    with belief.alone_with(POD.uid) as is_last_alone:
        assert (is_first_alone, is_last_alone) == (True, True)


def test_a_write_of_which_nobody_knows_is_told_of_what_the_watch_has_shown_before() -> None:
    belief = held(Phase.RESERVED)
    belief.apply(shown(6, allocated=False))
    assert belief.ledger.of_claim(CLAIM.uid) is not None
    belief.unanswered(CLAIM.uid)
    assert belief.ledger.of_claim(CLAIM.uid) is None


def test_a_claim_that_cannot_be_read_keeps_its_hold() -> None:
    belief = held(Phase.UNKNOWN)
    broken = Problem("ResourceClaim", CLAIM.key, "status", "is broken")
    belief.apply(Changed(broken))
    belief.apply(Listed(ResourceClaim, (broken,)))
    assert belief.ledger.of_claim(CLAIM.uid) is not None


ENDS: dict[str, Change] = {
    "bound": Changed(replace(POD, node_name=N1)),
    "gone": Gone(Pod, POD.key),
    "replaced": Changed(replace(POD, uid=Uid("second"))),
    "unreadable": Changed(Problem("Pod", POD.key, "spec", "is broken")),
    "unlisted": Listed(Pod, ()),
    "listed as bound": Listed(Pod, (replace(POD, node_name=N1),)),
    "listed as another": Listed(Pod, (replace(POD, uid=Uid("second")),)),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("phase", Phase)
def test_with_its_pod_an_offer_ends_and_nothing_else(how: str, phase: Phase) -> None:
    belief = held(phase)
    belief.apply(ENDS[how])
    assert (belief.ledger.of_pod(POD.uid) is None) is (phase is Phase.OFFERED)


def test_what_was_offered_to_a_pod_is_free_for_that_pod_alone() -> None:
    belief = held(Phase.OFFERED)
    assert free_devices(belief.seen_by()) == {("n1", 1)}
    assert free_devices(belief.seen_by(Uid("other"))) == {("n1", 1)}
    assert free_devices(belief.seen_by(POD.uid)) == {("n1", 0), ("n1", 1)}
    assert belief.seen_by() is belief.seen_by()
    belief.ledger.tell(POD.uid, Event.EXPIRED)
    assert free_devices(belief.seen_by()) == {("n1", 0), ("n1", 1)}


def taints(belief: Belief) -> set[str]:
    slices = belief.cluster.snapshot.inventory.slices
    kept = {taint.key for item in slices for entry in item.devices for taint in entry.traits.taints}
    return kept | {rule.taint.key for rule in belief.cluster.snapshot.rules.values()}


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_taint_of_the_owner_is_meant_for_everybody_else(*, is_listed: bool) -> None:
    owner, sick = Taint(key=OWNER, effect="NoSchedule"), Taint(key="sick", effect="NoSchedule")
    rules = tuple(DeviceTaintRule(name=taint.key, selector=None, taint=taint) for taint in (owner, sick))
    published = node_slice("n1", "d0")
    traits = Traits(taints=(owner, replace(sick, key="ill")))
    tainted = replace(published, devices=tuple(replace(item, traits=traits) for item in published.devices))
    belief = belief_of(owner_taint=OWNER)
    if is_listed:
        belief.apply(Listed(DeviceTaintRule, rules))
        belief.apply(Listed(ResourceSlice, (tainted,)))
    else:
        belief.apply(Changed(tainted))
        for rule in rules:
            belief.apply(Changed(rule))
    assert taints(belief) == {"sick", "ill"}
    belief.apply(Changed(replace(rules[1], taint=owner)))
    assert taints(belief) == {"ill"}


@pytest.mark.parametrize(("text", "number"), [("", 0), ("12", 12), ("x", 0), ("-1", 0)])
def test_versions_are_numbers(text: str, number: int) -> None:
    assert version(replace(CLAIM, resource_version=text)) == number


def test_a_pod_is_known_in_the_version_that_was_shown_and_in_no_other() -> None:
    belief = belief_of()
    belief.apply(Changed(replace(POD, resource_version="7")))
    seen = belief.pods.seen(POD.uid, "7")
    assert seen is belief.pods.with_uid(POD.uid)
    assert belief.pods.seen(POD.uid, "6") is None
    assert belief.pods.seen("stranger", "7") is None
