"""``dra-extender topology`` shows weights, where they come from, and the best sets."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from extender.cli import main
from tests.topology.machines import FIXTURES


class Result(NamedTuple):
    status: int
    output: str
    errors: str

    @property
    def kinds(self) -> list[dict[str, Any]]:
        parsed: list[dict[str, Any]] = json.loads(self.output)
        return parsed


Run = Callable[..., Result]


@pytest.fixture
def topology(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = main(["topology", *arguments])
        output, errors = capsysbinary.readouterr()
        return Result(status, output.decode(), errors.decode())

    return run


def machine(name: str, *, with_node: bool = True) -> str:
    raw = json.loads((FIXTURES / f"{name}.json").read_text())
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": [*[raw["node"]] * with_node, *raw["slices"]]})


def slice_of(device: str, generation: int = 1, **where: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "devices": [{"name": device}], **(where or {"nodeName": "n"})}
    metadata = {"name": f"{device}-{generation}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def lines(*objects: Any) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in objects)


DGX = """\
dgx-1v: 8 of Tesla V100-SXM2-32GB, gpu.nvidia.com; links are known
GB/s   gpu-0  gpu-1  gpu-2  gpu-3  gpu-4  gpu-5  gpu-6  gpu-7
gpu-0  .      25     25     50     50     10     10     10
gpu-1  25     .      50     25     10     50     10     10
gpu-2  25     50     .      50     10     10     25     10
gpu-3  50     25     50     .      10     10     10     25
gpu-4  50     10     10     10     .      25     25     50
gpu-5  10     50     10     10     25     .      50     25
gpu-6  10     10     25     10     25     50     .      50
gpu-7  10     10     10     25     50     25     50     .
GB/s  PAIRS  LAYER     WHAT WAS READ                        RULE
50    8      products  table for 8 of Tesla V100-SXM2-32GB  shipped deviceTopology[1].products[0]
25    8      products  table for 8 of Tesla V100-SXM2-32GB  shipped deviceTopology[1].products[0]
10    12     levels    the same node                        shipped deviceTopology[4].levels[3]
"""


def test_a_machine_is_drawn_with_the_origin_of_each_weight(topology: Run) -> None:
    assert topology(stdin=machine("dgx-1v")) == Result(0, f"{DGX}\n1 nodes, 8 devices\n", "")


def test_the_best_sets_are_told_in_plain_units(topology: Run) -> None:
    output = topology("--sets", "4", stdin=machine("dgx-1v")).output
    _, _, sets = output.partition("BEST SETS")
    first, second, third, *_ = sets.splitlines()[1:]
    for line, best in ((first, "gpu-0 gpu-1 gpu-2 gpu-3"), (second, "gpu-4 gpu-5 gpu-6 gpu-7")):
        assert " ".join(line.split()).startswith(f"{best} 50 GB/s 225 GB/s 100 %")
    assert "100 %" not in third
    assert len(sets.partition("\n\n")[0].splitlines()) == 11


def test_behind_a_switch_sets_on_one_numa_node_are_the_best_as_they_are_for_the_policy(topology: Run) -> None:
    sets = topology("--sets", "2", "-o", "json", stdin=machine("dgx-h100")).kinds[-1]["sets"]
    halves = [{int(name[-1]) // 4 for name in one["devices"]} for one in sets]
    assert [len(half) for half in halves] == [1] * 10
    assert {one["percentOfBest"] for one in sets} == {100}
    (over, *_) = topology("--sets", "5", "-o", "json", stdin=machine("dgx-h100")).kinds[-1]["sets"]
    assert (over["ringsGBps"], over["allPairsGBps"]) == (450, 4500)


def test_what_has_no_effect_is_said_to_have_none(topology: Run, tmp_path: Path) -> None:
    file = tmp_path / "placement.yaml"
    file.write_text("clusterTopology: [{label: example.com/rack, weight: 100}]")
    told = topology("--placement", str(file), stdin=machine("dgx-1v"))
    assert told.status == 0
    assert told.errors == f"dra-extender: {file}: clusterTopology: is checked, but no pod is placed by it\n"


def test_programs_get_the_same_as_json(topology: Run) -> None:
    (kind,) = topology("--sets", "2", "-o", "json", stdin=machine("dgx-1v")).kinds
    assert (kind["node"], kind["driver"], kind["isKnown"]) == ("dgx-1v", "gpu.nvidia.com", True)
    assert kind["products"] == ["Tesla V100-SXM2-32GB"]
    assert kind["weightsGBps"][0] == [0, 25, 25, 50, 50, 10, 10, 10]
    assert [(origin["weightGBps"], origin["pairs"], origin["layer"]) for origin in kind["origins"]] == [
        (50, 8, "products"),
        (25, 8, "products"),
        (10, 12, "levels"),
    ]
    best = kind["sets"][0]
    assert best["devices"] == ["gpu-0", "gpu-3"]
    assert (best["ringsGBps"], best["allPairsGBps"], best["percentOfBest"]) == (50, 50, 100)


def test_a_single_device_has_no_links_to_tell_of(topology: Run) -> None:
    (kind,) = topology("--sets=1", "-o=json", stdin=machine("dgx-1v")).kinds
    assert {(one["ringsGBps"], one["allPairsGBps"]) for one in kind["sets"]} == {(None, None)}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("a100-pcie", [("gpu.nvidia.com", 8, True)]),
        ("dgx-h100", [("dra.net", 8, False), ("gpu.nvidia.com", 8, True)]),
        ("gb200-tray", [("compute-domain.nvidia.com", 2, False), ("dra.net", 4, False), ("gpu.nvidia.com", 4, True)]),
        ("mi300x", [("gpu.amd.com", 8, True)]),
    ],
)
def test_each_kind_of_device_says_whether_more_than_levels_is_known(
    topology: Run, name: str, kinds: list[tuple[str, int, bool]]
) -> None:
    told = topology("-o", "json", stdin=machine(name)).kinds
    assert [(kind["driver"], len(kind["devices"]), kind["isKnown"]) for kind in told] == kinds


def test_without_the_node_it_is_said_that_labels_are_missing(topology: Run) -> None:
    (kind,) = topology("-o", "json", stdin=machine("a100-pcie", with_node=False)).kinds
    assert not kind["isKnown"]
    assert kind["complaints"] == ["the node itself was not read: what goes by its labels or annotations does not apply"]


def test_a_placement_document_overrides_what_is_shipped(topology: Run, tmp_path: Path) -> None:
    path = tmp_path / "placement.yaml"
    path.write_text("deviceTopology: [{match: {}, products: [{product: V100, count: 8, flat: 7}]}]\n")
    (kind,) = topology("--placement", str(path), "-o", "json", stdin=machine("dgx-1v")).kinds
    assert [(origin["weightGBps"], origin["rule"]) for origin in kind["origins"]] == [
        (7, "deviceTopology[0].products[0]")
    ]


def test_an_unusable_placement_document_is_refused_with_all_complaints(topology: Run, tmp_path: Path) -> None:
    path = tmp_path / "placement.yaml"
    path.write_text("mix: x\npolicies: {default: y}\n")
    result = topology("--placement", str(path), stdin=machine("dgx-1v"))
    assert (result.status, result.output, len(result.errors.splitlines())) == (2, "", 2)


def test_an_object_that_cannot_be_read_is_named_and_the_others_are_shown(topology: Run) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, "spec": {}}
    result = topology(stdin=lines(slice_of("a"), pod))
    assert result.status == 1
    assert result.errors == ("dra-extender: Pod ns/p: kind: is neither a ResourceSlice of resource.k8s.io nor a Node\n")
    assert "n: 1 of a product without a name, gpu.example.com\n" in result.output


def test_what_an_older_generation_published_is_not_there(topology: Run) -> None:
    (kind,) = topology("-o", "json", stdin=lines(slice_of("new", 2), slice_of("old", 1))).kinds
    assert kind["devices"] == ["new"]


def test_devices_that_many_nodes_reach_are_counted_only(topology: Run) -> None:
    output = topology(stdin=lines(slice_of("a"), slice_of("b", allNodes=True) | {"metadata": {"name": "other"}})).output
    assert output.endswith("1 nodes, 1 devices; 1 devices are of no one node\n")


def test_a_set_of_more_devices_than_there_are_is_none(topology: Run) -> None:
    assert "no such set: there are fewer devices\n" in topology("--sets", "9", stdin=machine("dgx-1v")).output


@pytest.mark.parametrize("size", ["0", "-1", "two"])
def test_a_size_is_a_number_of_devices(topology: Run, size: str) -> None:
    with pytest.raises(SystemExit) as caught:
        topology(f"--sets={size}")
    assert caught.value.code == 2


def test_a_file_that_is_not_there_is_named(topology: Run) -> None:
    result = topology("-f", "nowhere.json")
    assert (result.status, result.errors) == (2, "dra-extender: nowhere.json: No such file or directory\n")


def test_a_name_cannot_rewrite_the_screen(topology: Run) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    attributes = {"productName": {"string": "\u001b[2J"}}
    published = slice_of("a")
    published["spec"]["devices"][0]["attributes"] = attributes
    assert "\u001b" not in topology(stdin=lines(node, published)).output


def test_too_many_devices_are_not_drawn(topology: Run) -> None:
    published = slice_of("a")
    published["spec"]["devices"] = [{"name": f"d-{index}"} for index in range(65)]
    output = topology(stdin=lines(published)).output
    assert "65 devices are too many to draw" in output
    assert "d-64" not in output
