"""A running service takes another placement document, and keeps the earlier one where that cannot be used."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.config.settings import Placement, Settings
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.service import placement_file
from extender.service.assembly import running
from extender.web.server import Address, Options
from tests.accepting import accepting

HERE = Address("127.0.0.1", 0)
PATIENCE_S = 20


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - a file is looked at, nobody tells of it
            await asyncio.sleep(0.01)


async def test_a_new_document_is_used_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_file, "INTERVAL_S", 0.02)
    file = tmp_path / "placement.yaml"
    file.write_text("policies: {default: pack}")
    server = ApiServer()
    credentials = Fixed(Access(server=await server.start()))
    settings = accepting(Settings(placement=Placement(file=str(file))))
    try:
        async with running(settings, credentials, Options(verbs=HERE, probes=HERE)) as service:
            await service.ready()

            def default() -> str:
                taste = service.answers.chooser.taste
                return taste.document.policies.default if taste else ""

            assert default() == "pack"
            file.write_text("policies: {default: spread}")
            await until(lambda: default() == "spread")
            file.write_text("policies: {default: nonsense}")
            metrics = service.journal.metrics
            await until(lambda: b"dra_extender_placement_config_valid 0.0" in metrics.exposition()[0])
            assert default() == "spread"
    finally:
        await server.stop()
