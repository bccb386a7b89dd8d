"""What kube-scheduler would say of nodes, devices apart."""

from dataclasses import replace

import pytest

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.taint import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from extender.model.terms import Terms
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


def suited(belief: Belief, terms: Terms, by: Suitable | None = None, **beside: object) -> list[str] | None:
    by = by or Suitable(belief.loads)
    flags = by.nodes(terms, belief.cluster.snapshot, **beside)  # type: ignore[arg-type]  # by name
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
