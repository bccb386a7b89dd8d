"""Following against an API server: what happens there is told here."""

import asyncio
from itertools import count

from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.kube.api import Api
from extender.kube.follow import Rhythm
from extender.kube.pace import GROWN, Turns
from extender.kube.probe import probe
from extender.kube.recent import Recent
from extender.kube.resource import CLAIMS as CLAIM_RESOURCE
from extender.kube.resource import CLASSES as CLASS_RESOURCE
from extender.kube.resource import NODES as NODE_RESOURCE
from extender.kube.resource import PODS as POD_RESOURCE
from extender.kube.resource import RESOURCES, RULES, Served
from extender.kube.stream import is_newer
from extender.kube.told import Seen, Unserved
from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from tests.kube.watcher import Watcher, watching
from tests.kube_objects import CLAIMS, CLASSES, NODES, PODS, claim, device_class, pod
from tests.servers import Cluster

MERGE = "application/merge-patch+json"


def node(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


async def test_everything_is_listed_first(api_server: Cluster) -> None:
    name = api_server.name("class")
    await api_server.create(CLASSES, device_class(name))
    async with watching(api_server, *RESOURCES) as watcher:
        assert watcher.words(name) == ["listed"]
        assert watcher.freshness.unsynced() == ()


async def test_a_list_is_whole_whatever_the_pages(api_server: Cluster) -> None:
    names = [api_server.name("node") for _ in range(7)]
    for name in names:
        await api_server.create(NODES, node(name))
    async with watching(api_server, NODE_RESOURCE, rhythm=Rhythm(page_items=2)) as watcher:
        assert [watcher.words(name) for name in names] == [["listed"]] * 7


async def test_a_list_makes_what_was_read_before_it_be_read_again(api_server: Cluster) -> None:
    recent, read = Recent(), []
    before = Pod(key=ObjectKey("default", "p"), uid=Uid("u"), resource_version="7")
    recent.put(before)

    def parse() -> Pod:
        read.append(before)
        return before

    async with watching(api_server, NODE_RESOURCE, rhythm=Rhythm(recent=recent)):
        recent.read(Pod, {"metadata": {"uid": "u", "resourceVersion": "7"}}, parse)
    assert read


async def test_an_object_comes_changes_and_goes(api_server: Cluster) -> None:
    name = api_server.name("node")
    async with watching(api_server, NODE_RESOURCE) as watcher:
        await api_server.create(NODES, node(name))
        await watcher.tells(name, "changed")
        await api_server.do("PATCH", f"{NODES}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await watcher.until(lambda: watcher.words(name) == ["changed", "changed"])
        await api_server.do("DELETE", f"{NODES}/{name}")
        await watcher.tells(name, "gone")


async def test_claims_and_pods_are_told_with_their_versions(api_server: Cluster) -> None:
    claimed, placed = api_server.name("claim"), api_server.name("pod")
    async with watching(api_server, CLAIM_RESOURCE, POD_RESOURCE) as watcher:
        made = [await api_server.create(CLAIMS, claim(claimed)), await api_server.create(PODS, pod(placed))]
        await watcher.until(lambda: bool(watcher.words(claimed) and watcher.words(placed)))
    nouns = [told.what for told in watcher.told if isinstance(told, Changed)]
    # Two watches: which of them tells first is nobody's to say.
    versions = {noun.resource_version for noun in nouns if isinstance(noun, ResourceClaim | Pod)}
    assert {item["metadata"]["resourceVersion"] for item in made} <= versions


async def test_what_was_told_is_seen_up_to_its_version(api_server: Cluster) -> None:
    name = api_server.name("class")
    async with watching(api_server, CLASS_RESOURCE) as watcher:
        made = await api_server.create(CLASSES, device_class(name))
        version = made["metadata"]["resourceVersion"]
        await watcher.until(lambda: watcher.freshness.version(CLASS_RESOURCE) == version)
    kinds = [type(told) for told in watcher.told]
    assert kinds[-2:] == [Changed, Seen]


async def test_no_write_of_before_a_probe_is_later_than_it(api_server: Cluster) -> None:
    made = await api_server.create(CLASSES, device_class(api_server.name("class")))
    version = await probe(api_server.api, Served(CLASS_RESOURCE, "v1"))
    assert isinstance(version, str)
    assert not is_newer(made["metadata"]["resourceVersion"], version)


async def test_a_quiet_resource_is_known_to_be_current_though_others_change(api_server: Cluster) -> None:
    async with watching(api_server, CLASS_RESOURCE, rhythm=Rhythm(quiet_s=0.1)) as watcher:
        made = await api_server.create(NODES, node(api_server.name("node")))
        version = made["metadata"]["resourceVersion"]
        await watcher.until(lambda: not is_newer(version, watcher.freshness.version(CLASS_RESOURCE)))
    assert all(not isinstance(told, Changed) for told in watcher.told)


async def changed_meanwhile(server: ApiServer, watcher: Watcher, name: str) -> None:
    """Take the server away, change something, and bring the server back where it was."""
    port = int(server.url.rpartition(":")[2])
    await server.stop()
    server.registry.create(server.kinds["", "v1", "nodes"], "", node(name))
    await server.start(port)
    await watcher.until(lambda: bool(watcher.words(name)))


async def test_nothing_is_lost_while_the_server_is_away() -> None:
    server = ApiServer()
    api = Api(Fixed(Access(server=await server.start())))
    async with watching(Cluster(api, api), NODE_RESOURCE) as watcher:
        await changed_meanwhile(server, watcher, "resumed")
        assert watcher.words("resumed") == ["changed"]
        server.store.compact()
        server.registry.create(server.kinds["", "v1", "nodes"], "", node("compacted"))
        server.store.compact()
        await changed_meanwhile(server, watcher, "listed")
        assert watcher.words("compacted")[-1:] == ["listed"] or watcher.words("compacted") == ["changed"]
    await api.close()
    await server.stop()


async def test_devices_are_found_in_the_version_that_is_served() -> None:
    server = ApiServer(dra_version="v1beta1", has_rules=False)
    api = Api(Fixed(Access(server=await server.start())))
    path = CLASSES.replace("/v1/", "/v1beta1/")
    cluster = Cluster(api, api, server)
    async with watching(cluster, CLASS_RESOURCE, RULES) as watcher:
        await cluster.create(path, device_class("gpu"))
        await watcher.tells("gpu", "changed")
    assert any(isinstance(told, Unserved) for told in watcher.told)
    await api.close()
    await server.stop()


async def test_a_burst_lets_others_run() -> None:
    """While 3,000 events are read, what else waits on the loop gets its turns."""
    server = ApiServer()
    api = Api(Fixed(Access(server=await server.start())))
    steps, turns = 10, 0
    # A clock that a step takes on by one: how busy the machine is makes no difference.
    rhythm = Rhythm(turns=Turns(steps, clock=count().__next__))

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with watching(Cluster(api, api), NODE_RESOURCE, rhythm=rhythm) as watcher:
        task = asyncio.create_task(others())
        for number in range(3000):
            server.registry.create(server.kinds["", "v1", "nodes"], "", node(f"n{number}"))
        await watcher.tells("n2999", "changed")
        task.cancel()
    assert turns >= 3000 // (GROWN * steps)
    await api.close()
    await server.stop()
