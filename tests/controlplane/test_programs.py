"""Programs are built once, appear whole, and where they cannot be had the reason is told."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controlplane.programs import MODULES, PACKAGES, PLANE, VERSION, Missing, built, plane

# A `go build` that notes that it was called, makes the programs it is asked for, and fails at the one named BROKEN.
GO = """#!/bin/sh
echo built >> "$CALLS"
while [ "$1" != -o ]; do shift; done
folder=$2; shift 2
for package; do
  [ "$package" = "$BROKEN" ] && exit 1
  name=${package%/v[0-9]}; name=${name##*/}
  echo >> "$folder$name"; chmod +x "$folder$name"
done
"""


def executable(path: Path, text: str = "") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the `go` above on the PATH and return the file in which it notes its calls."""
    executable(tmp_path / "bin" / "go", GO)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "calls"


def test_two_who_build_at_once_build_once(calls: Path) -> None:
    with ThreadPoolExecutor() as builders:
        folders = set(builders.map(lambda _: plane(), range(2)))
    assert calls.read_text().splitlines() == ["built"]
    assert {path.name for path in folders.pop().iterdir()} == {*PLANE, "lock"}


def test_an_interrupted_build_leaves_no_program(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", PACKAGES["kube-scheduler"])
    with pytest.raises(subprocess.CalledProcessError):
        plane()
    assert not {path.name for path in (tmp_path / "dra-extender" / "control-plane" / VERSION).iterdir()} & set(PLANE)
    monkeypatch.delenv("BROKEN")
    assert os.access(plane() / "kube-scheduler", os.X_OK)
    assert len(calls.read_text().splitlines()) == 2


def test_what_is_there_is_not_built_again(calls: Path) -> None:
    built(("etcd",), VERSION)
    built(("etcd", "kustomize"), VERSION)
    built(("etcd", "kustomize"), VERSION)
    assert len(calls.read_text().splitlines()) == 2


def test_assets_that_hold_all_four_are_used(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PLANE:
        executable(tmp_path / "assets" / name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert plane() == tmp_path / "assets"
    assert not calls.exists()


def test_assets_that_lack_one_are_not_used(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PLANE[:3]:
        executable(tmp_path / "assets" / name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert plane() != tmp_path / "assets"
    assert calls.exists()


@pytest.mark.usefixtures("calls")
def test_without_go_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Missing, match="Go is not installed"):
        plane()


@pytest.mark.usefixtures("calls")
def test_a_version_that_is_not_known_is_refused_rather_than_skipped() -> None:
    with pytest.raises(ValueError, match="only 1"):
        plane("1.2.3")


@pytest.mark.parametrize("module", sorted(path.parent.name for path in MODULES.glob("*/go.mod")))
def test_a_module_requires_the_version_that_it_is_named_after(module: str) -> None:
    text = (MODULES / module / "go.mod").read_text()
    assert f"\tk8s.io/kubernetes v{module}" in text or f"require k8s.io/kubernetes v{module}" in text
    assert f"replace k8s.io/api => k8s.io/api v0{module.removeprefix('1')}\n" in text
    assert (MODULES / module / "go.sum").exists()
