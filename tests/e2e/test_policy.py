"""The policy that SECURITY.md would have an administrator add: who has our token changes no pod, and we work on."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yaml

from extender.kube.outcome import Succeeded
from extender.model.names import ObjectKey
from extender.service.remaking import WOKEN
from tests.controlplane.client import MERGE, Client, Object, Reply, until
from tests.controlplane.manifests import RIGHTS, documents
from tests.controlplane.plane import Plane
from tests.e2e.world import World, staged, world_on
from tests.tree import ROOT

ACCOUNT = "/api/v1/namespaces/dra-extender/serviceaccounts/dra-extender"
STRATEGIC = "application/strategic-merge-patch+json"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "theirs"}
# What is said by the policy, and of owners by a plugin of these control planes, which some clusters have as well.
REASONS = ("the extender writes annotations of pods", "cannot set an ownerRef on a resource you can't delete")
INTRUSIONS = {
    "image": ({"spec": {"containers": [{"name": "main", "image": "theirs"}]}}, STRATEGIC),
    "label": ({"metadata": {"labels": {"app": "theirs"}}}, MERGE),
    "finalizer": ({"metadata": {"finalizers": ["example.com/theirs"]}}, MERGE),
    "owner": ({"metadata": {"ownerReferences": [OWNER]}}, MERGE),
}


def policy() -> list[Object]:
    """Return what stands in SECURITY.md."""
    (block,) = (ROOT / "SECURITY.md").read_text().split("```yaml\n")[1:]
    return list(yaml.safe_load_all(block.partition("```")[0]))


@asynccontextmanager
async def in_force(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let the extender be the account of its manifests, and apply the policy to that."""
    token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    async with plane.client() as admin:
        for item in documents(RIGHTS["extender"]):
            assert (await admin.apply(item)).status in {200, 201}
        token = (await admin.must("POST", f"{ACCOUNT}/token", token_request))["status"]["token"]
        monkeypatch.setitem(plane.tokens, "extender", token)
        for item in policy():
            assert (await admin.apply(item)).status in {200, 201}
        try:
            yield
        finally:
            for item in policy():
                await admin.delete(item)


async def tried(intruder: Client, item: Object, kind: str) -> Reply:
    change, content = INTRUSIONS[kind]
    return await intruder.call("PATCH", await intruder.path(item), change, content=content)


def is_refused(reply: Reply) -> bool:
    """Tell whether it is the policy that refuses."""
    return reply.status in {403, 422} and any(reason in reply.message for reason in REASONS)


async def enforced(intruder: Client, item: Object) -> None:
    """Wait until the policy is in force, a while after it is stored: until then *item* is changed each time."""
    path, numbers = await intruder.path(item), itertools.count()

    async def is_in_force() -> bool:
        change = {"metadata": {"labels": {"tried": str(next(numbers))}}}
        return is_refused(await intruder.call("PATCH", path, change, content=MERGE))

    await until(is_in_force, "the policy to be in force")


async def annotated(here: World, pod: Object) -> bool:
    """Have the extender itself touch *pod*, as it does to wake it."""
    key = ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def known() -> bool:
        return here.service.belief.pods.get(key) is not None

    await until(known, "the pod to be known")
    found = here.service.belief.pods.get(key)
    assert found is not None
    return isinstance(await here.service.attention.writes.annotate_pod(found, WOKEN, "1"), Succeeded)


async def test_with_the_policy_our_token_changes_no_pod_and_ours_are_bound(
    control_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_force(control_plane, monkeypatch), staged(control_plane) as stage, world_on(stage) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        victim = await here.pod("victim", nodeSelector={"world": "nowhere"})
        async with control_plane.client("extender") as intruder:
            await enforced(intruder, await here.pod("first", nodeSelector={"world": "nowhere"}))
            for kind in INTRUSIONS:
                assert is_refused(await tried(intruder, victim, kind)), kind
        read = await here.admin.read(victim)
        assert [each["image"] for each in read["spec"]["containers"]] == ["none"]
        # Somebody else may still do so.
        assert (await tried(here.admin, victim, "label")).status == 200
        assert await annotated(here, victim)
        await here.claim("c", here.request())
        assert await here.bound(await here.pod("ours", claims=("c",))) == "a"
