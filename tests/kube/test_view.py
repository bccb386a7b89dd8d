"""The law of following: whatever happens to the cluster and to the connection, the view ends up as the cluster is."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.demo.apiserver.kinds import DRA
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.kube.api import Api
from extender.kube.follow import Rhythm
from extender.kube.pace import Pace
from extender.kube.resource import CLAIMS
from extender.kube.stream import Lines
from extender.kube.told import Told
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from tests.kube.watcher import Watcher, watching
from tests.kube_objects import claim
from tests.servers import Cluster

View = dict[str, int]
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "change", "delete"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["pause", "cut", "compact", "forget"]), st.just("")),
)


def viewed(told: list[Told]) -> View:
    """Fold what was told into the versions of the claims that there are."""
    view: View = {}
    for step in told:
        match step:
            case Listed(_, items):
                view = {item.key.name: int(item.resource_version) for item in items if isinstance(item, ResourceClaim)}
            case Gone(_, key):
                view.pop(key.name, None)
            case Changed(ResourceClaim() as item):
                assert int(item.resource_version) > view.get(item.key.name, 0)
                view[item.key.name] = int(item.resource_version)
    return view


class World:
    """An API server that things happen to."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.kind = server.kinds[DRA, "v1", "resourceclaims"]

    def there(self) -> View:
        items = [item["metadata"] for item in self.server.store.all(self.kind)]
        return {metadata["name"]: int(metadata["resourceVersion"]) for metadata in items}

    async def happen(self, what: str, name: str) -> None:
        registry, key = self.server.registry, ("default", name)
        is_there = self.server.store.get(self.kind, key) is not None
        if what == "create" and not is_there:
            registry.create(self.kind, "default", claim(name))
        elif what == "change" and is_there:
            label = {"n": str(self.server.store.revision)}
            registry.update(self.kind, key, "", lambda old: {**old, "metadata": {**old["metadata"], "labels": label}})
        elif what == "delete" and is_there:
            registry.delete(self.kind, key, {})
        elif what == "compact":
            self.server.store.compact()
        elif what == "forget":
            self.server.lists.forget()
        elif what == "cut":
            port = int(self.server.url.rpartition(":")[2])
            await self.server.stop()
            await self.server.start(port)
        elif what == "pause":
            await asyncio.sleep(0.001)


async def lived(steps: list[tuple[str, str]]) -> tuple[Watcher, World]:
    server = ApiServer()
    api = Api(Fixed(Access(server=await server.start())))
    world = World(server)
    rhythm = Rhythm(pace=Pace(sleep=lambda _: asyncio.sleep(0.001)), page_items=1)
    try:
        async with watching(Cluster(api, api, server), CLAIMS, rhythm=rhythm) as watcher:
            for what, name in steps:
                await world.happen(what, name)
            await watcher.until(lambda: viewed(watcher.told) == world.there())
    finally:
        await api.close()
        await server.stop()
    return watcher, world


@settings(max_examples=25)
@given(st.lists(STEPS, max_size=25))
def test_the_view_ends_up_as_the_cluster_is(steps: list[tuple[str, str]]) -> None:
    watcher, world = asyncio.run(lived(steps))
    assert viewed(watcher.told) == world.there()


def pieces(raw: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]
    for start, end in pairwise(places):
        yield raw[start:end]


@given(st.lists(st.binary(max_size=5).map(lambda raw: raw.replace(b"\n", b"x"))), st.lists(st.integers(0, 10_000)))
def test_lines_are_the_same_wherever_they_are_cut(written: list[bytes], cuts: list[int]) -> None:
    lines = Lines()
    raw = b"".join(line + b"\n" for line in written)
    read = [line for piece in pieces(raw, cuts) for line in lines.feed(piece)]
    assert read == [line for line in written if line.strip()]
