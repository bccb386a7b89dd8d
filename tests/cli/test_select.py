import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from extender.cli import main

IS_H100 = 'device.attributes["gpu.example.com"].model == "H100"'


class Result(NamedTuple):
    status: int
    output: str
    errors: str

    @property
    def answers(self) -> list[Any]:
        parsed: list[Any] = json.loads(self.output)
        return parsed

    @property
    def outcomes(self) -> dict[str, str]:
        return {answer["device"]: answer["outcome"] for answer in self.answers}


Run = Callable[..., Result]


@pytest.fixture
def select(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = main(["select", *arguments])
        output, errors = capsysbinary.readouterr()
        return Result(status, output.decode(), errors.decode())

    return run


def gpu(name: str, **attributes: str) -> dict[str, Any]:
    return {"name": name, "attributes": {key: {"string": value} for key, value in attributes.items()}}


def slice_of(*devices: dict[str, Any], name: str = "slice-1", **spec: Any) -> dict[str, Any]:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": list(devices)} | spec,
    }


def list_of(*items: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1" if kind == "List" else "resource.k8s.io/v1", "kind": kind, "items": list(items)}


H100 = slice_of(gpu("gpu-0", model="H100"))
A100 = slice_of(gpu("gpu-1", model="A100"), name="slice-2")
BARE = slice_of(gpu("gpu-2"), name="slice-3")
BROKEN = slice_of(name="broken", pool=7)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}


def test_json_has_exactly_the_promised_keys(select: Run) -> None:
    result = select(IS_H100, "-o", "json", stdin=json.dumps(list_of(H100, A100, BARE)))
    match, no, error = result.answers
    device = {"driver": "gpu.example.com", "pool": "node-1"}
    assert match == device | {"device": "gpu-0", "outcome": "match", "error": ""}
    assert no == device | {"device": "gpu-1", "outcome": "no", "error": ""}
    assert error | {"error": ""} == device | {"device": "gpu-2", "outcome": "error", "error": ""}
    assert "no such key" in error["error"]
    assert list(match) == ["driver", "pool", "device", "outcome", "error"]
    assert (result.status, result.errors) == (0, "")


def test_the_table_shows_every_device_and_counts_outcomes(select: Run) -> None:
    result = select(IS_H100, stdin=json.dumps(list_of(H100, A100, BARE)))
    header, *rows, blank, summary = result.output.splitlines()
    assert header.split() == ["DRIVER", "POOL", "DEVICE", "OUTCOME", "ERROR"]
    assert [row.split()[2:4] for row in rows] == [["gpu-0", "match"], ["gpu-1", "no"], ["gpu-2", "error"]]
    assert (blank, summary) == ("", "3 devices: 1 match, 1 no, 1 error")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(list_of(H100, A100)), id="list"),
        pytest.param(json.dumps(list_of(H100, A100, kind="ResourceSliceList"), indent=2), id="slice-list"),
        pytest.param(f"{json.dumps(H100)}\n{json.dumps(A100)}\n", id="one-per-line"),
        pytest.param(f"{json.dumps(list_of(H100))}\n{json.dumps(list_of(A100))}\n", id="lists-per-line"),
        pytest.param(json.dumps(slice_of(gpu("gpu-0", model="H100"), gpu("gpu-1", model="A100"))), id="one-slice"),
    ],
)
def test_every_form_of_input_gives_the_same_answer(select: Run, text: str) -> None:
    result = select(IS_H100, "-o", "json", stdin=text)
    assert (result.status, result.errors) == (0, "")
    assert result.outcomes == {"gpu-0": "match", "gpu-1": "no"}


