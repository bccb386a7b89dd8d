"""docs/metrics.md lists what a scrape shows, and a scrape shows what happened."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from extender.scheduling.drift import Kind
from extender.service.gauges import LINKS
from extender.state.ownership import OTHERS
from extender.telemetry.metrics import MOST_DRIVERS, PREFIX, VERBS, Metrics
from extender.telemetry.scraped import DeviceCount
from tests.tree import ROOT

DOCUMENT = (ROOT / "docs" / "metrics.md").read_text()
_, _, QUERIES = DOCUMENT.partition("| Question | Query |")
ALERTS = (ROOT / "scheduler-config" / "monitoring" / "alerts.yaml").read_text()
# What the library adds to a histogram or a counter, and the label of buckets.
SUFFIXES = re.compile(r"_(bucket|count|sum)$")


class AtPresent:
    def devices(self) -> Iterable[DeviceCount]:
        return [DeviceCount("gpu.example.com", "gpu", 3, 5, 2), DeviceCount("gpu.example.com", "big", 1, 0, 0)]

    def holds(self) -> Mapping[str, int]:
        return {"offered": 2, "reserved": 0}

    def ages(self) -> Mapping[str, float]:
        return {"pods": 1.5}

    def unreadable(self) -> Mapping[str, int]:
        return {"ResourceSlice": 1}

    def waiting(self) -> int:
        return 7

    def links(self) -> Mapping[tuple[str, str], int]:
        return {("gpu.example.com", "known"): 4}

    def foreign(self) -> Mapping[str, int]:
        return {"gpu.example.com": 2}

    def untainted(self) -> Mapping[str, int]:
        return {"gpu.example.com": 1}

    def incomplete(self) -> Mapping[str, int]:
        return {"gpu.example.com": 6}

    def is_leading(self) -> bool:
        return True


def used() -> Metrics:
    """Return metrics in which everything has happened once."""
    metrics = Metrics("1.2.3")
    metrics.watch(AtPresent())
    metrics.verb("filter", "ok", 0.003)
    metrics.named("filter", 500)
    metrics.rejection("InUse")
    metrics.decision("bound")
    metrics.wake("nomination", "done")
    metrics.guess("right")
    metrics.api("update", "resourceclaims/status", "409", 0.01)
    metrics.listed("pods")
    metrics.event("written")
    metrics.takeover()
    metrics.certificates(is_valid=True)
    metrics.client_refused("name")
    metrics.certificates_last({"certificate": 5.0, "clientAuthorities": 7.0})
    metrics.certificates_last({"certificate": 1e9, "kubeconfig": None})
    metrics.foreign_conflict("gpu.example.com")
    metrics.foreign("gpu.example.com")
    metrics.owner_taint("put")
    metrics.placed("protect")
    metrics.part("links", 0.6)
    metrics.part("kept", -0.2)
    metrics.drift("leak", 2)
    metrics.placement(is_valid=True)
    metrics.placement(is_valid=False)
    return metrics


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    body, _ = metrics.exposition()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in read_text(body.decode())
        for sample in family.samples
    }


SHOWN = [
    ("verb_duration_seconds_count", {"verb": "filter", "result": "ok"}, 1),
    ("verb_duration_seconds_bucket", {"verb": "filter", "result": "ok", "le": "0.002"}, 0),
    ("verb_duration_seconds_bucket", {"verb": "filter", "result": "ok", "le": "0.004"}, 1),
    ("verb_nodes_sum", {"verb": "filter"}, 500),
    ("rejections_total", {"reason": "InUse"}, 1),
    ("decisions_total", {"outcome": "bound"}, 1),
    ("wakes_total", {"way": "nomination", "result": "done"}, 1),
    ("api_requests_total", {"verb": "update", "resource": "resourceclaims/status", "code": "409"}, 1),
    ("api_request_duration_seconds_count", {"verb": "update", "resource": "resourceclaims/status"}, 1),
    ("watch_lists_total", {"resource": "pods"}, 1),
    ("events_total", {"result": "written"}, 1),
    ("drift", {"kind": "leak"}, 2),
    ("placement_config_reloads_total", {"result": "taken"}, 1),
    ("placement_config_reloads_total", {"result": "refused"}, 1),
    ("placement_config_valid", {}, 0),
    ("certificate_expiry_timestamp_seconds", {"file": "certificate"}, 1e9),
    ("clients_refused_total", {"why": "name"}, 1),
    ("foreign_conflicts_total", {"driver": "gpu.example.com"}, 1),
    ("foreign_allocations_seen_total", {"driver": "gpu.example.com"}, 1),
    ("foreign_allocations", {"driver": "gpu.example.com"}, 2),
    ("owner_taint_missing", {"driver": "gpu.example.com"}, 1),
    ("incomplete_pools", {"driver": "gpu.example.com"}, 6),
    ("owner_taint_writes_total", {"result": "put"}, 1),
    ("devices", {"driver": "gpu.example.com", "device_class": "gpu", "state": "free"}, 3),
    ("devices", {"driver": "gpu.example.com", "device_class": "big", "state": "used"}, 0),
    ("devices", {"driver": "gpu.example.com", "device_class": "gpu", "state": "blocked"}, 2),
    ("holds", {"phase": "offered"}, 2),
    ("watch_age_seconds", {"resource": "pods"}, 1.5),
    ("unreadable_objects", {"kind": "ResourceSlice"}, 1),
    ("nodes_by_links", {"driver": "gpu.example.com", "links": "known"}, 4),
    ("placements_total", {"policy": "protect"}, 1),
    ("placement_worth_bucket", {"part": "links", "side": "for", "le": "0.75"}, 1),
    ("placement_worth_bucket", {"part": "links", "side": "for", "le": "0.5"}, 0),
    ("placement_worth_sum", {"part": "kept", "side": "against"}, 0.2),
    ("waiting_pods", {}, 7),
    ("leading", {}, 1),
    ("takeovers_total", {}, 1),
    ("build_info", {"version": "1.2.3"}, 1),
]


@pytest.mark.parametrize(("name", "labels", "value"), SHOWN, ids=[f"{row[0]}-{row[2]}" for row in SHOWN])
def test_a_scrape_shows_what_happened(name: str, labels: dict[str, str], value: float) -> None:
    assert samples(used())[f"{PREFIX}_{name}", frozenset(labels.items())] == value


def test_series_of_every_verb_are_there_before_its_first_call() -> None:
    found = samples(Metrics())
    for verb in VERBS:
        for result in ("ok", "error", "refused", "crash"):
            labels = frozenset({("verb", verb), ("result", result)})
            assert found[f"{PREFIX}_verb_duration_seconds_count", labels] == 0


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        ("events", "result", ("written", "failed", "dropped")),
        ("owner_taint_writes", "result", ("put", "put back", "failed")),
        ("certificate_reloads", "result", ("taken", "refused")),
        ("clients_refused", "why", ("certificate", "no certificate", "name")),
        ("placement_config_reloads", "result", ("taken", "refused")),
        ("foreign_allocations_seen", "driver", ("gpu.example.com",)),
        ("foreign_conflicts", "driver", ("gpu.example.com",)),
    ],
)
def test_what_people_wait_for_is_shown_before_it_happens_first(name: str, label: str, values: Sequence[str]) -> None:
    # Prometheus sees no increase in a series that begins with one.
    metrics = Metrics()
    metrics.watch(AtPresent())
    found = samples(metrics)
    assert [found[f"{PREFIX}_{name}_total", frozenset({(label, value)})] for value in values] == [0] * len(values)


def test_series_for_drivers_that_come_and_go_do_not_become_ever_more() -> None:
    class Changing(AtPresent):
        number = 0

        def foreign(self) -> Mapping[str, int]:
            self.number += 1
            return {f"{self.number}-{each}.example.com": 0 for each in range(MOST_DRIVERS)}

    metrics = Metrics()
    metrics.watch(Changing())
    metrics.exposition()
    found = [name for name, _ in samples(metrics) if name == f"{PREFIX}_foreign_conflicts_total"]
    assert len(found) == MOST_DRIVERS


QUESTIONS = [name for name in vars(AtPresent) if not name.startswith("_")]


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_asked_once_at_every_scrape(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    asked, answer = [0], getattr(AtPresent, question)

    def counted(present: AtPresent) -> object:
        asked[0] += 1
        return answer(present)

    monkeypatch.setattr(AtPresent, question, counted)
    metrics = Metrics()
    metrics.watch(AtPresent())
    for scrape in (1, 2):
        metrics.exposition()
        assert asked == [scrape]


def test_two_sets_of_metrics_know_nothing_of_each_other() -> None:
    used()
    assert (f"{PREFIX}_rejections_total", frozenset({("reason", "InUse")})) not in samples(Metrics())


def test_times_of_creation_are_left_out() -> None:
    assert b"_created" not in used().exposition()[0]


@pytest.mark.parametrize("version", ["abc", "1.x", "2.anything", "9" * 5000])
@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
def test_whatever_version_somebody_asks_for_there_is_an_answer_that_does_not_repeat_it(kind: str, version: str) -> None:
    metrics = used()
    asked = metrics.exposition(f"{kind};version={version}, */*;q=0.1")[1]
    assert asked == metrics.exposition(kind)[1]
    assert version not in asked


def test_openmetrics_is_spoken_where_it_is_asked_for() -> None:
    body, content_type = used().exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = list(read_openmetrics(body.decode()))  # type: ignore[no-untyped-call]  # the library has no type here
    assert "dra_extender_verb_duration_seconds" in {family.name for family in families}


def test_the_process_shows_its_memory() -> None:
    assert ("process_resident_memory_bytes", frozenset()) in samples(Metrics())


def rows() -> list[str]:
    """Spell our families as the document has them."""
    found = [family for family in used().registry.collect() if family.name.startswith(PREFIX)]
    return sorted(row_of(family) for family in found)


def row_of(family: Metric) -> str:
    shown = [sample for sample in family.samples if not sample.name.endswith("_created")]
    names = {SUFFIXES.sub("", sample.name) for sample in shown}
    labels = {label: None for sample in shown for label in sample.labels if label != "le"}
    (name,) = names
    return f"| `{name}` | {family.type} | {', '.join(labels)} | {family.documentation} |"


def test_every_metric_is_documented() -> None:
    assert sorted(re.findall(r"^\| `.*\|$", DOCUMENT, re.MULTILINE)) == rows()


@pytest.mark.parametrize("asking", [QUERIES, ALERTS], ids=["questions", "alerts"])
def test_queries_ask_for_what_is_shown_by_labels_that_it_has(asking: str) -> None:
    shown = {name: {label for label, _ in labels} for name, labels in samples(used())}
    asked = re.findall(r"(dra_extender_\w+)(?:\{([^}]*)\})?", asking)
    assert len(asked) > 10
    for name, chosen in asked:
        assert set(re.findall(r"(\w+)!?=", chosen)) <= shown[name], name


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("wakes_total", ("nomination", "annotation", "ahead", "claims gone", "claims unnamed")),
        ("nominations_ahead_total", ("right", "wrong", "late", "renewed", "unasked")),
        ("nodes_by_links", LINKS),
        ("drift", Kind),
        ("events_total", ("written", "failed", "dropped")),
        ("foreign_allocations", (OTHERS,)),
    ],
)
def test_each_value_of_a_label_is_explained_beside_its_metric(metric: str, words: Iterable[str]) -> None:
    (told,) = [part for part in DOCUMENT.split("\n\n") if part.startswith(f"`{metric}` ")]
    assert [word for word in words if f"`{word}`" not in told] == []
