"""The Go program of the load tests, built once into the user's cache: it needs no network."""

import hashlib
import os
import subprocess
from pathlib import Path

from tests.oracle_program import alone

SOURCES = Path(__file__).parent / "client"


def built() -> Path:
    """Return the program, building it where the cache has none of these sources."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dra-extender"
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))).hexdigest()[:16]
    binary = folder / f"load-client-{digest}"
    with alone(folder / "load-client.lock"):
        if not binary.exists():
            fresh = binary.with_suffix(".fresh")
            subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", fresh, "."], cwd=SOURCES, check=True)
            fresh.rename(binary)
    return binary
