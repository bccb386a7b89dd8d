"""What the best nodes are worth is worked out by searches: enough of them, and never by what held before."""

import gc
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from weakref import ref

import pytest

from extender.allocation import solve
from extender.allocation.features import Features
from extender.allocation.search import Search
from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.device import Attribute, Device, ResourceSlice
from extender.model.names import DeviceKey, DeviceName, PoolName
from extender.scheduling import refining
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Plan, Planner, Rejection, Trouble
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.survey import Survey
from extender.scheduling.taste import Taste
from extender.scheduling.vocabulary import Word
from extender.scheduling.waking import Waker
from extender.state.belief import Belief
from extender.state.ledger import Event
from extender.state.questions import Questions
from extender.topology.document import Document, document_of
from extender.topology.policies import Policies
from extender.topology.policy import Trait
from extender.topology.residual import Mix
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import NET, NIC, asks, cluster, gpus, nics, planner_by, planner_of, published, some

NUMBERS = count()


def planned(belief: Belief, planner: Planner, devices: int, cards: int, policy: str = "") -> Plan:
    """Plan a pod, and take back what it was promised."""
    return tried(belief, planner, asks(f"c{next(NUMBERS)}", some(devices), some(cards, NIC, "nic"), policy=policy))


def tried(belief: Belief, planner: Planner, claim: ResourceClaim) -> Plan:
    belief.apply(Changed(claim))
    subject = pod(f"p{claim.key.name}", claim.key.name)
    plan = planner.plan(subject, None, 0.0)
    belief.ledger.tell(subject.uid, Event.EXPIRED)
    return plan


def test_what_was_worked_out_for_one_mix_is_not_told_of_another() -> None:
    belief = cluster(*(item for name in "ab" for item in (gpus(name, 8), nics(name, 8))), nodes="ab")
    pairs, eights = Mix(((2, 1),)), Mix(((8, 1),))
    told = [pairs, eights, pairs]

    def planner() -> Planner:
        taste = Taste(Document(), lambda _class, _demand: told[0])
        return Planner(belief, Chooser(belief, lambda: "share", taste=taste))

    used = planner()
    while told:
        plan, fresh = planned(belief, used, 1, 1), planned(belief, planner(), 1, 1)
        assert isinstance(plan, Offer)
        assert isinstance(fresh, Offer)
        assert [ranked.value for ranked in plan.best] == [ranked.value for ranked in fresh.best]
        del told[0]


def test_what_was_found_keeps_no_cluster_that_is_past() -> None:
    belief = cluster(*(item for name in "ab" for item in (gpus(name, 8), nics(name, 8))), nodes="ab")
    planner = planner_of(belief, Document())
    assert isinstance(planned(belief, planner, 1, 1), Offer)
    assert planner.chooser.taste is not None
    assert planner.chooser.taste.found
    before = ref(belief.cluster.snapshot.inventory)
    belief.questions = Questions(Features())
    for generation in range(2, 5):
        belief.apply(Changed(replace(gpus("a", 7), generation=generation)))
        assert isinstance(planned(belief, planner, 1, 1), Offer)
    gc.collect()
    assert before() is None


