"""What was decided about a pod, in lines."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from extender.cli import main
from extender.cli.explain import told
from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.scheduling.account import note_of
from extender.scheduling.decision import Decided, Decision, Given, Ranked
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import Word
from extender.service.journal import Journal
from extender.telemetry.metrics import Metrics
from extender.web.tls import Files
from tests.web.certificates import authority, issued, locked_by
from tests.web.standin import StandIn, serving

BOUND = Decision(
    pod=ObjectKey("ns", "trainer-0"),
    uid=Uid("5d0e"),
    at=1_767_225_607.9,
    generation=1,
    outcome=Decided.BOUND,
    reason="DevicesAllocated",
    node=NodeName("node-7"),
)


def decided(decision: Decision) -> Any:
    """Return what the extender answers of *decision*."""
    nobody: Any = None  # what is told is all that counts
    journal = Journal(nobody, nobody, Metrics(), lambda: 0.0)
    journal.decisions.put(decision)
    return journal.of(decision.pod)


def lines_of(decision: Decision) -> list[str]:
    """Return what is told of *decision* as it comes from the extender."""
    return told(orjson.loads(orjson.dumps(decided(decision)))).splitlines()


def test_it_is_told_when_that_was_decided_and_of_which_pod_of_the_name() -> None:
    assert lines_of(BOUND) == [
        "ns/trainer-0: Bound (DevicesAllocated)",
        "decided: 2026-01-01T00:00:07Z",
        "uid: 5d0e",
        "node: node-7",
    ]


def test_what_does_not_print_is_escaped() -> None:
    assert lines_of(replace(BOUND, uid=Uid("\x1b[2J")))[2] == "uid: \\x1b[2J"


DEVICES = [DeviceKey(DriverName("gpu.example.com"), PoolName("node-7"), DeviceName(f"gpu-{index}")) for index in (0, 1)]


@pytest.mark.parametrize(
    ("claims", "whose"), [(("a", "a"), ("", "")), (("a", "b"), (" (claim a)", " (claim b)"))], ids=["one", "two"]
)
def test_devices_are_told_with_their_claims_where_there_are_several(
    claims: tuple[str, str], whose: tuple[str, str]
) -> None:
    given = tuple(Given(claim, "gpu", device) for claim, device in zip(claims, DEVICES, strict=True))
    decision = replace(BOUND, given=given)
    names = [f"gpu.example.com/node-7/gpu-{index}" for index in (0, 1)]
    assert lines_of(decision)[4:] == [f"device: gpu = {name}{of}" for name, of in zip(names, whose, strict=True)]
    assert note_of(decision) == f"node node-7: gpu={names[0]}{whose[0]}, gpu={names[1]}{whose[1]}"


def test_one_of_the_nodes_that_were_rejected_alike_is_named() -> None:
    tallies = (Tally(Word.IN_USE, 4999, "1 device too few", NodeName("node-7")),)
    lines = lines_of(replace(BOUND, outcome=Decided.REJECTED, reason="InUse", node=None, rejected=tallies))
    assert [line.split() for line in lines[-2:]] == [
        ["REJECTED", "SUCH", "AS", "REASON", "NEAREST", "MISS"],
        ["4999", "node-7", "InUse", "1", "device", "too", "few"],
    ]


@pytest.mark.parametrize(("free", "columns"), [(None, ["-"]), (0, ["0", "0", "devices", "were", "free"])])
def test_free_devices_that_are_not_counted_are_not_said_to_be_none(free: int | None, columns: list[str]) -> None:
    lines = lines_of(replace(BOUND, best=(Ranked(NodeName("node-7"), 10, free),)))
    assert lines[-1].split() == ["node-7", "10", "0.000", *columns]


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("answer", [[], {}, "<html>", {"at": "now"}], ids=str)
async def test_what_is_no_decision_is_told_as_that(
    answer: object, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(StandIn(known={BOUND.pod: answer})) as server:
        words = ["explain", "ns/trainer-0", f"--server=127.0.0.1:{server.ports[0]}", "-o", output]
        assert await asyncio.to_thread(main, words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "answers, but with no decision" in err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_a_client_of_the_authority_is_told_over_mutual_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = authority(tmp_path, "ca")
    files = Files(*issued(tmp_path, "server", ca, names="DNS:extender.example.com"), ca)
    certificate, key = issued(tmp_path, "operator", ca)
    words = ["explain", "ns/trainer-0", f"--ca={ca}", "--server-name=extender.example.com"]
    async with serving(StandIn(known={BOUND.pod: decided(BOUND)}), tls=files) as server:
        words.append(f"--server=127.0.0.1:{server.ports[0]}")
        assert await asyncio.to_thread(main, words) == 1
        assert "does not answer" in capsys.readouterr().err
        assert await asyncio.to_thread(main, [words[0], words[1], words[-1]]) == 1
        assert capsys.readouterr().err.rstrip().endswith("; where it speaks TLS, it needs --ca")
        assert await asyncio.to_thread(main, [*words, f"--certificate={certificate}", f"--key={key}"]) == 0
    assert capsys.readouterr().out.startswith("ns/trainer-0: Bound (DevicesAllocated)\n")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_who_has_another_name_than_was_asked_for_is_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = authority(tmp_path, "ca")
    standin = StandIn(known={BOUND.pod: decided(BOUND)})
    async with serving(standin, tls=Files(*issued(tmp_path, "server", ca, names="DNS:other.example.com"))) as server:
        words = ["explain", "ns/trainer-0", f"--ca={ca}", f"--server=127.0.0.1:{server.ports[0]}"]
        assert await asyncio.to_thread(main, words) == 1
    assert "certificate verify failed" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_key_with_a_pass_phrase_is_said_to_have_one_and_nobody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = authority(tmp_path, "ca")
    certificate, key = issued(tmp_path, "operator", ca)
    locked = locked_by(key, "secret")
    assert main(["explain", "ns/p", f"--ca={ca}", f"--certificate={certificate}", f"--key={locked}"]) == 2
    assert f"--key {certificate} {locked}: the key has a pass phrase" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param(["--certificate=c"], "--certificate needs --ca", id="a certificate without an authority"),
        pytest.param(["--server-name=n"], "--server-name needs --ca", id="a name without an authority"),
        pytest.param(["--ca=nowhere"], "--ca nowhere: ", id="no such authority"),
        pytest.param(["--ca=a", "--key=k"], "--key needs --certificate", id="a key alone"),
    ],
)
def test_options_of_tls_that_do_not_fit_together_are_named(
    capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
) -> None:
    assert main(["explain", "ns/p", *options]) == 2
    assert capsys.readouterr().err.startswith(f"dra-extender: {complaint}")
