"""A pod is told what the nodes lack that it can be on, not what others lack that are nearer to a success."""

from dataclasses import replace

import pytest

from extender.allocation.solve import BEST
from extender.model.change import Noun
from extender.model.claim import ClaimSpec, Constraint, ResourceClaim
from extender.model.device import Attribute, ResourceSlice
from extender.model.node import Node, Pod
from extender.model.taint import Toleration
from extender.model.terms import Terms
from extender.scheduling.planner import Rejection, Trouble
from extender.scheduling.tally import ASIDE, MOST
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, claim, device, gpus, held, names, node, planner_of, request
from tests.scheduling.test_possible import IN_A, ZONE, asking
from tests.scheduling.test_suitable import SICK, ZONE_A

IN_USE = "claim c-p, request gpu needs 1 free device, has 0: 1 in use"
NOTHING = "no devices are published for the node"
A1 = replace(node("a1"), labels=ZONE)
B1 = node("b1")


def told(belief: Belief, item: Pod, *asked: str) -> Rejection:
    plan = planner_of(belief).plan(item, names(*asked) if asked else None, 0.0)
    assert isinstance(plan, Rejection)
    return plan


def in_use(item: Pod, *nodes: Node, more: tuple[Noun, ...] = ()) -> Belief:
    """Return a cluster in which the only device, of the last of *nodes*, is in use."""
    last = nodes[-1].name
    return belief_of(*nodes, gpus(last, 1), held(claim("u"), device(last, 0)), claim("c-p"), item, *more)


@pytest.mark.parametrize(
    ("other", "terms"),
    [
        pytest.param(B1, IN_A, id="selector"),
        pytest.param(B1, Terms(affinity=ZONE_A), id="affinity"),
        pytest.param(replace(B1, taints=(SICK,)), Terms(), id="taint"),
        pytest.param(replace(B1, is_unschedulable=True), Terms(), id="cordoned"),
    ],
)
def test_what_nodes_lack_that_a_pod_cannot_be_on_is_told_last(other: Node, terms: Terms) -> None:
    item = asking("p", terms)
    plan = told(in_use(item, A1, other), item, "a1")
    assert (plan.word, plan.detail) == (Word.NO_DEVICES, NOTHING)
    assert [(tally.word, tally.example, tally.message) for tally in plan.rejected] == [
        (Word.NO_DEVICES, "a1", NOTHING),
        (Word.IN_USE, "b1", f"{ASIDE}{IN_USE}"),
    ]


def test_however_many_nodes_keep_a_pod_away_its_own_come_first() -> None:
    item = asking("p", IN_A)
    plan = told(in_use(item, A1, *map(node, ("b1", "b2", "b3"))), item, "a1")
    assert [(tally.nodes, tally.example) for tally in plan.rejected] == [(1, "a1"), (2, "b1"), (1, "b3")]


def test_a_node_that_the_scheduler_asks_about_is_the_pods_own_whatever_we_think_of_it() -> None:
    item = asking("p", IN_A)
    belief = in_use(item, A1, B1)
    assert told(belief, item, "a1", "b1").detail == IN_USE
    assert [tally.message for tally in told(belief, item, "b1").rejected] == [NOTHING, IN_USE]


def test_a_pod_that_can_be_nowhere_is_told_what_all_nodes_lack() -> None:
    item = asking("p", IN_A)
    assert told(in_use(item, B1), item).detail == IN_USE


def test_where_devices_are_free_on_nodes_that_keep_a_pod_away_its_own_still_come_first() -> None:
    item = asking("p", Terms(labels=(("zone", "c"),)))
    fleet = A1, replace(node("c1"), labels=(("zone", "c"),)), B1
    belief = belief_of(*fleet, gpus("a1", 1), gpus("b1", 1), held(claim("u"), device("b1", 0)), claim("c-p"), item)
    assert told(belief, item, "c1").detail == NOTHING


