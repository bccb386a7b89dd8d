import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

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


@pytest.fixture(scope="module")
def control_plane(running_plane: Plane) -> Iterator[Plane]:
    """Give a real control plane, the same to all; what a module leaves in the cluster goes with it."""
    yield running_plane
    asyncio.run(_with_admin(running_plane, sweep))


@pytest.fixture(scope="session")
def running_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """Run a control plane; its users `extender` and `scheduler` have what scheduler-config grants them."""
    try:
        programs = plane()
    except Missing as why:
        pytest.skip(str(why))
    running = Plane(programs, tmp_path_factory.mktemp("plane"))
    try:
        running.start()
        asyncio.run(_with_admin(running, grant))
        yield running
    finally:
        running.stop()


@pytest.fixture
async def admin(control_plane: Plane) -> AsyncIterator[Client]:
    """Be the administrator of a cluster that has no nodes, devices, claims or pods, and leave it so."""
    async with control_plane.client() as client:
        yield client
        await sweep(client)


async def _with_admin(running: Plane, act: Callable[[Client], Awaitable[None]]) -> None:
    async with running.client() as admin:
        await act(admin)


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
