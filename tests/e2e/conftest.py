from collections.abc import AsyncIterator

import pytest_asyncio

from tests.controlplane.plane import Plane
from tests.e2e.world import Stage, World, staged, world_on


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(control_plane: Plane) -> AsyncIterator[Stage]:
    """Run the service and kube-scheduler once for all tests of a module."""
    async with staged(control_plane) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(stage: Stage) -> AsyncIterator[World]:
    """Give a test nodes, devices and classes of its own."""
    async with world_on(stage) as made:
        yield made
