"""Nothing that a pod keeps to itself is shown, nor is our own token: in no answer, log line, event or metric."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from typing import Any

import orjson
import pytest

from extender.demo.apiserver.kinds import EVENT, POD
from extender.kube.access import Access, Fixed
from extender.kube.answer import Unanswered
from extender.kube.api import Api
from extender.telemetry.log import JsonLines
from extender.web import routes
from tests.service.door import Door, Json, binding, opened
from tests.service.hostile import asked
from tests.service.test_counted import until
from tests.web.raw_client import connected

CANARY = "c4n4ry"
TOKEN = "t0k3n-of-ours"  # noqa: S105 - of a server that lives as long as a test
SECRETIVE: Json = {
    "env": [
        {"name": f"{CANARY}-name", "value": f"{CANARY}-value"},
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": f"{CANARY}-secret", "key": f"{CANARY}-key"}}},
    ],
    "envFrom": [{"secretRef": {"name": f"{CANARY}-all"}}, {"configMapRef": {"name": f"{CANARY}-map"}}],
    "args": [f"--password={CANARY}"],
    "command": [f"/bin/{CANARY}"],
    "image": f"registry.example.com/{CANARY}:1",
    "lifecycle": {"postStart": {"exec": {"command": [CANARY]}}},
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": CANARY}]}},
    "volumeMounts": [{"name": "v", "mountPath": f"/{CANARY}", "subPath": CANARY}],
}
VOLUMES: list[Json] = [
    {"name": "v", "secret": {"secretName": CANARY, "items": [{"key": CANARY, "path": CANARY}]}},
    {
        "name": "w",
        "csi": {"driver": "x", "volumeAttributes": {"password": CANARY}, "nodePublishSecretRef": {"name": CANARY}},
    },
    {"name": "x", "projected": {"sources": [{"serviceAccountToken": {"audience": CANARY, "path": "t"}}]}},
]
METADATA: Json = {
    "annotations": {
        "example.com/secret": CANARY,
        f"{CANARY}.example.com/key": "x",
        "kubectl.kubernetes.io/last-applied-configuration": CANARY,
    },
    "labels": {"example.com/label": CANARY},
    "managedFields": [{"manager": CANARY}],
}


def secretive(pod: Json) -> Json:
    """Return *pod* with secrets wherever a pod may have some."""
    whole = deepcopy(pod)
    whole["metadata"] |= METADATA
    spec = whole["spec"]
    spec["containers"] = [{**container, **SECRETIVE} for container in spec["containers"]]
    spec |= {
        "initContainers": [{"name": "i", **SECRETIVE}],
        "ephemeralContainers": [{"name": "e", **SECRETIVE}],
        "volumes": VOLUMES,
        "imagePullSecrets": [{"name": CANARY}],
        "serviceAccountName": CANARY,
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": [CANARY]}],
        "dnsConfig": {"searches": [CANARY]},
        "nodeSelector": {CANARY: CANARY},
        "tolerations": [{"key": CANARY}],
        "securityContext": {"sysctls": [{"name": "a", "value": CANARY}]},
    }
    return whole


def malformed(pod: Json) -> list[Json]:
    """Return *pod* broken in several ways beside its secrets, and within them."""
    broken: list[tuple[str, Any]] = [
        ("priority", CANARY),
        ("containers", CANARY),
        ("containers", [{"name": "c", "env": CANARY}, {"env": [CANARY]}]),
        ("containers", [{**SECRETIVE}]),
        ("resourceClaims", [{"name": 1, "x": CANARY}]),
        ("volumes", {"secret": CANARY}),
        ("imagePullSecrets", CANARY),
        ("schedulingGates", CANARY),
        ("nodeName", {"x": CANARY}),
    ]
    whole = [{**pod, "spec": {**pod["spec"], field: value}} for field, value in broken]
    return [*whole, {**pod, "metadata": CANARY}, {**pod, "metadata": {**pod["metadata"], "annotations": CANARY}}]


class Everything(logging.Handler):
    """All that the log says, in its own lines and in every field of every record."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [JsonLines().format(record), repr(record.__dict__), record.getMessage()]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened(token=TOKEN) as found:
        yield found


@pytest.fixture
def logged() -> Iterator[Everything]:
    root, handler = logging.getLogger(), Everything()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


