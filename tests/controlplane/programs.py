"""The programs of a control plane: of KUBEBUILDER_ASSETS, or built by Go, once a version, into the user's cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.oracle_program import QUICKLY, alone

MODULES = Path(__file__).parent
VERSION = os.environ.get("CONTROL_PLANE_VERSION") or "1.37.1"
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5",
}
PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class Missing(Exception):  # noqa: N818 - not an error of anybody's: a test is skipped with it
    """Why there is no program."""


def plane(version: str = VERSION) -> Path:
    """Return the folder of a control plane's four programs."""
    if sys.platform != "linux":
        raise Missing("the control plane for tests needs Linux")
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(assets) if assets and _holds(Path(assets), PLANE) else built(PLANE, version)


def kustomize(version: str = VERSION) -> Path:
    """Return the program that renders what people apply, as this version's kubectl does."""
    return built(("kustomize",), version) / "kustomize"


def built(names: tuple[str, ...], version: str, cache: Path | None = None) -> Path:
    """Return the folder of the programs of *version*, building those that it lacks."""
    folder = (cache or _cache()) / "control-plane" / version
    if not _holds(folder, names):
        _demand(version)
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / "lock"):
            lacking = [name for name in names if not _holds(folder, (name,))]
            if lacking:
                _build(lacking, version, folder)
    return folder


def _build(names: list[str], version: str, folder: Path) -> None:
    # Under their names only when they are whole, whatever interrupts the build.
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    command = ["go", "build", *QUICKLY, "-ldflags", _stamps(version), "-o", f"{fresh}{os.sep}"]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    subprocess.run([*command, *(PACKAGES[name] for name in names)], cwd=MODULES / version, env=environment, check=True)
    for name in names:
        (fresh / _output(PACKAGES[name])).rename(folder / name)
    fresh.rmdir()


def _stamps(version: str) -> str:
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def _output(package: str) -> str:
    """Return what Go calls the program of a package: its last element that is no major version."""
    return [part for part in package.split("/") if part not in {"v3", "v5"}][-1]


def _demand(version: str) -> None:
    if not (MODULES / version / "go.mod").exists():
        known = ", ".join(sorted(path.parent.name for path in MODULES.glob("*/go.mod")))
        raise ValueError(f"there is no tests/controlplane/{version}/go.mod, only {known}")
    if shutil.which("go") is None:
        raise Missing("Go is not installed, and KUBEBUILDER_ASSETS does not hold " + ", ".join(PLANE))


def _holds(folder: Path, names: tuple[str, ...]) -> bool:
    return all(os.access(folder / name, os.X_OK) and (folder / name).is_file() for name in names)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dra-extender"


if __name__ == "__main__":
    print(built(tuple(PACKAGES), VERSION))  # noqa: T201 - the answer of this command
