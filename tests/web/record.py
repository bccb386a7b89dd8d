"""Bodies as kube-scheduler writes them: what it means is written here, its own Go types write the bytes.

``python -m tests.web.record`` writes tests/web/recorded anew.
"""

from pathlib import Path
from typing import Any

from tests.oracle_program import Oracle, built

RECORDED = Path(__file__).parent / "recorded"

POD: dict[str, Any] = {
    "metadata": {
        "name": "trainer-0",
        "namespace": "lab",
        "uid": "8d3f8c1e-6d0f-4b3a-9f57-0c5f2a8e7f11",
        "resourceVersion": "4711",
        "creationTimestamp": "2026-09-01T10:00:00Z",
        # What Go escapes, and text that looks like the field after it.
        "annotations": {"example.com/note": '<b> & "NodeNames":["trap"]} \u2028 größe'},
        "labels": {"app": "trainer"},
    },
    "spec": {
        "schedulerName": "dra-scheduler",
        "priority": 100,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/trainer:1",
                "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "gpu"}]},
            }
        ],
    },
    "status": {"phase": "Pending", "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "trainer-0-gpu-x"}]},
}
NODES: dict[str, Any] = {
    "items": [{"metadata": {"name": name, "labels": {"zone": "a"}}} for name in ("worker-1", "worker-2")]
}
NAMES = ["worker-1", "worker-2", "worker-3"]
VICTIM = {"metadata": {"name": "victim", "namespace": "lab", "uid": "victim-1"}, "spec": {"containers": []}}

# The body of each file: its verb, and what is asked.
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "filter-names": ("filter", {"Pod": POD, "NodeNames": NAMES}),
    "filter-one-name": ("filter", {"Pod": POD, "NodeNames": ["worker-1"]}),
    "filter-no-names": ("filter", {"Pod": POD, "NodeNames": []}),
    "filter-nodes": ("filter", {"Pod": POD, "Nodes": NODES}),
    "prioritize-names": ("prioritize", {"Pod": POD, "NodeNames": NAMES}),
    "preempt-meta": (
        "preempt",
        {
            "Pod": POD,
            "NodeNameToMetaVictims": {
                "worker-1": {"Pods": [{"UID": "victim-1"}], "NumPDBViolations": 1},
                "worker-2": {"Pods": []},
            },
        },
    ),
    "preempt-whole": (
        "preempt",
        {"Pod": POD, "NodeNameToVictims": {"worker-1": {"Pods": [VICTIM], "NumPDBViolations": 1}, "worker-2": {}}},
    ),
    "bind": (
        "bind",
        {"PodName": "trainer-0", "PodNamespace": "lab", "PodUID": POD["metadata"]["uid"], "Node": "worker-1"},
    ),
}


def written_by_go(oracle: Oracle) -> dict[str, bytes]:
    """Let kube-scheduler's types write every body."""
    answers = oracle.ask("wire", [{"verb": verb, "request": asked} for verb, asked in BODIES.values()])
    return {name: answer["body"].encode() for name, answer in zip(BODIES, answers, strict=True)}


def recorded(name: str) -> bytes:
    """Return a body as it was recorded."""
    return (RECORDED / f"{name}.json").read_bytes()


if __name__ == "__main__":
    for name, body in written_by_go(built()).items():
        (RECORDED / f"{name}.json").write_bytes(body)
