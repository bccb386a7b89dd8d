"""Pods that share devices go where those lose least that are to be expected, with CPU and memory in view."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim, Selector
from extender.model.device import (
    Attribute,
    Capacity,
    Device,
    NodeSelection,
    RequestPolicy,
    ResourceSlice,
    Traits,
    ValidRange,
)
from extender.model.footprint import Footprint
from extender.model.names import DeviceKey, DeviceName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node, Pod
from extender.model.parse import parse_pod
from extender.model.quantity import parse_quantity
from extender.model.terms import Terms
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Offer, Plain, Planner
from extender.scheduling.taste import Taste
from extender.scheduling.tenants import needed_by
from extender.state.belief import Belief
from extender.topology.configuration import Configuration, Kind, Match
from extender.topology.document import Document
from extender.topology.fragmentation import Measure
from extender.topology.policies import Policies
from extender.topology.policy import Placing, Policy, Trait
from extender.topology.shared import Beside
from extender.topology.sharing import Fleet, Placer
from extender.topology.typical import PodAsk
from tests.scheduling.cast import DRIVER, belief_of, claim, device, gpus, held, node, pod, surveyed
from tests.scheduling.cast import given as allocated

NUMBERS = count()
STEP = RequestPolicy(valid_range=ValidRange(minimum=parse_quantity("1"), step=parse_quantity("1")))
SHARED = Traits(allow_multiple_allocations=True)
PRODUCTS = Configuration(kinds=(Kind(match=Match(), aliases=(("product", ("productName",)),)),))


def published(name: str, devices: int, product: str = "A") -> ResourceSlice:
    milli = (("milli", Capacity(parse_quantity("1000"), STEP)),)
    attributes = (("productName", Attribute("string", product)),)
    return ResourceSlice(
        name=f"{name}-gpus",
        driver=DRIVER,
        pool=PoolName(name),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName(name)),
        devices=tuple(Device(DeviceName(f"d{at}"), attributes, milli, SHARED) for at in range(devices)),
    )


def asking(name: str, milli: int, devices: int = 1, product: str = "") -> ResourceClaim:
    """Return a claim for portions of devices, maybe of one product."""
    asked = claim(name, devices)
    (slot,) = asked.spec.requests
    assert slot.exactly is not None
    text = f"device.attributes['{DRIVER}'].productName == '{product}'"
    exactly = replace(
        slot.exactly,
        capacity=(("milli", parse_quantity(str(milli))),),
        selectors=(Selector(text),) if product else (),
    )
    return replace(asked, spec=replace(asked.spec, requests=(replace(slot, exactly=exactly),)))


def taken(name: str, node_name: str, index: int, milli: int) -> ResourceClaim:
    """Return a claim that has a portion of a device."""
    where = allocated(DeviceKey(DRIVER, PoolName(node_name), DeviceName(f"d{index}")))
    (result,) = where.devices
    portion = (("milli", parse_quantity(str(milli))),)
    shared = replace(result, share_id=f"share-{name}", consumed_capacity=portion)
    return replace(asking(name, milli), allocation=replace(where, devices=(shared,)))


class Machine(NamedTuple):
    """A node: what is left of each device, and what it has beside them."""

    left: Sequence[int]
    cpu: int = 64
    product: str = "A"


def world(machines: Mapping[str, Machine]) -> Belief:
    belief = belief_of()
    for name, machine in machines.items():
        belief.apply(Changed(node(name, {"cpu": machine.cpu, "memory": 1 << 38, "pods": 100})))
        belief.apply(Changed(published(name, len(machine.left), machine.product)))
        for index, left in enumerate(machine.left):
            if left < 1000:
                belief.apply(Changed(taken(f"{name}-{index}", name, index, 1000 - left)))
    belief.apply(Listed(Footprint, ()))
    return belief


def planner_of(belief: Belief, policy: Policy | None = None, commons: Commons | None = None) -> Planner:
    policies = Policies(every=(policy,), default=policy.name) if policy else Policies()
    document = Document(policies=policies, configuration=PRODUCTS)
    taste = Taste(document, belief.learning.mix_for, commons or Commons(belief.loads))
    return Planner(belief, Chooser(belief, lambda: f"share-{next(NUMBERS)}", taste=taste))


def asker(name: str, cpu: str = "0") -> Pod:
    return replace(pod(name, name), terms=Terms(amounts=(("cpu", parse_quantity(cpu).milli),)))


def plan(belief: Belief, planner: Planner, wanted: ResourceClaim, cpu: str = "0") -> Offer:
    belief.apply(Changed(wanted))
    found = planner.plan(asker(wanted.key.name, cpu), None, 0.0)
    assert isinstance(found, Offer), found
    return found


def spot(offer: Offer) -> tuple[str, list[str]]:
    ((_, allocation),) = offer.placement.claims
    return offer.placement.node, sorted(result.device.device for result in allocation.devices)


def taught(belief: Belief, planner: Planner, milli: int, pods: int = 12, cpu: str = "0") -> None:
    """Let pods come that ask for so much, and go again."""
    for _ in range(pods):
        wanted = asking(f"p{next(NUMBERS)}", milli)
        belief.apply(Changed(wanted))
        planner.plan(asker(wanted.key.name, cpu), None, 0.0)
        belief.apply(Gone(ResourceClaim, wanted.key))
        belief.apply(Gone(Pod, ObjectKey("ns", wanted.key.name)))


def test_where_nothing_was_learnt_whole_devices_are_kept_and_the_tightest_is_taken() -> None:
    belief = world({"a": Machine([1000, 1000]), "b": Machine([700, 300]), "c": Machine([500, 1000])})
    assert spot(plan(belief, planner_of(belief), asking("p", 300))) == ("b", ["d1"])


def test_a_share_goes_where_typical_pods_lose_least() -> None:
    # 200 of 600 are 600 less for those who want 500, of 1000 only 200.
    belief = world({"a": Machine([600, 600]), "b": Machine([1000, 1000]), "c": Machine([400, 1000])})
    planner = planner_of(belief)
    taught(belief, planner, 500)
    assert spot(plan(belief, planner, asking("p", 200))) == ("c", ["d0"])
    assert spot(plan(belief, planner, asking("q", 450))) == ("c", ["d1"])


def test_free_cpu_counts() -> None:
    belief = world({"a": Machine([1000, 1000], cpu=8), "b": Machine([1000, 1000], cpu=64)})
    planner = planner_of(belief)
    taught(belief, planner, 500, cpu="4")
    # On a there is hardly enough CPU for two halves: what its devices have left helps less, so it is used up first.
    assert spot(plan(belief, planner, asking("p", 500), cpu="100m"))[0] == "a"
    # Who needs much of it goes where there is most.
    assert spot(plan(belief, planner, asking("q", 500), cpu="7"))[0] == "b"


@pytest.mark.parametrize("cpu", ["100m", "7"])
def test_free_cpu_counts_though_somewhere_there_is_a_device_that_nobody_shares(cpu: str) -> None:
    best = []
    for has_plain in (False, True):
        belief = world({"a": Machine([1000, 1000], cpu=8), "b": Machine([1000, 1000], cpu=64)})
        planner = planner_of(belief)
        if has_plain:
            for noun in (node("c"), gpus("c", 1), held(claim("held"), device("c", 0))):
                belief.apply(Changed(noun))
        taught(belief, planner, 500, cpu="4")
        # Who names no capacity can be given either.
        best.append(spot(plan(belief, planner, claim("p"), cpu=cpu))[0])
    assert best[0] == best[1]


def test_what_is_found_depends_on_what_is_beside_only_where_something_is_shared() -> None:
    belief = world({"a": Machine([1000, 1000]), "b": Machine([1000])})
    for noun in (node("c"), gpus("c", 1)):
        belief.apply(Changed(noun))
    planner = planner_of(belief)
    offer = plan(belief, planner, claim("p"))
    (part,), taste, snapshot = surveyed(offer).parts, planner.chooser.taste, surveyed(offer).snapshot
    assert part.fitter is not None
    assert taste is not None
    told = [taste.beside(part.fitter, snapshot, number, part.needed) is not None for number in range(3)]
    assert told == [True, True, False]
    assert [taste.case(part.fitter, part.policies, snapshot, number) is None for number in range(3)] == told


def test_where_nothing_is_shared_nothing_else_is_looked_at() -> None:
    belief = belief_of(node("c"), gpus("c", 2))
    planner = planner_of(belief)
    (part,) = surveyed(plan(belief, planner, claim("p"))).parts
    assert part.fitter is not None
    assert planner.chooser.taste is not None
    assert planner.chooser.taste.sharing(part.fitter, belief.cluster.snapshot) is None


def test_what_bound_pods_take_counts() -> None:
    belief = world({"a": Machine([1000, 1000]), "b": Machine([1000, 1000])})
    planner = planner_of(belief)
    taught(belief, planner, 500, cpu="4")
    assert spot(plan(belief, planner, asking("p", 500), cpu="8"))[0] == "a"
    footprint = Footprint(key=ObjectKey("ns", "x"), uid=Uid("x"), node=NodeName("a"), amounts=(("cpu", 58_000),))
    belief.apply(Changed(footprint))
    assert spot(plan(belief, planner, asking("q", 500), cpu="8"))[0] == "b"


def test_what_few_can_serve_is_left_to_those_who_need_it() -> None:
    belief = world({"a": Machine([1000], product="rare"), "b": Machine([1000]), "c": Machine([1000])})
    assert spot(plan(belief, planner_of(belief), asking("p", 1000)))[0] == "b"
    assert spot(plan(belief, planner_of(belief), asking("q", 1000, product="rare")))[0] == "a"


@pytest.mark.parametrize(("placing", "node"), [(Placing.PACK, "b"), (Placing.SPREAD, "c")])
def test_packing_takes_the_tightest_node_and_spreading_the_emptiest(placing: Placing, node: str) -> None:
    belief = world({"a": Machine([1000, 600]), "b": Machine([300, 200]), "c": Machine([1000, 1000])})
    planner = planner_of(belief, Policy(name="p", placing=placing))
    taught(belief, planner, 500)
    offer = plan(belief, planner, asking("p", 100))
    assert spot(offer)[0] == node
    assert all(str(placing) in part.text for ranked in offer.best for part in ranked.parts)


@pytest.mark.parametrize(("placing", "node"), [(Placing.PACK, "a"), (Placing.SPREAD, "b")])
def test_what_is_shared_is_packed_and_spread_by_shares_of_each_node(placing: Placing, node: str) -> None:
    belief = world({"a": Machine([1000, 200, 200, 200]), "b": Machine([1000])})
    assert spot(plan(belief, planner_of(belief, Policy(name="p", placing=placing)), asking("p", 100)))[0] == node


def test_what_is_told_beforehand_is_what_is_chosen() -> None:
    belief = world({"a": Machine([600, 1000, 300]), "b": Machine([800, 200, 500])})
    planner = planner_of(belief)
    taught(belief, planner, 250)
    offer = plan(belief, planner, asking("p", 220), cpu="1")
    best, second = offer.best
    (part,) = surveyed(offer).parts
    assert part.values is not None
    values = dict(zip(surveyed(offer).snapshot.layout.nodes, part.values.tolist(), strict=True))
    assert best.value == values[best.node]
    assert second.value == values[second.node] == sum(part.value for part in second.parts)
    (reason,) = best.parts
    assert reason.text.startswith("takes 220 of ")
    assert "what typical pods can still use falls by" in reason.text


def test_several_portions_and_several_claims_find_their_devices() -> None:
    belief = world({"a": Machine([300, 1000, 250]), "b": Machine([200, 240])})
    planner = planner_of(belief)
    assert spot(plan(belief, planner, asking("p", 250, 2))) == ("a", ["d0", "d2"])


def test_two_claims_of_a_pod_do_not_spoil_each_others_devices() -> None:
    belief = world({"a": Machine([600, 600]), "b": Machine([1000, 1000])})
    planner = planner_of(belief)
    taught(belief, planner, 500)
    offer = pair(belief, planner, "p")
    chosen = [result.device.device for _, allocation in offer.placement.claims for result in allocation.devices]
    assert (offer.placement.node, sorted(chosen)) == ("b", ["d0", "d1"])


def test_what_was_searched_is_searched_again_where_there_is_less_cpu() -> None:
    belief = world({"a": Machine([1000, 1000]), "b": Machine([1000, 1000])})
    planner = planner_of(belief)
    taught(belief, planner, 500, cpu="4")
    assert pair(belief, planner, "p", cpu="8").placement.node == "a"
    belief.apply(Gone(Pod, ObjectKey("ns", "p")))
    footprint = Footprint(key=ObjectKey("ns", "x"), uid=Uid("x"), node=NodeName("a"), amounts=(("cpu", 58_000),))
    belief.apply(Changed(footprint))
    assert pair(belief, planner, "q", cpu="8").placement.node == "b"


def pair(belief: Belief, planner: Planner, name: str, cpu: str = "0") -> Offer:
    """Plan a pod with two claims for 350 each."""
    claims = [f"{name}-{number}" for number in range(2)]
    for one in claims:
        belief.apply(Changed(asking(one, 350)))
    found = planner.plan(replace(asker(name, cpu), claims=pod(name, *claims).claims), None, 0.0)
    assert isinstance(found, Offer), found
    return found


def test_pods_without_devices_go_where_those_who_share_do_not_miss_the_cpu() -> None:
    belief = world({"a": Machine([1000, 1000], cpu=16), "b": Machine([0, 100], cpu=16)})
    planner = planner_of(belief)
    taught(belief, planner, 500, cpu="4")
    plain = replace(asker("plain", "6"), claims=())
    found = planner.plan(plain, None, 0.0)
    assert isinstance(found, Plain)
    assert found.scores == {"b": 10, "a": 9}


@pytest.mark.parametrize("asking", ["containers", "resources", "overhead"])
def test_a_pod_needs_what_it_takes_of_its_node_whoever_asks_for_it(asking: str) -> None:
    requests = {"cpu": "6", "memory": "1Gi"}
    asked = {"containers": [{"name": "main", "resources": {"requests": requests}}], "overhead": requests}
    spec = {asking: asked.get(asking, {"requests": requests})}
    found = parse_pod({"metadata": {"name": "p", "namespace": "ns", "uid": "p", "resourceVersion": "1"}, "spec": spec})
    assert isinstance(found, Pod)
    assert needed_by(found) == Beside(6000, 1024)


def test_a_pod_is_counted_once_however_often_it_is_planned() -> None:
    belief = world({"a": Machine([1000])})
    commons = Commons(belief.loads)
    planner = planner_of(belief, commons=commons)
    belief.apply(Changed(asking("p", 300)))
    for _ in range(50):
        planner.plan(asker("p"), None, 0.0)
    assert dict(commons.placer.measure.typical.asks).get(PodAsk(0, 0, 300, 1, 1), 0) <= 1


def test_a_device_of_which_less_than_nothing_is_taken_has_no_more_than_all_of_it_left() -> None:
    belief = world({"a": Machine([600]), "b": Machine([1000, 1000])})
    wrong = taken("wrong", "b", 0, 1)
    assert wrong.allocation is not None
    (result,) = wrong.allocation.devices
    result = replace(result, consumed_capacity=(("milli", parse_quantity("-10E")),))
    belief.apply(Changed(replace(wrong, allocation=replace(wrong.allocation, devices=(result,)))))
    commons = Commons(belief.loads)
    assert spot(plan(belief, planner_of(belief, commons=commons), asking("p", 300)))[0] == "a"
    assert commons.placer.fleet.rows.free.tolist() == [[600, 0], [1000, 1000]]


def test_what_can_be_shared_counts_whichever_node_is_seen_first() -> None:
    found = [valued_with(plain, shared) for plain, shared in ("az", "za")]
    assert found[0] == found[1]


def valued_with(plain: str, shared: str) -> list[int]:
    """Value a node with devices for one each, and one with the like for several, of each of which some is taken."""
    belief = belief_of()
    for name in (plain, shared):
        belief.apply(Changed(node(name, {"cpu": 64, "memory": 1 << 38, "pods": 100})))
        belief.apply(Changed(published(name, 2)))
    bare = published(plain, 2)
    belief.apply(Changed(replace(bare, devices=tuple(replace(each, traits=Traits()) for each in bare.devices))))
    for index in range(2):
        belief.apply(Changed(taken(f"t{index}", shared, index, 300)))
    policy = Policy(name="p", prefer=(Trait("productName", ("A",)),), avoid=(Trait("productName", ("none",)),))
    found = surveyed(plan(belief, planner_of(belief, policy), asking("q", 100)))
    (part,) = found.parts
    assert part.values is not None
    values = dict(zip(found.snapshot.layout.nodes, part.values.tolist(), strict=True))
    return [values[NodeName(name)] for name in (plain, shared)]


def test_thirds_touch_as_many_devices_as_they_fill() -> None:
    belief, thirds = belief_of(), (("milli", Capacity(parse_quantity("3"), STEP)),)
    for name in "abc":
        belief.apply(Changed(node(name, {"cpu": 64, "memory": 1 << 38, "pods": 100})))
        bare = published(name, 4)
        belief.apply(Changed(replace(bare, devices=tuple(replace(each, capacity=thirds) for each in bare.devices))))
    belief.apply(Listed(Footprint, ()))
    planner, touched = planner_of(belief), set()
    for number in range(24):
        offer = plan(belief, planner, asking(f"p{number}", 1))
        ((wanted, allocation),) = offer.placement.claims
        belief.apply(Changed(replace(wanted, allocation=allocation)))
        touched |= {result.device for result in allocation.devices}
    assert len(touched) == 8


def test_a_whole_device_is_a_thousand_thousandths() -> None:
    belief = world({"a": Machine([999, 999]), "b": Machine([1000, 500])})
    whole = claim("p")
    assert spot(plan(belief, planner_of(belief), whole)) == ("b", ["d0"])


def sized(name: str, size: int) -> ResourceSlice:
    """Return a device the like of which hardly any other node has."""
    bare = published(name, 1)
    capacity = (("milli", Capacity(parse_quantity(str(size)), STEP)),)
    return replace(bare, devices=tuple(replace(each, capacity=capacity) for each in bare.devices))


def test_more_models_than_are_kept_without_need_are_not_met_anew_in_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.scheduling.commons.MODELS", 2)
    belief = world({name: Machine([1000]) for name in "abcd"})
    for number, name in enumerate("abcd"):
        belief.apply(Changed(sized(name, 2000 + number)))
    commons = Commons(belief.loads)
    planner = planner_of(belief, commons=commons)
    first = plan(belief, planner, asking("p", 300))
    catalogue, placer = commons.catalogue, commons.placer
    ((wanted, allocation),) = first.placement.claims
    belief.apply(Changed(replace(wanted, allocation=allocation)))
    plan(belief, planner, asking("q", 300))
    assert len(catalogue.devices) == 4
    assert (commons.catalogue, commons.placer) == (catalogue, placer)


def test_models_that_no_node_has_any_more_are_forgotten_and_what_is_typical_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.scheduling.commons.MODELS", 2)
    belief = world({"a": Machine([1000]), "b": Machine([1000, 1000])})
    belief.apply(Changed(sized("a", 2000)))
    commons = Commons(belief.loads)
    planner = planner_of(belief, commons=commons)
    taught(belief, planner, 300)
    for size in range(2001, 2009):
        belief.apply(Changed(sized("a", size)))
        plan(belief, planner, asking(f"p{size}", 1000, product="A"))
        belief.apply(Gone(ResourceClaim, ObjectKey("ns", f"p{size}")))
        belief.apply(Gone(Pod, ObjectKey("ns", f"p{size}")))
    assert len(commons.catalogue.devices) <= 4
    numbers = {device.capacity[0][1].value.nanos: at for at, device in enumerate(commons.catalogue.devices)}
    known = dict(commons.placer.measure.typical.asks)
    assert known[PodAsk(0, 0, 300, 1, 1 << numbers[1000 * 10**9])] >= 8
    fresh = Commons(belief.loads)
    fresh.use(PRODUCTS)
    fresh.look(belief.cluster.snapshot)
    assert state(commons) == state(fresh)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["take", "free", "pod", "gone", "publish", "node"]),
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.integers(1, 9),
    ),
    max_size=12,
)


def change(belief: Belief, kind: str, name: str, index: int, amount: int) -> None:
    key = f"{name}-{index}"
    match kind:
        case "take":
            belief.apply(Changed(taken(key, name, index, 100 * amount)))
        case "free":
            belief.apply(Gone(ResourceClaim, ObjectKey("ns", key)))
        case "pod":
            amounts = (("cpu", 1000 * amount), ("memory", amount << 30))
            belief.apply(
                Changed(Footprint(key=ObjectKey("ns", key), uid=Uid(key), node=NodeName(name), amounts=amounts))
            )
        case "gone":
            belief.apply(Gone(Footprint, ObjectKey("ns", key)))
        case "publish":
            belief.apply(Changed(published(name, 1 + amount % 4, "AB"[index % 2])))
        case "node":
            belief.apply(Changed(node(name, {"cpu": 8 * amount, "memory": 1 << 38})))


def state(commons: Commons) -> list[object]:
    """Return all that is kept; models by what their devices say, for they may have other numbers."""
    rows = commons.placer.fleet.rows
    models = [commons.catalogue.devices[number].attributes for number in rows.model.tolist()]
    beside = [column.tolist() for column in (rows.cpu, rows.memory, rows.free, *commons.whole[:3])]
    return [models, commons.holdings.node.tolist(), commons.holdings.devices.tolist(), beside]


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_what_is_kept_up_to_date_is_what_would_be_built_anew(changes: list[tuple[str, str, int, int]]) -> None:
    belief = world({"a": Machine([1000, 400, 1000]), "b": Machine([1000, 1000]), "c": Machine([200])})
    kept, ask = Commons(belief.loads), PodAsk(2000, 1024, 300, 1)
    kept.use(PRODUCTS)
    for number, parts in enumerate(changes):
        change(belief, *parts)
        if number % 2 and number != len(changes) - 1:
            continue
        kept.look(belief.seen_by())
        fresh = Commons(belief.loads)
        fresh.use(PRODUCTS)
        fresh.look(belief.seen_by())
        assert state(kept) == state(fresh)
        anew = Placer(Fleet(kept.placer.fleet.rows), Measure(kept.placer.measure.typical, kept.whole))
        assert np.array_equal(kept.placer.gains(ask), anew.gains(ask))


def test_where_one_node_goes_and_its_like_comes_nobody_has_what_another_had() -> None:
    belief = world({"a": Machine([0, 0]), "b": Machine([1000, 1000]), "c": Machine([1000, 1000])})
    kept = Commons(belief.loads)
    kept.use(PRODUCTS)
    kept.look(belief.cluster.snapshot)
    belief.apply(Changed(node("d", {"cpu": Machine([]).cpu, "memory": 1 << 38, "pods": 100})))
    belief.apply(Changed(published("d", 2)))
    belief.apply(Gone(ResourceSlice, ObjectKey("", "a-gpus")))
    belief.apply(Gone(Node, ObjectKey("", "a")))
    kept.look(belief.cluster.snapshot)
    fresh = Commons(belief.loads)
    fresh.use(PRODUCTS)
    fresh.look(belief.cluster.snapshot)
    assert state(kept) == state(fresh)
