"""Q2: we wake only pods that fit, by priority and age, as many as what is free serves, and not the same for ever."""

from dataclasses import replace
from itertools import pairwise

import pytest

from extender.allocation.extended import IMPLICIT
from extender.model.change import Change, Changed, Gone
from extender.model.claim import DeviceConfig, ResourceClaim
from extender.model.names import Uid
from extender.model.node import Container, Pod
from extender.model.quantity import parse_quantity
from extender.scheduling.expiry import expired
from extender.scheduling.planner import Offer, Planner, Rejection, Trouble
from extender.scheduling.waking import Waker
from extender.state.ledger import Event
from tests.scheduling.cast import (
    DRIVER,
    GPU,
    belief_of,
    claim,
    device,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
    promised,
    surveyed,
)

PATIENCE = 10.0
LONG = 10_000.0


class Stage:
    """A full cluster, pods that were rejected, and who is woken."""

    def __init__(self, *pods: Pod, devices: int = 2, nodes: int = 1) -> None:
        holders = [
            held(claim(f"h{number}-{index}"), device(f"n{number}", index))
            for number in range(1, nodes + 1)
            for index in range(devices)
        ]
        fleet = [item for number in range(1, nodes + 1) for item in (node(f"n{number}"), gpus(f"n{number}", devices))]
        self.belief = belief_of(*fleet, *holders)
        self.planner = planner_of(self.belief)
        self.waker = Waker(self.belief, self.planner, PATIENCE)
        for item in pods:
            self.belief.apply(Changed(item))
            for entry in item.claims:
                self.belief.apply(Changed(claim(str(entry.claim_name))))
            assert isinstance(self.filter(item, 0.0), Rejection)
        assert self.woken(0.0) == []

    def filter(self, item: Pod, now: float, *nodes: str) -> object:
        plan = self.planner.plan(item, names(*(nodes or ("n1", "n2"))), now)
        if isinstance(plan, Offer):
            self.waker.drop(item.uid)
        else:
            self.waker.put(item.uid)
        return plan

    def free(self, index: int, number: int = 1) -> None:
        self.belief.apply(Gone(ResourceClaim, claim(f"h{number}-{index}").key))

    def woken(self, now: float, most: int = 64) -> list[str]:
        return [f"{wake.pod.key.name}@{wake.node}" for wake in self.waker.round(now, most) if wake]


def test_q2_nobody_is_woken_as_long_as_nothing_is_free() -> None:
    stage = Stage(pod("p", "c"))
    assert [stage.woken(now) for now in (1.0, PATIENCE, LONG)] == [[], [], []]
    assert not promised(stage.belief)


def test_q2_priority_goes_before_age_and_age_before_names() -> None:
    old = pod("old", "a", created="2026-01-01T00:00:00Z")
    young = pod("young", "b", created="2026-01-02T00:00:00Z")
    high = pod("high", "c", created="2026-01-03T00:00:00Z", priority=5)
    stage = Stage(young, old, high, devices=3)
    for index in range(3):
        stage.free(index)
    assert stage.woken(1.0) == ["high@n1", "old@n1", "young@n1"]


def test_q2_no_more_are_woken_than_what_is_free_serves() -> None:
    stage = Stage(*(pod(f"p{index}", f"c{index}") for index in range(5)))
    stage.free(0)
    assert stage.woken(1.0) == ["p0@n1"]
    assert promised(stage.belief) == [device("n1", 0)]
    assert stage.woken(2.0) == []
    stage.free(1)
    assert stage.woken(3.0) == ["p1@n1"]


def test_q2_a_wake_that_was_not_heard_of_does_not_count() -> None:
    stage, woken = Stage(pod("p", "c")), list[float]()
    stage.free(0)
    for now in (1.0, 2.0, 3.0):
        for wake in filter(None, stage.waker.round(now)):
            woken.append(now)
            stage.waker.unwoken(wake.pod.uid)
            stage.planner.withdraw(wake.pod.uid)
    # Between two of them whoever else waits has a turn.
    assert woken == [1.0, 3.0]
    assert [stage.woken(now) for now in (4.0, 5.0, 6.0)] == [[], ["p@n1"], []]


