"""Nobody is promised, woken for or sent to devices on a node that kube-scheduler is sure to refuse."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, Uid
from extender.model.node import Node, Pod
from extender.model.taint import NO_SCHEDULE, Taint
from extender.model.terms import Terms
from extender.scheduling.expiry import UNASKED_S, Expiry
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.vocabulary import Word
from extender.scheduling.waking import Waker
from extender.state.ledger import Event
from tests.scheduling.cast import belief_of, claim, device, gpus, held, names, node, planner_of, pod, promised
from tests.scheduling.test_suitable import SICK, ZONE_A, taker

N1 = NodeName("n1")
ZONE, LONG = (("zone", "a"),), 10_000.0
IN_A = Terms(labels=ZONE)


def cpus(count: int) -> Terms:
    return Terms(amounts=(("cpu", 1000 * count),))


def asking(name: str, terms: Terms, **more: int) -> Pod:
    return replace(pod(name, f"c-{name}", **more), terms=terms)  # type: ignore[arg-type]  # only priorities are given


class Stage:
    """Nodes all of whose devices are taken, and pods that were told so."""

    def __init__(
        self, nodes: Iterable[Node], *pods: Pod, devices: int = 1, bound: tuple[Footprint, ...] | None = ()
    ) -> None:
        self.nodes = [item.name for item in nodes]
        holders = [held(claim(f"h-{name}-{i}"), device(name, i)) for name in self.nodes for i in range(devices)]
        self.belief = belief_of(*nodes, *(gpus(name, devices) for name in self.nodes), *holders)
        if bound is not None:
            self.belief.apply(Listed(Footprint, bound))
        self.planner = planner_of(self.belief)
        self.waker = Waker(self.belief, self.planner)
        for item in pods:
            self.belief.apply(Changed(claim(f"c-{item.key.name}")))
            self.belief.apply(Changed(item))
            assert isinstance(self.told(item), Rejection)
        assert self.woken(0.0) == []

    def told(self, item: Pod, *nodes: str, now: float = 0.0) -> object:
        plan = self.planner.plan(item, names(*(nodes or self.nodes)), now)
        self.waker.put(item.uid)
        return plan

    def free(self, name: str, index: int = 0) -> None:
        self.belief.apply(Gone(ResourceClaim, claim(f"h-{name}-{index}").key))

    def take(self, name: str, index: int = 0) -> None:
        self.belief.apply(Changed(held(claim(f"h-{name}-{index}"), device(name, index))))

    def woken(self, now: float) -> list[str]:
        return [f"{wake.pod.key.name}@{wake.node}" for wake in self.waker.round(now) if wake]

    def possible(self, item: Pod) -> list[str]:
        needs = needs_of(item, self.belief)
        assert isinstance(needs, Needs)
        flags, everything = self.planner.possible.nodes(needs), self.belief.cluster.snapshot.layout.nodes
        return list(everything) if flags is None else [everything[number] for number in flags.nonzero()[0]]


def test_a_free_device_goes_past_a_pod_for_which_there_is_no_room_to_one_that_fits() -> None:
    big, small = asking("big", cpus(4), priority=1), asking("small", cpus(1))
    stage = Stage([node("n1", {"cpu": 4})], big, small, bound=(taker("n1", cpu=3000),))
    stage.free("n1")
    # The scheduler may try the big one, and evict others for it; nothing is kept for it meanwhile.
    assert stage.woken(1.0) == ["big@None", "small@n1"]
    assert promised(stage.belief) == [device("n1", 0)]
    owner = stage.belief.ledger.of_pod(small.uid)
    assert owner is not None
    assert owner.node == N1


def test_a_pod_without_room_is_tried_once_for_each_node_where_devices_come_free() -> None:
    big = asking("big", cpus(4))
    nodes = [node(name, {"cpu": 4}) for name in ("n1", "n2")]
    stage = Stage(nodes, big, bound=(taker("n1", cpu=3000), taker("n2", cpu=3000)))
    stage.free("n1")
    assert stage.woken(1.0) == ["big@None"]
    assert [stage.woken(float(second)) for second in range(2, 300)] == [[]] * 298
    stage.free("n2")
    assert stage.woken(301.0) == ["big@None"]
    stage.take("n2")
    assert stage.woken(302.0) == []
    stage.free("n2")
    assert stage.woken(303.0) == ["big@None"]
    assert not promised(stage.belief)


def test_a_try_of_which_nobody_has_heard_is_had_again() -> None:
    big = asking("big", cpus(4))
    stage = Stage([node("n1", {"cpu": 4})], big, bound=(taker("n1", cpu=3000),))
    stage.free("n1")
    for wake in stage.waker.round(1.0):
        if wake is not None:
            stage.waker.unwoken(big.uid)
    assert [stage.woken(now) for now in (2.0, 3.0, 4.0, 5.0)] == [[], ["big@None"], [], []]


def test_of_those_who_ask_the_same_without_room_one_is_tried() -> None:
    crowd = [asking(f"big{number}", cpus(4)) for number in range(5)]
    stage = Stage([node("n1", {"cpu": 4})], *crowd, bound=(taker("n1", cpu=3000),))
    stage.free("n1")
    assert stage.woken(1.0) == ["big0@None"]
    assert stage.woken(20.0) == []


def test_a_pod_that_others_are_evicted_for_is_not_tried_beside() -> None:
    big = replace(asking("big", cpus(4)), nominated_node=N1)
    stage = Stage([node("n1", {"cpu": 4})], big, bound=(taker("n1", cpu=3000),))
    stage.free("n1")
    assert stage.woken(1.0) == []


def test_a_pod_is_woken_once_there_is_room() -> None:
    big = asking("big", cpus(4))
    stage = Stage([node("n1", {"cpu": 4})], big, bound=(taker("n1", cpu=3000),))
    stage.free("n1")
    assert stage.woken(1.0) == ["big@None"]
    stage.belief.apply(Gone(Footprint, taker("n1").key))
    assert any("big@n1" in stage.woken(float(second)) for second in range(2, 20))


def test_who_is_on_the_way_to_a_node_takes_its_room() -> None:
    first, second = asking("first", cpus(3)), asking("second", cpus(3))
    stage = Stage([node("n1", {"cpu": 4})], first, second, devices=2)
    stage.free("n1", 0)
    stage.free("n1", 1)
    assert stage.woken(1.0) == ["first@n1", "second@None"]
    assert len(promised(stage.belief)) == 1
    # It competes with all others, and not with itself.
    assert stage.possible(first) == ["n1"]
    assert stage.possible(second) == []
    # What it has taken by now is bound: it is not counted twice.
    stage.belief.apply(Changed(Footprint(key=first.key, uid=first.uid, node=N1, amounts=(("cpu", 3000),))))
    assert stage.possible(replace(second, terms=cpus(1))) == ["n1"]


@pytest.mark.parametrize(
    ("other", "terms", "is_possible"),
    [
        ({}, IN_A, False),
        ({"labels": ZONE}, IN_A, True),
        ({}, Terms(affinity=ZONE_A), False),
        ({}, Terms(labels=ZONE, is_all=False), False),
        ({"taints": (SICK,)}, Terms(), False),
        ({"is_unschedulable": True}, Terms(), False),
        # One that kube-scheduler would rather avoid will do where there is no other.
        ({"taints": (Taint(key="sick", effect="PreferNoSchedule"),)}, Terms(), True),
    ],
)
@pytest.mark.parametrize("bound", [(), None], ids=["bound pods", "no bound pods"])
def test_labels_and_hard_taints_of_nodes_bind_every_pod(
    other: dict[str, object], terms: Terms, bound: tuple[Footprint, ...] | None, *, is_possible: bool
) -> None:
    item = asking("p", terms)
    stage = Stage([replace(node("n1"), **other)], item, bound=bound)  # type: ignore[arg-type]  # by name
    stage.free("n1")
    assert stage.woken(1.0) == (["p@n1"] if is_possible else [])


def test_who_is_not_asked_about_is_left_alone_until_it_is() -> None:
    crowd = [asking(f"p{number}", Terms(is_all=False)) for number in range(2)]
    stage = Stage([node("n1")], *crowd, asking("q", Terms()))
    stage.free("n1")
    expiry = Expiry(stage.belief, stage.waker, LONG, LONG)
    seen = []
    for second in range(1, 200):
        expiry.round(float(second))
        seen += stage.woken(float(second))
        if seen[-1:] == ["q@n1"]:
            break
    assert seen == ["p0@n1", "p1@n1", "q@n1"]
    assert second <= 3 * UNASKED_S
    # What kept the first has ended, and the scheduler asks about it: it is woken as any other once the others are done.
    stage.belief.ledger.tell(Uid("uid-q"), Event.EXPIRED)
    stage.waker.drop(Uid("uid-q"))
    assert stage.woken(second + 1.0) == []
    stage.waker.put(crowd[0].uid)
    assert stage.woken(second + 20.0) == ["p0@n1"]


def test_where_bound_pods_are_not_known_there_may_be_room_anywhere() -> None:
    item = asking("p", cpus(4))
    stage = Stage([node("n1", {"cpu": 1})], item, bound=None)
    stage.free("n1")
    assert stage.woken(1.0) == ["p@n1"]


def test_room_is_asked_of_a_pod_of_whose_volumes_and_ports_nothing_is_known() -> None:
    item = asking("p", replace(cpus(4), is_all=False))
    stage = Stage([node("n1", {"cpu": 1}), node("n2", {"cpu": 4})], item)
    assert stage.possible(item) == ["n2"]


@pytest.mark.parametrize("ignored", ["ex.org/licence", "ex.org/*"])
def test_what_the_scheduler_does_not_look_at_is_no_lack_of_room(ignored: str) -> None:
    item = asking("p", Terms(amounts=(("ex.org/licence", 1),)))
    stage = Stage([node("n1")], item)
    assert stage.possible(item) == []
    stage.planner.possible.ignored = (ignored,)
    stage.belief.apply(Changed(node("n2")))
    assert stage.possible(item) == ["n1", "n2"]


def test_what_devices_stand_behind_is_no_lack_of_room() -> None:
    item = replace(pod("p", gpus=1), terms=Terms(amounts=(("ex.com/gpu", 1),)))
    stage = Stage([node("n1")])
    assert stage.possible(item) == ["n1"]


def test_who_is_tied_to_other_nodes_is_not_hopeless_for_those_who_are_not() -> None:
    tied, free = asking("tied", IN_A, priority=1), asking("free", Terms())
    stage = Stage([replace(node("n1"), labels=ZONE), node("n2")], tied, free)
    stage.free("n2")
    assert stage.woken(1.0) == ["free@n2"]
    stage.free("n1")
    assert stage.woken(2.0) == ["tied@n1"]


def test_nobody_who_is_tied_to_full_nodes_is_woken_for_free_devices_elsewhere() -> None:
    crowd = [asking(f"p{number}", IN_A) for number in range(20)]
    stage = Stage([replace(node("n1"), labels=ZONE), node("n2")], *crowd)
    stage.free("n2")
    assert [stage.woken(float(second)) for second in range(1, 300)] == [[]] * 299
    assert not promised(stage.belief)


@pytest.mark.parametrize(
    ("terms", "bound"),
    [(IN_A, ()), (cpus(2), (taker("n2", cpu=3000),))],
    ids=["tied", "no room"],
)
def test_a_pod_is_told_what_its_own_nodes_lack_and_not_of_devices_where_it_cannot_be(
    terms: Terms, bound: tuple[Footprint, ...]
) -> None:
    item = asking("p", terms)
    fleet = [replace(node("n1", {"cpu": 4}), labels=ZONE), node("n2", {"cpu": 4})]
    stage = Stage(fleet, item, bound=bound)
    stage.free("n2")
    plan = stage.told(item, "n1")
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.IN_USE, None)
    assert [(tally.word, tally.nodes) for tally in plan.rejected] == [(Word.IN_USE, 1)]
    # It may go there by now.
    stage.belief.apply(Changed(replace(fleet[1], labels=ZONE)))
    for item_bound in bound:
        stage.belief.apply(Gone(Footprint, item_bound.key))
    after = stage.told(item, "n1")
    assert isinstance(after, Rejection)
    assert (after.word, after.elsewhere) == (Word.NOT_OFFERED, "n2")


def test_a_pod_is_sent_to_the_nodes_where_it_can_be() -> None:
    item = asking("p", IN_A)
    stage = Stage([node("n1"), node("n2"), replace(node("n3"), labels=ZONE)], item)
    stage.free("n2")
    stage.free("n3")
    plan = stage.told(item, "n1")
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.NOT_OFFERED, "n3")


def test_a_pod_whose_claim_is_on_a_full_node_is_told_of_its_claim_and_not_sent_there() -> None:
    item = asking("p", cpus(2))
    stage = Stage([node("n1", {"cpu": 1}), node("n2", {"cpu": 4})], item)
    stage.free("n1")
    stage.belief.apply(Changed(held(claim("c-p", version=2), device("n1", 0))))
    plan = stage.told(item, "n2")
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.CLAIM_ELSEWHERE, None)


def test_what_the_scheduler_offers_is_not_doubted() -> None:
    item = asking("p", cpus(4))
    stage = Stage([replace(node("n1", {"cpu": 1}), taints=(Taint(key="x", effect=NO_SCHEDULE),))], item)
    stage.free("n1")
    assert isinstance(stage.told(item, "n1"), Offer)
