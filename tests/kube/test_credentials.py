"""Credentials are found where kubectl finds them, and read again when they have been rotated."""

import asyncio
import gc
import logging
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Loaded
from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.credentials import (
    LOOK_EVERY_S,
    FileCredentials,
    NoCredentials,
    credentials,
    from_kubeconfig,
    in_cluster,
)
from extender.kube.request import Body
from extender.model.parse.fields import Malformed
from extender.telemetry import keys
from extender.telemetry.expiry import expiry_in
from tests.tree import ROOT, files

Json = dict[str, Any]


# A plugin that gives a token, as credential plugins do.
PLUGIN = (
    'import json; print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    ' "status": {"token": "of-a-plugin"}}))'
)
LIBRARY = re.compile(r"^\s*(from|import) kubernetes\b", re.MULTILINE)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time

    def look_again(self) -> None:
        self.time += LOOK_EVERY_S


def kubeconfig(folder: Path, user: Json, server: str = "http://127.0.0.1:1/", **cluster: object) -> str:
    path = folder / "kubeconfig"
    names = {"cluster": "c", "user": "u"}
    content = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}, {"name": "v", "user": {"token": "of-v"}}],
        "contexts": [{"name": "one", "context": names}, {"name": "two", "context": {**names, "user": "v"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def test_a_kubeconfig_names_server_and_token(tmp_path: Path) -> None:
    loaded = await from_kubeconfig(kubeconfig(tmp_path, {"token": "secret"}), None)
    assert loaded.access == Access(server="http://127.0.0.1:1", authorization="Bearer secret")


async def test_a_context_chooses_the_user(tmp_path: Path) -> None:
    loaded = await from_kubeconfig(kubeconfig(tmp_path, {"token": "secret"}), "two")
    assert loaded.access.authorization == "Bearer of-v"


async def test_a_token_file_is_watched_and_may_end_in_a_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    loaded = await from_kubeconfig(kubeconfig(tmp_path, {"tokenFile": "token"}), None)
    assert loaded.access.authorization == "Bearer secret"
    assert str(tmp_path / "token") in loaded.files


async def test_a_server_that_is_not_to_be_verified_is_not(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"}, "https://127.0.0.1:1", **{"insecure-skip-tls-verify": True})
    tls = (await from_kubeconfig(path, None)).access.tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")], ids=["v4", "v6"]
)
async def test_a_pod_is_given_its_token_and_the_authority(
    host: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "token").write_text("bound")
    authority(tmp_path / "ca.crt")
    loaded = await in_cluster(str(tmp_path / "token"), str(tmp_path / "ca.crt"))
    assert (loaded.access.server, loaded.access.authorization) == (server, "Bearer bound")
    assert set(loaded.files) == {str(tmp_path / "token"), str(tmp_path / "ca.crt")}


async def test_without_any_configuration_there_are_no_credentials(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials):
        await credentials(str(tmp_path / "never"))


async def test_a_pod_that_is_told_of_another_cluster_means_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, {"token": "secret"}, "http://another:1"))
    assert (await (await credentials()).access()).server == "http://another:1"


async def rotating(path: str) -> tuple[FileCredentials, Clock]:
    clock = Clock()

    async def load() -> Loaded:
        return await from_kubeconfig(path, None)

    found = FileCredentials(load, clock)
    await found.renew()
    return found, clock


async def test_a_rotated_token_is_seen_when_it_is_looked_for_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    found, clock = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}))
    replace(tmp_path / "token", "second")
    assert (await found.access()).authorization == "Bearer first"
    clock.look_again()
    assert (await found.access()).authorization == "Bearer second"


async def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    found, clock = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}))
    before = await found.access()
    clock.look_again()
    assert await found.access() is before


async def test_what_cannot_be_read_for_a_moment_is_kept(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    found, clock = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}))
    (tmp_path / "token").unlink()
    clock.look_again()
    assert (await found.access()).authorization == "Bearer first"
    (tmp_path / "token").write_text("second")
    clock.look_again()
    assert (await found.access()).authorization == "Bearer second"


async def test_a_token_that_no_header_can_have_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    found, clock = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}))
    (tmp_path / "token").write_text("sec\nond")
    clock.look_again()
    assert (await found.access()).authorization == "Bearer first"