def test_q2_what_is_not_found_out_in_one_round_is_gone_on_with_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, plan = Stage(pod("p", "c")), Planner.plan
    stage.free(0)
    monkeypatch.setattr(Planner, "plan", lambda *_args, **_kwargs: Trouble("is looked for", goes_on=True))
    assert stage.woken(1.0) == []
    monkeypatch.setattr(Planner, "plan", plan)
    assert stage.woken(2.0) == ["p@n1"]


def test_q2_the_others_have_their_turn_in_the_next_round() -> None:
    stage = Stage(*(pod(f"p{index}", f"c{index}") for index in range(2)))
    stage.free(0)
    stage.free(1)
    assert stage.woken(1.0, most=1) == ["p0@n1"]
    assert stage.woken(1.0, most=1) == ["p1@n1"]


def test_q2_who_is_not_bound_in_time_passes_its_wake_on() -> None:
    stage = Stage(pod("p", "a", priority=1), pod("q", "b"))
    stage.free(0)
    assert stage.woken(1.0) == ["p@n1"]
    for uid in expired(stage.belief, 20.0, 15.0):
        stage.belief.ledger.tell(uid, Event.EXPIRED)
    stage.waker.put(Uid("uid-p"))
    assert stage.woken(PATIENCE) == ["q@n1"]


def test_q2_a_pod_that_is_woken_in_vain_is_woken_more_and_more_seldom() -> None:
    # The device is free, but the scheduler never offers its node: something else is missing there.
    item = pod("p", "a")
    stage = Stage(item, pod("q", "b"))
    stage.free(0)
    when = []
    for second in range(400):
        if "p@n1" in stage.woken(float(second)):
            when.append(second)
            stage.filter(item, float(second), "n2")
        stage.belief.ledger.tell(Uid("uid-q"), Event.EXPIRED)
    assert 4 <= len(when) <= 10
    gaps = [after - before for before, after in pairwise(when)]
    assert gaps == sorted(gaps)


def test_q2_who_is_rested_after_a_vain_wake_competes_by_priority_until_it_is_woken_again() -> None:
    high = pod("high", "a", priority=9)
    stage = Stage(high, pod("low", "b"), devices=3)
    stage.free(0)
    assert stage.woken(1.0) == ["high@n1"]
    # Something else is missing there; and somebody else takes the device.
    stage.filter(high, 1.5, "n2")
    stage.belief.apply(Changed(held(claim("x"), device("n1", 0))))
    rested = 1.0 + 3 * PATIENCE
    assert stage.woken(rested) == []
    stage.free(1)
    assert stage.woken(rested + 1.0) == ["high@n1"]
    stage.free(2)
    assert stage.woken(rested + 2.0) == ["low@n1"]


def test_q2_a_pod_that_was_offered_nodes_begins_anew() -> None:
    item = pod("p", "a")
    stage = Stage(item)
    stage.free(0)
    assert stage.woken(1.0) == ["p@n1"]
    assert isinstance(stage.filter(item, 1.0), Offer)
    assert stage.woken(1.5) == []
    stage.belief.apply(Changed(held(claim("x"), device("n1", 0))))
    assert isinstance(stage.filter(item, 2.0), Rejection)
    stage.belief.apply(Gone(ResourceClaim, claim("x").key))
    assert stage.woken(3.0) == ["p@n1"]


def test_q3_a_pod_that_was_just_sent_elsewhere_is_not_woken_beside() -> None:
    item = pod("p", "a")
    stage = Stage(item, nodes=2)
    stage.free(0, 2)
    plan = stage.filter(item, 1.0, "n1")
    assert isinstance(plan, Rejection)
    assert plan.elsewhere == "n2"
    assert stage.woken(1.5) == []
    assert stage.woken(1.0 + PATIENCE) == ["p@n2"]


