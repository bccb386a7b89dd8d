"""What bound pods take of their nodes, added up as Kubernetes does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.footprint import MOST, PODS, Footprint
from extender.model.names import ObjectKey
from extender.model.parse import parse_footprint
from extender.model.parse.footprint import MOST_CLAIMS
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import damage
from tests.model.parse.exemplars import POD

Json = dict[str, Any]
GPU = "nvidia.com/gpu"


def container(*, sidecar: bool = False, **requests: object) -> Json:
    named = {GPU if name == "gpu" else name: value for name, value in requests.items()}
    return {"name": "c", "resources": {"requests": named}} | ({"restartPolicy": "Always"} if sidecar else {})


def pod(*containers: Json, init: tuple[Json, ...] = (), phase: str = "Running", **spec: Any) -> Json:
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
        "spec": {"nodeName": "n1", "initContainers": list(init), "containers": list(containers), **spec},
        "status": {"phase": phase},
    }


def taken(raw: Json) -> dict[str, int]:
    read = parse_footprint(raw)
    assert isinstance(read, Footprint), read
    assert list(read.amounts) == sorted(read.amounts)
    return {name: number for name, number in read.amounts if name != PODS}


def test_a_bound_pod_is_known_by_name_identity_and_node() -> None:
    read = parse_footprint(POD)
    assert isinstance(read, Footprint)
    assert (read.key, read.uid, read.node) == (ObjectKey("ml", "pod"), "p1", "n1")
    assert read.amounts == (("cpu", 500), (PODS, 1))


def test_a_bound_pod_names_its_claims_and_those_that_were_made_for_it() -> None:
    asked = [{"name": "a", "resourceClaimName": "mine"}, {"name": "b", "resourceClaimTemplateName": "t"}, {"name": "c"}]
    made = [{"name": "b", "resourceClaimName": "p-b-x"}, {"name": "c"}]
    raw = pod({"name": "c"}, resourceClaims=asked, schedulerName="ours")
    raw["status"] |= {"resourceClaimStatuses": made, "extendedResourceClaimStatus": {"resourceClaimName": "extended"}}
    read = parse_footprint(raw)
    assert isinstance(read, Footprint)
    assert (read.claims, read.scheduler) == ("extended mine p-b-x", "ours")
    ended = parse_footprint({**raw, "status": {**raw["status"], "phase": "Succeeded"}})
    assert isinstance(ended, Footprint)
    assert (ended.claims, ended.amounts) == ("", ())


def test_of_a_pod_with_ever_so_many_claims_the_first_are_remembered() -> None:
    asked = [{"name": f"c-{number}", "resourceClaimName": f"c-{number}"} for number in range(MOST_CLAIMS + 1)]
    read = parse_footprint(pod({"name": "c"}, resourceClaims=asked))
    assert isinstance(read, Footprint)
    assert read.claims.split() == [entry["name"] for entry in asked[:MOST_CLAIMS]]


def test_pods_that_ask_alike_share_what_they_take() -> None:
    same = (pod(container(cpu="1", memory="1Gi")), pod(container(cpu="500m"), container(cpu=0.5, memory=1 << 30)))
    first, second = map(parse_footprint, same)
    assert isinstance(first, Footprint)
    assert isinstance(second, Footprint)
    assert first.amounts is second.amounts


RULES: dict[str, tuple[Json, dict[str, int]]] = {
    "nothing is asked": (pod({"name": "c"}), {}),
    "containers last together": (pod(container(cpu="1", gpu=1), container(cpu="250m", gpu=2)), {"cpu": 1250, GPU: 3}),
    "init containers run one after the other": (
        pod(container(cpu="1"), init=(container(cpu="3"), container(cpu="2", gpu="4"))),
        {"cpu": 3000, GPU: 4},
    ),
    "what lasts may be more than any init container": (
        pod(container(gpu="4"), container(gpu="4"), init=(container(gpu="6"),)),
        {GPU: 8},
    ),
    "sidecars last": (pod(container(cpu="1"), init=(container(sidecar=True, cpu="2"),)), {"cpu": 3000}),
    "an init container runs beside the sidecars before it": (
        pod(container(cpu="1"), init=(container(sidecar=True, cpu="2"), container(cpu="2"))),
        {"cpu": 4000},
    ),
    "and not beside those after it": (
        pod(container(cpu="1"), init=(container(cpu="2"), container(sidecar=True, cpu="2"))),
        {"cpu": 3000},
    ),
    "it may need less than sidecars that come later": (
        pod(
            container(gpu="1"),
            init=(container(sidecar=True, cpu="1"), container(gpu="2"), container(sidecar=True, cpu="2")),
        ),
        {"cpu": 3000, GPU: 2},
    ),
    "a restart policy means nothing outside init containers": (
        pod(container(sidecar=True, cpu="1"), init=(container(cpu="2"),)),
        {"cpu": 2000},
    ),
    "overhead comes on top": (
        pod(container(cpu="1"), overhead={"cpu": "100m", "memory": "1Ki"}),
        {"cpu": 1100, "memory": 1024},
    ),
    "what the pod asks for as a whole wins": (
        pod(container(cpu="4", memory="1Gi"), resources={"requests": {"cpu": "2", "hugepages-2Mi": "4Mi"}}),
        {"cpu": 2000, "hugepages-2Mi": 4 << 20, "memory": 1 << 30},
    ),
    "but not for devices": (
        pod(container(gpu="1"), resources={"requests": {GPU: "5", "cpu": "1"}}),
        {"cpu": 1000, GPU: 1},
    ),
    "and overhead comes on top of that as well": (
        pod(container(cpu="4"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"}),
        {"cpu": 3000},
    ),
    "fractions are rounded up once": (
        pod(container(cpu="0.0004", memory="0.4"), container(cpu="0.0004", memory="0.4")),
        {"cpu": 1, "memory": 1},
    ),
    "more than can be added is as much as can": (pod(container(memory="9Ei")), {"memory": MOST}),
    "more than int64 holds is nothing": (pod(container(cpu="10P", memory="10E", gpu="9224P")), {}),
    "thousandths of cpu as well": (pod(container(cpu="1P", memory="1")), {"cpu": MOST, "memory": 1}),
    "a finished pod takes nothing": (pod(container(cpu="1"), phase="Succeeded"), {}),
    "a failed one neither": (pod(container(cpu="1"), phase="Failed"), {}),
}


@pytest.mark.parametrize("rule", RULES)
def test_requests_are_added_up_by_the_rules(rule: str) -> None:
    raw, expected = RULES[rule]
    assert taken(raw) == expected


@pytest.mark.parametrize(("phase", "counted"), [("Pending", 1), ("Running", 1), ("Failed", 0)])
def test_each_pod_that_runs_is_one_of_those_that_a_node_may_have(phase: str, counted: int) -> None:
    read = parse_footprint(pod(container(), phase=phase))
    assert isinstance(read, Footprint)
    assert dict(read.amounts).get(PODS, 0) == counted


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"metadata": {"name": "p"}}, "spec.nodeName: is required"),
        ({"metadata": {}}, "metadata.name: is required"),
        (pod(container(cpu=None)), "spec.containers[0].resources.requests[cpu]: is required"),
        (pod(container(cpu=[])), "spec.containers[0].resources.requests[cpu]: a quantity must be a string or a number"),
        (pod(container(), container(cpu="x")), "spec.containers[1].resources.requests[cpu]: 'x' is not a quantity"),
        (pod(init=(container(cpu="x"),)), "spec.initContainers[0].resources.requests[cpu]: 'x' is not a quantity"),
        (pod(overhead={"cpu": "x"}), "spec.overhead[cpu]: 'x' is not a quantity"),
        (pod(resources={"requests": {"cpu": "x"}}), "spec.resources.requests[cpu]: 'x' is not a quantity"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_named(raw: Json, problem: str) -> None:
    read = parse_footprint(raw)
    assert isinstance(read, Problem)
    assert read.kind == "Footprint"
    assert f"{read.path}: {read.message}".startswith(problem)


drawn = st.builds(
    lambda name, sidecar, amounts: container(sidecar=sidecar, **amounts) | {"name": name},
    st.just("c"),
    st.booleans(),
    st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.sampled_from(["1", "250m", "3k", "2Ki", 4])),
)


@given(st.lists(drawn, max_size=4), st.lists(drawn, max_size=3))
def test_the_sum_is_that_of_the_moment_in_which_most_is_taken(init: list[Json], containers: list[Json]) -> None:
    """Go through the life of a pod: each init container beside the sidecars so far, then all that lasts."""
    sidecars: list[Json] = []
    moments = []
    for item in init:
        moments.append([*sidecars, item])
        if "restartPolicy" in item:
            sidecars.append(item)
    moments.append([*sidecars, *containers])
    names = ("cpu", "memory", GPU)
    most = {name: max(sum(nanos(item, name) for item in moment) for moment in moments) for name in names}
    units = {name: -(-amount // (10**6 if name == "cpu" else 10**9)) for name, amount in most.items()}
    assert taken(pod(*containers, init=tuple(init))) == {name: number for name, number in units.items() if number}


def nanos(item: Json, name: str) -> int:
    return parse_quantity(str(item["resources"]["requests"].get(name, "0"))).nanos


@given(st.integers(0, 1 << 40))
def test_no_damage_makes_the_parser_raise(seed: int) -> None:
    raw = pod(container(cpu="1", gpu=1), init=(container(sidecar=True, cpu="1"),), overhead={"cpu": "1"})
    random = seeded(seed)
    for _ in range(random.randint(1, 4)):
        damage(random, raw)
    read = parse_footprint(raw)
    assert isinstance(read, Footprint) or str(read)
