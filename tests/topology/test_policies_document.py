"""docs/policies.md shows documents that are valid, every key, and what policies do, as computed here."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from extender.allocation.masks import mask_of
from extender.config.file import parsed
from extender.topology.choice import Choice, Ranker
from extender.topology.demand import EXPECTED
from extender.topology.document import document_of
from extender.topology.machine import groups_of
from extender.topology.make import make_of
from extender.topology.policies import ANNOTATION, SHIPPED
from extender.topology.policy import Placing, Policy, Wish
from extender.topology.tables import shipped
from tests.topology.machines import machine
from tests.tree import ROOT

DOCUMENT: Final = (ROOT / "docs" / "policies.md").read_text()
KEYS = [
    "mix",
    "sizes",
    "classes",
    "policies",
    "default",
    "allowed",
    "named",
    "namespaces",
    "avoid",
    "forbid",
    "place",
    "numa",
    "links",
    "prefer",
    "attribute",
    "values",
]
(GROUP,) = groups_of(*machine("dgx-1v"), shipped())


def ranker(policy: Policy) -> Ranker:
    return Ranker(make_of(GROUP, policy), EXPECTED, policy)


# Which devices of a node are free.
NODES: Final = {
    "an empty node": GROUP.shape.full,
    "a node half used": mask_of((2, 3, 4, 5)),
    "a node nearly full": mask_of((0, 4)),
}


def node(free: int, taken: int) -> str:
    """Draw a node: used devices are crosses, taken ones in brackets, the NUMA nodes apart."""
    signs = []
    for place in range(8):
        sign = str(place) if free >> place & 1 else "x"
        signs.append(f"[{sign}]" if taken >> place & 1 else f" {sign} ")
    return f"{''.join(signs[:4])}|{''.join(signs[4:])}"


def drawing(policy: Policy) -> Iterator[str]:
    yield f"{'':11}{''.join(f'{title:31}' for title in NODES)}".rstrip()
    for size in (1, 2, 4):
        found = [(free, ranker(policy).best(free, size)) for free in NODES.values()]
        most = max(entry.value for _, entry in found if entry)
        cells = [f"{node(free, entry.mask if entry else 0)} {mark(entry, most):5}" for free, entry in found]
        yield f"{f'pod of {size}':10}{''.join(cells)}".rstrip()


def mark(entry: Choice | None, most: int) -> str:
    if entry is None:
        return "-"
    return "<-" if entry.value == most else ""


def shown(name: str) -> list[str]:
    """Return the first drawing under the heading of a policy."""
    _, _, rest = DOCUMENT.partition(f"\n### {name}\n")
    return rest.partition("```text\n")[2].partition("```")[0].splitlines()


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda policy: policy.name)
def test_a_drawing_shows_what_the_policy_does(policy: Policy) -> None:
    assert shown(policy.name) == list(drawing(policy))


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda policy: policy.name)
def test_no_two_nodes_of_a_drawing_are_equally_good(policy: Policy) -> None:
    for size in (1, 2, 4):
        values = [entry.value for free in NODES.values() if (entry := ranker(policy).best(free, size))]
        assert len(set(values)) == len(values)


SHOWN: Final = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
# Beside the example of settings.
CONFIGURED: Final = re.findall(r"```yaml\n(mix:.*?)```", (ROOT / "docs" / "configuration.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", [*SHOWN, *CONFIGURED])
def test_what_is_shown_is_valid(text: str) -> None:
    raw = parsed(text)
    assert isinstance(raw, dict)
    if "apiVersion" in raw:
        assert ANNOTATION in raw["spec"]["metadata"]["annotations"]
    else:
        assert document_of(raw)


@pytest.mark.parametrize("word", [*KEYS, *Placing, *Wish, *(policy.name for policy in SHIPPED), ANNOTATION])
def test_every_key_and_word_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT


def test_the_weight_that_is_told_is_that_of_the_configuration() -> None:
    (raw,) = yaml.safe_load_all((ROOT / "scheduler-config" / "base" / "scheduler.yaml").read_text())
    (extender,) = raw["extenders"]
    assert f"`weight: {extender['weight']}`" in DOCUMENT
    assert f"one step is {10 * extender['weight']} points" in DOCUMENT
