"""Memory that questions take that tell the devices of a fleet apart, with the bound on all of them and without.

Whoever may create claims may ask them all. Each row is a process of its own.
"""

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Final

from extender.allocation.features import Features
from extender.model.claim import ClaimSpec, Constraint, RequestSlot, ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.state.questions import MOST, ROOM, Questions
from loadtests.bench.fit import CLASSES, GPU, cluster, request
from loadtests.bench.report import Report

NODES: Final = 5000
APART: Final = {
    "all devices told apart": (Constraint(distinct_attribute="gpu.example.com/uuid"),),
    "roots told apart": (Constraint(distinct_attribute="resource.kubernetes.io/pcieRoot"),),
}
ENDLESS: Final = 1 << 60


def resident_mb() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def asked(constraints: tuple[Constraint, ...], room: int) -> tuple[float, int, int]:
    """Ask; return how much memory that took, how many questions are remembered, and how many bytes they count."""
    built, questions = cluster(NODES, Random(1)), Questions(Features(), room=room)  # noqa: S311 - no secret depends on it
    before = resident_mb()
    for number in range(MOST):
        selector = f"device.attributes['gpu.example.com'].architecture != 'none-{number}'"
        slot = RequestSlot(name="r", exactly=request("r", 2, GPU, selector))
        spec = ClaimSpec(requests=(slot,), constraints=constraints)
        claim = ResourceClaim(key=ObjectKey("ns", f"c{number}"), uid=Uid(f"c{number}"), spec=spec)
        questions.asked([claim], CLASSES)[1].fit(built.snapshot)
    return resident_mb() - before, len(questions), questions.size


def main() -> None:
    if len(sys.argv) > 1:
        print(*asked(APART[sys.argv[1]], int(sys.argv[2])))
        return
    report = Report("questions")
    for what in APART:
        for label, room in (("with the bound", ROOM), ("without", ENDLESS)):
            command = [sys.executable, "-m", "loadtests.bench.questions", what, str(room)]
            grown, left, counted = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
            beside = f"{left} of {MOST} are left, and count {int(counted) / 1e6:.0f} MB"
            report.add(f"{NODES:,} nodes, {what}, {label}: memory, MB", f"{float(grown):.0f}", "", beside)
    report.keep()


if __name__ == "__main__":
    main()