@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_a_token_beside_a_file_counts_until_there_is_one_in_the_file(beside: str, tmp_path: Path) -> None:
    found, clock = await rotating(kubeconfig(tmp_path, {"token": "stale", "tokenFile": "token"}) + beside)
    assert (await found.access()).authorization == "Bearer stale"
    (tmp_path / "token").write_text("fresh")
    clock.look_again()
    assert (await found.access()).authorization == "Bearer fresh"


async def test_what_was_read_from_a_file_counts_until_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("fresh")
    found, clock = await rotating(kubeconfig(tmp_path, {"token": "stale", "tokenFile": "token"}))
    (tmp_path / "token").unlink()
    clock.look_again()
    kept = await found.access()
    assert kept.authorization == "Bearer fresh"
    await found.renew(kept)
    assert (await found.access()).authorization == "Bearer stale"
    (tmp_path / "token").write_text("newer")
    clock.look_again()
    assert (await found.access()).authorization == "Bearer newer"


async def test_a_certificate_that_was_replaced_is_used(tmp_path: Path) -> None:
    authority(tmp_path / "ca.crt")
    path = kubeconfig(tmp_path, {"token": "t"}, "https://127.0.0.1:1", **{"certificate-authority": "ca.crt"})
    found, clock = await rotating(path)
    before = await found.access()
    authority(tmp_path / "new.crt")
    (tmp_path / "new.crt").replace(tmp_path / "ca.crt")
    clock.look_again()
    after = await found.access()
    assert before.tls is not None
    assert after.tls is not None
    assert before.tls.get_ca_certs() != after.tls.get_ca_certs()


def pointing(path: str, context: str, server: str = "http://127.0.0.1:1", user: str = "secret") -> None:
    """Write a kubeconfig in which the context one has *server*, and another has another; *context* is the current."""
    servers = {"one": server, "other": "http://another:1"}
    content = {
        "current-context": context,
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
        "users": [{"name": "u", "user": {"token": user}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in servers],
    }
    Path(path).write_text(yaml.safe_dump(content))


@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_another_context_that_becomes_current_changes_nothing(
    beside: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "kubeconfig")
    pointing(path, "one")
    found = await credentials(path + beside)
    pointing(path, "other", user="rotated")
    caplog.clear()
    await found.renew()
    access = await found.access()
    assert (access.server, access.authorization) == ("http://127.0.0.1:1", "Bearer rotated")
    assert not caplog.records


async def test_another_server_is_not_gone_to_and_that_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "kubeconfig")
    pointing(path, "one")
    found = await credentials(path)
    pointing(path, "one", "http://moved:1", "of-there")
    for _ in range(2):
        await found.renew()
    access = await found.access()
    assert (access.server, access.authorization) == ("http://127.0.0.1:1", "Bearer secret")
    assert told(caplog) == ["http://moved:1 is another server than http://127.0.0.1:1; a restart goes there"]
    pointing(path, "one", user="rotated")
    await found.renew()
    assert (await found.access()).authorization == "Bearer rotated"


async def test_why_what_was_rotated_is_not_taken_is_told_once_for_each_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("first")
    path = kubeconfig(tmp_path, {"tokenFile": "token"})
    found, clock = await rotating(path)
    caplog.set_level(logging.INFO)
    for text, reasons in (("", 1), ("sec\nond", 2), ("second", 2), ("", 3)):
        (tmp_path / "token").write_text(text)
        for _ in range(2):
            clock.look_again()
            await found.access()
        assert len(told(caplog)) == reasons
    without, control, again = told(caplog)
    assert without == again
    # Once they can be used, that is told once, too.
    assert [record.message for record in caplog.records if record.levelno == logging.INFO] == ["credentials taken"]
    assert without.endswith("tokenFile: names a file without a token")
    assert "control character" in control
    assert "sec" not in control


async def test_files_that_are_as_before_again_are_told_of_and_so_is_what_comes_after(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("first")
    found, clock = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}))
    caplog.set_level(logging.INFO)
    for text in ("", "first", ""):
        (tmp_path / "token").write_text(text)
        for _ in range(2):
            clock.look_again()
            await found.access()
    refused = "credentials refused, the earlier ones stay in use"
    assert [record.message for record in caplog.records] == [refused, "credentials taken", refused]