def test_states_that_are_worth_the_same_are_told_so_once() -> None:
    # In each a single GPU is what is left of another NUMA node's: as many states, two or three worths.
    left = {f"a{index}": [other for other in range(8) if other != index] for index in range(8)}
    belief = cluster(
        *(item for name in left for item in (gpus(name, 8), nics(name, 8))),
        nodes=left,
    )
    for name, indices in left.items():
        keys = [DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{index}")) for index in indices]
        belief.apply(Changed(held(asks(f"held-{name}", some(len(keys))), *keys)))
    taste = Taste(Document(), belief.learning.mix_for)
    planner = Planner(belief, Chooser(belief, lambda: "share", taste=taste))
    assert isinstance(planned(belief, planner, 1, 1), Offer)
    known = [appraisal for _, appraisal in taste.found._known.values()]
    assert len(known) == len(left)
    assert len({id(appraisal) for appraisal in known}) == len(set(known)) < len(left)


def test_nodes_that_a_strict_policy_has_are_found_behind_many_that_it_has_not() -> None:
    # On most nodes both NUMA nodes have NICs enough or GPUs enough, and no estimate tells that they are not together.
    spoilt = [f"a{index:02}" for index in range(60)]
    good = [f"b{index:02}" for index in range(3)]
    slices = [item for name in spoilt for item in (gpus(name, 8), nics(name, 2))]
    slices += [item for name in good for item in (gpus(name, 8), nics(name, 4))]
    belief = cluster(*slices, nodes=(*spoilt, *good))
    plan = planned(belief, planner_by(belief, Policies(), AnswerPolicy(Answer.SHORTLIST)), 2, 2, "one-numa")
    assert isinstance(plan, Offer)
    assert set(plan.nodes) == set(good)


def test_where_searches_find_nothing_that_a_policy_has_the_decision_says_so_once() -> None:
    belief = cluster(*(gpus(name, 4) for name in "ab"), nodes="ab")
    belief.apply(Changed(asks("c", some(0), policy="one-numa")))
    some_nodes = planner_by(belief, Policies()).plan(pod("p", "c"), ["a"], 0.0)
    assert isinstance(some_nodes, Rejection)
    # Of the other node nobody knows yet.
    assert (some_nodes.word, some_nodes.is_hopeless) == (Word.POLICY, False)
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.is_hopeless) == (Word.POLICY, True)
    assert [(tally.nodes, tally.message) for tally in plan.rejected] == [(2, plan.detail)]
    assert "one-numa" in plan.detail


def test_who_may_fit_where_a_search_was_given_up_is_not_hopeless_for_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = cluster(gpus("a", 4), nodes="a")
    belief.apply(Changed(asks("c", some(0), policy="one-numa")))
    monkeypatch.setattr(Survey, "is_open", lambda _survey, _among=None: True)
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.is_hopeless) == (Word.POLICY, False)


def test_a_pod_is_woken_although_another_that_asks_the_same_is_placed_by_a_stricter_policy() -> None:
    belief = cluster(gpus("a", 2))
    planner = planner_by(belief, Policies())
    waker = Waker(belief, planner)
    for name, policy in (("strict", "one-numa"), ("usual", "")):
        belief.apply(Changed(asks(name, some(2), policy=policy)))
        belief.apply(Changed(pod(name, name, created=f"2026-01-0{1 + (name == 'usual')}T00:00:00Z")))
        waker.put(pod(name).uid)
    assert [wake.pod.key.name for wake in waker.round(0.0) if wake] == ["usual"]


def test_a_pod_that_came_back_from_all_nodes_that_have_something_is_offered_those_again() -> None:
    names = [f"n{index}" for index in range(6)]
    slices = [item for name in names for item in (gpus(name, 8), nics(name, 4 if name == "n5" else 2))]
    belief = cluster(*slices, nodes=names)
    planner = planner_by(belief, Policies())
    claim = asks("c", some(2), some(2, NIC, "nic"), policy="one-numa")
    belief.apply(Changed(claim))
    for _ in range(3):
        plan = planner.plan(pod("p", "c"), None, 0.0)
        assert isinstance(plan, Offer)
        assert plan.nodes == ("n5",)


def test_a_long_search_for_what_a_strict_policy_has_is_done_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "SEARCHES", 60)
    planner = scattered_planner()
    turns = [planner.plan(pod("p", "c"), None, 0.0)]
    while isinstance(turns[-1], Trouble) and len(turns) < 10:
        turns.append(planner.plan(pod("p", "c"), None, 0.0))
    assert 1 < len(turns) < 10
    assert isinstance(turns[-1], Offer)
    assert turns[-1].nodes == ("last",)


def test_a_pod_whose_search_takes_several_turns_is_woken_though_nothing_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "SEARCHES", 60)
    planner = scattered_planner()
    planner.belief.apply(Changed(pod("p", "c")))
    waker = Waker(planner.belief, planner)
    waker.put(pod("p").uid)
    rounds = [[wake.node for wake in waker.round(float(number)) if wake] for number in range(10)]
    assert not rounds[0]
    assert ["last"] in rounds


