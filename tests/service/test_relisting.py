"""What is listed again because a watch could not go on, and has not changed, is not taken over again."""

import asyncio

from extender.demo.apiserver.kinds import LEASE
from extender.model.names import ObjectKey
from tests.service.door import Door, opened
from tests.service.test_counted import PATIENCE_S, until

LISTED = 'dra_extender_watch_lists_total{resource="%s"} '
FOLLOWED = ("nodes", "resourceslices", "resourceclaims", "pods")


async def lists(door: Door) -> list[int]:
    """Count how often each resource was listed."""
    lines = (await door.scrape()).splitlines()
    counts = [line.removeprefix(LISTED % name) for name in FOLLOWED for line in lines if line.startswith(LISTED % name)]
    assert len(counts) == len(FOLLOWED)
    return [int(float(count)) for count in counts]


async def listed_again(door: Door) -> None:
    """Cut the watches, and have what they would go on from forgotten."""
    before, port = await lists(door), int(door.server.url.rpartition(":")[2])
    await door.server.stop()
    # Something has happened that nobody follows: all that is followed is at a version of before.
    door.server.registry.create(LEASE, "default", {"metadata": {"name": "another"}})
    door.server.store.compact()
    await door.server.start(port)
    async with asyncio.timeout(PATIENCE_S):
        while not all(now > then for now, then in zip(await lists(door), before, strict=True)):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def test_what_has_not_changed_stays_what_it_was() -> None:
    async with opened() as door:
        await door.pod("p")
        cluster, key = door.service.belief.cluster, ObjectKey("default", "p")
        await until(lambda: cluster.claims.get(key) is not None)
        claim, snapshot = cluster.claims.get(key), cluster.snapshot
        await listed_again(door)
        assert cluster.claims.get(key) is claim
        assert cluster.snapshot is snapshot
