"""The oracle: a Go program over Kubernetes' own libraries, built once into the user's cache."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parent / "oracle"


class Oracle:
    """Asks the program; one process a question set."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary

    def ask(self, command: str, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return one answer a case."""
        lines = "\n".join(json.dumps(case) for case in cases)
        ran = subprocess.run([self.binary, command], input=lines, text=True, capture_output=True, check=True)
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed: no comparison with Kubernetes itself")
    return Oracle(_built())


def _built() -> Path:
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dra-extender"
    binary = cache / f"oracle-{digest.hexdigest()[:16]}"
    if not binary.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = cache / f"{binary.name}.{os.getpid()}"  # two builders at once: each its own file, the rename is atomic
        subprocess.run(["go", "build", "-o", fresh, "."], cwd=SOURCES, check=True)
        fresh.rename(binary)
    return binary
