"""Of two API servers on kine each hears only later what the other has written, and lists what was before."""

import asyncio
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.controlplane.balancer import Balancer
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane
from tests.faults.kine import PROGRAM, OnKine
from tests.faults.scene import scene

pytestmark = pytest.mark.skipif(not Path(PROGRAM).is_file(), reason="KINE names no program")
ROUNDS = 12


@pytest.fixture
def on_kine(tmp_path: Path) -> Iterator[OnKine]:
    """Run a control plane on kine; its users `extender` and `scheduler` have what scheduler-config grants them."""
    running = OnKine(plane(), tmp_path)
    try:
        running.start()
        asyncio.run(_granted(running))
        yield running
    finally:
        running.stop()


async def test_pods_are_bound_whichever_api_server_on_kine_answers(on_kine: OnKine) -> None:
    async with (
        on_kine.second() as second,
        Balancer(second) as balancer,
        scene(on_kine, nodes=2, gpus=4, flags=(), url=balancer.url) as here,
        here.watched_over(),
    ):
        for url in islice(cycle((on_kine.url, second)), ROUNDS):
            await here.burst(4)
            balancer.move(url)
            # While the other one is asked where things are, more is written.
            await here.passed_by(8)
            await here.served()
        assert here.extender.process is not None
        assert here.extender.process.poll() is None
        assert "the cluster is at" in on_kine.log("extender").read_text()
        await here.empty()


async def _granted(running: OnKine) -> None:
    async with running.client() as admin:
        await grant(admin)
