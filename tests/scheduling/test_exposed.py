"""What a write of an earlier leader could still change."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.model.change import Changed
from extender.model.claim import ClaimSpec, ResourceClaim
from extender.model.names import ClassName
from extender.model.problem import Problem
from extender.scheduling.exposed import exposed
from extender.state.belief import Belief
from extender.state.domain import Domain
from tests.scheduling.cast import OURS, belief_of, claim, device, gpus, held, node, pod, request

D0, D1 = device("n1", 0), device("n1", 1)
WAITING, OTHER = pod("waits", "c"), replace(pod("other", "c"), scheduler="another")
BOUND = replace(pod("bound"), node_name=node("n1").name)


def named(belief: Belief) -> list[str]:
    return [f"{type(item).__name__} {item.key.name}" for item in exposed(belief)]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(claim("c"), ["ResourceClaim c"], id="without devices: it may be given some"),
        pytest.param(replace(claim("c"), is_deleting=True), ["ResourceClaim c"], id="the same, about to go"),
        pytest.param(
            held(claim("c"), D0, by=WAITING),
            ["ResourceClaim c", "Pod waits"],
            id="of a pod that waits: it may be freed, and the pod bound",
        ),
        pytest.param(held(claim("c"), D0, by=BOUND), [], id="of a bound pod"),
        pytest.param(held(claim("c"), D0, by=OTHER), [], id="of a pod of another scheduler"),
        pytest.param(held(claim("c"), D0), [], id="of nobody: whoever is bound with it is written into it first"),
        pytest.param(
            replace(claim("c"), spec=replace(claim("c").spec, requests=(request(class_name=ClassName("theirs")),))),
            [],
            id="of what is not ours to give",
        ),
        pytest.param(
            replace(
                claim("c"), spec=ClaimSpec(), problem=Problem("ResourceClaim", claim("c").key, "spec", "is broken")
            ),
            ["ResourceClaim c"],
            id="that cannot be read: it may be ours to give",
        ),
    ],
)
def test_what_could_be_given_freed_or_bound_by_a_late_write_is_exposed(
    item: ResourceClaim, expected: list[str]
) -> None:
    belief = Belief((OURS,), Features(), domain=Domain(classes=frozenset({"gpu"})))
    for noun in (node("n1"), gpus("n1", 2), WAITING, OTHER, item):
        belief.apply(Changed(noun))
    assert named(belief) == expected


def test_a_pod_is_named_once_however_many_claims_it_has() -> None:
    waiting = pod("p", "a", "b")
    belief = belief_of(node("n1"), gpus("n1", 2), waiting)
    for item in (held(claim("a"), D0, by=waiting), held(claim("b"), D1, by=waiting)):
        belief.apply(Changed(item))
    assert named(belief) == ["ResourceClaim a", "ResourceClaim b", "Pod p"]