async def asked_for(door: Door, pod: Json) -> list[str]:
    """Call every verb for *pod*; return what was answered."""
    told = []
    async with connected(door.service.server.ports[0]) as connection:
        for verb in ("filter", "prioritize", "preempt"):
            for names in (door.names, ["n9"]):
                answer = await connection.post(f"/{verb}", orjson.dumps(asked(verb, pod, names)))
                told += [answer.body.decode(), str(answer.headers)]
    return told


async def remembered(door: Door, *pods: Json) -> list[str]:
    """Return what is shown of *pods* afterwards: decisions, metrics, probes, events."""
    shown = [await door.scrape(path) for path in ("/metrics", "/readyz", "/livez", "/else")]
    async with connected(door.service.server.ports[0]) as connection:
        for pod in pods:
            path = f"/v1/decisions/default/{pod['metadata']['name']}"
            answer = await connection.send(f"GET {path} HTTP/1.1\r\nHost: e\r\n\r\n".encode())
            assert answer.status == 200
            shown.append(answer.body.decode())
    return [*shown, json.dumps(door.server.store.all(EVENT))]


async def test_secrets_of_pods_are_shown_nowhere(
    door: Door, logged: Everything, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    pods = [await door.pod(name, devices=devices) for name, devices in (("bound", 1), ("refused", 9))]
    for pod in pods:
        door.change(pod, "", secretive)
        await door.seen(pod)
    secret = [secretive(pod) for pod in pods]
    assert all(CANARY in json.dumps(door.server.store.get(POD, ("default", name))) for name in ("bound", "refused"))
    for pod in secret:
        shown += await asked_for(door, pod)
    await door.filter(secret[0])
    for node in ("n1", "n9"):
        shown.append(await door.bind(secret[0], node))
        shown.append(
            (await door.post("bind", {**binding(secret[0], node), "PodUID": 1, "Extra": CANARY})).body.decode()
        )
    for pod in malformed(secret[0]):
        shown += await asked_for(door, pod)
    for body in (b'{"Pod": "%b' % CANARY.encode(), CANARY.encode(), b'["%b"]' % CANARY.encode()):
        shown += [(await door.post(verb, body)).body.decode() for verb in ("filter", "prioritize", "preempt", "bind")]
    await until(lambda: len(door.server.store.all(EVENT)) >= 2)
    shown += await remembered(door, *pods)
    # Even where we have a bug, and know no better than to say where.
    monkeypatch.setattr(routes, "filter_reply", lambda *_: 1 / 0)
    shown += await asked_for(door, secret[0])
    assert any("internal error" in text for text in shown)
    assert logged.lines
    assert [text for text in (*shown, *logged.lines) if CANARY in text or TOKEN in text] == []


async def test_our_token_is_shown_nowhere_when_it_is_refused(door: Door, logged: Everything) -> None:
    pod = await door.pod("p")
    await door.filter(pod)
    door.server.token = "another"  # noqa: S105 - as above
    shown = [await door.bind(pod, "n1")]
    assert "Unauthorized" in shown[0]
    shown += await remembered(door, pod)
    assert [text for text in (*shown, *logged.lines) if TOKEN in text] == []


@pytest.fixture
async def refusing() -> AsyncIterator[int]:
    """Yield the port of a proxy that lets nobody through."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:{port}", "ClientHttpProxyError: 407 Who are you"),
        ("127.0.0.1:1", "ClientProxyConnectionError: Cannot connect to host 127.0.0.1:1"),
        ("proxy:99999", "InvalidURL: the address of"),
        (":3128", "InvalidURL: the address of"),
        ("[::1", "InvalidURL: the address of"),
    ],
    ids=["refuses", "away", "no port", "no host", "no address"],
)
async def test_the_password_of_a_proxy_is_shown_nowhere(address: str, says: str, refusing: int) -> None:
    proxy = f"http://{CANARY}-user:{CANARY}@{address.format(port=refusing)}"
    api = Api(Fixed(Access(server="https://10.0.0.1:6443", proxy=proxy)))
    answers = await api.call("GET", "/api/v1/nodes"), await api.open("/api/v1/nodes")
    await api.close()
    told = [answer.why for answer in answers if isinstance(answer, Unanswered)]
    assert len(told) == len(answers)
    assert all(text.startswith(says) and CANARY not in text for text in told)