def test_q3_nothing_strands_where_nothing_changes() -> None:
    item = pod("p", "a")
    stage = Stage(item)
    stage.free(0)
    assert isinstance(stage.filter(item, 1.0, "n2"), Rejection)
    assert any(stage.woken(float(second)) for second in range(2, 40))


@pytest.mark.parametrize("how", ["gone", "bound", "deleting"])
def test_pods_that_wait_no_longer_are_not_woken(how: str) -> None:
    item = pod("p", "a")
    stage = Stage(item)
    changed: dict[str, Change] = {
        "gone": Gone(Pod, item.key),
        "bound": Changed(replace(item, node_name=names("n1")[0])),
        "deleting": Changed(replace(item, is_deleting=True)),
    }
    stage.belief.apply(changed[how])
    stage.free(0)
    assert stage.woken(1.0) == []
    stage.free(1)
    assert stage.woken(PATIENCE) == []
    assert len(stage.waker) == 0


def test_a_pod_that_the_watch_has_not_shown_yet_is_not_forgotten() -> None:
    item = pod("p", "c")
    stage = Stage()
    stage.belief.apply(Changed(claim("c")))
    assert isinstance(stage.filter(item, 1.0), Rejection)
    assert stage.woken(1.0) == []
    stage.belief.apply(Changed(item))
    stage.free(0)
    assert stage.woken(2.0) == ["p@n1"]


def test_a_pod_that_is_never_shown_is_forgotten_once_all_pods_of_its_time_have_been_shown() -> None:
    stage, shown = Stage(), [1.0]
    stage.waker.shown_until = lambda: shown[-1]
    stage.belief.apply(Changed(claim("c")))
    assert isinstance(stage.filter(pod("p", "c"), 1.0), Rejection)
    left = []
    for now, until in ((1.0, 1.0), (LONG, PATIENCE), (2 * LONG, PATIENCE + 1.0)):
        shown.append(until)
        assert stage.woken(now) == []
        left.append(len(stage.waker))
    assert left == [1, 1, 0]


def test_what_came_free_before_a_pod_was_shown_wakes_it_as_soon_as_it_is() -> None:
    item, other = pod("p", "c"), pod("other", "d")
    stage = Stage(other)
    stage.belief.apply(Changed(claim("c")))
    assert isinstance(stage.filter(item, 1.0), Rejection)
    stage.free(0)
    assert stage.woken(1.0) == ["other@n1"]
    stage.free(1)
    assert stage.woken(2.0) == []
    stage.belief.apply(Changed(item))
    assert stage.woken(2.1) == ["p@n1"]
    assert stage.woken(2.2) == []


def test_pods_of_one_claim_are_woken_one_after_the_other() -> None:
    stage = Stage(pod("p", "shared"), pod("q", "shared"))
    stage.free(0)
    assert stage.woken(1.0) == ["p@n1"]
    stage.belief.apply(Changed(held(claim("shared", version=2), device("n1", 0), by=pod("p", "shared"))))
    assert stage.woken(2.0) == ["q@n1"]


def test_a_pod_that_is_in_trouble_takes_nobody_elses_turn() -> None:
    first, second = pod("p", "a", priority=1), pod("q", "b")
    stage = Stage(first, second, devices=3)
    stage.free(0)
    plan = stage.filter(first, 1.0)
    assert isinstance(plan, Offer)
    assert stage.belief.ledger.reserve(plan.placement.promise(surveyed(plan).needs, 1.0))
    stage.waker.put(first.uid)
    stage.free(1)
    assert stage.woken(2.0) == ["q@n1"]


def test_offers_that_nobody_took_up_expire_and_bindings_do_not() -> None:
    first, second = pod("p", "a"), pod("q", "b")
    stage = Stage(first, second)
    stage.free(0)
    stage.free(1)
    plan = stage.filter(first, 1.0)
    assert isinstance(plan, Offer)
    stage.filter(second, 1.0)
    stage.belief.ledger.reserve(plan.placement.promise(surveyed(plan).needs, 1.0))
    assert list(expired(stage.belief, 31.0, 30.0)) == []
    assert list(expired(stage.belief, 31.1, 30.0)) == [second.uid]


