"""Node and devices are chosen together, by links, and the decision says why."""

import gc
import json
from dataclasses import replace
from itertools import count
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.passage import passage
from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.device import Counter, CounterConsumption, CounterSet, Traits
from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName
from extender.model.node import Node, Pod
from extender.model.quantity import parse_quantity
from extender.scheduling.account import note_of, of_plan
from extender.scheduling.planner import Offer, Planner, Rejection
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.survey import Survey, survey
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.questions import AGE, PAUSE
from extender.topology.policies import ANNOTATION
from extender.topology.policy import Placing, Policy, Trait, Wish
from extender.topology.ratings import Ratings
from tests.scheduling.cast import gpus, held, names, node, pod, surveyed
from tests.scheduling.machines import NUMA, NVIDIA, fleet, planner_with_taste, sample, wanted
from tests.scheduling.mixed import asks, cluster, published, some, with_uuids

DGX = "dgx-1v"
NUMBERS = count()


def planned(belief: Belief, planner: Planner, claim: ResourceClaim) -> Offer | Rejection:
    belief.apply(Changed(claim))
    subject = pod(f"p{next(NUMBERS)}", claim.key.name)
    plan = planner.plan(subject, None, 0.0)
    assert isinstance(plan, Offer | Rejection)
    return plan


def chosen(
    taken: dict[str, tuple[int, ...]], devices: int, match: str = "", policy: Policy | None = None, annotation: str = ""
) -> Offer | Rejection:
    """Plan a pod on machines of one kind of which some devices are *taken*."""
    belief = fleet(dict.fromkeys(taken, DGX), taken)
    claim = wanted("c", devices, match)
    if annotation:
        claim = replace(claim, annotations=((ANNOTATION, annotation),))
    return planned(belief, planner_with_taste(belief, policy=policy), claim)


def given_to(plan: Offer | Rejection) -> tuple[NodeName, list[int]]:
    assert isinstance(plan, Offer)
    ((_, allocation),) = plan.placement.claims
    return plan.placement.node, sorted(int(item.device.device.removeprefix("gpu-")) for item in allocation.devices)


ALL = tuple(range(8))


def but(*free: int) -> tuple[int, ...]:
    return tuple(index for index in ALL if index not in free)


@pytest.mark.parametrize(
    ("taken", "devices", "node", "best"),
    [
        pytest.param({"a": but(0, 1), "b": but(0, 3)}, 2, "b", [0, 3], id="two links beat one"),
        pytest.param({"a": but(0, 1, 2, 3), "b": but(0, 3)}, 2, "b", [0, 3], id="a quad stays whole"),
        pytest.param({"a": (), "b": but(0, 3), "c": but(0, 5)}, 1, "c", [0], id="a single breaks no pair"),
        pytest.param({"a": (0,), "b": (0, 4)}, 4, "a", [4, 5, 6, 7], id="a quad of two rings beats one of fewer"),
        pytest.param({"a": (), "b": but(0, 1, 2, 3)}, 4, "b", [0, 1, 2, 3], id="a whole machine is not opened"),
    ],
)
def test_node_and_devices_are_chosen_together(
    taken: dict[str, tuple[int, ...]], devices: int, node: str, best: list[int]
) -> None:
    assert given_to(chosen(taken, devices)) == (node, best)


def test_a_constraint_is_kept_and_the_best_of_what_it_leaves_is_taken() -> None:
    # The only two links among what is free join 0 and 4, which are on two NUMA nodes.
    assert given_to(chosen({"a": but(0, 4, 5, 7), "b": but(0, 4)}, 2, NUMA)) == ("a", [4, 7])


def test_the_node_that_fulfils_a_constraint_best_wins_though_others_have_more() -> None:
    assert given_to(chosen({"a": but(0, 1, 4), "b": but(2, 3, 4)}, 2, NUMA)) == ("b", [2, 3])


LINKED = Policy(name="linked", links=Wish.STRICT)
ONE_NUMA = Policy(name="one-numa", numa=Wish.STRICT)


def test_four_fully_linked_are_waited_for() -> None:
    plan = chosen({"a": but(0, 1, 4, 5), "b": but(0, 1, 2, 7)}, 4, policy=LINKED)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.POLICY
    assert "policy linked" in plan.detail
    assert given_to(chosen({"a": but(0, 1, 4, 5), "b": but(4, 5, 6, 7)}, 4, policy=LINKED))[0] == "b"


def test_a_strict_policy_holds_beside_constraints_too() -> None:
    # On b two are linked, even by two links, but on two NUMA nodes; the constraint forbids them.
    assert given_to(chosen({"a": but(0, 1, 6), "b": but(0, 4, 6)}, 2, NUMA, LINKED)) == ("a", [0, 1])
    assert isinstance(chosen({"a": but(0, 4), "b": but(1, 5)}, 2, NUMA, LINKED), Rejection)


