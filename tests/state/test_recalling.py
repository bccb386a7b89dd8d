"""What a list tells again: nothing is taken over anew, and nothing is taken for the same that is not."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.model.change import Change, Changed, Kind, Listed, Noun
from extender.model.claim import ResourceClaim
from extender.model.device import Capacity, ResourceSlice, Seal
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.model.taint import Taint
from extender.state import loads
from extender.state.belief import Belief
from extender.state.cluster import key_of_noun
from extender.state.domain import Domain
from extender.state.loads import Loads
from extender.state.occupancy import NOTHING, Touched
from tests.state.test_cluster import device, free_devices, holder, node_slice, told
from tests.worlds import DRIVERS, KINDS, NOUNS, World, changes

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


OWNED = Domain(taint="owned.example.com", drivers=frozenset({SLICE.driver}))
KEPT, ENDED = (Taint(key=OWNED.taint, effect=effect) for effect in ("NoSchedule", "NoExecute"))


def tainted(*taints: Taint | None) -> ResourceSlice:
    """Return a slice of as many devices, each with a taint or with none."""
    devices = (
        replace(item, traits=replace(item.traits, taints=(taint,) if taint else ()))
        for item, taint in zip(node_slice("n1", "d0", "d1").devices, taints, strict=True)
    )
    return replace(SLICE, devices=tuple(devices))


def test_a_slice_whose_driver_taints_all_of_it_is_recalled_as_it_is_known() -> None:
    belief = belief_of(tainted(KEPT, KEPT), domain=OWNED)
    before = belief.cluster.snapshot
    again = belief.recalled(tainted(KEPT, KEPT))
    assert again is before.inventory.slices[0]
    belief.apply(Listed(ResourceSlice, (again,)))
    assert belief.cluster.snapshot is before
    assert belief.ownership.unkept(before.inventory) == ()


@pytest.mark.parametrize("taints", [(None, None), (KEPT, None), (ENDED, ENDED)])
def test_a_slice_that_its_driver_taints_otherwise_is_another(taints: tuple[Taint | None, ...]) -> None:
    for before, after in ((tainted(KEPT, KEPT), tainted(*taints)), (tainted(*taints), tainted(KEPT, KEPT))):
        belief = belief_of(before, domain=OWNED)
        belief.apply(Listed(ResourceSlice, (belief.recalled(after),)))
        missing = belief.ownership.unkept(belief.cluster.snapshot.inventory)
        assert missing == (() if after == tainted(KEPT, KEPT) else (SLICE.driver,))


def account(belief: Belief) -> list[object]:
    claims, ownership = list(belief.cluster.claims), belief.ownership
    before = {claim.key: belief.seniority.before(claim.key) for claim in claims}
    barred = [item.name for item in belief.cluster.snapshot.inventory.slices if item.is_barred]
    owned = barred, ownership.rules, ownership.foreign, ownership.lost, belief.sealing.is_due
    return [told(belief.cluster.snapshot), belief.cluster.snapshot.generation, claims, before, *owned]


def here(world: World, kind: Kind, other: Noun | None) -> Listed:
    """List all that is there of *kind*, *other* in place of what is called like it."""
    items = {**world.objects[kind], **({key_of_noun(other): other} if other is not None else {})}
    return Listed(kind, tuple(items.values()))


# A kind that is listed as it is, or with one object that is another.
relists = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), st.none() | NOUNS[kind]))
domains = st.sampled_from((Domain(), Domain(taint="sick", drivers=frozenset(DRIVERS[:1]))))


@given(domains, st.lists(st.one_of(changes(), relists), max_size=25))
def test_a_list_that_is_recalled_is_taken_over_like_one_that_is_not(
    domain: Domain, steps: list[Change | tuple[Kind, Noun | None]]
) -> None:
    plain, recalling, world = belief_of(domain=domain), belief_of(domain=domain), World()
    for step in steps:
        change = here(world, *step) if isinstance(step, tuple) else step
        world.apply(change)
        again = deepcopy(change)
        if isinstance(again, Listed):
            again = replace(again, items=tuple(map(recalling.recalled, again.items)))
        assert recalling.foreign_in(again) == plain.foreign_in(change)
        plain.apply(deepcopy(change))
        recalling.apply(again)
        assert account(recalling) == account(plain)


@pytest.mark.parametrize("kind", [ResourceSlice, ResourceClaim, Node])
@given(domains, st.lists(changes(), max_size=25))
def test_what_is_listed_as_it_is_stays_the_same_objects(kind: Kind, domain: Domain, steps: list[Change]) -> None:
    belief, world = belief_of(domain=domain), World()
    for step in steps:
        belief.apply(step)
        world.apply(step)
    belief.apply(here(world, kind, None))
    known, snapshot = list(belief.cluster.claims), belief.cluster.snapshot
    listed = deepcopy(here(world, kind, None))
    belief.apply(replace(listed, items=tuple(map(belief.recalled, listed.items))))
    assert [*map(id, belief.cluster.claims)] == [*map(id, known)]
    assert belief.cluster.snapshot is snapshot


# Two claims that hold the same device.
FIRST, SECOND = (replace(CLAIM, key=ObjectKey("default", name), uid=Uid(name)) for name in "ab")


def test_a_claim_that_is_listed_in_another_version_keeps_its_place() -> None:
    belief = belief_of(SLICE, FIRST, SECOND)
    later, second = replace(FIRST, resource_version="99"), SECOND
    belief.apply(Listed(ResourceClaim, (later, belief.recalled(deepcopy(second)))))
    assert [*belief.cluster.claims] == [later, second]
    assert belief.contested(later) is None
    assert belief.contested(second) == device("n1", "d0")


def test_a_claim_that_a_list_shows_first_is_the_earlier_one() -> None:
    belief = belief_of(NODE, SLICE)
    belief.apply(Listed(ResourceClaim, (FIRST,)))
    belief.apply(Changed(SECOND))
    assert belief.contested(SECOND) == device("n1", "d0")
    belief.apply(Listed(ResourceClaim, (belief.recalled(deepcopy(SECOND)),)))
    assert belief.contested(SECOND) is None
    belief.apply(Listed(ResourceClaim, ()))
    assert free_devices(belief.cluster.snapshot) == {("n1", 0)}


def test_what_people_ask_for_is_learnt_from_a_claim_once(monkeypatch: pytest.MonkeyPatch) -> None:
    belief, learnt = belief_of(SLICE, FIRST), list[ResourceClaim]()
    monkeypatch.setattr(belief.learning, "saw", learnt.append)
    belief.apply(Listed(ResourceClaim, (replace(FIRST, resource_version="99"), SECOND)))
    assert learnt == [SECOND]


def test_a_claim_that_can_be_read_again_has_nothing_wrong_with_it() -> None:
    belief = belief_of(SLICE, CLAIM)
    belief.apply(Listed(ResourceClaim, (Problem("ResourceClaim", CLAIM.key, "spec", "is broken"),)))
    assert belief.cluster.problems
    belief.apply(Listed(ResourceClaim, (belief.recalled(deepcopy(CLAIM)),)))
    assert not belief.cluster.problems


def test_a_pool_that_is_closed_while_it_is_listed_stays_closed() -> None:
    belief = belief_of(SLICE)
    again = belief.recalled(deepcopy(SLICE))
    belief.sealing.close([belief.ownership.judged(CLAIM, belief.cluster.snapshot.inventory)])
    belief.apply(Listed(ResourceSlice, (again,)))
    assert [item.seal for item in belief.cluster.snapshot.inventory.slices] == [Seal.CLOSED]


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


@pytest.mark.parametrize("same", [0, loads.SAME, 100], ids=["one by one", "as it is", "all anew"])
@given(lists=st.lists(st.lists(footprints, unique_by=lambda item: item.key, max_size=3), max_size=5))
def test_bound_pods_listed_again_count_as_they_are(same: int, lists: list[list[Footprint]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "SAME", same)
        known = Loads()
        for items in lists:
            known.apply(Listed(Footprint, tuple(map(recalled_by(known), items))))
            there = [item for item in items if item.amounts]
            # A node has a row as long as it is known, or a pod is bound to it.
            assert {*known._node_rows} == {item.node for item in there}
            assert len(known) == len(there)
            taken = [sum(dict(item.amounts)["cpu"] for item in there if item.node == name) for name in NAMES]
            assert known.used("cpu", known.rows_of(NAMES)).tolist() == taken


def recalled_by(known: Loads) -> Callable[[Footprint], Footprint]:
    def recalled(item: Footprint) -> Footprint:
        before = known.footprint(item.key)
        return before if before is not None and before == item else item

    return recalled
