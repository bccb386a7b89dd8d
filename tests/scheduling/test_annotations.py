"""Links that a node's annotation tells of count as soon as it tells of them."""

import json
from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import NodeName
from extender.model.node import Node
from extender.scheduling.planner import Offer, Planner
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, pod
from tests.scheduling.machines import GPU_CLASS, planner_with_taste, sample, wanted

SCORES = "hami.io/node-nvidia-score"
LINKED = ((0, 5), (1, 6), (2, 7), (3, 4))


def unknown() -> ResourceSlice:
    """Return eight GPUs of a product that nobody knows, of which nothing tells one from another but its identity."""
    published = sample("dgx-1v", "a")
    told = {
        "productName": Attribute("string", "Unheard-of 9000"),
        "resource.kubernetes.io/pcieRoot": Attribute("string", "pci0000:00"),
        "resource.kubernetes.io/numaNode": Attribute("int", 0),
    }
    devices = [
        replace(
            device,
            attributes=tuple(
                sorted({**dict(device.attributes), **told, "uuid": Attribute("string", f"u{index}")}.items())
            ),
        )
        for index, device in enumerate(published.devices)
    ]
    return replace(published, devices=tuple(devices))


def noted(*links: tuple[int, int]) -> Node:
    """Return a node whose annotation tells of *links*."""
    scores: dict[int, dict[str, int]] = {}
    for one, other in (*links, *((other, one) for one, other in links)):
        scores.setdefault(one, {})[f"u{other}"] = 400
    text = json.dumps([{"uuid": f"u{index}", "score": score} for index, score in scores.items()])
    return Node(name=NodeName("a"), annotations=((SCORES, text),) if links else ())


def pair(belief: Belief, planner: Planner, name: str) -> list[str]:
    """Tell which two GPUs a pod would get; nothing is kept for it."""
    belief.apply(Changed(wanted(name, 2)))
    subject = pod(f"of-{name}", name)
    plan = planner.plan(subject, None, 0.0)
    assert isinstance(plan, Offer)
    planner.withdraw(subject.uid)
    ((_, allocation),) = plan.placement.claims
    return sorted(item.device.device for item in allocation.devices)


@pytest.mark.parametrize("is_late", [True, False])
def test_links_in_an_annotation_count_whenever_it_comes(*, is_late: bool) -> None:
    belief = belief_of(noted(*(() if is_late else LINKED)), unknown(), GPU_CLASS)
    planner = planner_with_taste(belief)
    first = pair(belief, planner, "first")
    if is_late:
        assert first == ["gpu-0", "gpu-1"]
        belief.apply(Changed(noted(*LINKED)))
    assert pair(belief, planner, "second") == ["gpu-0", "gpu-5"]


def test_what_says_nothing_new_of_a_node_changes_nothing() -> None:
    belief = belief_of(noted(*LINKED), unknown(), GPU_CLASS)
    before = belief.cluster.snapshot
    belief.apply(Changed(noted(*LINKED)))
    assert belief.cluster.snapshot is before
