"""What pods cost: CPU time of each program, and requests to the API server by what they are about."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.client import Client

TICKS = os.sysconf("SC_CLK_TCK")
# Where a process tells its times: those after the name, which is in parentheses and may hold anything.
USER, SYSTEM = 11, 12
SERIES = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
UNENDING = ("WATCH", "CONNECT")


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds by program, and requests by verb and resource."""

    seconds: Mapping[str, float]
    requests: Counter[str]

    def since(self, before: "Costs") -> "Costs":
        """Return what was added since *before*."""
        seconds = {name: spent - before.seconds.get(name, 0.0) for name, spent in self.seconds.items()}
        return Costs(seconds, self.requests - before.requests)

    def told(self, pods: int) -> list[str]:
        """Say what each of *pods* came to."""
        cpu = [f"{name} {spent / pods * 1000:.2f} ms" for name, spent in _most(self.seconds) if spent / pods > 1e-5]
        asked = [f"{what} {count / pods:.2f}" for what, count in self.requests.most_common() if count / pods >= 0.01]
        return [f"CPU a pod: {', '.join(cpu)}", f"requests a pod: {', '.join(asked)}"]


async def costs(admin: Client, processes: Mapping[str, subprocess.Popen[bytes]]) -> Costs:
    """Look at what *processes* and the test itself have spent so far."""
    programs = {name.split("-")[0] if name.startswith("scheduler") else name: each for name, each in processes.items()}
    seconds = {name: spent(process.pid) for name, process in programs.items()}
    async with admin.session.get("/metrics") as response:
        text = await response.text()
    return Costs({**seconds, "test": spent(os.getpid())}, requests_in(text))


def spent(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[USER]) + int(fields[SYSTEM])) / TICKS


def requests_in(metrics: str) -> Counter[str]:
    """Count the requests that ended, by verb and resource, refusals apart."""
    found: Counter[str] = Counter()
    for labels, value in SERIES.findall(metrics):
        has = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if has["verb"] in UNENDING:
            continue
        what = "/".join(filter(None, (has["resource"], has.get("subresource"))))
        refused = f" {has['code']}" if not has["code"].startswith("2") else ""
        found[f"{has['verb']} {what}{refused}"] += int(float(value))
    return found


def _most(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
