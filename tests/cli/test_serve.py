"""The service as a process: how it begins, what it refuses, how it ends."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from extender.cli import main, serve
from extender.demo.apiserver.kinds import LEASE
from extender.demo.apiserver.server import ApiServer
from extender.kube.rights import REVIEWS
from tests.controlplane.processes import free_port
from tests.web.certificates import authority, issued

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"schedulerName": "dra-scheduler"}}

CONTEXT = {"name": "c", "context": {"cluster": "c", "user": "u"}}
USERS = [{"name": "u", "user": {"token": "t"}}]


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    server = ApiServer(token="secret")  # noqa: S106 - of a server that lives as long as a test
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": await server.start()}}],
                "users": [{"name": "u", "user": {"token": "secret"}}],
                "contexts": [CONTEXT],
                "current-context": "c",
            }
        )
    )
    yield path
    await server.stop()


async def called(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    first, _, rest = answer.partition(b"\r\n")
    return int(first.split()[1]), rest.partition(b"\r\n\r\n")[2]


async def until_ready(port: int, path: str = "/readyz") -> None:
    while True:
        try:
            if (await called(port, "GET", path))[0] == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.05)


async def test_it_serves_until_a_signal_ends_it(kubeconfig: Path) -> None:
    verbs, probes = free_port(), free_port()
    flags = [
        f"--api-kubeconfig={kubeconfig}",
        f"--listen-verbs=127.0.0.1:{verbs}",
        f"--listen-probes=127.0.0.1:{probes}",
        "--ownership-drivers=gpu.example.com",
    ]
    command = [sys.executable, "-m", "extender", "serve", *flags]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        await until_ready(probes)
        status, body = await called(verbs, "POST", "/filter", {"Pod": POD, "NodeNames": ["a", "b"]})
        assert (status, json.loads(body)["NodeNames"]) == (200, ["a", "b"])
        status, body = await called(probes, "GET", "/metrics")
        assert b"dra_extender_verb_duration_seconds" in body
        assert (await called(probes, "POST", "/filter", {}))[0] in (404, 405)
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = await process.communicate()
    assert (process.returncode, said) == (0, b"") or b"error" not in said


async def test_a_signal_ends_it_though_the_api_server_never_answered(tmp_path: Path) -> None:
    path, port = tmp_path / "kubeconfig", free_port()
    parts = {"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}]}
    parts |= {"users": [{"name": "u", "user": {"token": "t"}}], "contexts": [CONTEXT]}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", **parts}))
    flags = [f"--api-kubeconfig={path}", "--listen-verbs=127.0.0.1:0", f"--listen-probes=127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "extender", "serve", *flags, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        try:
            await until_ready(port, "/livez")
            process.send_signal(signal.SIGTERM)
            await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0


async def test_a_signal_ends_it_and_the_plugin_that_it_waits_for(tmp_path: Path) -> None:
    path, begun = tmp_path / "kubeconfig", tmp_path / "begun"
    waiting = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", waiting]}
    parts = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [CONTEXT]}
    parts |= {"users": [{"name": "u", "user": {"exec": plugin}}]}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", **parts}))
    flags = [f"--api-kubeconfig={path}", "--listen-verbs=127.0.0.1:0", "--listen-probes="]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "extender", "serve", *flags)
    async with asyncio.timeout(60):
        try:
            while not (begun.exists() and begun.read_text()):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
            while Path(f"/proc/{begun.read_text()}").exists():  # noqa: ASYNC110, ASYNC240 - as above
                await asyncio.sleep(0.05)
        finally:
            if process.returncode is None:
                process.kill()


class Written(ApiServer):
    """An API server that knows what was written since it was set back, but for Leases."""

    writes: list[str] | None = None

    async def set_back(self) -> None:
        port = int(self.url.rpartition(":")[2])
        await self.stop()
        self.store.revision, self.writes = 1, []
        await self.start(port)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        # What we may do is asked by POST, and nothing is written by that: who stands by is ready before all is asked.
        is_write = request.method != "GET" and request.path != REVIEWS
        if self.writes is not None and is_write and "leases" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
        return await super()._answer(request)


ALONE = ("--ownership-drivers=gpu.example.com",)
LEADING = (*ALONE, "--leading-enabled=true", "--leading-scheduler-lease=", "--leading-namespace=default")
SOMEBODY = {"holderIdentity": "somebody_1", "leaseDurationSeconds": 3600}


@pytest.mark.parametrize(
    ("flags", "lease"),
    [
        pytest.param(ALONE, None, id="alone"),
        pytest.param(("--ownership-mode=advisor",), None, id="advisor"),
        pytest.param(LEADING, None, id="about-to-lead"),
        pytest.param(LEADING, SOMEBODY, id="standby"),
    ],
)
async def test_in_a_cluster_that_was_set_back_it_ends_with_a_status_of_its_own_and_writes_nothing(
    tmp_path: Path, flags: tuple[str, ...], lease: object
) -> None:
    server, path, probes = Written(), tmp_path / "kubeconfig", free_port()
    parts = {"clusters": [{"name": "c", "cluster": {"server": await server.start()}}], "contexts": [CONTEXT]}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": USERS, **parts}))
    if lease is not None:
        server.registry.create(LEASE, "default", {"metadata": {"name": "dra-extender"}, "spec": lease})
    told = [f"--api-kubeconfig={path}", "--listen-verbs=127.0.0.1:0", f"--listen-probes=127.0.0.1:{probes}", *flags]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "extender", "serve", *told, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        try:
            await until_ready(probes)
            await server.set_back()
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
            await server.stop()
    assert (process.returncode, server.writes) == (serve.SET_BACK, []), said
    assert b"the cluster was set back" in said


def test_settings_that_cannot_be_used_are_all_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--answer-shortlist=0", "--answer-policy=some"]) == 2
    said = capsys.readouterr().err
    assert "--answer-shortlist" in said
    assert "--answer-policy" in said


def test_a_placement_document_that_cannot_be_used_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "placement.yaml"
    path.write_text("policies: {default: best}\nmixed: {}\n")
    assert main(["serve", f"--placement-file={path}"]) == 2
    complaints = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:3] for line in complaints] == [
        ["dra-extender", str(path), name] for name in ("policies.default", "mixed")
    ]


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing begin: neither is the cluster asked for, nor is anything listened on."""

    async def begun(*_: object) -> int:
        raise AssertionError("a check has begun to serve")

    monkeypatch.setattr(serve, "_serve", begun)


