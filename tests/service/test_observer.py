"""What cannot be read is told in the log, wherever it is shown."""

import logging

import pytest

from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.parse import parse_claim
from extender.service.observer import Observer
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import claim


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.message == "an object cannot be read"]


@pytest.mark.parametrize("spec", [[], {}], ids=["odd", "plain"])
@pytest.mark.parametrize("status", [{}, []], ids=["readable", "unreadable"])
def test_a_claim_that_cannot_be_read_as_a_whole_is_told(
    caplog: pytest.LogCaptureFixture, spec: object, status: object
) -> None:
    item, observer = parse_claim({"metadata": {"name": "c"}, "spec": spec, "status": status}), Observer(Metrics())
    for told in (Changed(claim("a")), Changed(item), Listed(ResourceClaim, (claim("a"), item))):
        observer.note(told)
    assert len(lines(caplog)) == (0 if spec == status == {} else 2)


def test_what_goes_on_being_unreadable_is_told_once_until_all_is_listed_anew(caplog: pytest.LogCaptureFixture) -> None:
    first, other = (parse_claim({"metadata": {"name": name}, "spec": []}) for name in "ab")
    observer = Observer(Metrics())
    listed = Listed(ResourceClaim, (first, other))
    seen = (Changed(first), 1), (Changed(first), 0), (Changed(other), 1), (Changed(first), 0), (listed, 2)
    for told, count in (*seen, (Changed(first), 0)):
        caplog.clear()
        observer.note(told)
        assert len(lines(caplog)) == count
