"""What a list tells again: nothing is taken over anew, and nothing is taken for the same that is not."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.model.change import Change, Changed, Listed, Noun
from extender.model.claim import ResourceClaim
from extender.model.device import Capacity, ResourceSlice, Seal
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.quantity import parse_quantity
from extender.state import loads
from extender.state.belief import Belief
from extender.state.domain import Domain
from extender.state.loads import Loads
from extender.state.occupancy import NOTHING, Touched
from tests.state.test_cluster import device, holder, node_slice, told
from tests.worlds import changes

NAMES = N1, N2 = NodeName("n1"), NodeName("n2")
GIBI, SPELT = parse_quantity("1Gi"), parse_quantity("1073741824")
SLICE = node_slice("n1", "d0")


def sized(amount: Capacity) -> ResourceSlice:
    return replace(SLICE, devices=tuple(replace(item, capacity=(("memory", amount),)) for item in SLICE.devices))


CLAIM = replace(holder("c", device("n1", "d0")), resource_version="7")
POD = Footprint(key=ObjectKey("ns", "p"), uid=Uid("p"), node=N1, amounts=(("cpu", 1),))
SIZED, NODE = sized(Capacity(GIBI)), Node(name=N1, allocatable=(("memory", GIBI),))
# What is known, and what says something else though it is called the same.
OTHERS: dict[str, tuple[Noun, Noun]] = {
    "a claim in another version": (CLAIM, replace(CLAIM, resource_version="8")),
    "a claim that was made anew": (CLAIM, replace(CLAIM, uid=Uid("second"))),
    "a claim that holds nothing": (CLAIM, replace(CLAIM, allocation=None)),
    "a slice with other devices": (SLICE, node_slice("n1", "d1")),
    "a slice in other words": (SIZED, sized(Capacity(SPELT))),
    "a node with other labels": (NODE, replace(NODE, labels=(("zone", "a"),))),
    "a node in other words": (NODE, replace(NODE, allocatable=(("memory", SPELT),))),
    "a pod on another node": (POD, replace(POD, node=N2)),
    "a pod that was made anew": (POD, replace(POD, uid=Uid("second"))),
}


def belief_of(*nouns: Noun, domain: Domain | None = None) -> Belief:
    belief = Belief(("ours",), Features(), domain=domain)
    for noun in nouns:
        belief.apply(Changed(noun))
    return belief


@pytest.mark.parametrize("known", [CLAIM, SLICE, SIZED, NODE, POD], ids=lambda noun: type(noun).__name__)
def test_what_says_the_same_is_the_same_object(known: Noun) -> None:
    assert belief_of(known).recalled(deepcopy(known)) is known


@pytest.mark.parametrize("what", OTHERS)
def test_what_says_something_else_is_not(what: str) -> None:
    known, other = OTHERS[what]
    assert belief_of(known).recalled(other) is other


@pytest.mark.parametrize("noun", [CLAIM, SLICE, NODE, POD], ids=lambda noun: type(noun).__name__)
def test_what_nobody_knew_is_not_recalled(noun: Noun) -> None:
    assert belief_of().recalled(noun) is noun


def test_a_slice_that_is_not_given_is_recalled_as_it_is_known() -> None:
    belief = belief_of(SLICE, domain=Domain(drivers=frozenset({"other.example.com"})))
    again = belief.recalled(deepcopy(SLICE))
    assert isinstance(again, ResourceSlice)
    assert again.seal is Seal.NOT_OURS
    generation = belief.cluster.snapshot.generation
    belief.apply(Listed(ResourceSlice, (again,)))
    assert belief.cluster.snapshot.generation == generation
    belief.ownership.domain = Domain()
    belief.apply(Listed(ResourceSlice, (again,)))
    assert belief.cluster.snapshot.inventory.slices[0].seal is None


def account(belief: Belief) -> list[object]:
    claims = list(belief.cluster.claims)
    before = {claim.key: belief._seniority.before(claim.key) for claim in claims}
    return [told(belief.cluster.snapshot), belief.cluster.snapshot.generation, claims, before]


@given(st.lists(changes(), max_size=25))
def test_a_list_that_is_recalled_is_taken_over_like_one_that_is_not(steps: list[Change]) -> None:
    plain, recalling = belief_of(), belief_of()
    for step in steps:
        plain.apply(step)
        again = deepcopy(step)
        if isinstance(again, Listed):
            again = replace(again, items=tuple(map(recalling.recalled, again.items)))
        recalling.apply(again)
        assert account(recalling) == account(plain)


def test_of_a_list_of_claims_only_what_is_new_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [replace(CLAIM, key=ObjectKey("default", f"c{at}"), uid=Uid(f"c{at}")) for at in range(5)]
    belief = belief_of(SLICE, *claims)
    seen: list[ResourceClaim] = []
    monkeypatch.setattr(belief.cluster._occupancy, "put", seen_by(seen))
    changed = replace(claims[3], resource_version="9")
    items = [belief.recalled(deepcopy(item)) for item in (*claims[:3], changed, *claims[4:])]
    belief.apply(Listed(ResourceClaim, tuple(items)))
    assert seen == [changed]


def seen_by(seen: list[ResourceClaim]) -> Callable[[ResourceClaim], Touched]:
    def put(claim: ResourceClaim) -> Touched:
        seen.append(claim)
        return NOTHING

    return put


footprints = st.builds(
    lambda name, uid, node, cpu: Footprint(
        key=ObjectKey("ns", name), uid=Uid(uid), node=node, amounts=(("cpu", cpu),) if cpu else ()
    ),
    *map(st.sampled_from, ("abc", "uv", NAMES, (0, 1, 2))),
)


@given(st.lists(st.lists(footprints, unique_by=lambda item: item.key, max_size=3), max_size=5), st.sampled_from((0, 9)))
def test_bound_pods_listed_again_count_as_if_listed_for_the_first_time(lists: list[list[Footprint]], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "FEW", few)
        again = loads_of()
        for items in lists:
            kept = {item.key: again.footprint(item.key) for item in items}
            recalled = [known if (known := kept[item.key]) == item else item for item in items]
            listed = Listed(Footprint, tuple(item for item in recalled if item is not None))
            before = again.version
            again.apply(listed)
            first = loads_of()
            first.apply(listed)
            assert [*map(again.free, NAMES)] == [*map(first.free, NAMES)]
            assert len(again) == len(first)
            assert again.version > before


def loads_of() -> Loads:
    made = Loads()
    for name in NAMES:
        made.apply(Changed(Node(name=name, allocatable=(("cpu", parse_quantity("4")),))))
    return made