def test_one_numa_node_or_none() -> None:
    assert isinstance(chosen({"a": but(0, 4), "b": but(1, 5)}, 2, policy=ONE_NUMA), Rejection)
    assert given_to(chosen({"a": but(0, 4), "b": but(2, 3)}, 2, policy=ONE_NUMA)) == ("b", [2, 3])


def test_pack_takes_the_fullest_node_and_spread_the_emptiest() -> None:
    taken = {"a": (), "b": (0,), "c": (0, 1, 2)}
    pack, spread = Policy(name="pack", placing=Placing.PACK), Policy(name="spread", placing=Placing.SPREAD)
    assert given_to(chosen(taken, 1, policy=pack))[0] == "c"
    assert given_to(chosen(taken, 1, policy=spread))[0] == "a"


def test_a_preferred_generation_is_taken_first_and_what_is_to_be_avoided_last() -> None:
    belief = fleet({"a": "dgx-h100", "b": DGX}, {})
    old_first = Policy(name="old", prefer=(Trait("productName", ("*V100*",)),))
    planner = planner_with_taste(belief, policy=old_first)
    assert given_to(planned(belief, planner, wanted("c", 2)))[0] == "b"
    avoid = Policy(name="avoid", avoid=(Trait("productName", ("*V100*",)), Trait("nothing", ("*",))))
    planner = planner_with_taste(belief, policy=avoid)
    assert given_to(planned(belief, planner, wanted("d", 2)))[0] == "a"


def test_a_policy_that_may_not_be_used_places_nothing() -> None:
    plan = chosen({"a": ()}, 1, annotation="mine")
    assert isinstance(plan, Rejection)
    assert plan.word is Word.POLICY_REFUSED
    assert "names 'mine'; allowed are protect, pack" in plan.detail


def test_in_a_shortlist_no_two_nodes_share_a_score() -> None:
    taken = {f"n{index:02}": () for index in range(16)}
    belief = fleet(dict.fromkeys(taken, DGX), {})
    plan = planned(belief, planner_with_taste(belief, AnswerPolicy(Answer.SHORTLIST, 11)), wanted("c", 2))
    assert isinstance(plan, Offer)
    assert sorted(plan.scores.values()) == list(range(11))
    assert plan.scores[plan.placement.node] == 10


def test_among_all_nodes_those_that_are_worth_the_same_have_one_score() -> None:
    taken = {"a": but(0, 3), "b": but(0, 1), "c": but(2, 3), "d": but(4, 5)}
    belief = fleet(dict.fromkeys(taken, DGX), taken)
    plan = planned(belief, planner_with_taste(belief, AnswerPolicy(Answer.ALL)), wanted("c", 2))
    assert isinstance(plan, Offer)
    assert plan.scores == dict(zip(names("a", "c", "b", "d"), (10, 9, 8, 8), strict=True))


def test_a_decision_says_why_in_plain_units_and_names_the_runner_up() -> None:
    plan = chosen({"a": but(0, 1), "b": but(0, 3, 5)}, 2)
    assert isinstance(plan, Offer)
    best, second = plan.best
    assert (best.node, second.node) == ("b", "a")
    assert best.value == sum(part.value for part in best.parts)
    assert best.words == "links 25+25 GB/s of best 50, on NUMA 0 alone, 3 devices were free"
    note = note_of(of_plan(pod("p"), plan, 1, 0.0))
    assert "score 10: links 25+25 GB/s of best 50" in note
    assert "runner-up a with score 9: links 25 GB/s of best 50" in note


@pytest.mark.parametrize(
    ("claims", "devices"),
    [
        pytest.param([asks("c", some(1), some(1, name="more"))], [[0, 3]], id="two requests, two links"),
        pytest.param([wanted("c", 1), wanted("d", 1)], [[0], [3]], id="two claims, two links"),
        pytest.param([wanted("c", 2), wanted("d", 2)], [[0, 3], [1, 2]], id="pairs by themselves, two links each"),
        pytest.param([wanted("c", 2), wanted("d", 4)], [[0, 3], [4, 5, 6, 7]], id="a quad by itself, and a pair"),
        pytest.param(
            [asks("c", some(1), policy="pack"), wanted("d", 1)], [[0], [1]], id="each by itself where policies differ"
        ),
    ],
)
def test_single_gpus_of_a_pod_are_chosen_together(claims: list[ResourceClaim], devices: list[list[int]]) -> None:
    belief = fleet({"a": DGX}, {"a": ()})
    for claim in claims:
        belief.apply(Changed(claim))
    plan = planner_with_taste(belief).plan(pod("p", *(claim.key.name for claim in claims)), None, 0.0)
    assert isinstance(plan, Offer)
    allocated = [allocation.devices for _, allocation in plan.placement.claims]
    assert [sorted(int(item.device.device[4:]) for item in given) for given in allocated] == devices


