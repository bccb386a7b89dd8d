"""Slices that are published anew leave nothing behind: no boards, links or columns of what is there no more."""

import gc
from collections import Counter
from dataclasses import replace
from itertools import count

import pytest

from extender.allocation.board import Board
from extender.allocation.choose import choose
from extender.allocation.features import Features
from extender.allocation.inventory import Inventory
from extender.allocation.matches import Matches
from extender.allocation.solve import BEST, Solution
from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.device import ResourceSlice, Traits
from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.scheduling.planner import Offer, Planner
from extender.state.belief import Belief
from extender.state.questions import Questions
from extender.topology.ground import Ground
from extender.topology.holdings import Holdings
from extender.topology.machine import Group
from extender.topology.make import Make
from tests.scheduling import test_commons as commons
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import NUMA, fleet, planner_with_taste, sample, wanted

NODES = ("a", "b", "c")
KEPT = (ResourceSlice, Inventory, Board, Group, Ground, Make, Matches, Holdings)
SHARED = Traits(allow_multiple_allocations=True)
NUMBERS = count()


def planned(belief: Belief, planner: Planner, devices: int, match: str) -> None:
    """Plan a pod, and let it go."""
    claim = wanted(f"c{next(NUMBERS)}", devices, match)
    waiting = pod(f"p-{claim.key.name}", claim.key.name)
    for change in (Changed(claim), Changed(waiting)):
        belief.apply(change)
    assert isinstance(planner.plan(waiting, None, 0.0), Offer)
    searched(belief, planner, claim)
    belief.apply(Gone(Pod, waiting.key))
    belief.apply(Gone(ResourceClaim, claim.key))


def searched(belief: Belief, planner: Planner, claim: ResourceClaim) -> None:
    """Search all nodes for what *claim* asks, though they are in states that were met before."""
    taste, snapshot = planner.chooser.taste, belief.cluster.snapshot
    assert taste is not None
    question, _ = belief.questions.asked([claim], snapshot.classes)
    manner = taste.preferring(question, taste.policies([claim])).manner(BEST)
    for at in range(len(NODES)):
        assert isinstance(choose(snapshot, at, question, manner), Solution)


def published_anew(belief: Belief, planner: Planner) -> None:
    """Replace the slices of all nodes by others of other names, as drivers do; pods are planned meanwhile."""
    number = next(NUMBERS)
    for name in NODES:
        slices = belief.cluster.snapshot.inventory.slices
        before = next(item for item in slices if item.pool == name)
        belief.apply(Changed(replace(sample("dgx-1v", name), name=f"{name}-{number}")))
        belief.apply(Gone(ResourceSlice, ObjectKey("", before.name)))
        for devices, match in ((1, ""), (2, NUMA), (2, "")):
            planned(belief, planner, devices, match)


def objects() -> list[object]:
    gc.collect()
    return [item for item in gc.get_objects() if isinstance(item, KEPT)]


@pytest.fixture
def others() -> list[object]:
    """Return what other tests have left, which is there to the end of this one."""
    gc.unfreeze()
    return objects()


def test_what_was_worked_out_of_slices_goes_with_them(others: list[object]) -> None:
    theirs = set(map(id, others))

    def alive() -> Counter[str]:
        return Counter(type(item).__name__ for item in objects() if id(item) not in theirs)

    belief = fleet(dict.fromkeys(NODES, "dgx-1v"), {})
    planner = planner_with_taste(belief)
    most = Counter[str]()
    for _ in range(4):
        published_anew(belief, planner)
        most |= alive()
    assert most.keys() >= {"ResourceSlice", "Inventory", "Board", "Group", "Ground", "Make"}
    for _ in range(8):
        published_anew(belief, planner)
    left = alive()
    # The slices before these are known until the next ones are looked at.
    assert left.pop("ResourceSlice") <= 3 * len(NODES)
    assert left <= most


def shared(where: str, traits: Traits = SHARED) -> ResourceSlice:
    """Return a device that serves several, or is of *traits*, in a slice of a name that was never there."""
    (device,) = (made := commons.published(where, 1)).devices
    return replace(made, name=f"{where}-{next(NUMBERS)}", devices=(replace(device, traits=traits),))


@pytest.mark.parametrize("others", [SHARED, Traits()], ids=["all are shared", "some are whole"])
def test_what_an_ask_takes_of_slices_that_are_gone_is_not_known_any_more(others: Traits) -> None:
    belief = belief_of(node("a"), node("b"))
    planner = commons.planner_of(belief)
    taste = planner.chooser.taste
    assert taste is not None
    for _ in range(4):
        before = belief.cluster.snapshot.inventory.slices
        for published in (shared("a"), shared("b", others)):
            belief.apply(Changed(published))
        for item in before:
            belief.apply(Gone(ResourceSlice, ObjectKey("", item.name)))
        wanted = commons.asking(f"c{next(NUMBERS)}", 10)
        belief.apply(Changed(wanted))
        assert isinstance(planner.plan(commons.asker(wanted.key.name), None, 0.0), Offer)
    assert (len(taste._tenants._shares), len(taste._special._needed)) == (1, int(others != SHARED))


def test_of_a_question_that_is_forgotten_nothing_is_kept_that_is_as_large_as_the_cluster(others: list[object]) -> None:
    theirs = set(map(id, others))
    belief = belief_of(node("a"), node("b"), shared("a"), shared("b", Traits()))
    planner = commons.planner_of(belief)
    belief.apply(Changed(wanted := commons.asking("c", 10)))
    assert isinstance(planner.plan(commons.asker("c"), None, 0.0), Offer)
    belief.apply(Gone(ResourceClaim, wanted.key))
    belief.questions = Questions(Features())
    assert [item for item in objects() if isinstance(item, Matches) and id(item) not in theirs] == []
