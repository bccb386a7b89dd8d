"""However many work on the tests, those that need the control plane are one worker's."""

import os
import subprocess
import sys
from pathlib import Path

from tests.tree import ROOT

CONFTEST = """
import pytest
from tests.conftest import pytest_collection_modifyitems, pytest_configure

@pytest.fixture
def control_plane():
    pass
"""
MODULE = """
import os
import pytest

@pytest.mark.parametrize("number", range(8))
def test_by_fixture(number, control_plane):
    open("by", "a").write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")

@pytest.mark.control_plane
@pytest.mark.parametrize("number", range(8))
def test_by_mark(number):
    open("by", "a").write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")

@pytest.mark.parametrize("number", range(8))
def test_else(number):
    pass
"""


def test_all_that_need_the_control_plane_are_one_workers(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_module.py").write_text(MODULE)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    environment["PYTHONPATH"] = str(ROOT)
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    workers = (tmp_path / "by").read_text().split()
    assert len(workers) == 16
    assert len(set(workers)) == 1