def test_what_one_claim_of_a_pod_is_given_is_not_left_over_for_another() -> None:
    belief = fleet({"a": DGX}, {"a": but(0, 1, 2)})
    for name, policy in (("c", "pack"), ("d", "spread")):
        belief.apply(Changed(replace(wanted(name, 1), annotations=((ANNOTATION, policy),))))
    plan = planner_with_taste(belief).plan(pod("p", "c", "d"), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal is not None
    said = {part.text.partition(": ")[2] for part in plan.placement.appraisal.parts if part.name == "kept"}
    assert said == {"pack: 1 of 3 free devices", "spread: 1 of 2 free devices"}


def test_devices_of_other_drivers_are_not_among_those_that_were_free() -> None:
    belief = fleet({"a": DGX, "b": DGX}, {"a": but(0, 3, 5)})
    for name in ("a", "b"):
        belief.apply(Changed(replace(gpus(name, 5), name=f"{name}-others")))
    plan = planned(belief, planner_with_taste(belief), wanted("c", 2))
    assert isinstance(plan, Offer)
    assert [(item.node, item.free_devices) for item in plan.best] == [("a", 3), ("b", 8)]


def test_free_devices_are_all_where_no_drivers_are_meant_and_not_counted_where_the_node_has_none_of_theirs() -> None:
    snapshot = fleet({"a": DGX}, {"a": but(0, 3, 5)}).seen_by()
    assert [snapshot.count_free(0, drivers) for drivers in ((), (DriverName("nobody"),))] == [3, None]


def test_the_runner_up_has_its_reasons_where_requests_are_bound_too() -> None:
    plan = chosen({"a": but(0, 3, 4), "b": but(0, 1, 4)}, 2, NUMA)
    assert isinstance(plan, Offer)
    assert [item.node for item in plan.best] == ["a", "b"]
    assert plan.best[1].words == "links 25 GB/s of best 50, on NUMA 0 alone, 3 devices were free"


def test_of_devices_without_known_links_what_they_share_is_told() -> None:
    belief = fleet({"a": "a100-pcie"}, {})
    plan = planned(belief, planner_with_taste(belief), wanted("c", 4))
    assert isinstance(plan, Offer)
    assert plan.best[0].words == "the same NUMA node, 18 GB/s of best 18, on NUMA 0 alone, 8 devices were free"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.sampled_from(ALL), max_size=7), min_size=1, max_size=5), st.sampled_from([1, 2, 4, 8]))
def test_the_estimate_of_one_request_is_what_its_devices_turn_out_to_be_worth(
    taken: list[set[int]], devices: int
) -> None:
    plan = chosen({f"n{index}": tuple(sorted(held)) for index, held in enumerate(taken)}, devices)
    if isinstance(plan, Offer):
        number = surveyed(plan).snapshot.layout.nodes.index(plan.placement.node)
        values = surveyed(plan).values
        assert values is not None
        assert plan.placement.appraisal is not None
        assert plan.placement.appraisal.value == values[number] == values[surveyed(plan).fits].max()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.booleans()), min_size=1, max_size=8))
def test_values_that_are_continued_are_those_that_are_worked_out_anew(steps: list[tuple[int, bool]]) -> None:
    belief = fleet({"a": DGX, "b": DGX, "c": "dgx-h100"}, {})
    planner = planner_with_taste(belief)
    for index, (devices, is_bound) in enumerate(steps):
        claim = wanted(f"c{index}", devices)
        plan = planned(belief, planner, claim)
        if not isinstance(plan, Offer):
            return
        fresh = survey(
            surveyed(plan).needs, surveyed(plan).snapshot, belief.questions, planner_with_taste(belief).chooser.taste
        )
        assert isinstance(fresh, Survey)
        assert np.array_equal(fresh.values, surveyed(plan).values)  # type: ignore[arg-type]  # both have values
        if is_bound:
            ((_, allocation),) = plan.placement.claims
            belief.apply(Changed(replace(claim, allocation=allocation, resource_version="2")))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.sampled_from(ALL), max_size=7), min_size=2, max_size=5), st.data())
def test_names_of_nodes_never_change_what_the_best_is_worth(taken: list[set[int]], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(taken))))
    plans = [
        chosen({f"n{order[index] if renamed else index}": tuple(sorted(held)) for index, held in enumerate(taken)}, 2)
        for renamed in (False, True)
    ]
    worths = [plan.best[0].value if isinstance(plan, Offer) else None for plan in plans]
    assert worths[0] == worths[1]


