"""What the extender may do is what it asks for: derived from every request that it can make, without a cluster."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pytest

from extender.allocation.extended import Hidden
from extender.config.settings import Settings
from extender.config.table import rows
from extender.kube import protobuf
from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.leases import Lease, Leases
from extender.kube.resource import CLAIMS, RESOURCES, RULES, Served
from extender.kube.writes import Writes
from extender.model.claim import Allocation, ClaimSpec, Consumer
from extender.model.names import NodeName, ObjectKey
from tests.controlplane.client import Object
from tests.controlplane.manifests import CONFIG, RIGHTS, documents
from tests.scheduling.cast import claim, pod
from tests.tree import ROOT

METHODS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
POD, CLAIM = pod("p", "c"), claim("c")
CONSUMER = Consumer(resource="pods", name="p", uid=POD.uid)
LEADING = Settings().leading


class Right(NamedTuple):
    """A verb on a resource; the name where it is one object's."""

    group: str
    resource: str
    verb: str
    name: str = ""


# What the API server asks for beside what is asked of it.
BESIDE = {
    # Of whoever writes an allocation, by the verb of that write.
    Right("resource.k8s.io", "resourceclaims/binding", "patch"),
    Right("resource.k8s.io", "resourceclaims/binding", "update"),
    # Of whoever makes a claim that its pod owns, where OwnerReferencesPermissionEnforcement is on.
    Right("", "pods/finalizers", "update"),
}


def right_of(method: str, path: str) -> Right:
    """Read which right a request needs."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    rest = rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest
    resource, name, part = (*rest, "", "")[:3]
    verb = "list" if method == "GET" and not name else METHODS[method]
    is_lease = resource == "leases"
    return Right(group, f"{resource}/{part}" if part else resource, verb, name if is_lease else "")


@dataclass
class Recorder:
    """Stands in for the API server: remembers what it was asked, and does nothing.

    It takes no patch of a claim, as the real one does not where its parameters have spaces.
    """

    asked: set[Right] = field(default_factory=set)

    async def call(self, method: str, path: str, **_: Any) -> Answer | Unanswered:
        self.asked.add(right_of(method, path))
        if method == "PATCH" and "/resourceclaims/" in path:
            return Answer(422, {}, b'{"reason": "Invalid"}')
        return Unanswered(was_sent=False, why="recorded")

    async def read_as(self, _content_type: str, path: str, **_: Any) -> Answer:
        self.asked.add(right_of("GET", path))
        version = protobuf.field(protobuf.RESOURCE_VERSION, CLAIM.resource_version.encode())
        read = protobuf.field(protobuf.METADATA, version)
        return Answer(200, {}, protobuf.MAGIC + protobuf.field(protobuf.RAW, read))


async def all_writes(api: Api) -> set[str]:
    """Call every method of Writes; return which ones these were."""
    writes, node = Writes(api, lambda: Served(CLAIMS, "v1")), NodeName("n")
    calls = {
        "add_finalizer": writes.add_finalizer(CLAIM),
        "write_allocation": writes.write_allocation(CLAIM, Allocation(), CONSUMER),
        "reserve_shared": writes.reserve_shared(CLAIM, CONSUMER),
        "release": writes.release(CLAIM, POD.uid, deallocate=True),
        "touch_claim": writes.touch_claim(CLAIM, "m"),
        "touch_pod": writes.touch_pod(POD, "m"),
        "bind_pod": writes.bind_pod(POD, node),
        "nominate": writes.nominate(POD, node),
        "map_extended": writes.map_extended(POD, "c", Hidden(ClaimSpec(), ()).mappings),
        "name_claims": writes.name_claims(POD, ()),
        "annotate_pod": writes.annotate_pod(POD, "a", "v"),
        "create_claim": writes.create_claim("ns", {}),
        "delete_claim": writes.delete_claim(CLAIM.key, CLAIM.uid, "1"),
        "create_taint": writes.create_taint(Served(RULES, "v1"), "gpu.example.com", "example.com/owned"),
        "restore_taint": writes.restore_taint(Served(RULES, "v1"), "gpu.example.com", "example.com/owned"),
        "create_event": writes.create_event("ns", {}),
        "read_claim": writes.read_claim(CLAIM.key),
        "read_pod": writes.read_pod(POD.key),
    }
    for call in calls.values():
        await call
    return set(calls)


@pytest.fixture
async def asked() -> set[Right]:
    """Return every right that the extender needs."""
    recorder = Recorder()
    api = cast("Api", recorder)
    public = {name for name, _ in inspect.getmembers(Writes, inspect.iscoroutinefunction) if not name.startswith("_")}
    assert await all_writes(api) == public
    leases = Leases(api, 1.0, lambda: 0.0)
    ours = ObjectKey(LEADING.namespace, LEADING.lease)
    await leases.read(ours)
    await leases.read(ObjectKey(LEADING.namespace, LEADING.scheduler_lease))
    for known in (Lease(), Lease(None, {"metadata": {}})):
        await leases.hold(ours, known, "we", 1.0)
    for resource in RESOURCES:
        for verb in ("list", "watch"):
            recorder.asked.add(Right(resource.group, resource.served_as or resource.name, verb))
    return recorder.asked


def granted() -> Iterator[Right]:
    """Yield what the extender's roles say."""
    for role in documents(RIGHTS["extender"]):
        for rule in role.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield from (Right(group, resource, verb, name) for name in rule.get("resourceNames", ("",)))