def test_a_claim_that_no_node_of_the_pods_own_can_use_is_what_is_told() -> None:
    item = replace(asking("p", IN_A), claims=(*asking("p", IN_A).claims, *asking("q", IN_A).claims))
    here = held(claim("c-q"), device("b1", 1))
    belief = belief_of(A1, B1, gpus("b1", 2), held(claim("u"), device("b1", 0)), claim("c-p"), here, item)
    plan = told(belief, item, "a1")
    assert plan.word is Word.CLAIM_ELSEWHERE
    assert [tally.word for tally in plan.rejected] == [Word.CLAIM_ELSEWHERE, Word.IN_USE]


def test_a_hopeless_pod_that_tolerates_more_now_is_told_anew() -> None:
    item = asking("p", Terms())
    belief = in_use(item, A1, replace(B1, taints=(SICK,)))
    planner = planner_of(belief)
    bold = replace(item, terms=Terms(tolerations=(Toleration(operator="Exists"),)))
    words = [planner.plan(pod, names("a1"), 0.0) for pod in (item, bold)]
    assert [plan.word for plan in words if isinstance(plan, Rejection)] == [Word.NO_DEVICES, Word.IN_USE]


def entangled(name: str) -> ResourceSlice:
    """Return devices of which nobody finds out in a few steps whether some differ in all that they have."""
    published = gpus(name, 12)
    values = [tuple(sorted({str(index % 3), str(index % 4 + 3)})) for index in range(12)]
    told = ((("ex.com/a", Attribute("strings", each)),) for each in values)
    devices = (replace(item, attributes=mine) for item, mine in zip(published.devices, told, strict=True))
    return replace(published, devices=tuple(devices))


def hard(name: str) -> ResourceClaim:
    rule = Constraint(distinct_attribute="ex.com/a")
    return replace(claim(name), spec=ClaimSpec(requests=(request(6),), constraints=(rule,)))


def undecided(*pods: Pod) -> Belief:
    """Return a cluster in which the search is given up on b1."""
    claims = (hard(f"c-{item.key.name}") for item in pods)
    return belief_of(A1, B1, entangled("b1"), *claims, *pods, manner=replace(BEST, steps=3))


def test_a_search_that_was_given_up_where_a_pod_cannot_be_is_no_trouble() -> None:
    tied, free = asking("p", IN_A), asking("q", Terms())
    belief = undecided(tied, free)
    assert isinstance(planner_of(belief).plan(free, names("a1"), 0.0), Trouble)
    plan = told(belief, tied, "a1")
    assert (plan.word, plan.detail) == (Word.NO_DEVICES, NOTHING)
    assert isinstance(planner_of(belief).plan(tied, names("a1", "b1"), 0.0), Trouble)


def test_nobody_is_hopeless_where_a_search_was_given_up() -> None:
    # Others may ask the same who can be there.
    tied = asking("p", IN_A)
    assert not told(undecided(tied), tied, "a1").is_hopeless
    assert told(in_use(tied, A1, B1), tied, "a1").is_hopeless


def test_a_node_on_which_the_search_was_given_up_is_not_told_as_one_that_errs() -> None:
    tied = asking("p", IN_A)
    plan = told(undecided(tied), tied, "a1")
    assert [(tally.word, tally.example) for tally in plan.rejected] == [(Word.NO_DEVICES, "a1"), (Word.GIVEN_UP, "b1")]


def test_of_many_reasons_those_beyond_the_most_frequent_are_counted_together_but_for_the_nearest() -> None:
    # Each node lacks another number of devices; the one that lacks least comes last.
    sizes = {f"n{devices:02}": devices for devices in range(1, 31)}
    item = asking("p", Terms())
    published = (gpus(name, devices) for name, devices in sizes.items())
    plan = told(belief_of(*map(node, sizes), *published, claim("c-p", 32), item), item)
    assert plan.detail == "claim c-p, request gpu needs 32 free devices, has 30: no other matches"
    assert plan.rejected[MOST].message == plan.detail
    assert len(plan.rejected) == MOST + 2
    assert sum(tally.nodes for tally in plan.rejected) == len(sizes)
