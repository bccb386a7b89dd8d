"""Run locust against the extender at every size: closed with one user and with many, open at a rate."""

import json
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.bench.report import Report
from loadtests.verbs.stand import Extender, Stand, stand
from loadtests.verbs.world import Size

ROOT = Path(__file__).parents[2]
LOCUST = ROOT / ".venv-load" / "bin" / "locust"
SIZES = (100, 1000, 5000, 15000)
USERS = 8
# By default most pods are offered one node, and prioritize is not asked.
SEVERAL = "--answer-policy=shortlist"


@dataclass(frozen=True, slots=True)
class Run:
    """How locust is run: *every* is how many seconds lie between the pods of a user in an open loop."""

    what: str
    users: int
    every: float = 0.0
    is_budgeted: bool = False


RUNS = (
    Run("closed, 1 user", 1, is_budgeted=True),
    Run(f"closed, {USERS} users", USERS),
    Run("open, 50 pods/s", USERS, USERS / 50),
)


def asked(here: Stand, ours: Extender, run: Run, names: int, seconds: int) -> dict[str, Any]:
    """Run locust once; return what it measured, and what was beyond its budget."""
    told = here.folder / "told.json"
    told.unlink(missing_ok=True)
    command = [
        *(str(LOCUST), "--headless", "--locustfile", str(ROOT / "loadtests" / "load" / "locustfile.py")),
        *("--host", ours.url, "--api", here.url, "--names", str(names), "--every", str(run.every)),
        *("--users", str(run.users), "--spawn-rate", "100", "--run-time", f"{seconds}s", "--told", str(told)),
        *("--only-summary", "--loglevel", "WARNING", *(["--budgeted"] if run.is_budgeted else [])),
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    if not told.exists():
        raise RuntimeError(ran.stderr[-3000:])
    found: dict[str, Any] = json.loads(told.read_text())
    if ran.returncode and not found["exceeded"]:
        raise RuntimeError(ran.stderr[-3000:])
    return found


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    arguments = parser.parse_args()
    if not LOCUST.exists():
        sys.stderr.write("locust is not there: make load installs it\n")
        return 2
    report, beyond = Report("load"), list[str]()
    for names in arguments.sizes:
        with stand(Size(nodes=names, nics=4)) as here, here.extender(SEVERAL) as ours:
            for run in RUNS:
                found = asked(here, ours, run, names, arguments.seconds)
                for verb, (calls, failures, median_ms, ninth_ms, rate) in found["verbs"].items():
                    beside = f"p99 {ninth_ms:g}; {rate:.0f}/s; {calls} calls, {failures} failed"
                    report.add(f"{names:,} names, {run.what}: {verb}, ms", f"{median_ms:g}", "", beside)
                beyond += [f"{names:,} names, {run.what}: {said}" for said in found["exceeded"]]
                for fault, times in found["faults"].items():
                    sys.stderr.write(f"{names:,} names, {run.what}: {times} x {fault}\n")
    report.add("beyond their budgets", str(len(beyond)), "0", "; ".join(beyond))
    report.keep()
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
