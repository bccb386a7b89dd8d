"""Whatever goes wrong while pods are bound: nothing is given twice, every pod gets its devices, nothing stays taken."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.controlplane.plane import Plane
from tests.faults.scene import Scene, scene
from tests.faults.table import LONG, TABLE, Strike

pytestmark = pytest.mark.asyncio(loop_scope="module")

NODES, GPUS, PODS = 16, 4, 48
# The long ones are for `make faults`.
ROWS = {**TABLE, **(LONG if os.environ.get("FAULTS") == "all" else {})}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(control_plane: Plane) -> AsyncIterator[Scene]:
    async with scene(control_plane, NODES, GPUS) as made:
        yield made


@pytest.mark.parametrize("strike", ROWS.values(), ids=ROWS)
async def test_nothing_is_lost_and_nothing_given_twice(here: Scene, strike: Strike) -> None:
    await here.mended()
    here.mark()
    async with here.watched_over():
        async with strike(here):
            await here.burst(PODS)
        await here.served()
        await here.empty()
