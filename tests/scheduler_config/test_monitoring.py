"""The component for a Prometheus operator scrapes our pods, and its alerts can come true and say where to look."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from extender.scheduling.decision import Decided
from extender.scheduling.drift import Kind
from extender.state.ledger import Phase
from extender.telemetry.metrics import VERBS
from tests.controlplane.client import Object
from tests.controlplane.manifests import BASE, CONFIG, documents
from tests.tree import ROOT, anchors

MONITORING = CONFIG / "monitoring"
((RULES,),) = ([group["rules"] for group in each["spec"]["groups"]] for each in documents(MONITORING / "alerts.yaml"))
# What the metrics give as values of these labels.
VALUES: dict[str, set[str]] = {
    "kind": set(Kind),
    "phase": {phase.name.lower() for phase in Phase},
    "outcome": set(Decided),
    "verb": set(VERBS),
    "resource": {"boundpods"},
    "file": {"certificate", "clientAuthorities"},
}
RESULTS: dict[str, set[str]] = {
    "dra_extender_verb_duration_seconds_count": {"ok", "error", "refused", "crash"},
    "dra_extender_events_total": {"written", "failed", "dropped"},
}
INCIDENTS = Path(__file__).with_name("incidents.yaml")
OPERATIONS = ROOT / "docs" / "operations.md"
each_alert = pytest.mark.parametrize("alert", RULES, ids=[rule["alert"] for rule in RULES])


def test_the_monitor_scrapes_the_port_of_the_pods_that_are_deployed() -> None:
    (monitor,), (deployment,) = documents(MONITORING / "scrape.yaml"), documents(BASE / "deployment.yaml")
    template = deployment["spec"]["template"]
    ports = {port["name"] for each in template["spec"]["containers"] for port in each.get("ports", ())}
    assert monitor["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_all_that_the_component_lists_is_in_the_namespace_of_the_extender() -> None:
    (component,) = documents(MONITORING / "kustomization.yaml")
    (namespace,) = documents(BASE / "namespace.yaml")
    listed = [each for name in component["resources"] for each in documents(MONITORING / name)]
    assert {each["kind"] for each in listed} == {"PodMonitor", "PrometheusRule"}
    assert {each["metadata"]["namespace"] for each in listed} == {namespace["metadata"]["name"]}


@each_alert
def test_an_alert_says_how_urgent_it_is_and_where_to_look(alert: Object) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"].endswith(".")
    file, anchor = alert["annotations"]["look"].split("#")
    assert anchor in anchors(ROOT / file)


def test_the_document_has_each_alert_in_order_with_its_urgency_and_a_link_to_where_to_look() -> None:
    rows = re.findall(r"^\| `(DraExtender\w+)`(, critical)? \| (.*) \|$", OPERATIONS.read_text(), re.MULTILINE)
    links = [re.findall(r"\]\(([^)]*)\)", helps) for _, _, helps in rows]
    assert [name for name, _, _ in rows] == [rule["alert"] for rule in RULES]
    assert [bool(urgent) for _, urgent, _ in rows] == [rule["labels"]["severity"] == "critical" for rule in RULES]
    looks = [rule["annotations"]["look"].removeprefix("docs/").removeprefix("operations.md") for rule in RULES]
    assert [look for look, told in zip(looks, links, strict=True) if look not in told] == []


@each_alert
def test_an_alert_names_values_that_the_metrics_have(alert: Object) -> None:
    for metric, chosen in re.findall(r"(dra_extender_\w+)\{([^}]*)\}", alert["expr"]):
        for label, value in re.findall(r'(\w+)!?="(\w+)"', chosen):
            assert value in (RESULTS[metric] if label == "result" else VALUES[label])


def test_a_pod_that_waits_for_its_devices_is_no_bind_that_fails() -> None:
    (expr,) = (alert["expr"] for alert in RULES if alert["alert"] == "DraExtenderBindsFail")
    # What is answered to the scheduler is an error in both cases.
    assert re.findall(r'result(!?="\w+")', expr) == ['="ok"']
    assert set(re.findall(r'outcome(!?="\w+")', expr)) == {f'="{Decided.FAILED}"'}


@each_alert
def test_an_alert_tells_of_labels_that_its_query_leaves(alert: Object) -> None:
    told = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    assert told <= {label for labels in re.findall(r"by \(([\w, ]+)\)", alert["expr"]) for label in labels.split(", ")}


def test_each_alert_is_raised_by_an_incident() -> None:
    (incidents,) = documents(INCIDENTS)
    tried = [case for incident in incidents["tests"] for case in incident["alert_rule_test"]]
    assert {case["alertname"] for case in tried if case.get("exp_alerts")} == {rule["alert"] for rule in RULES}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_incidents_of_before_raise_the_alerts_that_they_should(tmp_path: Path) -> None:
    (rules,) = documents(MONITORING / "alerts.yaml")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules["spec"]))
    incidents = shutil.copy(INCIDENTS, tmp_path)
    ran = subprocess.run(["promtool", "test", "rules", incidents], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@each_alert
def test_what_is_so_for_a_moment_calls_nobody(alert: Object) -> None:
    # What has increased within an hour is told of for an hour.
    assert "for" in alert or "increase(" in alert["expr"]
