"""All resources followed, and listed anew."""

import asyncio

import pytest

from extender.kube.resource import NODES, PODS, Resource
from extender.service.follows import Follows


class Followers:
    """Notes who begins and who ends; one of them may fail."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.breaks = asyncio.Event()

    async def follow(self, resource: Resource) -> None:
        self.noted.append(f"{resource} begins")
        try:
            await self.breaks.wait()
            raise RuntimeError("a bug")
        finally:
            self.noted.append(f"{resource} ends")


async def test_nothing_is_told_by_an_earlier_one_once_all_are_renewed() -> None:
    followers = Followers()
    follows = Follows(followers.follow, (NODES, PODS))
    running = asyncio.create_task(follows.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await follows.renew()
    assert followers.noted == ["nodes begins", "pods begins", "nodes ends", "pods ends"]
    await asyncio.sleep(0)
    assert followers.noted[4:] == ["nodes begins", "pods begins"]
    assert not running.done()
    running.cancel()
    await asyncio.wait({running})
    assert followers.noted[6:] == ["nodes ends", "pods ends"]


async def test_what_is_wrong_with_one_of_them_is_raised_also_after_a_renewal() -> None:
    followers = Followers()
    follows = Follows(followers.follow, (NODES, PODS))
    running = asyncio.create_task(follows.run())
    await asyncio.sleep(0)
    await follows.renew()
    followers.breaks.set()
    with pytest.raises(RuntimeError, match="a bug"):
        await running


async def test_a_renewal_that_is_cut_short_is_noticed_for_nobody_follows_any_more() -> None:
    follows = Follows(Followers().follow, (NODES, PODS))
    running = asyncio.create_task(follows.run())
    await asyncio.sleep(0)
    renewing = asyncio.create_task(follows.renew())
    await asyncio.sleep(0)
    renewing.cancel()
    with pytest.raises(RuntimeError, match="ended: follow nodes, follow pods"):
        await running
