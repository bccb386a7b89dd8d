"""What a question remembers of nodes by their state: never more than what the state decides."""

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest

from extender.allocation.choose import choose, choosing
from extender.allocation.columns import blank
from extender.allocation.features import Features
from extender.allocation.fit import VERDICTS, Fitter, Verdict
from extender.allocation.grid import grid_of
from extender.allocation.question import ask
from extender.allocation.reason import reason_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Nothing
from extender.allocation.state import Naming, States
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import Attribute, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.state.cluster import Cluster

DRIVER = DriverName("gpu.example.com")
ANY = ClassName("any")
IS_A = "device.attributes['gpu.example.com'].model == 'A'"


def fitter(*selectors: str, count: int = 1, mode: str = "ExactCount") -> Fitter:
    request = DeviceRequest(name="r", class_name=ANY, mode=mode, count=count, selectors=tuple(map(Selector, selectors)))
    spec = ClaimSpec(requests=(RequestSlot(name="r", exactly=request),))
    claim = ResourceClaim(key=ObjectKey("ns", "c"), uid=Uid("c"), spec=spec)
    return Fitter(ask([claim], {ANY: DeviceClass(name=ANY)}, Features()))


def device(name: str, model: str = "", *, shared: bool = False, taints: tuple[Taint, ...] = ()) -> Device:
    attributes = (("model", Attribute("string", model)),) if model else ()
    traits = Traits(allow_multiple_allocations=shared, taints=taints)
    return Device(DeviceName(name), attributes, (), traits)


def published(
    name: str, pool: str, where: NodeSelection, devices: Iterable[Device] = (), count: int = 1
) -> ResourceSlice:
    return ResourceSlice(
        name=name,
        driver=DRIVER,
        pool=PoolName(pool),
        generation=1,
        slice_count=count,
        selection=where,
        devices=tuple(devices),
    )


def on(node: str) -> NodeSelection:
    return NodeSelection(node_name=NodeName(node))


def zone(name: str) -> NodeSelection:
    requirement = Requirement(key="zone", operator="In", values=(name,))
    return NodeSelection(selector=NodeSelector((NodeSelectorTerm(expressions=(requirement,)),)))


def holder(pool: str, device: str, share: str | None = None) -> ResourceClaim:
    result = AllocatedDevice(request="r", device=DeviceKey(DRIVER, PoolName(pool), DeviceName(device)), share_id=share)
    key = ObjectKey("ns", f"{pool}-{device}")
    return ResourceClaim(key=key, uid=Uid(""), spec=ClaimSpec(), allocation=Allocation(devices=(result,)))


def cluster(slices: Iterable[ResourceSlice], nodes: int = 2, zones: str = "ab") -> Cluster:
    built = Cluster()
    named = zip((f"n{index + 1}" for index in range(nodes)), zones * nodes, strict=False)
    built.apply(Listed(Node, tuple(Node(name=NodeName(name), labels=(("zone", label),)) for name, label in named)))
    built.apply(Listed(ResourceSlice, tuple(slices)))
    return built


def alone(snapshot: Snapshot, asked: Fitter) -> list[tuple[str, str]]:
    """Say what each node is answered by itself: verdict and reason."""
    answers = [choose(snapshot, node, asked.question, asked.manner) for node in range(len(snapshot.layout.nodes))]
    return [
        (VERDICTS[type(answer)].name, str(reason_of(answer.situation)) if isinstance(answer, Nothing) else "")
        for answer in answers
    ]


def together(snapshot: Snapshot, asked: Fitter) -> list[tuple[str, str]]:
    fit = asked.fit(snapshot)
    return [
        (Verdict(verdict).name, str(fit.reason(node)) if verdict == Verdict.NO else "")
        for node, verdict in enumerate(fit.verdicts.tolist())
    ]


def test_a_view_names_the_slices_that_are_seen_not_their_places_among_all() -> None:
    halves = (
        published("b1", "b", zone("a"), [device("d0", "A")], count=2),
        published("b2", "b", zone("b"), [device("d1", "B")], count=2),
    )
    before, after = published("a", "a", zone("q")), published("c", "c", zone("q"))
    built, asked = cluster([*halves, before]), fitter(IS_A)
    assert together(built.snapshot, asked) == alone(built.snapshot, asked)
    built.apply(Gone(ResourceSlice, ObjectKey("", "a")))
    built.apply(Changed(after))
    assert [verdict for verdict, _ in together(built.snapshot, asked)] == ["FITS", "NO"]


def test_what_is_shared_comes_before_or_after_what_is_private() -> None:
    # The selector errs on the shared device; only one of the nodes has another one before it.
    slices = [
        published("s", "m", NodeSelection(all_nodes=True), [device("bad")]),
        published("p1", "a", on("n1"), [device("d", "A")]),
        published("p2", "z", on("n2"), [device("d", "A")]),
    ]
    built, asked = cluster(slices), fitter(IS_A)
    assert [verdict for verdict, _ in together(built.snapshot, asked)] == ["FITS", "FAILS"]
    assert together(built.snapshot, asked) == alone(built.snapshot, asked)


