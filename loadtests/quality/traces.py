"""The openb traces: nodes and pods of a fleet that shares GPUs, and what is published of other rules on them."""

import csv
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from extender.topology.fragmentation import Rows
from extender.topology.typical import ANY, PodAsk, Typical

DATA = Path(__file__).parents[3] / "shared" / "data" / "openb"
TRACES = ("default", "gpushare100", "gpuspec33", "multigpu50")
# The whole of a device: amounts are thousandths.
WHOLE = 1000
# Requests are added until so many percent of all devices are asked for.
ASKED = 130


def unknown(models: int) -> Typical:
    """Expect one pod for each model, which needs a whole device and nothing beside it."""
    return Typical.of({PodAsk(0, 0, WHOLE, 1, 1 << model): 1 for model in range(models)})


class Trace:
    """Nodes by name, and pods by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        nodes = sorted(_table("openb_node_list_gpu_node"), key=lambda node: node["sn"])
        models = sorted({node["model"] for node in nodes})
        self.models = tuple(models)
        self._bits = {model: 1 << number for number, model in enumerate(models)}
        devices = np.array([int(node["gpu"]) for node in nodes])
        self.capacity = int(devices.sum()) * WHOLE
        self.nodes = Rows(
            cpu=np.array([int(node["cpu_milli"]) for node in nodes]),
            memory=np.array([int(node["memory_mib"]) for node in nodes]),
            free=np.where(np.arange(devices.max()) < devices[:, None], WHOLE, 0),
            model=np.array([models.index(node["model"]) for node in nodes]),
        )
        self.unknown = unknown(len(models))
        pods = sorted(_table(f"openb_pod_list_{name}"), key=lambda pod: pod["name"])
        self.pods = [self._ask(pod) for pod in pods]
        self.counts = Counter(self.pods)

    def arrivals(self, seed: int) -> Iterator[PodAsk]:
        """Yield the pods in an order of chance, then some of them again until there are enough."""
        chance = random.Random(seed)  # noqa: S311 - a simulation
        order = list(self.pods)
        chance.shuffle(order)
        yield from order
        asked = sum(pod.total for pod in order)
        while asked * 100 < ASKED * self.capacity:
            pod = chance.choice(self.pods)
            asked += pod.total
            yield pod

    def _ask(self, pod: dict[str, str]) -> PodAsk:
        devices = int(pod["num_gpu"])
        amount = int(pod["gpu_milli"]) if devices else 0
        named = set(filter(None, (pod.get("gpu_spec") or "").split("|")))
        models = sum(self._bits.get(model, 0) for model in named) if named and devices else ANY
        return PodAsk(int(pod["cpu_milli"]), int(pod["memory_mib"]), amount, devices, models)


def _table(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