def scattered_planner() -> Planner:
    """Return who plans a pod for three pairs, of which only two fit into three GPUs beside three, but on one node."""
    # No two nodes are in one state.
    taken = {f"n{index:03}": [index % 4, 4 + index // 4 % 4] for index in range(250)} | {"last": [4, 5]}
    busy = {name: [bit for bit in range(4) if index // 16 >> bit & 1] for index, name in enumerate(taken)}
    belief = cluster(*(item for name in taken for item in (gpus(name, 8), nics(name, 8))), nodes=taken)
    for name in taken:
        keys = [DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{index}")) for index in taken[name]]
        keys += [DeviceKey(NET, PoolName(name), DeviceName(f"d{index}")) for index in busy[name]]
        belief.apply(Changed(held(asks(f"held-{name}", some(1)), *keys)))
    belief.apply(Changed(asks("c", *(some(2, name=f"pair-{index}") for index in range(3)), policy="one-numa")))
    return planner_by(belief, Policies())


def fabric(*models: str, generation: int = 1) -> ResourceSlice:
    """Return cards behind the network, which every node reaches; no selector reads what model they are."""
    cards = (
        Device(DeviceName(f"d{index}"), (("model", Attribute("string", model)),)) for index, model in enumerate(models)
    )
    return replace(published("fabric", NET, 0, is_everywhere=True), generation=generation, devices=tuple(cards))


def card(belief: Belief, planner: Planner) -> Plan:
    """Plan a pod for one card, and take back what it was promised."""
    return tried(belief, planner, asks(f"c{next(NUMBERS)}", some(1, NIC)))


def test_what_a_shared_pool_says_that_no_selector_reads_counts_when_it_is_published_anew() -> None:
    belief = cluster(fabric("bad"), nodes="ab")
    planner = planner_by(belief, Policies(forbid=(Trait("model", ("bad",)),)))
    found = [type(card(belief, planner))]
    for generation, model in enumerate(("good", "bad", "good"), 2):
        belief.apply(Changed(fabric(model, generation=generation)))
        found.append(type(card(belief, planner)))
    assert found == [Rejection, Offer, Rejection, Offer]


def test_a_pod_that_a_policy_refused_is_woken_when_the_shared_pool_says_something_else() -> None:
    belief = cluster(fabric("bad"), nodes="ab")
    planner = planner_by(belief, Policies(forbid=(Trait("model", ("bad",)),)))
    waker = Waker(belief, planner)
    belief.apply(Changed(asks("c", some(1, NIC))))
    belief.apply(Changed(pod("p", "c")))
    assert isinstance(planner.plan(pod("p", "c"), None, 0.0), Rejection)
    waker.put(pod("p").uid)
    belief.apply(Changed(fabric("good", generation=2)))
    assert [wake.pod.key.name for wake in waker.round(0.0) if wake] == ["p"]


def test_what_was_found_out_there_stays_known_whatever_else_is_published() -> None:
    belief = cluster(fabric("good", "good"), gpus("a", 8), gpus("b", 4), nodes="ab")
    taste = Taste(Document(), belief.learning.mix_for)
    planner = Planner(belief, Chooser(belief, lambda: "share", taste=taste))
    assert isinstance(card(belief, planner), Offer)
    known = set(taste.found._known)
    belief.apply(Changed(replace(gpus("b", 4), generation=2)))
    assert isinstance(card(belief, planner), Offer)
    assert set(taste.found._known) == known


@pytest.mark.parametrize("alike", [20, 24, 100])
def test_nodes_that_are_alike_do_not_hide_a_better_one(alike: int) -> None:
    # Of the one GPU that most nodes have left no NIC is near; the estimates of both requests are best there.
    spoilt, good = [f"a{index:03}" for index in range(alike)], [f"b{index}" for index in range(4)]
    belief = cluster(
        *(item for name in (*spoilt, *good) for item in (gpus(name, 8), nics(name, 8))), nodes=(*spoilt, *good)
    )
    for name in spoilt:
        hold(belief, name, range(1, 8), (other for other in range(8) if other != 5))
    for name in good:
        hold(belief, name, range(2, 8), range(2, 8))
    plan = planned(belief, planner_by(belief, Policies()), 1, 1)
    assert isinstance(plan, Offer)
    assert plan.placement.node in good


@pytest.mark.parametrize(("tight", "roomy"), [("a", "b"), ("b", "a")])
def test_of_nodes_that_are_worth_the_same_the_tightest_is_taken_whatever_was_expected(tight: str, roomy: str) -> None:
    belief = cluster(*(item for name in "ab" for item in (gpus(name, 4), nics(name, 4))), nodes="ab")
    hold(belief, tight, [0], [0, 1])
    # More was expected here, where a pair of NICs is broken already.
    hold(belief, roomy, [0], [1])
    plan = planned(belief, planner_by(belief, Policies()), 1, 1)
    assert isinstance(plan, Offer)
    assert plan.placement.node == tight
    assert len({ranked.value for ranked in plan.best}) == 1


def test_where_all_nodes_are_alike_no_more_are_looked_at() -> None:
    names = [f"a{index:03}" for index in range(10 * refining.CLOSELY)]
    belief = cluster(*(item for name in names for item in (gpus(name, 8), nics(name, 8))), nodes=names)
    taste = Taste(Document(), belief.learning.mix_for)
    planner = Planner(belief, Chooser(belief, lambda: "share", taste=taste))
    assert isinstance(planned(belief, planner, 1, 1), Offer)
    assert len(taste.looked_at) == refining.CLOSELY


def hold(belief: Belief, name: str, devices: Iterable[int], cards: Iterable[int]) -> None:
    """Have somebody hold GPUs and NICs of a node."""
    keys = [DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{index}")) for index in devices]
    keys += [DeviceKey(NET, PoolName(name), DeviceName(f"d{index}")) for index in cards]
    belief.apply(Changed(held(asks(f"held-{name}", some(1)), *keys)))


def test_a_search_that_takes_long_is_gone_on_with_in_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "SEARCHES", 2 * refining.PAUSE)
    tried, step = [0], Search._step

    def counted(search: Search, cost: int = 1) -> bool:
        tried[0] += 1
        return step(search, cost)

    monkeypatch.setattr(Search, "_step", counted)
    planner = crowded_planner(1)
    plan = planner.plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Trouble)
    assert plan.goes_on
    turns = [tried_in(planner, tried)]
    while turns[-1][0] is Trouble and len(turns) < 100:
        turns.append(tried_in(planner, tried))
    assert 3 < len(turns) < 100
    assert turns[-1][0] is Rejection
    assert max(count for _, count in turns) < 200


def test_where_searches_are_given_up_not_all_nodes_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "IMPROVEMENTS", 2)
    monkeypatch.setattr(solve, "INSISTENCE", 2)
    planner = crowded_planner(20)
    plan = planner.plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert not plan.is_hopeless
    assert planner.chooser.taste is not None
    assert len(planner.chooser.taste.looked_at) == refining.GIVEN_UP


def crowded_planner(nodes: int) -> Planner:
    """Return who plans a pod for seven linked pairs, on nodes in different states, none of which has more than six."""
    # Each of nine GPUs is linked with each of seven others.
    links = [[one, other] for one in range(9) for other in range(9, 16)]
    product = {"product": "H100", "count": 16, "links": links, "linkWeight": 25}
    document = document_of({"deviceTopology": [{"match": {"driver": NVIDIA}, "products": [product]}]})
    taken = {f"n{number:02}": (number % 9, 9 + number // 9) for number in range(nodes)}
    belief = cluster(*(gpus(name, 16) for name in taken), nodes=taken)
    for name, places in taken.items():
        keys = (DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{place}")) for place in places)
        belief.apply(Changed(held(asks(f"held-{name}", some(2)), *keys)))
    belief.apply(Changed(asks("c", *(some(2, name=f"pair-{index}") for index in range(7)), policy="linked")))
    return planner_of(belief, document)


def tried_in(planner: Planner, tried: list[int]) -> tuple[type[Plan], int]:
    """Plan once; tell what came of it, and how many sets were tried."""
    tried[0] = 0
    plan = planner.plan(pod("p", "c"), None, 0.0)
    return type(plan), tried[0]
