"""Binding: what is answered without any fault beside, and which steps it takes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.model.change import Changed, Noun
from extender.model.claim import ResourceClaim
from extender.model.device import Traits
from extender.model.names import DeviceKey, PoolName, Uid
from extender.model.node import Pod
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.scheduling.account import of_result
from extender.scheduling.claiming import ATTEMPTS, SHARED_ATTEMPTS
from extender.scheduling.endings import Bound, NotBound
from extender.scheduling.planner import Offer, Trouble
from extender.scheduling.steps import (
    AddFinalizer,
    AwaitShown,
    BindPod,
    CreateClaim,
    DeleteClaim,
    Later,
    MapExtended,
    Outcome,
    Pause,
    ReadClaim,
    ReadPod,
    Refusal,
    Refused,
    Release,
    Reserve,
    Step,
    TouchClaim,
    TouchPod,
    Unknown,
    WriteAllocation,
)
from extender.state.belief import Belief
from tests.scheduling.cast import THEIRS, chooser_of, claim, consumer, device, gpus, held, planner_of, pod, surveyed
from tests.scheduling.server import Fault, Server, World, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, A, bind, world_of

PLAIN, EXTENDED = pod("p"), pod("p", gpus=1)
NO = Refused(Refusal.REJECTED, "no")


def kinds(world: World) -> list[type[Step]]:
    return [type(step) for step in world.taken]


def refused(world: World) -> str:
    result = bind(world)
    assert isinstance(result, NotBound)
    assert not result.is_waiting
    return result.message


def after(world: World, number: int, fault: Fault) -> World:
    world.fault, world.at = fault, number
    return world


def test_a_pod_without_devices_is_bound_in_one_step() -> None:
    world = world_of(subject=PLAIN)
    assert isinstance(bind(world, subject=PLAIN), Bound)
    assert kinds(world) == [BindPod]


def test_the_binding_of_a_pod_without_devices_can_be_refused() -> None:
    world = after(world_of(subject=PLAIN), 0, lambda _server, _step: NO)
    assert bind(world, subject=PLAIN) == NotBound("the Binding was refused: no")


def test_a_claim_costs_a_write_and_a_look() -> None:
    world = world_of(claim("a"))
    assert isinstance(bind(world), Bound)
    assert kinds(world) == [WriteAllocation, AwaitShown, BindPod]


@pytest.mark.parametrize(
    ("subject", "looks"), [(POD, 1), (EXTENDED, 2)], ids=["no step between", "the pod's status is written between"]
)
def test_what_was_found_out_is_found_out_again_only_after_another_step(
    subject: Pod, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, told = list[ResourceClaim](), Belief.contested

    def counted(belief: Belief, of: ResourceClaim) -> DeviceKey | None:
        seen.append(of)
        return told(belief, of)

    monkeypatch.setattr(Belief, "contested", counted)
    world = world_of(claim("a")) if subject is POD else world_of(subject=subject)
    assert isinstance(bind(world, subject=subject), Bound)
    assert len(seen) == looks


def test_what_is_lost_while_the_api_server_is_busy_keeps_the_pod_from_being_bound() -> None:
    def busy(server: Server, _step: Step) -> Outcome:
        server.put(replace(server.claims[A], reserved_for=()))
        return Later(1.0)

    world = after(world_of(claim("a")), 2, busy)
    assert refused(world) == "claim a was taken from the pod"
    assert [step for step in world.taken if isinstance(step, BindPod)] == world.taken[2:3]


def test_extended_resources_cost_a_claim_and_a_word_in_the_pods_status() -> None:
    world = world_of(subject=EXTENDED)
    assert isinstance(bind(world, subject=EXTENDED), Bound)
    assert [kind for kind in kinds(world) if kind is not AwaitShown][-3:] == [WriteAllocation, MapExtended, BindPod]
    assert kinds(world)[0] is CreateClaim


def test_what_a_pod_was_given_for_extended_resources_is_told_of_the_claim_that_was_made() -> None:
    world = world_of(subject=EXTENDED)
    result = bind(world, subject=EXTENDED)
    (made,) = (item for item in world.server.claims.values() if item.owners)
    (given,) = of_result(EXTENDED, result, N1, None, 0.0).given
    assert (given.claim, given.device.pool) == (made.key.name, "n1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda server: server.drop(server.pods[POD.key]), "pod ns/p cannot be read: not found"),
        (lambda server: server.put(replace(POD, uid=Uid("2"))), "pod ns/p is another one by now"),
        (
            lambda server: server.put(replace(POD, scheduler=THEIRS)),
            "scheduler 'default-scheduler' is not configured here",
        ),
    ],
    ids=["gone", "another", "foreign"],
)
def test_a_pod_that_the_watch_does_not_show_is_read(change: Callable[[Server], object], message: str) -> None:
    world = world_of(claim("a"))
    change(world.server)
    world.server.deliver(world.belief)
    assert refused(world) == message
    assert kinds(world) == [ReadPod]


@pytest.mark.parametrize("subject", [POD, EXTENDED], ids=["claims", "extended resources"])
@pytest.mark.parametrize(
    "change",
    [
        lambda server, pod: server.drop(server.pods[pod.key]),
        lambda server, pod: server.put(replace(pod, uid=Uid("2"))),
        lambda server, pod: server.put(replace(pod, node_name=N1)),
    ],
    ids=["gone", "another", "bound"],
)
def test_what_was_offered_to_a_pod_after_it_had_gone_is_free_once_its_bind_finds_that(
    change: Callable[[Server, Pod], object], subject: Pod
) -> None:
    world = world_of(claim("a"), subject=subject)
    change(world.server, subject)
    world.server.deliver(world.belief)
    assert isinstance(planner_of(world.belief).plan(subject, [N1], 0.0), Offer)
    assert world.belief.ledger.of_pod(subject.uid) is not None
    bind(world, subject=subject)
    assert kinds(world) == [ReadPod]
    assert world.belief.ledger.of_pod(subject.uid) is None


def test_what_was_offered_to_a_pod_of_which_nothing_could_be_read_is_kept() -> None:
    world = after(world_of(claim("a")), 0, lambda _server, _step: NO)
    world.server.drop(world.server.pods[POD.key])
    world.server.deliver(world.belief)
    assert isinstance(planner_of(world.belief).plan(POD, [N1], 0.0), Offer)
    assert refused(world) == "pod ns/p cannot be read: no"
    assert world.belief.ledger.of_pod(POD.uid) is not None


SICK = Traits(taints=(Taint(key="sick", effect="NoSchedule", value="hot"),))
CORDON = DeviceTaintRule(
    name="cordon", taint=Taint(key="cordon", effect="NoExecute"), selector=TaintSelector(pool=PoolName("n1"))
)


@pytest.mark.parametrize("subject", [POD, EXTENDED], ids=["claim", "extended"])
@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (held(claim("x"), device("n1", 0), device("n1", 1)), "2 in use"),
        (gpus("n1", 2, SICK), "2 have taint sick=hot:NoSchedule"),
        (CORDON, "2 have taint cordon=:NoExecute"),
    ],
    ids=["taken", "tainted", "ruled"],
)
def test_nothing_is_written_where_the_devices_are_gone_and_it_is_said_why(
    subject: Pod, change: Noun, cause: str
) -> None:
    world = world_of(claim("a"), subject=subject)
    world.belief.apply(Changed(change))
    result = bind(world, subject=subject)
    assert isinstance(result, NotBound)
    assert result.message.startswith("the devices of node n1 do not suffice any more: ")
    assert result.message.endswith(cause)
    assert world.taken == []


def test_nothing_is_written_on_a_node_other_than_that_of_the_claims() -> None:
    world = world_of(held(claim("a"), device("n2", 0)))
    assert refused(world) == "claim a is allocated on another node"


def test_a_claim_that_is_being_written_for_the_pod_is_not_written_again() -> None:
    world = world_of(claim("a"))
    plan = planner_of(world.belief).plan(POD, [N1], 0.0)
    assert isinstance(plan, Offer)
    assert world.belief.ledger.reserve(plan.placement.promise(surveyed(plan).needs, 0.0))
    assert refused(world) == "a claim of the pod is being written already"
    assert isinstance(planner_of(world.belief).plan(POD, [N1], 0.0), Trouble)


def test_a_busy_api_server_is_given_the_time_that_it_asks_for() -> None:
    class Busy(World):
        busy: tuple[type[Step], ...] = (WriteAllocation, BindPod)

        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, self.busy) and kinds(self).count(type(step)) == 0:
                self.taken.append(step)
                return Later(2.5)
            return super()._outcome(step)

    base = world_of(claim("a"))
    world = Busy(base.server, base.belief)
    assert isinstance(bind(world), Bound)
    assert [step.seconds for step in world.taken if isinstance(step, Pause)] == [2.5, 2.5]


SHARED = held(claim("a"), device("n1", 0), by=OTHER)


@pytest.mark.parametrize(
    ("outcome", "steps"),
    [
        (Later(1.0), [Reserve, Pause, Reserve, AwaitShown, BindPod]),
        (Refused(Refusal.CONFLICT), [Reserve, ReadClaim, Reserve, AwaitShown, BindPod]),
    ],
    ids=["busy", "conflict"],
)
def test_a_reservation_is_tried_again(outcome: Outcome, steps: list[type[Step]]) -> None:
    world = after(world_of(SHARED), 0, lambda _server, _step: outcome)
    assert isinstance(bind(world), Bound)
    assert kinds(world) == steps


def test_a_reservation_that_is_refused_is_told() -> None:
    world = after(world_of(SHARED), 0, lambda _server, _step: NO)
    assert refused(world) == "claim a: no"


@pytest.mark.parametrize("changes", [1, 5, 29])
def test_a_reservation_outlasts_whoever_changes_a_shared_claim_often(changes: int) -> None:
    class Busy(World):
        left = changes

        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, Reserve) and self.left:
                self.left -= 1
                self.server.put(self.server.claims[A])
            return super()._outcome(step)

    base = world_of(SHARED)
    world = Busy(base.server, base.belief)
    assert isinstance(bind(world), Bound)
    assert kinds(world).count(Reserve) == changes + 1


@pytest.mark.parametrize(
    ("item", "attempts"),
    [pytest.param(claim("a"), ATTEMPTS, id="allocate"), pytest.param(SHARED, SHARED_ATTEMPTS, id="reserve")],
)
def test_a_claim_that_keeps_changing_is_given_up(item: ResourceClaim, attempts: int) -> None:
    class Restless(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, WriteAllocation | Reserve):
                self.server.put(self.server.claims[A])
            return super()._outcome(step)

    base = world_of(item)
    world = Restless(base.server, base.belief)
    world.is_prompt = False
    assert refused(world) == "claim a kept changing"
    assert kinds(world).count(ReadClaim) == attempts
    assert list(world.belief.ledger) == []


def test_a_claim_whose_finalizer_others_take_away_each_time_keeps_changing() -> None:
    class Bare(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, WriteAllocation):
                self.server.put(replace(self.server.claims[A], finalizers=()))
            return super()._outcome(step)

    base = world_of(replace(claim("a"), finalizers=()))
    world = Bare(base.server, base.belief)
    world.is_prompt = False
    assert refused(world) == "claim a kept changing"


BUSY = Later(1.0, "too many requests")


@pytest.mark.parametrize(
    ("kind", "item", "text"),
    [
        (WriteAllocation, claim("a"), "claim a: too many requests"),
        (Reserve, SHARED, "claim a: too many requests"),
        (BindPod, claim("a"), "the Binding was refused: too many requests"),
    ],
)
@pytest.mark.parametrize(
    "then", [BUSY, Refused(Refusal.UNSENT, "there was no time left")], ids=["it stays busy", "it is too late then"]
)
def test_of_a_busy_api_server_it_is_said_what_it_says(
    kind: type[Step], item: ResourceClaim, text: str, then: Outcome
) -> None:
    class Busy(World):
        def _outcome(self, step: Step) -> Outcome:
            is_first = not any(isinstance(each, Pause) for each in self.taken)
            return (BUSY if is_first else then) if isinstance(step, kind) else super()._outcome(step)

    base = world_of(item)
    assert refused(Busy(base.server, base.belief)) == text


DOWN = '500 InternalError: failed calling webhook "claims.example.com"'


@pytest.mark.parametrize(
    ("kinds", "item", "text"),
    [
        ((WriteAllocation,), claim("a"), "claim a: its devices are no longer kept for the pod, after "),
        ((WriteAllocation, TouchClaim), claim("a"), "claim a: nobody knows yet whether its devices were written: "),
        ((Reserve,), SHARED, f"claim a: {DOWN}"),
        ((BindPod,), claim("a"), f"the Binding was refused: {DOWN}"),
        ((BindPod, TouchPod), claim("a"), "nobody knows yet whether the pod was bound: "),
    ],
    ids=["allocation", "allocation and touch", "reservation", "Binding", "Binding and touch"],
)
def test_what_an_api_server_says_that_answers_with_errors_is_told(
    kinds: tuple[type[Step], ...], item: ResourceClaim, text: str
) -> None:
    class Down(World):
        def _outcome(self, step: Step) -> Outcome:
            return Unknown(DOWN, is_answered=True) if isinstance(step, kinds) else super()._outcome(step)

    base = world_of(item)
    said = bind(Down(base.server, base.belief))
    assert isinstance(said, NotBound)
    assert said.message.startswith(text)
    assert said.message.endswith(DOWN)


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ((WriteAllocation, ReadClaim), "claim a: nobody knows yet whether its devices were written: cannot get it"),
        ((BindPod, ReadPod), "nobody knows yet whether the pod was bound: cannot get it"),
    ],
    ids=["allocation", "Binding"],
)
def test_what_keeps_us_from_looking_is_told(kinds: tuple[type[Step], type[Step]], text: str) -> None:
    written, read = kinds

    class Barred(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, read):
                return Refused(Refusal.FORBIDDEN, "cannot get it")
            return Unknown(DOWN, is_answered=True) if isinstance(step, written) else super()._outcome(step)

    base = world_of(claim("a"))
    said = bind(Barred(base.server, base.belief))
    assert isinstance(said, NotBound)
    assert said.message == text


@pytest.mark.parametrize(
    ("kind", "item", "text"),
    [(Reserve, SHARED, "claim a: "), (BindPod, claim("a"), "the Binding was refused: ")],
    ids=["reservation", "Binding"],
)
def test_what_has_taken_all_the_time_is_told(kind: type[Step], item: ResourceClaim, text: str) -> None:
    answers = iter([Unknown(DOWN, is_answered=True)])

    class Slow(World):
        def _outcome(self, step: Step) -> Outcome:
            late = Refused(Refusal.UNSENT, "there was no time left")
            return next(answers, late) if isinstance(step, kind) else super()._outcome(step)

    base = world_of(item)
    assert refused(Slow(base.server, base.belief)) == f"{text}{DOWN}"


def test_a_claim_that_is_being_deleted_is_not_written() -> None:
    def fault(server: Server, _step: Step) -> None:
        server.put(replace(server.claims[A], is_deleting=True))

    world = after(world_of(claim("a")), 0, fault)
    assert refused(world) == "claim a is being deleted"
    assert list(world.belief.ledger) == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Unknown("500: etcdserver: request timed out"), "cannot be read: 500: etcdserver: request timed out"),
        (Refused(Refusal.NOT_FOUND), "is gone"),
    ],
    ids=["outage", "gone"],
)
def test_what_became_of_a_claim_is_told_in_the_words_of_the_api_server(answer: Outcome, text: str) -> None:
    class Failing(World):
        def _outcome(self, step: Step) -> Outcome:
            if isinstance(step, AddFinalizer):
                return Unknown()
            return answer if isinstance(step, ReadClaim) else super()._outcome(step)

    base = world_of(replace(claim("a"), finalizers=()))
    world = Failing(base.server, base.belief)
    assert refused(world) == f"claim a {text}"
    assert list(world.belief.ledger) == []


def test_taking_back_is_tried_again_where_the_api_server_is_busy() -> None:
    class Busy(World):
        def _outcome(self, step: Step) -> Outcome:
            is_busy = isinstance(step, Release) and Release not in kinds(self)
            if isinstance(step, BindPod) or is_busy:
                self.taken.append(step)
                return Later(1.0) if is_busy else NO
            return super()._outcome(step)

    base = world_of(claim("a"))
    world = Busy(base.server, base.belief)
    assert refused(world) == "the Binding was refused: no"
    assert allocation_of(world.server, "a") is None


def test_what_was_made_is_deleted_when_the_pod_is_not_bound() -> None:
    world = world_of(subject=EXTENDED)
    world.fault, world.at = (lambda _server, _step: NO), 4
    assert isinstance(bind(world, subject=EXTENDED), NotBound)
    assert kinds(world)[-3:] == [Release, ReadClaim, DeleteClaim]
    world.server.control()
    assert not [item for item in world.server.claims.values() if item.owners]


def test_bound_on_another_node_is_bound_elsewhere() -> None:
    world = world_of(claim("a"))
    world.server.bind(POD, N2)
    world.server.deliver(world.belief)
    assert refused(world) == "the pod is on node n2 already"


def test_a_preference_is_met_anew_at_every_bind() -> None:
    world = world_of(claim("a"), held(claim("x"), device("n1", 0)))
    assert isinstance(bind(world), Bound)
    assert [item.uid for item in world.server.claims[A].reserved_for] == [consumer(POD).uid]
    allocation = allocation_of(world.server, "a")
    assert allocation is not None
    assert [item.device for item in allocation.devices] == [device("n1", 1)]
    assert chooser_of(world.belief).belief is world.belief
