"""Where devices were looked for in vain they are not to be had, as long as that is remembered."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.change import Changed, Noun
from extender.model.names import NodeName
from extender.scheduling.commons import Commons
from extender.scheduling.fruitless import Fruitless
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.precedent import Vain
from extender.scheduling.taste import Taste
from extender.topology.document import Document
from tests.scheduling.cast import GPU_CLASS, belief_of, chooser_of, claim, device, gpus, held, node, pod

N1, N2 = NodeName("n1"), NodeName("n2")
P, Q = pod("p", "c"), pod("q", "d")


class Looking:
    """Both devices of n1 and of n2 are taken. P asks for one, Q for two."""

    def __init__(self) -> None:
        taken = (held(claim(f"{name}-{place}"), device(name, place)) for name in ("n1", "n2") for place in (0, 1))
        fleet = node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 2)
        self.belief = belief_of(*fleet, *taken, claim("c"), claim("d", 2), P, Q)
        self.chooser, self.fruitless = chooser_of(self.belief), Fruitless(self.belief)

    def sees(self, noun: Noun) -> None:
        self.belief.apply(Changed(noun))

    def is_had(self, name: str, on: NodeName) -> bool | None:
        """Look for devices where nothing is known; tell whether they are there, None where nobody may be."""
        shown = self.belief.pods.with_uid(pod(name).uid)
        assert shown is not None
        self.fruitless.look(self.chooser.taste)
        is_known, needs = self.fruitless.knows(shown, on), needs_of(shown, self.belief)
        found = self.chooser.place(needs, on) if isinstance(needs, Needs) else None
        assert not is_known or isinstance(found, Vain)
        if isinstance(needs, Needs) and isinstance(found, Vain):
            self.fruitless.put(needs, on)
        return isinstance(found, Placement)

    def is_known(self, name: str, on: NodeName) -> bool:
        shown = self.belief.pods.with_uid(pod(name).uid)
        assert shown is not None
        self.fruitless.look(self.chooser.taste)
        return self.fruitless.knows(shown, on)


def test_what_was_looked_for_in_vain_is_remembered_of_this_pod_and_node_alone() -> None:
    here = Looking()
    assert not here.is_known("p", N1)
    assert not here.is_had("p", N1)
    assert here.is_known("p", N1)
    assert not here.is_known("p", N2)
    assert not here.is_known("q", N1)


@pytest.mark.parametrize(
    ("noun", "is_known"),
    [
        pytest.param(claim("n1-0", version=2), False, id="a device is free on the node"),
        pytest.param(claim("n2-0", version=2), True, id="a device is free on another node"),
        pytest.param(gpus("n1", 3), False, id="the node has another device"),
        pytest.param(gpus("n2", 3), True, id="another node has another device"),
        pytest.param(replace(GPU_CLASS, selectors=()), False, id="the class is another"),
        pytest.param(claim("c", version=2), False, id="the claim is another"),
        pytest.param(claim("d", version=2), True, id="a claim of another pod"),
        pytest.param(replace(P, resource_version="2"), False, id="the pod is another"),
        pytest.param(node("n3"), True, id="a node more"),
    ],
)
def test_it_is_forgotten_where_something_changes_that_may_matter(noun: Noun, *, is_known: bool) -> None:
    here = Looking()
    assert not here.is_had("p", N1)
    here.sees(noun)
    assert here.is_known("p", N1) == is_known


def test_it_is_forgotten_where_another_mind_decides() -> None:
    here = Looking()
    assert not here.is_had("p", N1)
    here.fruitless.look(Taste(Document(), here.belief.learning.mix_for, Commons(here.belief.loads)))
    assert not here.fruitless.knows(P, N1)


def test_it_is_forgotten_with_the_pod_and_the_snapshot_with_the_last_one() -> None:
    here = Looking()
    assert not here.is_had("p", N1)
    assert not here.is_had("q", N1)
    here.fruitless.forget(P.uid)
    assert not here.is_known("p", N1)
    assert here.is_known("q", N1)
    here.fruitless.forget(Q.uid)
    assert here.fruitless._at is None


def test_nodes_that_device_plugins_may_serve_are_looked_at_each_time() -> None:
    here = Looking()
    here.sees(pod("r", gpus=1))
    assert not here.is_had("r", N1)
    assert not here.is_known("r", N1)


steps = st.one_of(
    st.tuples(st.just("free"), st.sampled_from(("n1", "n2")), st.integers(0, 1)),
    st.tuples(st.just("take"), st.sampled_from(("n1", "n2")), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.sampled_from("cd"), st.integers(1, 3)),
    st.tuples(st.just("publish"), st.sampled_from(("n1", "n2")), st.integers(1, 3)),
    st.tuples(st.just("look"), st.sampled_from("pq"), st.integers(1, 2)),
)


@given(st.lists(steps, max_size=30))
def test_whatever_changes_nothing_is_to_be_had_where_that_is_remembered(drawn: list[tuple[str, str, int]]) -> None:
    here = Looking()
    for version, (kind, name, number) in enumerate(drawn, start=2):
        if kind == "free":
            here.sees(claim(f"{name}-{number}", version=version))
        elif kind == "take":
            here.sees(held(claim(f"{name}-{number}", version=version), device(name, number)))
        elif kind == "ask":
            here.sees(claim(name, number, version=version))
        elif kind == "publish":
            here.sees(gpus(name, number))
        else:
            here.is_had(name, NodeName(f"n{number}"))
    for name in "pq":
        for on in N1, N2:
            here.is_had(name, on)
