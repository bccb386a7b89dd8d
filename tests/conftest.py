import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

from tests.controlplane.client import Client
from tests.controlplane.manifests import grant
from tests.controlplane.plane import Plane
from tests.controlplane.programs import Missing, plane
from tests.controlplane.sweep import sweep
from tests.oracle_program import Oracle, built

# Machines are shared: how long an example takes says nothing about it.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    return built()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Run a real control plane; its users `extender` and `scheduler` have what scheduler-config grants them."""
    try:
        programs = plane()
    except Missing as why:
        pytest.skip(str(why))
    running = Plane(programs, tmp_path_factory.mktemp("plane"))
    try:
        running.start()
        asyncio.run(_granted(running))
        yield running
    finally:
        running.stop()


@pytest.fixture
async def admin(control_plane: Plane) -> AsyncIterator[Client]:
    """Be the administrator of a cluster that has no nodes, devices, claims or pods, and leave it so."""
    async with control_plane.client() as client:
        yield client
        await sweep(client)


async def _granted(running: Plane) -> None:
    async with running.client() as admin:
        await grant(admin)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "control_plane: runs on a real control plane (set by the fixture's name)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what uses the control plane together: one serves them all, and two would be too many for a small machine."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker("control_plane")
        if item.get_closest_marker("control_plane") and getattr(config.option, "loadgroup", False):
            # What pytest-xdist 3.8 does for the mark xdist_group; it sets an attribute that pytest 9.2 does not read.
            item._id = item.id.parse(f"{item.nodeid}@control-plane")