@pytest.mark.usefixtures("starting")
def test_a_check_reads_what_a_start_reads_and_begins_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = tmp_path / "placement.yaml"
    placement.write_text("mix: learnt\n")
    config = tmp_path / "extender.yaml"
    config.write_text(json.dumps({"ownership": {"mode": "advisor"}, "placement": {"file": str(placement)}}))
    files = issued(tmp_path, "server", authority(tmp_path, "ca"))
    told = ["serve", f"--config={config}", f"--tls-certificate={files[0]}", f"--tls-key={files[1]}", "--check"]
    assert (main(told), capsys.readouterr().err) == (0, "")
    monkeypatch.setenv("DRA_EXTENDER_ANSWER_SHORTLIST", "0")
    assert main(told) == 2
    assert "DRA_EXTENDER_ANSWER_SHORTLIST" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["setting", "flag", "document", "key"])
@pytest.mark.usefixtures("starting")
def test_a_check_refuses_what_a_start_would(tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    certificate, key = issued(tmp_path, "server", authority(tmp_path, "ca"))
    placement = tmp_path / "placement.yaml"
    placement.write_text("mixed: {}\n" if wrong == "document" else "{}\n")
    config = tmp_path / "extender.yaml"
    config.write_text("answers: {}\n" if wrong == "setting" else "{}\n")
    if wrong == "key":
        key.write_text("none")
    flags = ["--answer-policy=some"] if wrong == "flag" else []
    files = [f"--placement-file={placement}", f"--tls-certificate={certificate}", f"--tls-key={key}"]
    assert main(["serve", f"--config={config}", *files, *flags, "--check"]) == 2
    named = {"setting": "answers", "flag": "--answer-policy", "document": "mixed", "key": "tls.key"}
    (line,) = capsys.readouterr().err.splitlines()
    assert named[wrong] in line


def test_without_a_cluster_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("DRA_EXTENDER_")]:
        monkeypatch.delenv(name)
    assert main(["serve", f"--api-kubeconfig={tmp_path / 'none'}"]) == 1
    assert f"no cluster is configured in {tmp_path / 'none'}: " in capsys.readouterr().err


def test_it_raises_the_limit_of_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[bool] = []
    monkeypatch.setattr(serve, "raise_limit", lambda: raised.append(True))
    main(["serve", f"--api-kubeconfig={tmp_path / 'none'}"])
    assert raised == [True]


def test_explain_says_that_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ns/p", f"--server=127.0.0.1:{free_port()}"]) == 1
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["p", "/p", "ns/", "ns/p/q", "ns/ö", "n s/p", "ns/p?q", "ns/\udc80", "ns/../p"])
def test_explain_wants_the_name_of_a_pod(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["explain", name]) == 2
    assert "is not NAMESPACE/NAME" in capsys.readouterr().err


def test_explain_says_that_there_is_no_such_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ns/p", "--server=..:1"]) == 1
    assert "does not answer" in capsys.readouterr().err


async def test_an_address_that_is_taken_is_named_with_its_setting(kubeconfig: Path) -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    flags = [f"--api-kubeconfig={kubeconfig}", "--listen-verbs=127.0.0.1:0", f"--listen-probes=127.0.0.1:{port}"]
    command = [sys.executable, "-m", "extender", "serve", *flags]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    taken.close()
    assert process.returncode == 2
    (line,) = said.decode().splitlines()
    assert line.startswith(f"dra-extender: listen.probes: 127.0.0.1:{port} cannot be listened on: ")


async def test_a_start_that_is_not_safe_is_refused_with_the_setting(kubeconfig: Path) -> None:
    flags = [f"--api-kubeconfig={kubeconfig}", "--listen-verbs=127.0.0.1:0", "--listen-probes=127.0.0.1:0"]
    command = [sys.executable, "-m", "extender", "serve", *flags, "--ownership-keep-taint=false"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    assert process.returncode == 3
    assert "dra-extender: ownership.keepTaint: " in said.decode().splitlines()[-1]


async def test_what_fails_at_a_start_that_never_ends_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, enabled = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(serve, "START_S", 0.0)
    monkeypatch.setattr("gc.enable", enabled.set)
    waiting = asyncio.create_task(serve.before(ended, asyncio.create_task(asyncio.Event().wait())))
    async with asyncio.timeout(60):
        await enabled.wait()
        ended.set()
        assert not await waiting


async def test_memory_is_given_back_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, given = asyncio.Event(), list[bool]()

    def give_back() -> None:
        given.append(ended.is_set())
        if len(given) == 3:
            ended.set()

    monkeypatch.setattr(serve, "give_back", give_back)
    monkeypatch.setattr(serve, "GIVE_BACK_EVERY_S", 0.0)
    await serve.until(ended)
    assert given == [False, False, False]
