"""What bound pods take of nodes, whatever comes first."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.model.change import Change, Changed, Gone, Kind, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.model.quantity import Amounts, parse_quantity
from extender.state.belief import Belief
from extender.state.loads import FEWEST, Loads

GPU = "nvidia.com/gpu"
# The same object each time: its rows are remembered.
EVERYWHERE = NodeName("n1"), NodeName("n2"), NodeName("n3")
N1, N2 = EVERYWHERE[:2]
SMALL: Amounts = (("cpu", 500), ("pods", 1))
LARGE: Amounts = (("cpu", 2000), (GPU, 2), ("pods", 1))


def node(name: str, **has: str) -> Node:
    named = {GPU if resource == "gpu" else resource: amount for resource, amount in has.items()}
    return Node(name=NodeName(name), allocatable=tuple((key, parse_quantity(text)) for key, text in named.items()))


def footprint(name: str, on: str = N1, amounts: Amounts = LARGE, uid: str = "u") -> Footprint:
    return Footprint(key=ObjectKey("ns", name), uid=Uid(uid), node=NodeName(on), amounts=amounts)


def loads_of(*nouns: Node | Footprint) -> Loads:
    loads = Loads()
    loads.apply(Listed(Footprint, ()))
    for noun in nouns:
        loads.apply(Changed(noun))
    return loads


BIG = node("n1", cpu="4", gpu="8", pods="110")


def test_what_is_free_is_what_pods_leave() -> None:
    loads = loads_of(BIG, footprint("p"), footprint("q", amounts=SMALL))
    assert loads.free(N1) == {"cpu": 1500, GPU: 6, "pods": 108}
    assert len(loads) == 2


@pytest.mark.parametrize("is_listed", [False, True])
def test_whoever_is_bound_is_elsewhere_than_on_all_other_nodes(*, is_listed: bool) -> None:
    pod, other = footprint("p", uid="p"), Uid("other")
    loads = loads_of() if is_listed else loads_of(pod)
    if is_listed:
        loads.apply(Listed(Footprint, (pod,)))
    assert [loads.is_elsewhere(pod.uid, name) for name in (N1, N2)] == [False, True]
    assert [loads.is_on(pod.uid, name) for name in (N1, N2)] == [True, False]
    assert not loads.is_elsewhere(other, N2)
    assert not loads.is_on(other, N2)
    assert [uid in loads.bound for uid in (pod.uid, other)] == [True, False]
    loads.apply(Changed(footprint("p", on=N2, uid=other)))
    assert [loads.is_elsewhere(uid, N1) for uid in (pod.uid, other)] == [False, True]
    loads.apply(Gone(Footprint, pod.key))
    assert not loads.is_elsewhere(other, N1)


def test_pods_may_come_before_their_node() -> None:
    loads = loads_of(footprint("p"))
    assert loads.free(N1) is None
    loads.apply(Changed(BIG))
    assert loads.free(N1) == {"cpu": 2000, GPU: 6, "pods": 109}


def test_pods_stay_where_their_node_goes_and_comes_back() -> None:
    loads = loads_of(BIG, footprint("p"))
    loads.apply(Gone(Node, ObjectKey("", "n1")))
    assert loads.free(N1) is None
    loads.apply(Changed(node("n1", gpu="4")))
    assert loads.free(N1) == {GPU: 2}


def test_more_may_be_taken_than_there_is() -> None:
    loads = loads_of(BIG, footprint("p"))
    loads.apply(Changed(node("n1", gpu="1")))
    assert loads.free(N1) == {GPU: -1}


LEAVING: MappingProxyType[str, Change] = MappingProxyType(
    {
        "gone": Gone(Footprint, ObjectKey("ns", "p")),
        "finished": Changed(footprint("p", amounts=())),
        "unreadable": Changed(Problem("Footprint", ObjectKey("ns", "p"), "spec", "is broken")),
        "unlisted": Listed(Footprint, ()),
        "listed as unreadable": Listed(Footprint, (Problem("Footprint", ObjectKey("ns", "p"), "spec", "is broken"),)),
        "on another node": Changed(footprint("p", N2)),
        "of the same name, made later, elsewhere": Changed(footprint("p", N2, uid="v")),
    }
)


@pytest.mark.parametrize("how", LEAVING)
def test_who_leaves_takes_nothing_any_more(how: str) -> None:
    loads = loads_of(BIG, footprint("p"))
    loads.apply(LEAVING[how])
    assert loads.free(N1) == {"cpu": 4000, GPU: 8, "pods": 110}


def test_a_pod_may_grow_in_place() -> None:
    loads = loads_of(BIG, footprint("p", amounts=SMALL))
    loads.apply(Changed(footprint("p", amounts=(("cpu", 1500), ("pods", 1)))))
    assert loads.free(N1) == {"cpu": 2500, GPU: 8, "pods": 109}


def test_before_bound_pods_are_listed_nothing_is_known_to_be_free() -> None:
    loads = Loads()
    loads.apply(Changed(BIG))
    loads.apply(Changed(footprint("p")))
    assert (loads.is_known, loads.free(N1)) == (False, None)
    loads.apply(Listed(Footprint, (footprint("q"),)))
    assert (loads.is_known, loads.free(N1)) == (True, {"cpu": 2000, GPU: 6, "pods": 109})


def test_an_unreadable_node_is_as_good_as_gone() -> None:
    loads = loads_of(BIG)
    loads.apply(Changed(Problem("Node", ObjectKey("", "n1"), "status", "is broken")))
    assert loads.free(N1) is None


@pytest.mark.parametrize(
    "again",
    [
        Changed(BIG),
        Changed(replace(BIG, labels=(("a", "b"),))),
        Changed(footprint("p")),
        Changed(footprint("p", uid="v")),
        Gone(Footprint, ObjectKey("ns", "q")),
        Listed(Node, (BIG,)),
    ],
    ids=["node", "other labels", "pod", "other pod", "unknown pod", "nodes"],
)
def test_what_makes_no_difference_is_no_change(again: Change) -> None:
    loads = loads_of(BIG, footprint("p"))
    before = loads.version
    loads.apply(again)
    assert loads.version == before


def test_columns_answer_for_many_nodes_and_know_nothing_of_others() -> None:
    loads = loads_of(BIG, footprint("p"), footprint("q", N2))
    rows = loads.rows_of((N1, NodeName("nobody"), N2))
    assert loads.allocatable(GPU, rows).tolist() == [8, 0, 0]
    assert loads.used(GPU, rows).tolist() == [2, 0, 2]
    assert loads.used("unheard-of", rows).tolist() == [0, 0, 0]


def test_rows_of_nodes_that_are_no_more_are_used_again() -> None:
    loads = loads_of()
    for number in range(3 * FEWEST):
        loads.apply(Changed(node(f"n{number}", gpu="8")))
        loads.apply(Changed(footprint("p", f"n{number}")))
        loads.apply(Gone(Node, ObjectKey("", f"n{number}")))
    loads.apply(Gone(Footprint, ObjectKey("ns", "p")))
    assert len(loads._node_rows) < 4
    loads.apply(Changed(BIG))
    assert loads.free(N1) == {"cpu": 4000, GPU: 8, "pods": 110}


def test_there_is_room_for_any_number_of_nodes() -> None:
    names = [f"n{number}" for number in range(5 * FEWEST)]
    loads = loads_of(*(node(name, gpu="8") for name in names), *(footprint(name, name) for name in names))
    assert all(loads.free(NodeName(name)) == {GPU: 6} for name in names)
    assert loads.allocatable(GPU, np.array([-1])).tolist() == [0]


def test_bound_pods_make_no_new_snapshot() -> None:
    belief = Belief(("ours",), Features())
    belief.apply(Changed(BIG))
    before = belief.cluster.snapshot
    belief.apply(Listed(Footprint, (footprint("p"),)))
    belief.apply(Changed(footprint("q")))
    belief.apply(Changed(Problem("Footprint", ObjectKey("ns", "r"), "spec", "is broken")))
    belief.apply(Gone(Footprint, ObjectKey("ns", "p")))
    assert belief.cluster.snapshot is before
    assert belief.loads.free(N1) == {"cpu": 2000, GPU: 6, "pods": 109}


names = st.sampled_from(["n1", "n2", "n3"])
nodes = st.builds(lambda name, gpus, cpu: node(name, gpu=gpus, cpu=cpu), names, st.sampled_from("048"), st.just("4"))
pods = st.builds(
    footprint, st.sampled_from("pqrs"), names, st.sampled_from([SMALL, LARGE, (), (("memory", 7), ("pods", 1))])
)
changes: st.SearchStrategy[Change] = st.one_of(
    nodes.map(Changed),
    pods.map(Changed),
    pods.map(Changed),
    pods.map(lambda item: Gone(Footprint, item.key)),
    nodes.map(lambda item: Gone(Node, ObjectKey("", item.name))),
    st.lists(nodes, max_size=3, unique_by=lambda item: item.name).map(lambda items: Listed(Node, tuple(items))),
    st.lists(pods, max_size=3, unique_by=lambda item: item.key).map(lambda items: Listed(Footprint, tuple(items))),
)


class Known:
    """Nodes and pods as plain dictionaries."""

    def __init__(self) -> None:
        self.of: dict[Kind, dict[ObjectKey, Node | Footprint]] = {Node: {}, Footprint: {}}

    def apply(self, change: Change) -> None:
        match change:
            case Changed(Node() | Footprint() as noun):
                self.of[type(noun)][key_of(noun)] = noun
            case Gone(kind, key):
                self.of[kind].pop(key, None)
            case Listed(kind, items):
                self.of[kind] = {key_of(item): item for item in items if isinstance(item, Node | Footprint)}

    def listed(self, kind: Kind) -> Listed:
        return Listed(kind, tuple(self.of[kind].values()))

    def free(self, name: NodeName) -> dict[str, int] | None:
        found = self.of[Node].get(ObjectKey("", name))
        if not isinstance(found, Node):
            return None
        free = {resource: number.milli if resource == "cpu" else number.whole for resource, number in found.allocatable}
        for pod in self.of[Footprint].values():
            if isinstance(pod, Footprint) and pod.node == name:
                free = {resource: number - dict(pod.amounts).get(resource, 0) for resource, number in free.items()}
        return free


def key_of(noun: Node | Footprint) -> ObjectKey:
    return ObjectKey("", noun.name) if isinstance(noun, Node) else noun.key


def state(loads: Loads) -> list[object]:
    rows = loads.rows_of(EVERYWHERE)
    columns = [
        column(resource, rows).tolist()
        for resource in ("cpu", "memory", "pods", GPU)
        for column in (loads.allocatable, loads.used)
    ]
    return [*map(loads.free, EVERYWHERE), *columns, len(loads), sorted(loads._node_rows)]


@given(st.lists(changes, max_size=12))
def test_change_by_change_it_is_as_if_all_had_been_listed_at_once(told: list[Change]) -> None:
    loads, known = loads_of(), Known()
    for change in told:
        before, version = state(loads), loads.version
        loads.apply(change)
        known.apply(change)
        rebuilt = loads_of()
        rebuilt.apply(known.listed(Footprint))
        rebuilt.apply(known.listed(Node))
        assert state(loads) == state(rebuilt)
        assert [loads.free(name) for name in (N1, N2, NodeName("n3"))] == [
            known.free(name) for name in (N1, N2, NodeName("n3"))
        ]
        # What is not told as changed has not changed.
        assert loads.version > version or state(loads) == before
