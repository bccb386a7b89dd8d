"""Two programs, two files: what they say of each other agrees, and what is spoken of exists."""

import re
from pathlib import Path

import pytest

from extender.cli import build_parser
from extender.config.load import load
from extender.config.settings import Settings
from extender.config.table import rows
from tests.controlplane.client import Object
from tests.controlplane.manifests import BASE, CONFIG, EXTENDER, OWNERS, SCHEDULER, documents
from tests.tree import files

FEW = CONFIG / "few-device-nodes" / "scheduler.yaml"
ADVISOR = CONFIG / "advisor" / "scheduler.yaml"
SECTIONS = {path.partition(".")[0] for path in rows() if "." in path}
SETTING = re.compile(rf"\b(?:{'|'.join(sorted(SECTIONS))})\.(?!(?:md|yaml)\b)[a-z]\w+\b(?!\.\w)")


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(EXTENDER)


def containers() -> dict[str, Object]:
    (deployment,) = documents(BASE / "deployment.yaml")
    return {each["name"]: each for each in deployment["spec"]["template"]["spec"]["containers"]}


@pytest.mark.parametrize("path", [SCHEDULER, FEW, ADVISOR], ids=["usual", "few-device-nodes", "advisor"])
def test_the_scheduler_calls_where_the_extender_listens_and_waits_as_long_as_it_thinks(
    settings: Settings, path: Path
) -> None:
    (configuration,) = documents(path)
    (extender,) = configuration["extenders"]
    assert extender["urlPrefix"] == f"http://{settings.listen.verbs}"
    # An advisor writes nothing that would have to be known by then, and is not worth waiting for.
    assert extender["httpTimeout"] == ("5s" if path == ADVISOR else f"{settings.api.scheduler_timeout_seconds:g}s")
    assert tuple(each["schedulerName"] for each in configuration["profiles"]) == settings.schedulers


def test_the_taint_of_the_rules_is_the_one_that_the_extender_does_not_see(settings: Settings) -> None:
    for path in OWNERS.values():
        (rule,) = documents(path)
        assert rule["spec"]["taint"]["key"] == settings.ownership.owner_taint


def test_probes_are_asked_where_they_are_answered(settings: Settings) -> None:
    (port,) = containers()["extender"]["ports"]
    assert settings.listen.probes == f":{port['containerPort']}"


def test_the_pod_is_given_the_time_that_the_extender_takes_to_end(settings: Settings) -> None:
    (deployment,) = documents(BASE / "deployment.yaml")
    pause = containers()["extender"]["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    # Where the API server does not answer, binds are waited for as long as their caller would.
    assert pause + settings.listen.shutdown_seconds + settings.api.bind_seconds < grace


def test_no_program_has_proxies_of_its_own() -> None:
    """Neither uses one on loopback, and what a cluster adds to its pods stays away from variables that are there."""
    named = {entry["name"].upper() for each in containers().values() for entry in each.get("env", ())}
    assert not any(name.endswith("_PROXY") for name in named)


def test_the_command_line_takes_the_arguments_of_the_pod() -> None:
    arguments = containers()["extender"]["args"]
    assert str(build_parser(arguments).parse_args(arguments).config) == "/etc/dra-scheduler/extender.yaml"


def test_settings_that_are_spoken_of_exist() -> None:
    named = {name for path in files(root=CONFIG) for name in SETTING.findall(path.read_text())}
    assert {"waking.nominate", "api.schedulerTimeoutSeconds", "ownership.ownerTaint"} <= named
    assert named <= set(rows())
