"""The defaults are what scheduler-config ships: with an empty file, everything there fits together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.allocation.features import features_by_default
from extender.config.load import load
from extender.config.settings import Settings
from tests.controlplane.manifests import OWNERS
from tests.tree import ROOT

SHIPPED = ROOT / "scheduler-config"
SCHEDULERS = sorted(SHIPPED.rglob("scheduler.yaml"), key=str)
CONFIGURATIONS = [path for path in SCHEDULERS if "rbac" not in path.parts]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_the_shipped_file_is_one_that_we_take(minor: str) -> None:
    assert isinstance(load(SHIPPED / minor / "extender.yaml"), Settings)


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_the_shipped_file_has_the_features_of_its_release(minor: str) -> None:
    usual = features_by_default(int(minor.partition(".")[2]))
    # Rules are heeded wherever they are served.
    expected = replace(usual, device_taint_rules=True)
    assert load(SHIPPED / minor / "extender.yaml").allocation.features == expected


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_the_shipped_file_owns_what_the_rule_beside_it_taints(minor: str) -> None:
    selected = read(OWNERS[minor])["spec"]["deviceSelector"]
    assert load(SHIPPED / minor / "extender.yaml").ownership.drivers == (selected["driver"],)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.parent.name)
def test_kube_scheduler_calls_us_where_and_as_we_expect(path: Path) -> None:
    configuration, settings = read(path), Settings()
    (extender,) = configuration["extenders"]
    assert extender["urlPrefix"] == f"http://{settings.listen.verbs}"
    # Of an advisor nothing is to be known by then.
    if "bindVerb" in extender:
        assert extender["httpTimeout"] == f"{settings.api.scheduler_timeout_seconds:g}s"
    assert tuple(profile["schedulerName"] for profile in configuration["profiles"]) == settings.schedulers


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_the_owner_taint_of_the_shipped_rule_is_ours(minor: str) -> None:
    assert read(OWNERS[minor])["spec"]["taint"]["key"] == Settings().ownership.owner_taint
