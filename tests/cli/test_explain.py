"""What was decided about a pod, in lines."""

from dataclasses import replace
from typing import Any

import orjson

from extender.cli.explain import told
from extender.model.names import NodeName, ObjectKey, Uid
from extender.scheduling.decision import Decision, Outcome
from extender.service.journal import Journal
from extender.telemetry.metrics import Metrics

BOUND = Decision(
    pod=ObjectKey("ns", "trainer-0"),
    uid=Uid("5d0e"),
    at=1_767_225_607.9,
    generation=1,
    outcome=Outcome.BOUND,
    reason="DevicesAllocated",
    node=NodeName("node-7"),
)


def lines_of(decision: Decision) -> list[str]:
    """Return what is told of *decision* as it comes from the extender."""
    nobody: Any = None  # what is told is all that counts
    journal = Journal(nobody, nobody, Metrics(), lambda: 0.0)
    journal.decisions.put(decision)
    return told(orjson.loads(orjson.dumps(journal.of(decision.pod)))).splitlines()


def test_it_is_told_when_that_was_decided_and_of_which_pod_of_the_name() -> None:
    assert lines_of(BOUND) == [
        "ns/trainer-0: Bound (DevicesAllocated)",
        "decided: 2026-01-01T00:00:07Z",
        "uid: 5d0e",
        "node: node-7",
    ]


def test_what_does_not_print_is_escaped() -> None:
    assert lines_of(replace(BOUND, uid=Uid("\x1b[2J")))[2] == "uid: \\x1b[2J"
