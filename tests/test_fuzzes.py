"""What is run for minutes by ``make fuzz`` runs here for a moment, so that it runs when it is asked to."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT) for path in ROOT.glob("tests/**/fuzz.py"))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_fuzz_runs_and_finds_nothing(file: Path) -> None:
    module = ".".join(file.with_suffix("").parts)
    # What is found by chance is found by whoever looks for it.
    seed = ["--seed", "1"] if "--seed" in (ROOT / file).read_text() else []
    command = [sys.executable, "-m", module, "--seconds", "0.1", *seed]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_are_some() -> None:
    assert Path("tests/service/fuzz.py") in FILES
