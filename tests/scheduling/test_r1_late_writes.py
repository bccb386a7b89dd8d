"""R1: a write without an answer can land as long as what it is based on is current, and its devices stay held."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from extender.allocation.usage import Hold, Usage
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.scheduling.planner import Offer, Rejection, Trouble
from extender.scheduling.remedy import freed, settled
from extender.scheduling.steps import (
    AwaitShown,
    BindPod,
    CreateClaim,
    Done,
    Outcome,
    ReadClaim,
    ReadPod,
    Refusal,
    Refused,
    Step,
    TouchClaim,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.state.ledger import ClaimHold, Event, Phase, Promise
from tests.scheduling.cast import binder_of, claim, device, gpus, node, planner_of, pod, promised
from tests.scheduling.server import CONFLICT, Server, World, allocation_of, landed, lost

N1 = NodeName("n1")
POD = pod("p", "a")
OTHER = pod("q", "b")
EXTENDED = pod("p", gpus=1)


Work = Generator[Step, Outcome, Result]


class Silent(World):
    """A world in which some kinds of steps get no answer."""

    silent: tuple[type[Step], ...] = ()
    arrives: tuple[type[Step], ...] = ()

    def _outcome(self, step: Step) -> Outcome:
        if isinstance(step, self.silent):
            self.taken.append(step)
            return (landed if isinstance(step, self.arrives) else lost)(self.server, step)
        return super()._outcome(step)


def world_of(*silent: type[Step], subject: Pod = POD) -> Silent:
    server = Server((node("n1"), gpus("n1", 1)))
    for item in (subject, OTHER, claim("a"), claim("b")):
        server.put(item)
    world = Silent(server, server.believed())
    world.silent = silent
    return world


def bind(world: World, subject: Pod = POD) -> Result | None:
    binder = binder_of(world.belief)
    return world.carry(binder.bind(Order(subject.key, subject.uid, N1)))


def phases(world: World) -> list[Phase]:
    return [hold.phase for promise in world.belief.ledger for hold in promise.claims]


def unanswered(world: Silent, subject: Pod = POD) -> None:
    """Have the write of an allocation get no answer, and nothing else either."""
    world.silent = (WriteAllocation, ReadClaim)
    assert isinstance(bind(world, subject), NotBound)
    world.silent = ()


def test_r1_a_write_without_an_answer_holds_its_devices_until_the_claim_moves_on() -> None:
    world = world_of()
    unanswered(world)
    assert phases(world) == [Phase.UNKNOWN]
    world.belief.ledger.tell(POD.uid, Event.EXPIRED)
    world.belief.apply(Gone(Pod, POD.key))
    assert promised(world.belief) == [device("n1", 0)]
    assert isinstance(planner_of(world.belief).plan(OTHER, [N1], 0.0), Rejection)
    world.server.put(world.server.claims[ObjectKey("ns", "a")])
    world.server.deliver(world.belief)
    assert promised(world.belief) == []


def test_r1_who_is_asked_about_while_its_claims_are_written_is_told_so_and_not_that_nothing_is_free() -> None:
    world = world_of()
    planner = planner_of(world.belief)
    unanswered(world)
    plan = planner.plan(POD, [N1], 0.0)
    assert isinstance(plan, Trouble)
    assert plan.message.endswith("nobody knows yet whether they were changed")
    world.belief.ledger.tell(POD.uid, Event.RESUMED)
    plan = planner.plan(POD, [N1], 0.0)
    assert isinstance(plan, Trouble)
    assert plan.message == "claims of the pod are being written for node n1"


@pytest.mark.parametrize("how", ["gone", "replaced", "not listed", "replaced in a list"])
def test_r1_a_claim_that_is_gone_holds_nothing(how: str) -> None:
    world = world_of()
    unanswered(world)
    again = replace(claim("a"), uid=OTHER.uid)
    changes: dict[str, Change] = {
        "gone": Gone(ResourceClaim, claim("a").key),
        "replaced": Changed(again),
        "not listed": Listed(ResourceClaim, (claim("b"),)),
        "replaced in a list": Listed(ResourceClaim, (again,)),
    }
    world.belief.apply(changes[how])
    assert promised(world.belief) == []


def test_r1_a_write_that_landed_is_seen_before_its_hold_ends() -> None:
    world = world_of()
    unanswered(world)
    world.server.land()
    world.server.deliver(world.belief)
    assert promised(world.belief) == []
    assert isinstance(planner_of(world.belief).plan(OTHER, [N1], 0.0), Rejection)


def test_r1_what_the_watch_shows_from_before_the_write_says_nothing_of_it() -> None:
    world = world_of()
    old = world.server.put(replace(world.server.claims[ObjectKey("ns", "a")], annotations=(("x", "y"),)))
    world.server.put(old)
    shown = list(world.server.log)
    world.server.log.clear()
    for known in world.server.claims.values():
        world.belief.apply(Changed(known))
    unanswered(world)
    for change in shown[:1]:
        world.belief.apply(change)
    assert phases(world) == [Phase.UNKNOWN]


def test_r1_the_claim_is_touched_before_the_write_is_begun_anew() -> None:
    world = world_of(WriteAllocation)
    world.is_prompt = False
    result = bind(world)
    kinds = [type(step) for step in world.taken]
    assert isinstance(result, NotBound)
    assert kinds[:4] == [WriteAllocation, ReadClaim, TouchClaim, WriteAllocation]
    world.server.land()
    world.server.deliver(world.belief)
    assert allocation_of(world.server, "a") is None
    assert phases(world) == []


def test_r1_a_claim_that_has_moved_on_need_not_be_touched() -> None:
    world = world_of()

    def fault(server: Server, step: Step) -> Outcome:
        outcome = lost(server, step)
        server.put(server.claims[ObjectKey("ns", "a")])
        return outcome

    world.fault, world.at, world.is_prompt = fault, 0, False
    assert isinstance(bind(world), Bound)
    assert TouchClaim not in [type(step) for step in world.taken]


def test_r1_settling_moves_the_claim_on_so_that_nothing_can_land() -> None:
    world = world_of()
    unanswered(world)
    world.carry(settled(world.belief))
    assert promised(world.belief) == []
    world.server.land()
    assert allocation_of(world.server, "a") is None


def test_r1_settling_finds_what_has_landed() -> None:
    world = world_of(WriteAllocation, ReadClaim)
    world.arrives, world.is_prompt = (WriteAllocation,), False
    bind(world)
    world.silent = ()
    assert phases(world) == [Phase.UNKNOWN]
    assert world.carry(settled(world.belief)) is None
    assert phases(world) == [Phase.WRITTEN]
    world.server.deliver(world.belief)
    assert phases(world) == []


def test_r1_settling_without_an_answer_settles_nothing() -> None:
    world = world_of()
    unanswered(world)
    world.silent = (ReadClaim,)
    assert world.carry(settled(world.belief)) == claim("a").uid
    world.silent = (TouchClaim,)
    assert world.carry(settled(world.belief)) == claim("a").uid
    assert phases(world) == [Phase.UNKNOWN]


@pytest.mark.parametrize("answer", [Refused(Refusal.FORBIDDEN), Refused(Refusal.REJECTED), Refused(Refusal.IN_VAIN)])
def test_r1_settling_that_may_be_refused_for_good_is_not_tried_again_at_once(answer: Refused) -> None:
    world = world_of()
    unanswered(world)
    for at in (0, 1):
        world.taken.clear()
        world.fault, world.at = (lambda _server, _step: answer), at
        assert world.carry(settled(world.belief)) == claim("a").uid
        assert phases(world) == [Phase.UNKNOWN]


def test_r1_what_was_found_out_about_one_write_does_not_end_the_hold_of_the_next() -> None:
    world = world_of()
    unanswered(world)
    ledger, uid = world.belief.ledger, claim("a").uid
    work = settled(world.belief)
    assert next(work) == ReadClaim(claim("a").key)
    read = Done(world.server.put(claim("a")))
    # Meanwhile the binding has read the claim itself, and has written anew.
    ledger.tell(POD.uid, Event.RESUMED, uid)
    ledger.rebase(uid, int(read.what.resource_version) if read.what else 0)
    ledger.tell(POD.uid, Event.UNANSWERED, uid)
    with pytest.raises(StopIteration):
        work.send(read)
    assert phases(world) == [Phase.UNKNOWN]


def test_r1_what_was_written_to_a_claim_that_was_never_shown_is_not_held_once_that_is_gone() -> None:
    world = world_of(subject=EXTENDED)
    hold = ClaimHold(Uid("made"), (Hold(device("n1", 0), Usage(dedicated=1)),), unseen=ObjectKey("ns", "made"))
    assert world.belief.ledger.reserve(Promise(EXTENDED.uid, N1, (hold,)))
    world.belief.ledger.tell_claim(hold.claim, Event.ACCEPTED)
    assert phases(world) == [Phase.WRITTEN]
    world.carry(settled(world.belief))
    assert phases(world) == []


def test_r1_where_one_write_has_no_answer_the_others_have_their_turn_before_it_is_asked_about_again() -> None:
    world = world_of(ReadClaim)
    for number, name in enumerate(("a", "b")):
        hold = ClaimHold(claim(name).uid, (Hold(device("n1", number), Usage(dedicated=1)),))
        assert world.belief.ledger.reserve(Promise(pod(name).uid, N1, (hold,)))
        world.belief.ledger.tell_claim(hold.claim, Event.UNANSWERED)
    last = None
    for _ in range(3):
        last = world.carry(settled(world.belief, last))
    assert [step.key.name for step in world.taken if isinstance(step, ReadClaim)] == ["a", "b", "a"]


def test_r1_a_claim_that_we_made_is_held_although_the_watch_has_not_shown_it() -> None:
    world = world_of(subject=EXTENDED)
    world.is_prompt = False
    unanswered(world, EXTENDED)
    assert phases(world) == [Phase.UNKNOWN]
    world.belief.apply(Gone(ResourceClaim, claim("b").key))
    world.belief.apply(Listed(ResourceClaim, (claim("a"),)))
    assert promised(world.belief) == [device("n1", 0)]
    world.server.deliver(world.belief)
    world.carry(settled(world.belief))
    world.server.deliver(world.belief)
    assert promised(world.belief) == []


def test_r1_a_claim_that_we_made_and_that_was_never_shown_leaks_nothing() -> None:
    world = world_of(subject=EXTENDED)
    world.is_prompt = False
    unanswered(world, EXTENDED)
    for made in [item for item in world.server.claims.values() if item.owners]:
        world.server.drop(made)
    world.server.log.clear()
    world.carry(settled(world.belief))
    assert promised(world.belief) == []


def writing(world: World, subject: Pod = POD) -> tuple[Work, WriteAllocation]:
    """Bind *subject* as far as to the write of its devices, which is yet to be sent."""
    work = binder_of(world.belief).bind(Order(subject.key, subject.uid, N1))
    sent = next(work)
    while not isinstance(sent, WriteAllocation):
        sent = work.send(world.server.do(sent))
    return work, sent


def listed(world: World) -> None:
    """Have a list come after a gap: nobody hears of what was in between."""
    world.server.log.clear()
    world.belief.apply(Listed(ResourceClaim, tuple(world.server.claims.values())))


@pytest.mark.parametrize("is_deleted", [True, False])
def test_r1_what_was_written_and_is_over_when_the_answer_comes_holds_nothing(*, is_deleted: bool) -> None:
    world = world_of()
    work, sent = writing(world)
    outcome = world.server.do(sent)
    known = world.server.claims[sent.claim.key]
    if is_deleted:
        world.server.drop(known)
    else:
        world.server.put(replace(known, allocation=None, reserved_for=()))
    listed(world)
    # The answer is still to come: for all that we know the write may land.
    assert phases(world) == [Phase.RESERVED]
    assert isinstance(work.send(outcome), AwaitShown)
    assert promised(world.belief) == []
    assert isinstance(planner_of(world.belief).plan(OTHER, [N1], 0.0), Offer)


def test_r1_what_was_written_is_held_until_it_is_shown_whatever_was_listed_before() -> None:
    world = world_of()
    work, sent = writing(world)
    listed(world)
    work.send(world.server.do(sent))
    assert phases(world) == [Phase.WRITTEN]
    world.server.deliver(world.belief)
    assert phases(world) == []


def test_r1_what_was_written_for_a_claim_that_was_made_just_now_is_held_though_a_list_lacks_it() -> None:
    world = world_of(subject=EXTENDED)
    work, sent = writing(world, EXTENDED)
    world.belief.apply(Listed(ResourceClaim, (claim("a"), claim("b"))))
    work.send(world.server.do(sent))
    assert phases(world) == [Phase.WRITTEN]
    assert promised(world.belief) == [device("n1", 0)]
    world.server.deliver(world.belief)
    assert phases(world) == []


def test_r1_what_was_read_after_a_refusal_is_held_until_the_watch_is_as_far() -> None:
    world = world_of()
    work, sent = writing(world)
    world.server.put(world.server.claims[sent.claim.key])
    world.server.deliver(world.belief)
    again = replace(sent, claim=world.server.claims[sent.claim.key], consumer=replace(sent.consumer, uid=OTHER.uid))
    world.server.do(again)
    read = work.send(world.server.do(sent))
    assert isinstance(read, ReadClaim)
    with pytest.raises(StopIteration) as end:
        work.send(world.server.do(read))
    assert end.value.value == NotBound("claim a was allocated by somebody else")
    assert phases(world) == [Phase.WRITTEN]
    world.server.deliver(world.belief)
    assert phases(world) == []


@pytest.mark.parametrize("step", [WriteAllocation, BindPod, CreateClaim])
def test_r1_a_binding_that_is_dropped_halfway_holds_what_it_may_have_sent(step: type[Step]) -> None:
    subject = EXTENDED if step is CreateClaim else POD
    world = world_of(subject=subject)
    work = binder_of(world.belief).bind(Order(subject.key, subject.uid, N1))
    sent = next(work)
    while not isinstance(sent, step):
        outcome = world.server.do(sent)
        world.server.deliver(world.belief)
        sent = work.send(outcome)
    world.server.do(sent)
    work.close()
    if step is WriteAllocation:
        assert phases(world) == [Phase.UNKNOWN]
    world.server.deliver(world.belief)
    assert phases(world) == []


def test_r1_the_pod_is_touched_before_a_binding_is_given_up() -> None:
    world = world_of(BindPod)
    assert isinstance(bind(world), NotBound)
    kinds = [type(step) for step in world.taken]
    first = kinds.index(BindPod)
    assert kinds[first : first + 5] == [BindPod, ReadPod, TouchPod, TouchClaim, BindPod]
    world.server.land()
    assert world.server.pods[POD.key].node_name is None
    assert allocation_of(world.server, "a") is None


@pytest.mark.parametrize("silent", [(BindPod, ReadPod), (BindPod, TouchPod)], ids=["unread", "untouched"])
def test_r1_as_long_as_a_binding_may_land_the_pod_keeps_its_devices(silent: tuple[type[Step], ...]) -> None:
    world = world_of(*silent)
    result = bind(world)
    assert isinstance(result, NotBound)
    assert result.placement is not None
    assert result.is_waiting
    assert result.is_open
    assert [claim.key.name for claim, _ in result.placement.claims if result.placement.node == N1] == ["a"]
    assert allocation_of(world.server, "a") is not None
    world.server.land()
    assert world.server.pods[POD.key].node_name == N1
    world.silent = ()
    assert isinstance(bind(world), Bound)


def conflicting(server: Server, step: Step) -> Outcome:
    """Of a time-out of etcd the API server says so, too, where a pod is bound: it may land later."""
    server.late.append(step)
    return CONFLICT


def test_r1_what_a_conflict_was_the_answer_to_does_not_land_on_devices_that_are_freed() -> None:
    untroubled = world_of()
    bind(untroubled)
    world = world_of(TouchClaim)
    world.fault, world.at = conflicting, [type(step) for step in untroubled.taken].index(BindPod)
    assert isinstance(bind(world), NotBound)
    assert allocation_of(world.server, "a") is None
    world.server.land()
    assert world.server.pods[POD.key].node_name is None


def test_r1_a_conflict_that_cannot_be_looked_into_may_mean_that_the_pod_is_bound() -> None:
    world = world_of(ReadPod)
    world.belief.apply(Changed(replace(world.server.pods[POD.key], resource_version="1")))
    world.server.bind(POD, N1)
    world.server.log.clear()
    world.arrives = ()
    result = bind(world)
    assert isinstance(result, NotBound)
    assert result.is_waiting
    assert result.is_open
    assert allocation_of(world.server, "a") is not None


@pytest.mark.parametrize("answer", [Refused(Refusal.INVALID, "no"), Refused(Refusal.FORBIDDEN), Unknown()])
def test_r1_only_a_refusal_frees_at_once(answer: Outcome) -> None:
    world = world_of(ReadClaim)
    world.fault, world.at = (lambda _server, _step: answer), 0
    bind(world)
    assert (phases(world) == []) is isinstance(answer, Refused)


def test_r1_what_another_pod_was_promised_of_a_shared_claim_is_not_taken_for_the_own_promise() -> None:
    server, sharer = Server((node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1))), pod("s", "a")
    for item in (POD, sharer, claim("a")):
        server.put(item)
    world = World(server, server.believed())
    binder = binder_of(world.belief)
    slow = binder.bind(Order(POD.key, POD.uid, N1))
    assert isinstance(next(slow), WriteAllocation)
    assert isinstance(slow.send(Unknown("no answer")), ReadClaim)
    world.carry(settled(world.belief))
    assert promised(world.belief) == []
    server.deliver(world.belief)
    quick = binder.bind(Order(sharer.key, sharer.uid, NodeName("n2")))
    assert isinstance(next(quick), WriteAllocation)
    with pytest.raises(StopIteration) as end:
        slow.send(server.do(ReadClaim(claim("a").key)))
    assert end.value.value == NotBound("claim a: its devices are no longer kept for the pod, after no answer")
    # The other's write is on its way still.
    assert phases(world) == [Phase.RESERVED]
    assert promised(world.belief) == [device("n2", 0)]


VAIN = Refused(Refusal.IN_VAIN, "something takes the annotation away")


class Vain(Silent):
    """A world in which to touch anything changes nothing."""

    def _outcome(self, step: Step) -> Outcome:
        if isinstance(step, TouchPod | TouchClaim):
            self.taken.append(step)
            return VAIN
        return super()._outcome(step)


def vain(*silent: type[Step]) -> Vain:
    base = world_of()
    world = Vain(base.server, base.belief)
    world.silent = silent
    return world


def test_r1_a_pod_that_cannot_be_touched_keeps_its_claims_as_long_as_a_binding_may_land() -> None:
    world = vain(BindPod)
    found = bind(world)
    assert isinstance(found, NotBound)
    assert found.is_open
    assert not world.carry(freed(POD, world.belief, 0.0))
    world.server.land()
    known = world.server.claims[claim("a").key]
    assert world.server.pods[POD.key].node_name == N1
    assert [user.uid for user in known.reserved_for] == [POD.uid]


def test_r1_a_claim_that_cannot_be_touched_is_held_as_long_as_a_write_may_land() -> None:
    world = vain()
    unanswered(world)
    # It may be refused for ever: that is no reason to ask without a pause.
    assert world.carry(settled(world.belief)) == claim("a").uid
    assert phases(world) == [Phase.UNKNOWN]


def test_a_pod_whose_claim_cannot_be_touched_is_bound_with_what_it_has() -> None:
    world = vain(BindPod)
    bind(world)
    world.silent = ()
    world.server.late.clear()
    world.server.deliver(world.belief)
    assert isinstance(bind(world), Bound)
