"""The command as a process: its pipes, its signals, its exit status."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import ROOT

EXAMPLE = ROOT / "examples" / "slices.json"


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-m", "extender"], [str(Path(sys.executable).with_name("dra-extender"))]],
    ids=["module", "script"],
)
def test_module_and_script_are_the_same_command(command: list[str]) -> None:
    arguments = ["select", "true", "-o", "json"]
    result = subprocess.run(
        [*command, *arguments], input=EXAMPLE.read_bytes(), stdout=subprocess.PIPE, cwd=ROOT, check=True
    )
    assert len(json.loads(result.stdout)) == 12


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_reader_that_leaves_is_no_reason_to_complain(output: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "extender", "select", "true", "-o", output, "-f", str(EXAMPLE)]
    result = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert result.stderr == b""
    assert result.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("output", ["table", "json"])
def test_output_that_finds_no_room_is_told_in_a_line(output: str) -> None:
    command = [sys.executable, "-m", "extender", "select", "true", "-o", output, "-f", str(EXAMPLE)]
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.stderr == b"dra-extender: standard output: No space left on device\n"
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ("select true <&-", 2, "standard input: is closed"),
        ("topology <&-", 2, "standard input: is closed"),
        ("allocate <&-", 2, "standard input: is closed"),
        (f"select true -f {EXAMPLE} >&-", 1, "standard output: is closed"),
        ("demo >&-", 1, "standard output: is closed"),
        ("serve --listen-probes=here >&-", 2, "listen.probes: must be host:port"),
        ("select true <&- 2>&-", 2, ""),
    ],
)
def test_a_stream_that_is_closed_is_told_in_a_line(arguments: str, status: int, complaint: str) -> None:
    shell = ["sh", "-c", f"{sys.executable} -m extender {arguments}"]
    result = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (status, complaint and f"dra-extender: {complaint}\n")


def test_a_stream_that_is_not_needed_may_be_closed() -> None:
    shell = ["sh", "-c", f"{sys.executable} -m extender select true -f {EXAMPLE} -o json <&- 2>&-"]
    result = subprocess.run(shell, cwd=ROOT, capture_output=True, check=True)
    assert len(json.loads(result.stdout)) == 12


LOCALE = os.environ | {"PYTHONIOENCODING": "ascii"}


def test_the_table_is_utf_8_whatever_the_locale() -> None:
    command = [sys.executable, "-m", "extender", "select", "-f", str(EXAMPLE)]
    selector = 'device.attributes["gpu.example.com"]["ü"] == "x"'
    result = subprocess.run([*command, selector], cwd=ROOT, env=LOCALE, stdout=subprocess.PIPE, check=True)
    assert "ü" in result.stdout.decode("utf-8")


def test_the_table_of_an_answer_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    for file in EXAMPLE.parent.glob("*.json"):
        (tmp_path / file.name).write_text(file.read_text().replace('"node-1"', '"nöde-1"'))
    command = [sys.executable, "-m", "extender", "allocate", "--from", str(tmp_path), "--pod", "ml/trainer"]
    result = subprocess.run([*command, "-o", "table"], cwd=ROOT, env=LOCALE, stdout=subprocess.PIPE, check=False)
    assert "nöde-1" in result.stdout.decode("utf-8")