async def test_a_pod_takes_its_token_where_only_the_authority_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in (("HOST", "10.0.0.1"), ("PORT", "443")):
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", value)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    monkeypatch.setattr(in_cluster, "__defaults__", (str(token), str(ca), None))
    token.write_text("first")
    authority(ca)
    whole = ca.read_text()
    found = await credentials()
    first = await found.access()
    ca.write_text(whole[: len(whole) // 2])
    for text in ("second", "third"):
        token.write_text(text)
        await found.renew()
        access = await found.access()
        assert (access.authorization, access.tls is first.tls) == (f"Bearer {text}", True)
    (why,) = told(caplog)
    assert why.startswith(f"{ca}: cannot be used: ")
    ca.write_text(whole)
    await found.renew()
    assert (await found.access()).tls is not first.tls
    assert len(told(caplog)) == 1


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return why credentials were refused, line by line."""
    line = "credentials refused, the earlier ones stay in use"
    return [vars(record)[keys.ERROR] for record in caplog.records if record.message == line]


def plain_user(folder: Path) -> tuple[str, Path]:
    return kubeconfig(folder, {"token": "t"}), folder / "kubeconfig"


def user_of_a_token_file(folder: Path) -> tuple[str, Path]:
    (folder / "token").write_text("first")
    return kubeconfig(folder, {"tokenFile": "token"}), folder / "token"


def user_of_a_certificate(folder: Path) -> tuple[str, Path]:
    authority(folder / "me.crt")
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    return kubeconfig(folder, user, "https://127.0.0.1:1"), folder / "me.crt"


def user_of_a_plugin(folder: Path) -> tuple[str, Path]:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", PLUGIN]}
    authority(folder / "ca.crt")
    path = kubeconfig(folder, {"exec": plugin}, "https://127.0.0.1:1", **{"certificate-authority": "ca.crt"})
    return path, folder / "ca.crt"


# Each gives a kubeconfig, and a file that is replaced at the worst moment.
REPLACED: dict[str, Callable[[Path], tuple[str, Path]]] = {
    "the kubeconfig": plain_user,
    "a token file": user_of_a_token_file,
    "a client's certificate": user_of_a_certificate,
    "an authority beside a plugin": user_of_a_plugin,
}


def annotated(path: Path) -> None:
    """Write something else that means the same; whoever looks at times sees nothing of it."""
    state = path.stat()
    path.write_text(f"{path.read_text()}\n\n")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize("what", REPLACED)
async def test_what_is_replaced_as_soon_as_it_was_read_is_read_again_once(what: str, tmp_path: Path) -> None:
    (path, replaced), clock, loads = REPLACED[what](tmp_path), Clock(), list[Loaded]()

    async def load() -> Loaded:
        loads.append(await from_kubeconfig(path, None))
        if len(loads) == 1:
            replace(replaced, f"{replaced.read_text()}\n")
        return loads[-1]

    found = FileCredentials(load, clock)
    for _ in range(4):
        await found.access()
        clock.look_again()
    assert len(loads) == 2


@pytest.mark.parametrize("what", REPLACED)
async def test_what_is_written_twice_within_one_tick_of_the_clock_is_read_again(what: str, tmp_path: Path) -> None:
    path, replaced = REPLACED[what](tmp_path)
    found, clock = await rotating(path)
    before = await found.access()
    annotated(replaced)
    clock.look_again()
    assert await found.access() is not before


async def test_what_a_plugin_gave_is_kept_while_it_fails_and_it_is_asked_again(tmp_path: Path) -> None:
    broken, calls = tmp_path / "broken", tmp_path / "calls"
    failing = f"import os; open({str(calls)!r}, 'a').write('x'); os.path.exists({str(broken)!r}) and os._exit(1)"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable}
    found, _ = await rotating(kubeconfig(tmp_path, {"exec": {**plugin, "args": ["-c", f"{failing}; {PLUGIN}"]}}))
    broken.touch()
    for count in (2, 3):
        await found.renew()
        assert (await found.access()).authorization == "Bearer of-a-plugin"
        assert len(calls.read_text()) == count


async def test_a_plugin_that_is_waited_for_no_more_is_ended(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    waiting = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", waiting]}
    looking = asyncio.create_task(credentials(kubeconfig(tmp_path, {"exec": plugin})))
    async with asyncio.timeout(60):
        while not (begun.exists() and begun.read_text()):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        while Path(f"/proc/{begun.read_text()}").exists():  # noqa: ASYNC110, ASYNC240 - as above
            await asyncio.sleep(0.05)


async def test_an_authority_that_is_replaced_while_a_plugin_runs_is_used(tmp_path: Path) -> None:
    path, replaced = user_of_a_plugin(tmp_path)
    authority(tmp_path / "new.crt")
    new = (tmp_path / "new.crt").read_text()
    first = (await from_kubeconfig(path, None)).access.tls
    replacing = f"from pathlib import Path; Path({str(replaced)!r}).write_text({new!r}); {PLUGIN}"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", replacing]}
    kubeconfig(tmp_path, {"exec": plugin}, "https://127.0.0.1:1", **{"certificate-authority": "ca.crt"})
    found, clock = await rotating(path)
    clock.look_again()
    tls = (await found.access()).tls
    assert first is not None
    assert tls is not None
    assert len(tls.get_ca_certs()) == 1
    assert tls.get_ca_certs() != first.get_ca_certs()


async def test_a_mounted_secret_that_moved_on_as_soon_as_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for version in ("first", "second"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "token").write_text(version)
        authority(tmp_path / version / "ca.crt")
    points_to(tmp_path, "first")
    for name in ("token", "ca.crt"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    clock = Clock()

    async def load() -> Loaded:
        loaded = await in_cluster(str(tmp_path / "token"), str(tmp_path / "ca.crt"))
        points_to(tmp_path, "second")
        return loaded

    found = FileCredentials(load, clock)
    before = await found.access()
    clock.look_again()
    after = await found.access()
    assert (before.authorization, after.authorization) == ("Bearer first", "Bearer second")
    assert before.tls is not None
    assert after.tls is not None
    assert before.tls.get_ca_certs() != after.tls.get_ca_certs()


def points_to(folder: Path, version: str) -> None:
    """Let the link ``..data`` point to another version at one blow, as kubelet does."""
    (folder / "..data_tmp").symlink_to(version)
    (folder / "..data_tmp").replace(folder / "..data")


async def test_a_kubeconfig_out_of_a_pipe_is_read_once(tmp_path: Path) -> None:
    reading = piped(kubeconfig(tmp_path, {"token": "secret"}))
    found, clock = await rotating(f"/dev/fd/{reading}")
    before = await found.access()
    clock.look_again()
    assert await found.access() is before
    os.close(reading)


def piped(path: str) -> int:
    """Return the end of a pipe that has what stands in the file at *path*."""
    reading, writing = os.pipe()
    os.write(writing, Path(path).read_bytes())
    os.close(writing)
    return reading


async def test_until_when_the_certificate_of_a_kubeconfig_holds_is_told_for_each(tmp_path: Path) -> None:
    path, certificate = user_of_a_certificate(tmp_path)
    (found, clock), told = await rotating(path), list[float | None]()
    api = Api(found)
    api.lasts = told.append
    until = expiry_in(certificate.read_bytes())
    assert until is not None
    for user, wanted in (({"client-certificate": "me.crt", "client-key": "me.key"}, [until]), ({}, [until, None])):
        kubeconfig(tmp_path, user, "https://127.0.0.1:1")
        clock.look_again()
        for _ in range(2):
            await api.call("GET", "/api/v1/nodes")
        assert told == wanted
    await api.close()


async def test_a_refused_token_is_read_again_and_the_request_is_sent_once_more(tmp_path: Path) -> None:
    server = ApiServer(token="second")  # noqa: S106 - of a server that lives as long as a test
    (tmp_path / "token").write_text("first")
    found, _ = await rotating(kubeconfig(tmp_path, {"tokenFile": "token"}, await server.start()))
    api = Api(found)
    refused = await api.call("GET", "/api/v1/nodes")
    replace(tmp_path / "token", "second")
    answered = await api.call("GET", "/api/v1/nodes")
    await api.close()
    await server.stop()
    assert isinstance(refused, Answer)
    assert isinstance(answered, Answer)
    assert (refused.status, answered.status) == (401, 200)


async def test_a_token_that_is_refused_many_times_at_once_is_asked_for_once() -> None:
    server, asked = ApiServer(token="2"), []  # noqa: S106 - of a server that lives as long as a test
    url = await server.start()

    async def load() -> Loaded:
        asked.append(url)
        token = str(len(asked))
        await asyncio.sleep(0)
        return Loaded(Access(server=url, authorization=f"Bearer {token}"), {})

    found = FileCredentials(load)
    await found.renew()
    api = Api(found)
    answers = await asyncio.gather(*(api.call("GET", "/api/v1/nodes") for _ in range(20)))
    await api.close()
    await server.stop()
    assert [answer.status for answer in answers if isinstance(answer, Answer)] == [200] * 20
    assert len(asked) == 2


async def test_a_write_that_was_refused_for_its_token_was_not_sent_however_long_a_new_one_takes() -> None:
    server = ApiServer(token="2")  # noqa: S106 - of a server that lives as long as a test
    url, asked = await server.start(), []

    async def load() -> Loaded:
        asked.append(url)
        if len(asked) > 1:
            await asyncio.Event().wait()
        return Loaded(Access(server=url, authorization="Bearer 1"), {})

    found = FileCredentials(load)
    await found.renew()
    api = Api(found)
    answer = await api.call("POST", "/api/v1/nodes", body=Body({}), timeout_s=0.5)
    await api.close()
    await server.stop()
    assert len(asked) == 2
    assert isinstance(answer, Unanswered)
    assert not answer.was_sent


class Plugin:
    """Gives a first token at once, and another one, or an error, once that is let."""

    def __init__(self, url: str = "http://127.0.0.1:1") -> None:
        self.url = url
        self.asked = 0
        self.begun, self.may_answer, self.was_cancelled = asyncio.Event(), asyncio.Event(), False
        self.error: Exception | None = None

    async def load(self) -> Loaded:
        self.asked += 1
        if self.asked > 1:
            self.begun.set()
            try:
                await self.may_answer.wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
        if self.error is not None:
            raise self.error
        return Loaded(Access(server=self.url, authorization=f"Bearer {self.asked}"), {})


async def slow(plugin: Plugin) -> FileCredentials:
    found = FileCredentials(plugin.load)
    await found.renew()
    return found


async def cut_off(found: FileCredentials, plugin: Plugin) -> None:
    """Renew what was refused, and be ended before the plugin answers."""
    asking = asyncio.create_task(found.renew(await found.access()))
    await plugin.begun.wait()
    asking.cancel()
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], asyncio.CancelledError)


async def test_what_a_plugin_gives_after_the_request_was_given_up_is_used() -> None:
    server = ApiServer(token="2")  # noqa: S106 - of a server that lives as long as a test
    plugin = Plugin(await server.start())
    api = Api(await slow(plugin))
    given_up = await api.call("GET", "/api/v1/nodes", timeout_s=0.5)
    assert isinstance(given_up, Unanswered)
    plugin.may_answer.set()
    answer = await api.call("GET", "/api/v1/nodes")
    await api.close()
    await server.stop()
    assert isinstance(answer, Answer)
    assert (answer.status, plugin.asked) == (200, 2)


async def test_whoever_comes_while_a_plugin_runs_waits_for_the_same() -> None:
    plugin = Plugin()
    found = await slow(plugin)
    refused = await found.access()
    await cut_off(found, plugin)
    waiting = [asyncio.create_task(found.renew(each)) for each in (refused, None, refused)]
    await asyncio.sleep(0)
    plugin.may_answer.set()
    await asyncio.gather(*waiting)
    assert ((await found.access()).authorization, plugin.asked) == ("Bearer 2", 2)


async def test_what_is_refused_while_files_are_looked_at_is_replaced_by_what_they_say() -> None:
    plugin = Plugin()

    async def load() -> Loaded:
        loaded = await plugin.load()
        # The first token was in a file that is gone.
        return Loaded(loaded.access, {"token": b"digest"} if plugin.asked == 1 else {}, "token")

    found = FileCredentials(load)
    await found.renew()
    refused = await found.access()
    waiting = [asyncio.create_task(found.renew(each)) for each in (None, refused)]
    await plugin.begun.wait()
    plugin.may_answer.set()
    await asyncio.gather(*waiting)
    assert ((await found.access()).authorization, plugin.asked) == ("Bearer 2", 2)


async def test_a_plugin_that_fails_is_asked_anew_though_nobody_waited_for_it() -> None:
    plugin = Plugin()
    found = await slow(plugin)
    await cut_off(found, plugin)
    plugin.error = OSError("no plugin")
    plugin.may_answer.set()
    await asyncio.sleep(0.01)
    plugin.error = None
    await found.renew(await found.access())
    assert ((await found.access()).authorization, plugin.asked) == ("Bearer 3", 3)


@pytest.mark.filterwarnings("error")
async def test_a_bug_of_which_nobody_heard_is_told_to_whoever_comes_next(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Plugin()
    found = await slow(plugin)
    refused = await found.access()
    await cut_off(found, plugin)
    plugin.error = RuntimeError("a bug")
    plugin.may_answer.set()
    await asyncio.sleep(0.01)
    with pytest.raises(RuntimeError, match="a bug"):
        await found.renew(refused)
    plugin.error = None
    await found.renew(refused)
    assert ((await found.access()).authorization, plugin.asked) == ("Bearer 3", 3)
    gc.collect()
    assert not caplog.records


async def test_a_plugin_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.kube.credentials.LONGEST_LOAD_S", 0.01)
    plugin = Plugin()
    found = await slow(plugin)
    await found.renew(await found.access())
    assert (await found.access()).authorization == "Bearer 1"
    plugin.may_answer.set()
    await found.renew(await found.access())
    assert ((await found.access()).authorization, plugin.asked) == ("Bearer 3", 3)


async def test_who_is_done_gives_up_what_is_being_read() -> None:
    plugin = Plugin()
    found = await slow(plugin)
    await found.aclose()
    await cut_off(found, plugin)
    await found.aclose()
    assert plugin.was_cancelled


@pytest.mark.parametrize("empty", ["token", "ca.crt"])
async def test_an_empty_file_that_a_pod_is_given_is_named(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("bound")
    authority(tmp_path / "ca.crt")
    (tmp_path / empty).write_text("\n")
    with pytest.raises(Malformed, match=f"{empty}: is an empty file"):
        await in_cluster(str(tmp_path / "token"), str(tmp_path / "ca.crt"))


async def test_a_token_that_no_header_can_have_is_named_in_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("bo\rund")
    with pytest.raises(Malformed, match="token: gives a token with a line feed, or another") as refused:
        await in_cluster(str(tmp_path / "token"), str(tmp_path / "ca.crt"))
    assert "und" not in refused.value.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("éü\n".encode(), "cannot be used: there is no certificate", id="other-letters"),
        pytest.param(b"# nothing\n", "cannot be used", id="only-a-comment"),
        pytest.param(b"\xff\xfe", "is no text", id="no-text"),
    ],
)
async def test_an_authority_without_a_certificate_does_not_make_a_pod_trust_the_systems(
    content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("bound")
    (tmp_path / "ca.crt").write_bytes(content)
    with pytest.raises(Malformed, match=f"ca.crt: {says}"):
        await in_cluster(str(tmp_path / "token"), str(tmp_path / "ca.crt"))


def test_only_one_module_knows_the_library() -> None:
    named = [path for path in files(".py", root=ROOT / "extender") if re.search(LIBRARY, path.read_text())]
    assert [path.name for path in named] == ["library.py"]


def replace(path: Path, text: str) -> None:
    """Put another file in the place of *path*, as kubelet and cert-manager do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def authority(path: Path) -> None:
    """Write a certificate of an authority that exists nowhere else."""
    key, subject = str(path.with_suffix(".key")), f"/CN={path.stem}"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", subject]
    try:
        subprocess.run([*command, "-keyout", key, "-out", str(path)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
