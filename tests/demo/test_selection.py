"""Field selectors mean the same to the embedded API server and to the real one."""

import pytest

from extender.kube.resource import BOUND, PODS, Resource
from extender.model.change import Listed
from tests.demo.test_apiserver import ask
from tests.kube.watcher import Watcher, watching
from tests.kube_objects import CLASSES, pod
from tests.kube_objects import PODS as PATH
from tests.servers import Cluster

GRACELESS = {"gracePeriodSeconds": 0}
MERGE = "application/merge-patch+json"


async def bind(cluster: Cluster, name: str, node: str = "n1") -> None:
    await cluster.create(
        f"{PATH}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    )


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("spec.nodeName=", {"waiting"}),
        ("spec.nodeName==", {"waiting"}),
        ("spec.nodeName!=", {"on-a", "on-b"}),
        ("spec.nodeName=a", {"on-a"}),
        ("spec.nodeName!=a", {"on-b", "waiting"}),
        ("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", {"on-a", "on-b"}),
        ("spec.nodeName!=,status.phase==Succeeded", set[str]()),
        ("metadata.name=on-a", {"on-a"}),
        ("spec.nodeName!=,", {"on-a", "on-b"}),
    ],
)
async def test_a_list_shows_what_is_selected(api_server: Cluster, selector: str, selected: set[str]) -> None:
    for name in ("on-a", "on-b", "waiting"):
        await api_server.create(PATH, pod(name))
    await bind(api_server, "on-a", "a")
    await bind(api_server, "on-b", "b")
    listed = await api_server.do("GET", f"{PATH}?fieldSelector={selector}")
    assert {item["metadata"]["name"] for item in listed["items"]} == selected
    first = await api_server.do("GET", f"{PATH}?limit=1&fieldSelector={selector}")
    names = [item["metadata"]["name"] for item in first["items"]]
    while token := first["metadata"].get("continue"):
        first = await api_server.do("GET", f"{PATH}?limit=1&fieldSelector={selector}&continue={token}")
        names += [item["metadata"]["name"] for item in first["items"]]
    assert (set(names), len(names)) == (selected, len(selected))
    for name in ("on-a", "on-b", "waiting"):
        await api_server.do("DELETE", f"{PATH}/{name}", GRACELESS)


@pytest.mark.parametrize("selector", ["spec.nothing=x", "spec.nodeName", "a"])
async def test_what_cannot_be_selected_by_is_refused(api_server: Cluster, selector: str) -> None:
    assert (await ask(api_server, "GET", f"{PATH}?fieldSelector={selector}"))[:2] == (400, "BadRequest")


async def test_only_pods_are_selected_by_their_node(api_server: Cluster) -> None:
    assert (await ask(api_server, "GET", f"{CLASSES}?fieldSelector=spec.nodeName="))[:2] == (400, "BadRequest")


@pytest.mark.parametrize(
    ("resource", "told"),
    [(PODS, ["changed", "changed", "gone"]), (BOUND, ["changed", "changed", "gone"])],
    ids=["waiting", "bound"],
)
async def test_a_pod_is_waiting_until_it_is_bound_and_bound_until_it_has_finished(
    api_server: Cluster, resource: Resource, told: list[str]
) -> None:
    name = api_server.name("pod")
    async with watching(api_server, resource) as watcher:
        await api_server.create(PATH, pod(name))
        await api_server.do("PATCH", f"{PATH}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await bind(api_server, name)
        await api_server.do("PATCH", f"{PATH}/{name}", {"metadata": {"labels": {"a": "c"}}}, MERGE)
        await api_server.do("PATCH", f"{PATH}/{name}/status", {"status": {"phase": "Succeeded"}}, MERGE)
        await watcher.tells(name, "gone")
        await no_more(api_server, watcher)
        assert watcher.words(name) == told
    await api_server.do("DELETE", f"{PATH}/{name}", GRACELESS)


async def no_more(api_server: Cluster, watcher: Watcher) -> None:
    """Wait until what happened so far must have been told."""
    last = api_server.name("last")
    await api_server.create(PATH, pod(last))
    if watcher.freshness.vital:
        await watcher.tells(last, "changed")
    await bind(api_server, last)
    await watcher.tells(last, "gone" if watcher.freshness.vital else "changed")
    await api_server.do("DELETE", f"{PATH}/{last}", GRACELESS)


async def test_bound_pods_that_are_there_are_listed(api_server: Cluster) -> None:
    name = api_server.name("pod")
    await api_server.create(PATH, pod(name))
    await bind(api_server, name)
    async with watching(api_server, BOUND) as watcher:
        assert watcher.words(name) == ["listed"]
        assert all(told.kind is BOUND.kind for told in watcher.told if isinstance(told, Listed))
        await api_server.do("DELETE", f"{PATH}/{name}", GRACELESS)
        await watcher.tells(name, "gone")
