"""What is installed is what the locks name, wherever it comes from; the image and the set-up keep to them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from extender import VERSION
from tests.tree import ROOT

LOCKS = sorted(path.name for path in ROOT.glob("*.lock"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES: list[str] = PROJECT["project"]["dependencies"]
TEST_DEPENDENCIES: list[str] = PROJECT["project"]["optional-dependencies"]["test"]
LOAD_DEPENDENCIES: list[str] = PROJECT["project"]["optional-dependencies"]["load"]
LOCK_DEPENDENCIES: list[str] = PROJECT["dependency-groups"]["lock"]
# An option, an address, or a requirement that names where to get it from.
SOURCE = re.compile(r"://|index|find-links|trusted-host|\s@\s|\w+\.(org|com|io|net|dev)\b")
MAKEFILE = (ROOT / "Makefile").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def entries(lock: str) -> Iterator[tuple[Requirement, list[str]]]:
    """Yield each requirement of a lock with its hashes."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            requirement, *hashes = line.split("--hash=")
            yield Requirement(requirement.strip()), [hash_.strip() for hash_ in hashes]


def sources(text: str) -> list[str]:
    return [line for line in text.splitlines() if SOURCE.search(line)]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_to_fetch_from(lock: str) -> None:
    assert sources((ROOT / lock).read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url simple",
        "--extra-index-url=https://example.invalid/simple",
        "--find-links wheels",
        "numpy @ file:///wheels/numpy.whl",
        "# from packages.example.org",
    ],
)
def test_a_planted_place_is_noticed(line: str) -> None:
    assert sources(f"orjson==3.13.0\n{line}\n") == [line]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_version_and_hash(lock: str) -> None:
    loose = [
        str(requirement)
        for requirement, hashes in entries(lock)
        if [one.operator for one in requirement.specifier] != ["=="]
        or not hashes
        or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", hash_) for hash_ in hashes)
    ]
    assert loose == []


@pytest.mark.parametrize(
    ("lock", "dependencies"),
    [
        ("requirements.lock", DEPENDENCIES),
        ("requirements-test.lock", DEPENDENCIES + TEST_DEPENDENCIES + PROJECT["build-system"]["requires"]),
        ("requirements-load.lock", DEPENDENCIES + LOAD_DEPENDENCIES),
        ("requirements-uv.lock", LOCK_DEPENDENCIES),
    ],
)
def test_a_lock_has_what_the_project_asks_for(lock: str, dependencies: list[str]) -> None:
    locked = {
        canonicalize_name(requirement.name): next(iter(requirement.specifier)).version
        for requirement, _ in entries(lock)
    }
    for dependency in map(Requirement, dependencies):
        assert dependency.specifier.contains(locked[canonicalize_name(dependency.name)]), dependency


def test_tests_run_with_the_versions_that_the_product_runs_with() -> None:
    tested = [str(requirement) for requirement, _ in entries("requirements-test.lock")]
    assert [str(requirement) for requirement, _ in entries("requirements.lock") if str(requirement) not in tested] == []


def test_this_environment_is_the_locked_one() -> None:
    differing = {
        requirement.name: metadata.version(requirement.name)
        for requirement, _ in entries("requirements-test.lock")
        if (requirement.marker is None or requirement.marker.evaluate())
        and not requirement.specifier.contains(metadata.version(requirement.name))
    }
    assert differing == {}, "make clean test builds it anew"


def test_every_dependency_has_its_reason_on_its_line() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for dependency in DEPENDENCIES + TEST_DEPENDENCIES + LOAD_DEPENDENCIES + LOCK_DEPENDENCIES:
        assert re.search(rf'^  "{re.escape(dependency)}", +# \w+', text, re.MULTILINE), dependency


def test_the_console_script_is_the_command_line() -> None:
    (script,) = metadata.entry_points(group="console_scripts", name="dra-extender")
    assert script.load().__module__ == "extender.cli"


def test_the_set_up_installs_nothing_that_is_not_locked() -> None:
    installs = [line for line in MAKEFILE.splitlines() if "$(INSTALL)" in line or ".venv-load/bin" in line]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes --only-binary :all:" in line or "--no-deps --no-build-isolation" in line


def test_the_image_runs_without_privileges_from_locked_wheels() -> None:
    instructions = re.findall(r"^([A-Z]+) +(.*(?:\\\n.*)*)", DOCKERFILE, re.MULTILINE)
    assert "ADD" not in [name for name, _ in instructions]
    assert "://" not in DOCKERFILE
    (user,) = [value for name, value in instructions if name == "USER"]
    assert int(user.split(":")[0]) > 0
    assert re.findall(r"pip install .*", DOCKERFILE) == [
        "pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock"
    ]


def test_everything_the_image_copies_is_let_through() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, re.MULTILINE)
    let_through = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(let_through)
    assert all((ROOT / name).exists() for name in copied)


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    run = ROOT / ".ci" / "run"
    assert os.access(run, os.X_OK)
    commands = [line for line in run.read_text().splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["exec make test < /dev/null"]
    assert "\nmake test " in (ROOT / "README.md").read_text()


def test_the_code_knows_its_version() -> None:
    assert PROJECT["project"]["version"] == VERSION


def test_the_image_that_is_built_is_the_one_that_is_applied() -> None:
    made = subprocess.run(["make", "--dry-run", "image"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"--tag dra-extender:{VERSION} " in made
    for overlay in ("1.36", "1.37"):
        images = yaml.safe_load((ROOT / "scheduler-config" / overlay / "kustomization.yaml").read_text())["images"]
        assert [image["newTag"] for image in images if image["name"] == "dra-extender"] == [VERSION]


def test_the_code_alone_runs_as_in_the_image(tmp_path: Path) -> None:
    # The image has the locked libraries and a copy of the code, which nobody installed.
    shutil.copytree(ROOT / "extender", tmp_path / "extender", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import importlib.metadata as m, runpy, sys; real = m.distribution\n"
        "def gone(name):\n"
        "    if name == 'dra-extender': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.distribution, sys.argv = gone, ['extender', 'serve', '--help']\n"
        "runpy.run_module('extender', run_name='__main__')"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--answer-policy" in ran.stdout
