"""The placement document is read again when its file changes, and an unusable version changes nothing."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from extender.config.load import Invalid
from extender.kube.pace import Pace
from extender.service.placement_file import PlacementFile
from extender.telemetry.metrics import Metrics
from extender.topology.document import Document

Step = Callable[[], None]
PACK, SPREAD, WRONG = (f"policies: {{default: {name}}}" for name in ("pack", "spread", "best"))


def product(pattern: str) -> str:
    return f"deviceTopology: [{{match: {{}}, products: [{{product: '{pattern}', count: 2, flat: 1}}]}}]"


class Over(Exception):  # noqa: N818 - the end of a test's time
    """No time is left."""


def turned(file: PlacementFile, steps: Sequence[Step | None]) -> None:
    """Let *file* look once after each of *steps*, without waiting."""
    left = iter(steps)

    async def sleep(_seconds: float) -> None:
        step = next(left, Over)
        if step is Over:
            raise Over
        if step is not None:
            step()

    with pytest.raises(Over):
        asyncio.run(file.run(Pace(sleep=sleep)))


class Scene:
    """A file, who reads it, and what was heard."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_text(PACK)
        self.metrics = Metrics()
        self.heard: list[str] = []
        self.file = PlacementFile(str(path), self.metrics, self.hear)

    def hear(self, document: Document) -> None:
        self.heard.append(document.policies.default)

    def says(self, text: str) -> Step:
        return lambda: (self.path.write_text(text), None)[1]

    @property
    def default(self) -> str:
        return self.file.document.policies.default

    def metric(self, name: str) -> str:
        lines = self.metrics.exposition()[0].decode().splitlines()
        return next(
            (line.rpartition(" ")[2] for line in lines if line.startswith(f"dra_extender_placement_{name} ")), ""
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "placement.yaml")


TAKEN, REFUSED = (f'config_reloads_total{{result="{word}"}}' for word in ("taken", "refused"))


def test_the_file_is_read_at_the_start(scene: Scene) -> None:
    assert scene.default == "pack"
    assert scene.metric("config_valid") == "1.0"
    assert scene.metric(TAKEN) == "0.0"


def test_without_a_file_there_is_what_is_shipped() -> None:
    file = PlacementFile("", Metrics())
    turned(file, [None, None])
    assert file.document == Document()


def test_an_unusable_file_stops_the_start_with_all_complaints(tmp_path: Path) -> None:
    path = tmp_path / "placement.yaml"
    path.write_text("policies: {default: best, defaults: 1}\nmixed: 1\n")
    with pytest.raises(Invalid) as caught:
        PlacementFile(str(path), Metrics())
    assert [complaint.removeprefix(f"{path}: ").partition(":")[0] for complaint in caught.value.complaints] == [
        "policies.default",
        "policies.defaults",
        "mixed",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"a: 1\na: 2\n", "line 2: a is there twice", id="yaml"),
        pytest.param(b"a: 1\nb: !!bool x\n", "line 2: this is no bool", id="no-bool"),
        pytest.param(b"a: !!int ''\n", "line 1: this is no int", id="no-integer"),
        pytest.param(b"a: !!timestamp x\n", "line 1: this is no timestamp", id="no-time"),
        pytest.param(b"a: 2026-99-99\n", "line 1: this is no timestamp", id="no-day"),
        pytest.param(b"a: !!map [1]\n", "line 1: keys with values are expected, and here is a sequence", id="no-map"),
        pytest.param(b"a: " + b"[" * 5000, "is no YAML", id="too-deep"),
        pytest.param(b"\xff", "codec", id="no-text"),
        pytest.param(b"# nothing\n", "is empty; {} leaves everything", id="empty"),
        pytest.param(None, "No such file or directory", id="no-file"),
    ],
)
def test_what_is_no_yaml_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "placement.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Invalid) as caught:
        PlacementFile(str(path), Metrics())
    (complaint,) = caught.value.complaints
    assert complaint.startswith(f"{path}: ")
    assert says in complaint


def test_what_has_no_effect_is_said_to_have_none_each_time_it_is_taken(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    near = f"{SPREAD}\nclusterTopology: [{{label: example.com/rack, weight: 100}}]"
    turned(scene.file, [scene.says(near), None, None, None])
    PlacementFile(str(scene.path), Metrics())
    told = [(record.levelname, vars(record)["problem"]) for record in caplog.records if "no effect" in record.message]
    assert told == [("WARNING", "clusterTopology: is checked, but no pod is placed by it")] * 2


def test_a_new_version_is_taken_once(scene: Scene) -> None:
    turned(scene.file, [scene.says(SPREAD), None, None, None])
    assert scene.default == "spread"
    assert scene.heard == ["spread"]
    assert (scene.metric(TAKEN), scene.metric("config_valid")) == ("1.0", "1.0")


def test_a_file_that_is_being_written_is_not_taken(scene: Scene) -> None:
    turned(scene.file, [scene.says(""), scene.says(SPREAD), scene.says(PACK), None])
    assert scene.heard == []
    assert scene.metric(TAKEN) == "0.0"


def test_an_unusable_version_changes_nothing_and_is_told(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    turned(scene.file, [scene.says(WRONG), None, None])
    assert scene.default == "pack"
    assert scene.heard == []
    assert (scene.metric(REFUSED), scene.metric("config_valid")) == ("1.0", "0.0")
    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert "policies.default: must be one of" in record.__dict__["problem"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policies: !!bool x", "line 1: this is no bool"),
        (product("A{99999999999}"), "deviceTopology[0].products[0].product: is no regular expression"),
        (product("(" * 3000 + ")" * 3000), "deviceTopology[0].products[0].product: is no regular expression"),
    ],
    ids=["bool", "repetition", "depth"],
)
def test_what_no_library_can_make_anything_of_changes_nothing_either(
    scene: Scene, caplog: pytest.LogCaptureFixture, text: str, says: str
) -> None:
    turned(scene.file, [scene.says(text), None, None])
    assert (scene.default, scene.metric(REFUSED)) == ("pack", "1.0")
    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert says in record.__dict__["problem"]


def test_a_file_that_goes_away_changes_nothing_and_one_that_comes_back_is_used(scene: Scene) -> None:
    turned(scene.file, [scene.path.unlink, None])
    assert (scene.default, scene.metric("config_valid")) == ("pack", "0.0")
    turned(scene.file, [scene.says(PACK), None])
    assert (scene.default, scene.metric("config_valid"), scene.heard) == ("pack", "1.0", [])


def test_a_mounted_configmap_whose_links_are_swapped_is_noticed(tmp_path: Path) -> None:
    for name, text in (("one", PACK), ("other", SPREAD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "placement.yaml").write_text(text)
    (tmp_path / "data").symlink_to("one")
    (tmp_path / "placement.yaml").symlink_to("data/placement.yaml")
    file = PlacementFile(str(tmp_path / "placement.yaml"), Metrics())

    def swap() -> None:
        (tmp_path / "new").symlink_to("other")
        (tmp_path / "new").rename(tmp_path / "data")

    turned(file, [swap, None])
    assert file.document.policies.default == "spread"
