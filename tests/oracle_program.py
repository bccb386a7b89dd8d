"""The oracle: a Go program over Kubernetes' own libraries; such programs are built once into the user's cache."""

import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "oracle"
# What debuggers read would be thrown away by the linker: to leave it out saves a quarter of the CPU time.
QUICKLY = ("-trimpath", "-gcflags=all=-dwarf=false")

Answer = dict[str, Any]


class Oracle:
    """Asks the program; one process for each set of questions."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def ask(self, command: str, cases: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Return one answer for each case."""
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        ran = subprocess.run([self.binary, command], input=lines.encode(), stdout=subprocess.PIPE, check=True)
        # Not splitlines: an answer may hold characters that it takes for the end of a line.
        answers = [json.loads(line) for line in ran.stdout.split(b"\n") if line]
        if len(answers) != len(cases):
            raise ValueError(f"{len(answers)} answers to {len(cases)} questions")
        return answers


def built(cache: Path | None = None) -> Oracle:
    """Return the oracle."""
    return Oracle(compiled(SOURCES, "oracle", cache))


def compiled(sources: Path, name: str, cache: Path | None = None) -> Path:
    """Return the program of these sources, building it where the cache has none of them by this Go."""
    folder = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dra-extender"
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / f"{name}-{_digest(sources)}"
    # As the control plane is built: what both need is compiled once.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    with alone(folder / f"{name}.lock"):
        if not binary.exists():
            # Under its name only when it is whole, whatever interrupts the build.
            fresh = binary.with_suffix(".fresh")
            command = ["go", "build", *QUICKLY, "-ldflags=-s -w", "-o", str(fresh), "."]
            subprocess.run(command, cwd=sources, env=environment, check=True)
            fresh.rename(binary)
    return binary


def _digest(sources: Path) -> str:
    digest = hashlib.sha256(subprocess.run(["go", "version"], stdout=subprocess.PIPE, check=True).stdout)
    for source in sorted(sources.iterdir()):
        content = source.read_bytes()
        digest.update(f"{source.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait for others who build: two at once would take twice as long."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
