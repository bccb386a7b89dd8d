"""What does not go together is told once: by metric, log and event."""

import logging
from typing import Any

import pytest

from extender.scheduling.decision import Decision
from extender.scheduling.drift import Auditor
from extender.service.auditing import Auditing
from extender.service.notices import Notices
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import claim, device, held
from tests.scheduling.test_drift import OTHER, POD, believing
from tests.telemetry.test_metrics import samples


def drift(metrics: Metrics, kind: str) -> float:
    return samples(metrics)["dra_extender_drift", frozenset({("kind", kind)})]


async def test_a_double_is_told_by_metric_log_and_event(caplog: pytest.LogCaptureFixture) -> None:
    belief = believing(
        held(claim("a"), device("n1", 0), by=POD), held(claim("b", version=2), device("n1", 0), by=OTHER)
    )
    nobody: Any = None  # events wait to be written; nobody writes them here
    metrics, notices = Metrics(), Notices(nobody, "one", 20)
    auditing = Auditing(Auditor(belief, patience_s=0.0), metrics, notices, lambda: 0.0, lambda: 0.0)
    with caplog.at_level(logging.ERROR):
        await auditing.round()
        await auditing.round()
    assert [drift(metrics, kind) for kind in ("ghost", "double", "leak")] == [0, 1, 0]
    assert [(vars(record)["claim"], vars(record)["pod"]) for record in caplog.records] == [("ns/b", "ns/q")]
    told = [(item.pod, item.reason) for item in notices._waiting.values() if isinstance(item, Decision)]
    assert told == [(OTHER.key, "DeviceGivenTwice")]
