"""What pods take that are resized in place: the most of what they ask for, were given and have."""

from random import Random
from typing import Any, Protocol

import pytest

from extender.model.parse import parse_footprint
from extender.model.problem import Problem
from tests.model.parse.test_footprint import GPU, container, pod, taken

Json = dict[str, Any]
IN_VAIN = [{"type": "Ready"}, {"type": "PodResizePending", "reason": "Infeasible"}]
LATER = [{"type": "PodResizePending", "reason": "Deferred"}]


class Oracle(Protocol):
    def ask(self, command: str, cases: list[Json]) -> list[Json]: ...


def told(name: str = "c", given: Json | None = None, has: Json | None = None) -> Json:
    """Say what the kubelet tells of a container."""
    return {"name": name, "allocatedResources": given, "resources": None if has is None else {"requests": has}}


def resized(raw: Json, *statuses: Json, conditions: Any = (), **status: Any) -> Json:
    """Return a pod of which its kubelet tells."""
    more = {"containerStatuses": list(statuses), "conditions": list(conditions), **status}
    return {**raw, "status": {**raw["status"], **more}}


TWO = pod(container(cpu="2", gpu=1))
RULES: dict[str, tuple[Json, Json]] = {
    "nothing is told": (resized(TWO), {"cpu": 2000, GPU: 1}),
    "it has what it asks for": (
        resized(TWO, told(given={"cpu": "2", GPU: "1"}, has={"cpu": "2", GPU: "1"})),
        {"cpu": 2000, GPU: 1},
    ),
    "it shall have more": (
        resized(TWO, told(given={"cpu": "1"}, has={"cpu": "1"}), conditions=LATER),
        {"cpu": 2000, GPU: 1},
    ),
    "it was given more": (resized(TWO, told(given={"cpu": "3"}, has={"cpu": "2"})), {"cpu": 3000, GPU: 1}),
    "it still has more": (resized(TWO, told(given={"cpu": "2"}, has={"cpu": "4"})), {"cpu": 4000, GPU: 1}),
    "what it never can have does not count": (
        resized(pod(container(cpu="1k")), told(given={"cpu": "1"}, has={"cpu": "1"}), conditions=IN_VAIN),
        {"cpu": 1000},
    ),
    "and of what is not told nothing is known then": (resized(TWO, conditions=IN_VAIN), {}),
    "another container is not meant": (resized(TWO, told("other", given={"cpu": "9"})), {"cpu": 2000, GPU: 1}),
    "sidecars are resized, too": (
        resized(
            pod(container(cpu="1"), init=(container(sidecar=True, cpu="1") | {"name": "s"},)),
            initContainerStatuses=[told("s", given={"cpu": "3"})],
        ),
        {"cpu": 4000},
    ),
    "what is told of the pod comes before what is of its containers": (
        resized(
            TWO, told(given={"cpu": "9"}), allocatedResources={"cpu": "3"}, resources={"requests": {"memory": "1"}}
        ),
        {"cpu": 3000, "memory": 1, GPU: 1},
    ),
    "but not the half of it": (
        resized(TWO, told(given={"cpu": "5"}), allocatedResources={"cpu": "9"}),
        {"cpu": 5000, GPU: 1},
    ),
    "a pod that asks as a whole is resized as a whole": (
        resized(
            pod(container(cpu="9"), resources={"requests": {"cpu": "2"}}),
            allocatedResources={"cpu": "1", GPU: "7"},
            resources={"requests": {"cpu": "3"}},
        ),
        {"cpu": 3000, GPU: 7},
    ),
    "as a whole it may ask in vain": (
        resized(
            pod(container(cpu="1"), resources={"requests": {"cpu": "1k"}}),
            allocatedResources={"cpu": "2"},
            resources={"requests": {"cpu": "1"}},
            conditions=IN_VAIN,
        ),
        {"cpu": 2000},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_of_each_resource_the_most_counts(rule: str) -> None:
    raw, expected = RULES[rule]
    assert taken(raw) == expected


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"containerStatuses": [told(given={"cpu": "x"})]}, "status.containerStatuses[0].allocatedResources[cpu]"),
        (
            {"initContainerStatuses": [told(has={"cpu": "x"})]},
            "status.initContainerStatuses[0].resources.requests[cpu]",
        ),
        ({"containerStatuses": [{"name": []}]}, "status.containerStatuses[0].name"),
        ({"conditions": [1]}, "status.conditions[0]"),
        ({"resources": [1]}, "status.resources"),
        ({"resources": {"requests": {}}, "allocatedResources": {"cpu": "x"}}, "status.allocatedResources[cpu]"),
    ],
)
def test_what_cannot_be_read_is_named(status: Json, field: str) -> None:
    read = parse_footprint(resized(pod(container(cpu="1")), **status))
    assert isinstance(read, Problem)
    assert read.path == field


def drawn(random: Random) -> Json:
    """Return a pod of which anything may be told, as far as int64 holds it."""

    def some() -> Json:
        names = random.sample(("cpu", "memory", "hugepages-2Mi", GPU), random.randint(0, 4))
        return {name: random.choice(("0", "1", "250m", "0.0004", "2Ki", "3e3", "1500m", "7n", "4")) for name in names}

    def maybe(value: object) -> Any:
        return value if random.random() < 0.7 else None

    names = [f"c{number}" for number in range(random.randint(1, 5))]
    containers = [{**container(sidecar=random.random() < 0.5, **some()), "name": name} for name in names]
    count = random.randint(0, len(names) - 1)
    statuses = [
        told(name, maybe(some()), maybe(some())) for name in random.sample(names, random.randint(0, len(names)))
    ]
    return resized(
        pod(
            *containers[count:], init=tuple(containers[:count]), overhead=some(), resources={"requests": maybe(some())}
        ),
        *statuses,
        conditions=random.choice(((), LATER, IN_VAIN)),
        allocatedResources=maybe(some()),
        resources=maybe({"requests": maybe(some())}),
    )


def test_pods_take_what_kube_scheduler_counts(oracle: Oracle) -> None:
    random = Random(1)  # noqa: S311 - reproducible cases, not secrets
    cases = [drawn(random) for _ in range(3000)]
    for case, answer in zip(cases, oracle.ask("footprint", cases), strict=True):
        assert taken(case) == {name: number for name, number in answer.items() if number}, case