def test_a_file_is_read_instead_of_standard_input(select: Run, tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    file.write_text(json.dumps(H100))
    assert select(IS_H100, "-o", "json", "-f", str(file), stdin=json.dumps(A100)).outcomes == {"gpu-0": "match"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(json.dumps(list_of(H100, BROKEN, A100)), "ResourceSlice broken: ", id="malformed"),
        pytest.param(f"{json.dumps(H100)}\n{{?\n{json.dumps(A100)}", "line 2, column 2: not JSON: ", id="not-json"),
        pytest.param(json.dumps(list_of(H100, POD, A100)), "Pod default/p: kind: is no ResourceSlice", id="other-kind"),
        pytest.param(
            f"{json.dumps(H100)}\n[]\n{json.dumps(A100)}", "object (unnamed): kind: is no ResourceSlice", id="array"
        ),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_answered(select: Run, text: str, complaint: str) -> None:
    result = select(IS_H100, "-o", "json", stdin=text)
    assert result.outcomes == {"gpu-0": "match", "gpu-1": "no"}
    assert result.errors.startswith(f"dra-extender: {complaint}")
    assert len(result.errors.splitlines()) == 1
    assert result.status == 1


def test_a_complaint_cannot_steer_the_terminal(select: Run) -> None:
    result = select("true", stdin=json.dumps(list_of(slice_of(name="\x1b[2J", pool=7))))
    assert "\\x1b[2J" in result.errors


def test_a_cluster_without_slices_has_no_devices(select: Run) -> None:
    assert select("true", "-o", "json", stdin=json.dumps(list_of())) == Result(0, "[]\n", "")
    assert select("true", stdin=json.dumps(list_of())).output.endswith("0 devices: 0 match, 0 no, 0 error\n")


def test_the_file_is_named_of_which_something_could_not_be_read(select: Run, tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    for content, complaint in (("nope", "line 1, column 1: not JSON"), ("[]", "object (unnamed): kind: is no")):
        file.write_text(content)
        assert select("true", "-f", str(file)).errors.startswith(f"dra-extender: {file}: {complaint}")


def test_nothing_at_all_is_not_a_cluster_without_slices(select: Run) -> None:
    result = select("true", "-o", "json", stdin="")
    assert result.status == 1
    assert "line 1, column 1: not JSON" in result.errors


@pytest.mark.parametrize("expression", ["device.driver == ", "device.driver == nobody", "device.driver"])
def test_an_expression_that_does_not_compile_is_shown_with_a_caret(select: Run, expression: str) -> None:
    result = select(expression, stdin=json.dumps(H100))
    assert (result.status, result.output) == (2, "")
    *_, line, caret = result.errors.splitlines()
    assert line.endswith(expression)
    assert caret.strip() == "^"
    assert len(caret) <= len(line) + 1


def test_the_expression_is_refused_before_anything_is_read(select: Run) -> None:
    result = select("nobody", stdin="not JSON")
    assert result.status == 2
    assert "JSON" not in result.errors


def test_an_expression_that_is_not_unicode_is_refused(select: Run) -> None:
    result = select(os.fsdecode(b'device.driver == "\xff"'), "-o", "json", stdin=json.dumps(H100))
    assert (result.status, result.output) == (2, "")
    assert "not valid UTF-8" in result.errors


def test_a_file_that_cannot_be_read_is_wrong_usage(select: Run, tmp_path: Path) -> None:
    result = select("true", "-f", str(tmp_path / "absent.json"))
    assert (result.status, result.output) == (2, "")
    assert result.errors.endswith("absent.json: No such file or directory\n")


@pytest.mark.parametrize("arguments", [[], ["select"], ["select", "true", "-o", "yaml"], ["choose"]])
def test_wrong_usage_exits_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert capsys.readouterr().err.startswith("usage: dra-extender")


@pytest.mark.parametrize("form", ["json", "table"])
def test_an_error_that_quotes_bytes_that_are_no_text_is_shown(select: Run, form: str) -> None:
    expression = "{'a': 1}[url('http://a/?a=%ff').getQuery()['a'][0]] == 1"
    result = select(expression, "-o", form, stdin=json.dumps(list_of(slice_of(gpu("d0")))))
    assert result.status == 0
    assert "no such key: \N{REPLACEMENT CHARACTER}" in result.output