async def test_the_rights_are_those_of_the_requests_that_are_made(asked: set[Right]) -> None:
    given = set(granted())
    assert asked <= given
    assert given - asked <= BESIDE


def test_requests_are_made_where_they_are_derived_from_and_nowhere_else() -> None:
    folder = ROOT / "extender"
    calling = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if "demo" not in path.parts
        and any(f"{word}(" in path.read_text() for word in ("api.call", "api.ask_once", "api.open"))
    }
    places = ("follow", "leases", "listing", "probe", "rights", "versions", "writes")
    assert calling == {f"kube/{name}.py" for name in places}


def test_no_right_is_for_everything() -> None:
    for right in granted():
        assert "*" not in "".join(right)
        assert not {"secrets", "configmaps", "pods/exec", "serviceaccounts/token"} & {right.resource}
    cluster_wide = [role for role in documents(RIGHTS["extender"]) if role["kind"] == "ClusterRole"]
    assert not any("leases" in rule["resources"] for role in cluster_wide for rule in role["rules"])


def deployments() -> list[Object]:
    files = CONFIG.rglob("*.yaml")
    return [each for path in files for each in documents(path) if each and each.get("kind") == "Deployment"]


def test_no_container_has_more_than_it_needs() -> None:
    (deployment,) = [each for each in deployments() if "securityContext" in each["spec"]["template"]["spec"]]
    spec = deployment["spec"]["template"]["spec"]
    context = spec["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert context["runAsUser"] > 0
    assert context["runAsGroup"] > 0
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys()
    assert all("hostPath" not in volume for volume in spec["volumes"])
    assert spec["enableServiceLinks"] is False
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all(mount["readOnly"] for mount in container["volumeMounts"])
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
        assert all("hostPort" not in port for port in container["ports"])


def test_the_token_is_in_the_pod_that_needs_it_alone() -> None:
    (account,) = [each for each in documents(RIGHTS["extender"]) if each["kind"] == "ServiceAccount"]
    assert account["automountServiceAccountToken"] is False
    (deployment,) = [each for each in deployments() if "template" in each["spec"] and "selector" in each["spec"]]
    assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def test_security_md_says_what_each_right_that_writes_is_worth() -> None:
    table = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("|")]
    for right in granted():
        verb = re.compile(rf"\b{right.verb}\b[^|]*\b{re.escape(right.resource)}(?![/\w])")
        assert any(verb.search(line.split("|")[1]) for line in table), right


def test_settings_and_files_that_security_md_names_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"`((?:listen|tls|holds|allocation)\.\w+)`", text))
    assert len(named) >= 5
    assert named <= set(rows())
    assert all((CONFIG / name).exists() for name in re.findall(r"`(?:scheduler-config/)?(base/[\w.-]+)`", text))
