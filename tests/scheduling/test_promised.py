"""What is promised of nodes is what was added, whatever cluster is looked at."""

import tracemalloc
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from extender.model.names import NodeName
from extender.model.quantity import Amounts
from extender.scheduling.promised import Promised
from tests.scheduling.cast import belief_of, node

CLUSTERS = [belief_of(*map(node, names)).cluster.snapshot.layout for names in (["a", "b"], ["b", "c", "d"], ["a", "b"])]
NODES = st.sampled_from([NodeName(name) for name in "abcde"])
AMOUNTS = st.sampled_from([(("cpu", 1),), (("cpu", 2), ("pods", 1)), ()])
STEPS = st.one_of(st.tuples(NODES, AMOUNTS), st.sampled_from(CLUSTERS), st.none())


ONE: Final = (NodeName("a"), (("cpu", 1),))


@given(st.lists(STEPS, max_size=30))
# The last of them goes while its column is known, and another comes.
@example([ONE, CLUSTERS[0], None, ONE, CLUSTERS[0]])
def test_each_node_is_told_what_those_need_who_are_on_the_way_to_it(steps: list[object]) -> None:
    """A node and amounts are one more pod, nothing is that the first of them has come, and a layout is looked at."""
    promised, there = Promised(), list[tuple[NodeName, Amounts]]()
    for step in steps:
        if step is None:
            if there:
                promised.add(*there.pop(0), -1)
        elif isinstance(step, tuple):
            there.append(step)
            promised.add(*step)
        else:
            layout = next(layout for layout in CLUSTERS if layout is step)
            for resource in ("cpu", "pods"):
                needed = [
                    sum(dict(amounts).get(resource, 0) for where, amounts in there if where == name)
                    for name in layout.nodes
                ]
                assert promised.of(resource, layout).tolist() == needed


def test_a_pod_that_asks_for_very_many_resources_takes_no_column_for_each() -> None:
    promised, layout = Promised(), belief_of(*(node(f"n{number}") for number in range(1000))).cluster.snapshot.layout
    names = [f"example.com/{number}" for number in range(500)]
    promised.of("cpu", layout)
    tracemalloc.start()
    for name in names:
        assert not promised.of(name, layout).any()
    for sign in (1, -1):
        promised.add(layout.nodes[0], tuple((name, 1) for name in names), sign)
    assert tracemalloc.get_traced_memory()[0] < 100 * len(names)
    tracemalloc.stop()