def test_a_claim_for_all_devices_does_not_get_what_is_forbidden() -> None:
    belief = fleet({"a": DGX, "b": "dgx-h100"}, {})
    policy = Policy(name="no-volta", forbid=(Trait("productName", ("*V100*",)),))
    planner = planner_with_taste(belief, policy=policy)
    asked = wanted("c", 1)
    (slot,) = asked.spec.requests
    assert slot.exactly is not None
    everything = replace(slot, exactly=replace(slot.exactly, mode="All", count=0))
    claim = replace(asked, spec=replace(asked.spec, requests=(everything,)))
    assert given_to(planned(belief, planner, claim)) == ("b", [0, 1, 2, 3, 4, 5, 6, 7])
    # All of b is promised now, and waited for.
    plan = planned(belief, planner, wanted("d", 2))
    assert isinstance(plan, Rejection)
    assert plan.word is Word.IN_USE
    assert [(tally.word, tally.example) for tally in plan.rejected] == [(Word.POLICY, "a"), (Word.IN_USE, "b")]


def test_partitions_on_one_node_do_not_hide_what_the_links_of_others_are_worth() -> None:
    poor = [f"n{index:02}" for index in range(30)]
    belief = fleet(dict.fromkeys([*poor, "z"], DGX), dict.fromkeys(poor, but(0, 5)) | {"z": but(0, 3, 4, 5, 6)})
    counters = (Counter("memory", parse_quantity("1")),)
    shown = sample(DGX, "other")
    whole = replace(shown.devices[0], traits=Traits(consumes_counters=(CounterConsumption("chip", counters),)))
    others = replace(shown, slice_count=2, devices=(whole,))
    chip = replace(others, name="chip", devices=(), shared_counters=(CounterSet("chip", counters),))
    for item in (node("other"), others, chip):
        belief.apply(Changed(item))
    assert given_to(planned(belief, planner_with_taste(belief), wanted("c", 2))) == ("z", [0, 3])


def test_a_question_that_nobody_asks_keeps_no_slices_that_are_replaced_for_its_ratings_either() -> None:
    belief = fleet(dict.fromkeys(("n1", "n2"), DGX), {})
    planner, subject = planner_with_taste(belief), pod("p", "c")
    belief.apply(Changed(wanted("c", 2)))
    belief.apply(Changed(subject))
    assert isinstance(planner.plan(subject, None, 0.0), Offer)
    belief.apply(Gone(Pod, subject.key))
    seen, slices = ref(belief.cluster.snapshot.inventory), belief.cluster.snapshot.inventory.slices
    for number in range(AGE + 2 * PAUSE):
        turned = slices[number % 2].devices[:: (-1) ** (number // 2)]
        belief.apply(Changed(replace(slices[number % 2], devices=turned)))
    assert isinstance(planned(belief, planner, wanted("d", 3)), Offer)
    passage.cache_clear()
    gc.collect()
    assert seen() is None


def test_requests_that_ask_alike_are_rated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim may have hundreds of asks, and each rating looks at all nodes."""
    belief, made, init = cluster(*(published(name, NVIDIA, 8) for name in "ab"), nodes="ab"), [], Ratings.__init__

    def counted(ratings: Ratings, *arguments: Any) -> None:
        made.append(ratings)
        init(ratings, *arguments)

    monkeypatch.setattr(Ratings, "__init__", counted)
    requests = [some(2, name=name) for name in ("x", "y", "z")]
    assert isinstance(planned(belief, planner_with_taste(belief), asks("c", *requests, some(1, name="one"))), Offer)
    assert len(made) == 2


def test_a_node_that_says_something_else_of_its_links_is_rated_again() -> None:
    names = ("n0", "n1", "n2")
    belief = cluster(*(with_uuids(published(name, NVIDIA, 3)) for name in names), nodes=names)
    for name in names:
        taken = DeviceKey(NVIDIA, PoolName(name), DeviceName("d2"))
        belief.apply(Changed(held(asks(f"held-{name}", some(1)), taken)))
    belief.apply(Changed(linked("n0", 20)))
    planner = planner_with_taste(belief)
    for best, gone in (("n1", ""), ("n2", ""), ("n1", "n0"), ("n2", "")):
        for name in names[1:]:
            belief.apply(Changed(linked(name, 210 if name == best else 20)))
        if gone:
            belief.apply(Gone(Node, ObjectKey("", gone)))
        plan = planned(belief, planner, asks(f"c{next(NUMBERS)}", some(2)))
        assert isinstance(plan, Offer)
        assert plan.placement.node == best
        for change in (Changed(surveyed(plan).needs.pod), Gone(Pod, surveyed(plan).needs.pod.key)):
            belief.apply(change)


def linked(name: str, score: int) -> Node:
    """Return a node that tells how its first device is linked to its second one, which is linked well to its third."""
    links = [{"uuid": "d0", "score": {"d1": score}}, {"uuid": "d1", "score": {"d2": 210}}]
    return replace(node(name), annotations=(("hami.io/node-nvidia-score", json.dumps(links)),))
