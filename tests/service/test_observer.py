"""What cannot be read is told in the log, wherever it is shown, and that a resource is not; neither again and again."""

import logging

import pytest

from extender.kube.resource import CLAIMS, RULES, Resource
from extender.kube.told import Seen, Trouble, Unserved
from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.parse import parse_claim
from extender.service.observer import MOST_REASONS, Observer
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import claim
from tests.telemetry.test_metrics import samples


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


def test_what_may_be_unreadable_all_day_is_not_remembered_for_ever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.service.observer.MOST_TOLD", 2)
    observer = Observer(Metrics())
    for name in ("a", "b", "a", "c", "c", "a"):
        observer.note(Changed(parse_claim({"metadata": {"name": name}, "spec": []})))
    assert len(lines(caplog)) == 4
    assert len(observer._told) == 2


def test_each_list_is_counted() -> None:
    observer = Observer(Metrics())
    for _ in range(2):
        observer.note(Listed(ResourceClaim, ()))
    counted = frozenset({("resource", CLAIMS.name)})
    assert samples(observer.metrics)["dra_extender_watch_lists_total", counted] == 2


def said(caplog: pytest.LogCaptureFixture, resource: Resource = CLAIMS) -> list[str]:
    """Return what was told of reading *resource* since this was asked last, which is forgotten then for all."""
    found = [record for record in caplog.records if vars(record).get(keys.RESOURCE) == str(resource)]
    caplog.clear()
    return [
        f"{record.message}: {vars(record)[keys.ERROR]}" if record.levelno > logging.INFO else record.message
        for record in found
    ]


def test_why_a_resource_is_not_read_is_told_once_until_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    observer = Observer(Metrics())
    refused, late = "reading goes on later: connection refused", "reading goes on later: no answer within 10 s"
    for _ in range(2):
        for why in ("connection refused", "connection refused", "no answer within 10 s", "connection refused"):
            observer.note(Trouble(CLAIMS, why))
        assert said(caplog) == [refused, late]
        observer.note(Trouble(RULES, "connection refused"))
        assert said(caplog, RULES) == [refused]
        for _ in range(2):
            observer.note(Seen(CLAIMS, "7", 2.0))
        observer.note(Unserved(RULES, 2.0))
        assert said(caplog) == ["reading goes on again"]


def test_a_reason_that_reads_otherwise_each_time_is_not_told_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer(Metrics())
    for seconds in range(MOST_REASONS + 5):
        observer.note(Trouble(CLAIMS, f"it is not listed, for {seconds} s"))
    assert len(said(caplog)) == MOST_REASONS


def test_what_is_not_served_is_told_once_and_after_each_outage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    observer = Observer(Metrics())
    for _ in range(2):
        for _ in range(2):
            observer.note(Unserved(RULES, 1.0))
        assert said(caplog, RULES) == ["not served"]
        observer.note(Trouble(RULES, "connection refused"))
        assert said(caplog, RULES) == ["reading goes on later: connection refused"]
    observer.note(Seen(RULES, "7", 3.0))
    observer.note(Unserved(RULES, 4.0))
    assert said(caplog, RULES)[-1] == "not served"
