"""What a pod asks of its node, read out of its spec."""

from collections.abc import Callable
from typing import Any

import pytest

from extender.model.node import Pod
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.parse import parse_pod
from extender.model.problem import Problem
from extender.model.taint import Toleration
from extender.model.terms import Terms

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read(**spec: Any) -> Pod | Problem:
    return parse_pod({"metadata": {"namespace": "ns", "name": "p", "uid": "u"}, "spec": {"containers": [], **spec}})


def terms(**spec: Any) -> Terms:
    found = read(**spec)
    assert isinstance(found, Pod), found
    return found.terms


def test_everything_that_a_node_alone_decides_is_read() -> None:
    affinity = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "k", "operator": "Exists"}]}]}}
    }
    found = terms(
        containers=[{"name": "c", "resources": {"requests": {"cpu": "250m"}}}],
        nodeSelector={"b": "2", "a": "1"},
        affinity=affinity,
        tolerations=[{"key": "k", "operator": "Exists"}],
        overhead={"cpu": "50m"},
    )
    term = NodeSelectorTerm(fields=(Requirement(key="k", operator="Exists"),))
    assert found == Terms(
        amounts=(("cpu", 300), ("pods", 1)),
        labels=(("a", "1"), ("b", "2")),
        affinity=NodeSelector((term,)),
        tolerations=(Toleration(key="k", operator="Exists"),),
    )


@pytest.mark.parametrize(
    ("spec", "is_all"),
    [
        ({}, True),
        ({"affinity": {"podAffinity": {REQUIRED: []}}}, False),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}}, False),
        ({"affinity": {"podAffinity": {PREFERRED: [{}]}}}, False),
        ({"affinity": {"podAntiAffinity": {PREFERRED: [{}]}}}, False),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{}]}}}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, False),
        ({"topologySpreadConstraints": []}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "projected": {}}]}, True),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]}, False),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, False),
        ({"volumes": [{"name": "v", "csi": {}}]}, False),
        ({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, True),
        ({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, False),
        ({"initContainers": [{"name": "c", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]}, False),
    ],
)
def test_wishes_other_pods_volumes_and_ports_have_a_say(spec: dict[str, Any], *, is_all: bool) -> None:
    assert terms(**spec).is_all is is_all


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]"), ({"tolerations": {}}, "spec.tolerations")],
)
def test_what_cannot_be_read_is_named(spec: dict[str, Any], field: str) -> None:
    found = read(**spec)
    assert isinstance(found, Problem)
    assert field in str(found)


@pytest.mark.parametrize("count", [50, 20_000])
@pytest.mark.parametrize(
    "terms_with",
    [
        lambda items: {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": items}]}}}},
        lambda items: {"tolerations": items},
        lambda items: {"nodeSelector": {f"{item['key']}-{number}": "" for number, item in enumerate(items)}},
    ],
    ids=["affinity", "tolerations", "labels"],
)
def test_of_what_no_pod_needs_so_much_of_it_is_remembered_only_that_there_is_more(
    terms_with: Callable[[list[dict[str, str]]], dict[str, Any]], count: int
) -> None:
    found = terms(
        containers=[{"name": "c", "resources": {"requests": {"cpu": "250m"}}}],
        **terms_with([{"key": "k", "operator": "Exists"}] * count),
    )
    assert (found.is_long, found.is_all) == (count > 50, count == 50)
    assert found.amounts == (("cpu", 250), ("pods", 1))
    assert bool(found.affinity or found.tolerations or found.labels) == (count == 50)
