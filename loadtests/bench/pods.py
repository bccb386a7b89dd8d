"""What following bound pods costs, and what it is for: nodes scored by the devices that are left."""

import tracemalloc
from collections.abc import Callable
from itertools import cycle
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import orjson

from extender.allocation.features import Features
from extender.model.change import Changed, Gone, Listed
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey, Uid
from extender.model.node import Container, Node, Pod
from extender.model.parse import parse_footprint, parse_node, parse_pod
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Plain, Planner
from extender.state.belief import Belief
from extender.state.loads import Loads
from loadtests.bench.columns import read
from loadtests.bench.report import Report, median_ms
from tests import fleet

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
Made = TypeVar("Made")
NODES, PODS = 5000, 50_000
MEBI = 1 << 20


def node(raw: Json) -> Node:
    """Return a node of the fleet with eight GPUs."""
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", GPU: "8"}
    found = read(parse_node(raw | {"status": {"allocatable": amounts}}))
    if not isinstance(found, Node):
        raise TypeError(found)
    return found


def pods(count: int) -> list[Json]:
    """Return pods as the API server shows them while they run: of forty kinds, each node with some GPUs taken."""
    random = Random(1)  # noqa: S311 - no secret depends on it
    kinds = [_requests(random) for _ in range(40)]
    found = [_pod(number, f"worker-{number}", random.choice(kinds)) for number in range(count - NODES)]
    found += [_pod(number, f"gpus-{number}", {GPU: str(random.randint(1, 8))}) for number in range(NODES)]
    return found


def _requests(random: Random) -> Json:
    return {"cpu": f"{random.randrange(100, 4000, 50)}m", "memory": f"{random.randrange(64, 4096, 64)}Mi"}


def _pod(number: int, name: str, requests: Json) -> Json:
    at = fleet.node_name(number % NODES)
    labels = {"app.kubernetes.io/name": "worker", "app.kubernetes.io/instance": name, "pod-template-hash": "7d4f8c6b5"}
    mount = {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    variables = [{"name": f"VARIABLE_{index}", "value": f"value-{index}-{name}"} for index in range(12)]
    container = {
        "name": "main",
        "image": "registry.example.com/team/worker:1.2.3",
        "env": variables,
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [mount],
        "imagePullPolicy": "IfNotPresent",
    }
    sidecar = {"name": "proxy", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}, "env": variables[:4]}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    metadata = {
        "name": name,
        "namespace": f"team-{number % 50}",
        "uid": str(UUID(int=number)),
        "labels": labels,
        "managedFields": [
            {"manager": "kubelet", "operation": "Update", "fieldsV1": {f"f:{index}": {} for index in range(40)}}
        ],
    }
    spec = {"nodeName": at, "containers": [container, sidecar], "tolerations": [{"operator": "Exists"}] * 2}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "conditions": conditions}}


def footprint(line: bytes) -> Footprint:
    found = parse_footprint(orjson.loads(line))
    if isinstance(found, Problem):
        raise TypeError(str(found))
    return found


def memory_of(make: Callable[[], Made]) -> tuple[int, Made]:
    """Return how many bytes what *make* returns takes, and that."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = make()
    spent = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return spent, made


def followed(report: Report, raw: list[Json]) -> list[Footprint]:
    """Measure bound pods read, kept and replaced."""
    lines = [orjson.dumps(item) for item in raw]
    report.add("a pod as it comes, bytes", f"{sum(map(len, lines)) / len(lines):.0f}")
    decoded = median_ms(lambda: [orjson.loads(line) for line in lines[:5000]], 5) / 5
    report.add("its JSON decoded, us", f"{decoded:.1f}")
    spent = median_ms(lambda: [parse_footprint(item) for item in raw], 5)
    whole = median_ms(lambda: [parse_pod(item) for item in raw[:5000]], 3) / 5
    report.add("and what it takes read, us", f"{1000 * spent / len(raw):.1f}", beside=f"{whole:.1f} as a waiting pod")
    bytes_of, found = memory_of(lambda: [footprint(line) for line in lines])
    report.add(f"{len(found)} of them, bytes each", f"{bytes_of / len(found):.0f}")
    return found


def believed(report: Report, found: list[Footprint], raw_nodes: list[Node]) -> None:
    """Measure what belief makes of them."""

    def listed() -> Loads:
        loads = Loads()
        loads.apply(Listed(Node, tuple(raw_nodes)))
        loads.apply(Listed(Footprint, tuple(found)))
        return loads

    bytes_of, loads = memory_of(listed)
    report.add("their columns and index, bytes each", f"{bytes_of / len(found):.0f}")
    everything = Listed(Footprint, tuple(found))
    report.add(f"{len(found)} listed again, ms", f"{median_ms(lambda: loads.apply(everything), 5):.0f}")
    some = cycle(found)

    def come_and_go() -> None:
        item = next(some)
        loads.apply(Gone(Footprint, item.key))
        loads.apply(Changed(item))

    report.add("one goes and comes back, us", f"{1000 * median_ms(come_and_go, 5000):.1f}")
    report.add(
        "one changes without a difference, us", f"{1000 * median_ms(lambda: loads.apply(Changed(found[0])), 5000):.1f}"
    )


def scored(report: Report, found: list[Footprint], raw_nodes: list[Node]) -> None:
    """Measure pods that ask for devices by count: nothing has changed, or one pod was bound."""
    known = Belief(("s",), Features())
    known.apply(Listed(Node, tuple(raw_nodes)))
    known.apply(Listed(Footprint, tuple(found)))
    planner = Planner(known, Chooser(known, lambda: "share"))
    names = list(known.cluster.snapshot.layout.nodes)
    container = Container(name="c", requests=((GPU, parse_quantity("2")),))
    pod = Pod(key=ObjectKey("ns", "p"), uid=Uid("p"), scheduler="s", containers=(container,))
    some = cycle(found[-NODES:])

    def plan() -> None:
        if not planner.plan(pod, names, 0.0).scores:  # type: ignore[union-attr]  # plain, as pods without claims are
            raise TypeError(Plain)

    def bound() -> None:
        item = next(some)
        known.apply(Gone(Footprint, item.key))
        known.apply(Changed(item))
        plan()

    plan()
    report.add(f"2 devices by count, {len(names)} names, ms", f"{median_ms(plan, 200):.2f}", "2")
    report.add("the same after a pod has come and gone, ms", f"{median_ms(bound, 200):.2f}", "2")


def main() -> None:
    report = Report("pods")
    nodes = [node(raw) for raw in fleet.nodes(NODES)]
    found = followed(report, pods(PODS))
    believed(report, found, nodes)
    scored(report, found, nodes)
    report.keep()


if __name__ == "__main__":
    main()