def test_a_question_is_hopeless_only_for_those_who_ask_the_same() -> None:
    many, few = pod("many", gpus=2, priority=1), pod("few", gpus=1)
    stage = Stage(many, few)
    stage.free(0)
    assert stage.woken(1.0) == ["few@n1"]


def test_who_asks_the_same_by_another_name_is_not_hopeless_where_that_is_served_by_devices() -> None:
    implicit = Container(name="main", requests=((IMPLICIT + GPU, parse_quantity("1")),))
    plugged, other = pod("plugged", gpus=1, priority=1), replace(pod("other"), containers=(implicit,))
    stage = Stage(plugged, other)
    stage.belief.apply(Changed(node("n1", {"ex.com/gpu": 1})))
    stage.free(0)
    assert stage.woken(1.0) == ["other@n1"]


def test_who_may_go_anywhere_is_not_hopeless_for_whose_status_names_a_claim_that_is_gone() -> None:
    bound = replace(pod("bound", "a", gpus=1, priority=1), extended_claim="gone")
    stage = Stage(bound, pod("free", "b", gpus=1))
    stage.belief.apply(Changed(node("n1", {"ex.com/gpu": 1})))
    stage.free(0)
    assert stage.woken(1.0) == ["free@n1"]


def test_configuration_makes_no_other_question() -> None:
    stage = Stage(pod("p", "a"), pod("q", "b"))
    config = DeviceConfig(opaque={"driver": DRIVER, "parameters": {"x": [1]}})
    for name in ("a", "b"):
        item = claim(name, version=2)
        stage.belief.apply(Changed(replace(item, spec=replace(item.spec, config=(config,)))))
    stage.free(0)
    assert stage.woken(1.0) == ["p@n1"]


def test_q2_the_more_pods_wait_the_seldomer_all_of_them_are_looked_at() -> None:
    stage = Stage(*(pod(f"p{index}", f"c{index}") for index in range(50)))
    stage.free(0)
    assert stage.woken(1.0) == ["p0@n1"]
    stage.free(1)
    assert stage.woken(1.001) == []
    assert stage.woken(1.1) == ["p1@n1"]


def test_q2_a_pod_that_was_woken_in_vain_is_woken_soon_for_devices_that_come_free_elsewhere() -> None:
    item = pod("p", "a")
    stage = Stage(item, devices=1, nodes=2)
    stage.free(0, 1)
    # What else n1 lacks the scheduler alone knows: it asks about the other node, again and again.
    for second in range(200):
        if stage.woken(float(second)):
            assert isinstance(stage.filter(item, float(second), "n2"), Rejection)
    assert stage.woken(200.0) == []
    stage.free(0, 2)
    assert stage.woken(201.0) == ["p@n2"]


def test_q2_a_pod_that_was_just_woken_for_one_node_is_not_sent_to_another_at_once() -> None:
    item = pod("p", "a")
    stage = Stage(item, devices=1, nodes=2)
    stage.free(0, 1)
    assert stage.woken(1.0) == ["p@n1"]
    stage.free(0, 2)
    assert stage.woken(2.0) == []


def test_q2_who_was_woken_in_vain_of_late_comes_after_all_others() -> None:
    older, younger = pod("older", "a", created="2026-01-01"), pod("younger", "b", created="2026-01-02")
    stage = Stage(older, devices=1, nodes=2)
    stage.free(0, 1)
    # Nobody asks: what it was sent to the node for is nobody's after a while.
    for second in (1.0, 1.0 + PATIENCE):
        assert stage.woken(second) == ["older@n1"]
        stage.planner.withdraw(older.uid)
    for item in (younger, claim("b")):
        stage.belief.apply(Changed(item))
    stage.waker.put(younger.uid)
    assert stage.woken(2.0 + 2 * PATIENCE) == ["younger@n1"]
    stage.free(0, 2)
    assert stage.woken(3.0 + 2 * PATIENCE) == ["older@n2"]
