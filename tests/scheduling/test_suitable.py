"""What kube-scheduler would say of nodes, devices apart."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement, pinned
from extender.model.taint import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from extender.model.terms import Terms
from extender.scheduling import suitable as suitable_module
from extender.scheduling.promised import Promised
from extender.scheduling.suitable import Suitable
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, node

N1, N2 = NodeName("n1"), NodeName("n2")
ZONE_A = NodeSelector((NodeSelectorTerm(expressions=(Requirement(key="zone", operator="In", values=("a",)),)),))
SICK = Taint(key="sick", effect=NO_SCHEDULE)


def world(*nodes: Node, bound: tuple[Footprint, ...] = ()) -> Belief:
    belief = belief_of(*nodes)
    belief.apply(Listed(Footprint, bound))
    return belief


def taker(on: str, **amounts: int) -> Footprint:
    return Footprint(key=ObjectKey("ns", on), uid=Uid(on), node=NodeName(on), amounts=tuple(sorted(amounts.items())))


def suited(
    belief: Belief,
    terms: Terms,
    by: Suitable | None = None,
    promised: Promised | None = None,
    apart: Collection[str] = (),
) -> list[str] | None:
    by = by or Suitable(belief.loads)
    flags = by.nodes(terms, belief.cluster.snapshot, promised or Promised(), apart)
    names = belief.cluster.snapshot.layout.nodes
    return None if flags is None else [name for name, is_one in zip(names, flags.tolist(), strict=True) if is_one]


@pytest.mark.parametrize(
    ("other", "terms", "is_met"),
    [
        ({}, Terms(), True),
        ({"labels": (("zone", "a"),)}, Terms(labels=(("zone", "a"),)), True),
        ({"labels": (("zone", "b"),)}, Terms(labels=(("zone", "a"),)), False),
        ({"labels": (("zone", "a"),)}, Terms(affinity=ZONE_A), True),
        ({}, Terms(affinity=ZONE_A), False),
        ({"taints": (SICK,)}, Terms(), False),
        ({"taints": (SICK,)}, Terms(tolerations=(Toleration(key="sick", operator="Exists"),)), True),
        ({"taints": (Taint(key="sick", effect=NO_EXECUTE),)}, Terms(), False),
        ({"taints": (Taint(key="sick", effect="PreferNoSchedule"),)}, Terms(), False),
        (
            {"taints": (Taint(key="sick", effect="PreferNoSchedule"),)},
            Terms(tolerations=(Toleration(key="sick", operator="Exists"),)),
            True,
        ),
        ({"is_unschedulable": True}, Terms(), False),
        ({"is_unschedulable": True}, Terms(tolerations=(Toleration(operator="Exists"),)), True),
    ],
)
def test_labels_and_taints_decide_as_in_kubernetes(other: dict[str, object], terms: Terms, *, is_met: bool) -> None:
    belief = world(replace(node("n1"), **other))  # type: ignore[arg-type]  # by name
    assert suited(belief, terms) == (["n1"] if is_met else [])


def test_a_node_must_have_what_the_pod_takes() -> None:
    belief = world(node("n1", {"cpu": 4}), node("n2", {"cpu": 4}), bound=(taker("n1", cpu=3000),))
    assert suited(belief, Terms(amounts=(("cpu", 1000),))) == ["n1", "n2"]
    assert suited(belief, Terms(amounts=(("cpu", 2000),))) == ["n2"]


def test_what_is_promised_already_is_taken() -> None:
    belief = world(node("n1", {"pods": 1}), node("n2", {"pods": 1}))
    one = Terms(amounts=(("pods", 1),))
    promised = Promised()
    for name in (N1, NodeName("unknown")):
        promised.add(name, one.amounts)
    assert suited(belief, one, promised=promised) == ["n2"]


def test_resources_that_devices_stand_behind_are_looked_at_elsewhere() -> None:
    belief = world(node("n1"))
    asked = Terms(amounts=(("ex.com/gpu", 1),))
    assert suited(belief, asked) == []
    assert suited(belief, asked, apart=("ex.com/gpu",)) == ["n1"]


def test_where_a_device_plugin_has_some_of_such_a_resource_these_count() -> None:
    name = "ex.com/gpu"
    nodes = node("n1"), node("n2", {name: 1}), node("n3", {name: 2}), node("n4", {name: 0})
    belief = world(*nodes, bound=(taker("n2", **{name: 1}), taker("n3", **{name: 1})))
    assert suited(belief, Terms(amounts=((name, 1),)), apart=(name,)) == ["n1", "n3", "n4"]
    assert suited(belief, Terms(amounts=((name, 2),)), apart=(name,)) == ["n1", "n4"]


def test_nothing_is_said_where_others_have_a_say_or_bound_pods_are_not_known() -> None:
    assert suited(world(node("n1")), Terms(is_all=False)) is None
    assert suited(belief_of(node("n1")), Terms()) is None


def test_a_node_that_changes_is_judged_anew_and_so_is_one_that_comes() -> None:
    belief = world(node("n1"), node("n2"))
    suitable = Suitable(belief.loads)
    assert suited(belief, Terms(), suitable) == ["n1", "n2"]
    belief.apply(Changed(replace(node("n2"), taints=(SICK,))))
    assert suited(belief, Terms(), suitable) == ["n1"]
    belief.apply(Changed(node("n0")))
    assert suited(belief, Terms(), suitable) == ["n0", "n1"]


def fields(*names: str) -> NodeSelector:
    named = (Requirement(key="metadata.name", operator="In", values=names),)
    return NodeSelector((NodeSelectorTerm(fields=named, expressions=(Requirement(key="zone", operator="Exists"),)),))


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        (Terms(labels=(("zone", "a"),)), ["n1", "n2"]),
        (Terms(labels=(("rack", "2"), ("zone", "a"))), ["n2"]),
        (Terms(labels=(("rack", "3"), ("zone", "a"))), []),
        (Terms(labels=(("row", "1"),)), []),
        (Terms(affinity=fields("n2", "n3", "n9")), ["n2"]),
        (Terms(affinity=NodeSelector((*fields("n1").terms, *ZONE_A.terms))), ["n1", "n2"]),
        (Terms(affinity=fields("n1"), labels=(("rack", "2"),)), []),
    ],
)
def test_of_pods_that_are_tied_to_nodes_no_more_nodes_are_looked_at_and_they_meet_the_same(
    terms: Terms, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = ("zone", "a")
    belief = world(
        replace(node("n1"), labels=(("rack", "1"), zone)), replace(node("n2"), labels=(("rack", "2"), zone)), node("n3")
    )
    looked: list[str] = []
    whole = suitable_module.is_met

    def met(terms: Terms, item: Node, *, is_wary: bool) -> bool:
        looked.append(item.name)
        return whole(terms, item, is_wary=is_wary)

    monkeypatch.setattr(suitable_module, "is_met", met)
    assert suited(belief, terms) == found
    is_open = terms.affinity is not None and pinned(terms.affinity) is None
    assert len(looked) <= (3 if is_open else 2)


class Labels(tuple[tuple[str, str], ...]):
    """Labels that count how often they are gone through."""

    __slots__ = ()
    read = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        Labels.read += 1
        return super().__iter__()


def test_nodes_are_gone_through_once_for_all_labels_that_a_pod_names_and_of_those_that_none_has_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Labels, "read", 0)
    belief = world(*(replace(node(f"n{number}"), labels=Labels([("zone", "a")])) for number in range(10)))
    suitable, names = Suitable(belief.loads), [f"l{number}" for number in range(1000)]
    assert suited(belief, Terms(labels=(*((name, "") for name in names), ("zone", "a"))), suitable) == []
    assert Labels.read == 10
    assert suitable._index.keys() == {"zone"}


def test_nodes_that_put_pods_off_are_met_by_who_has_no_other() -> None:
    off = replace(node("n1"), taints=(Taint(key="sick", effect="PreferNoSchedule"),))
    belief = world(off, replace(node("n2"), taints=(SICK,)))
    suitable, snapshot = Suitable(belief.loads), belief.cluster.snapshot
    assert suitable.meeting(Terms(), snapshot).tolist() == [True, False]
    assert suited(belief, Terms(), suitable) == []


def test_a_taint_that_a_number_may_tolerate_keeps_the_pod_off_as_long_as_it_can_go_elsewhere() -> None:
    belief = world(replace(node("n1"), taints=(SICK,)))
    suitable, snapshot = Suitable(belief.loads), belief.cluster.snapshot
    for key, may_be in (("sick", True), ("other", False)):
        terms = Terms(tolerations=(Toleration(key=key, operator="Lt", value="5"),))
        assert suitable.meeting(terms, snapshot).tolist() == [may_be]
        assert suited(belief, terms, suitable) == []


def exists(*keys: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions=tuple(Requirement(key=key, operator="Exists") for key in keys))


def of_node(number: int) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=(Requirement(key="metadata.name", operator="In", values=(f"n{number}",)),))


OTHERS = tuple(Toleration(key=f"k{number}", operator="Exists") for number in range(1000))
LONG = [
    Terms(affinity=NodeSelector((exists("a"),) * 900)),
    Terms(affinity=NodeSelector((exists(*["zone"] * 900),))),
    Terms(affinity=NodeSelector(tuple(map(of_node, range(1000))))),
    Terms(labels=(("zone", "a"),), affinity=NodeSelector((exists("a"),) * 900)),
    Terms(tolerations=OTHERS),
]


@pytest.mark.parametrize("terms", LONG, ids=["terms", "requirements", "names", "labels", "tolerations"])
def test_nodes_are_not_held_against_terms_of_any_length_in_one_go(
    terms: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number}" for number in range(1500)]
    belief = world(*(replace(node(name), labels=(("zone", "a"),), taints=(SICK,)) for name in names))
    suitable, snapshot, looks = Suitable(belief.loads), belief.cluster.snapshot, 0

    def counted(terms: Terms, item: Node, *, is_wary: bool) -> bool:
        nonlocal looks
        del is_wary
        requirements = sum(len(term.expressions + term.fields) for term in (terms.affinity or NodeSelector()).terms)
        looks += requirements + len(terms.tolerations) * len(item.taints) // 4
        return True

    monkeypatch.setattr(suitable_module, "is_met", counted)
    assert suitable.meeting(terms, snapshot).all()
    assert suited(belief, terms, suitable) is None
    assert looks <= suitable_module.MOST_LOOKS


def test_on_thousands_of_nodes_ordinary_terms_are_held_against_each() -> None:
    usual = (exists("zone", *(f"label-{number}" for number in range(8))), *ZONE_A.terms)
    terms = Terms(affinity=NodeSelector(usual), tolerations=OTHERS[:12])
    belief = world()
    nodes = (replace(node(f"n{number}"), labels=(("zone", "ab"[number % 2]),)) for number in range(10_000))
    belief.apply(Listed(Node, tuple(nodes)))
    found = suited(belief, terms)
    assert found is not None
    assert len(found) == 5_000


def test_what_is_not_known_of_a_pod_whose_terms_are_long_keeps_it_from_no_node() -> None:
    belief = world(replace(node("n1"), taints=(SICK,)))
    terms = Terms(is_all=False, is_long=True)
    assert Suitable(belief.loads).meeting(terms, belief.cluster.snapshot).all()
    assert suited(belief, terms) is None