def test_what_a_rule_adds_is_known_by_its_taint() -> None:
    rules = [
        DeviceTaintRule(
            name=f"rule-{name}",
            selector=TaintSelector(device=DeviceName(name)),
            taint=Taint(key=f"taint-{name}", effect="NoSchedule"),
        )
        for name in "de"
    ]
    built, asked = cluster([published("p", "p", on("n1"), [device("d")])], nodes=1), fitter(mode="All", count=0)
    for rule in rules:
        built.apply(Changed(rule))
    assert together(built.snapshot, asked) == alone(built.snapshot, asked)
    built.apply(Changed(published("p", "p", on("n1"), [device("e")])))
    assert "taint-e" in together(built.snapshot, asked)[0][1]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the searches: a list of the nodes."""
    searched: list[int] = []

    def counted(snapshot: Snapshot, node: int, *rest: object) -> object:
        searched.append(node)
        return choosing(snapshot, node, *rest)  # type: ignore[arg-type]  # the same arguments

    monkeypatch.setattr("extender.allocation.fit.choosing", counted)
    return searched


def test_a_state_has_one_name_whatever_other_nodes_are_like(searches: list[int]) -> None:
    big = published("p1", "p1", on("n1"), [device(f"d{index}", "A", shared=True) for index in range(4)])
    small = published("p2", "p2", on("n2"), [device("d", "A", shared=True)])
    built, asked = cluster([big, small]), fitter(IS_A)
    asked.fit(built.snapshot)
    asked.fit(built.apply(Changed(holder("p2", "d"))))
    assert searches == [0, 1, 1]
    asked.fit(built.apply(Gone(ResourceClaim, ObjectKey("ns", "p2-d"))))
    assert searches == [0, 1, 1]


def test_a_state_takes_no_more_memory_however_much_a_node_sees() -> None:
    everywhere = NodeSelection(all_nodes=True)
    devices = [device(f"d{index}", "A", shared=True) for index in range(100)]
    built, asked = cluster([published("s", "s", everywhere, devices)]), fitter()
    states = States(asked.question).continued(built.snapshot)
    fit = asked.fit(built.snapshot)
    assert asked.offers is not None
    naming = Naming(states, fit.snapshot, asked.offers, blank(fit.snapshot.inventory.rows))
    names = list(naming.of(grid_of(fit.snapshot.layout, np.arange(2))))
    assert [len(name) for name in names] == [16, 16]


def tainted(node: int, *, is_bad: bool) -> ResourceSlice:
    taints = (Taint(key="sick", effect="NoSchedule"),) if is_bad else ()
    devices = [device("d", "A", shared=True, taints=taints)]
    return published(f"p{node}", f"p{node}", on(f"n{node}"), devices)


@pytest.mark.parametrize("turns", range(1, 8))
def test_works_that_take_turns_do_not_disturb_each_other(turns: int) -> None:
    first, second = (
        cluster([tainted(node, is_bad=node % 2 == odd) for node in range(1, 7)], nodes=6).snapshot for odd in (0, 1)
    )
    asked = fitter(mode="All")
    work = asked.pieces(first)
    for _ in islice(work, turns):
        pass
    assert asked.fit(second).verdicts.tolist() == fitter(mode="All").fit(second).verdicts.tolist()
    for _ in work:
        pass
    assert asked.fit(first).verdicts.tolist() == fitter(mode="All").fit(first).verdicts.tolist()
    assert asked.fit(second).verdicts.tolist() == fitter(mode="All").fit(second).verdicts.tolist()


@pytest.mark.parametrize("turns", range(1, 8))
def test_a_work_that_is_given_up_leaves_nothing_behind(turns: int) -> None:
    built = cluster([tainted(node, is_bad=False) for node in range(1, 7)], nodes=6)
    asked, earlier = fitter(mode="All"), built.snapshot
    asked.fit(earlier)
    later = built.apply(Changed(tainted(1, is_bad=True)))
    work = asked.pieces(later)
    for _ in islice(work, turns):
        pass
    work.close()
    for snapshot in (earlier, later):
        assert asked.fit(snapshot).verdicts.tolist() == fitter(mode="All").fit(snapshot).verdicts.tolist()


def test_a_tainted_device_of_which_somebody_has_a_share_is_not_said_to_be_in_use() -> None:
    sick = Taint(key="sick", effect="NoSchedule")
    slices = [published(f"p{node}", f"p{node}", on(f"n{node}"), [device("d", taints=(sick,))]) for node in (1, 2)]
    built, asked = cluster(slices), fitter()
    built.apply(Changed(holder("p1", "d")))
    built.apply(Changed(holder("p2", "d", share="s")))
    assert together(built.snapshot, asked) == alone(built.snapshot, asked)


def test_an_error_is_met_on_a_device_that_somebody_has_a_share_of() -> None:
    # Not shareable any more, but not taken whole either: the search looks at it.
    slices = [published("p", "p", on("n1"), [device("d"), device("e", "A")])]
    built, asked = cluster(slices, nodes=1), fitter(IS_A)
    built.apply(Changed(holder("p", "d", share="s")))
    assert [verdict for verdict, _ in together(built.snapshot, asked)] == ["FAILS"]
    assert together(built.snapshot, asked) == alone(built.snapshot, asked)


def test_a_state_tells_how_devices_can_be_written_down() -> None:
    # An allocation has one term of a node selector, so devices that are published by two of them cannot be given.
    one = zone("a")
    assert one.selector is not None
    two = NodeSelection(selector=NodeSelector(one.selector.terms * 2))
    built, asked = cluster([published("s", "m", one, [device("d", "A")])], nodes=1), fitter(IS_A)
    assert [verdict for verdict, _ in together(built.snapshot, asked)] == ["FITS"]
    built.apply(Changed(published("s", "m", two, [device("d", "A")])))
    assert [verdict for verdict, _ in together(built.snapshot, asked)] == ["FAILS"]
