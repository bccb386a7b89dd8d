"""ResourceSlices as drivers' own library publishes them: devices come, go and change while pods do."""

import os
import random
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
import pytest_asyncio

from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.e2e.kubelets import Kubelets, handed, kubelets_of
from tests.e2e.world import Stage, World, impatient, staged

pytestmark = pytest.mark.asyncio(loop_scope="module")

# More than one slice takes.
DEVICES = 150
WHOLE_NODE = {"requests": {"cpu": "32"}, "claims": [{"name": "t0"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(control_plane: Plane) -> AsyncIterator[Stage]:
    async with staged(control_plane, changed=impatient) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def kubelets(here: World) -> AsyncIterator[Kubelets]:
    """Run the kubelets of the world, which may refuse nothing."""
    async with kubelets_of(here) as made:
        yield made
    assert made.troubles() == []


@pytest_asyncio.fixture(loop_scope="module")
async def one(here: World, kubelets: Kubelets) -> Kubelets:
    """Have a node with one device, and a template for one."""
    await here.node("a")
    await here.device_class()
    await here.template("one", here.request())
    await kubelets.publish("a", sliced("gpu-0"))
    return kubelets


def sliced(*names: str, **attributes: int) -> Object:
    """Return a slice of these devices."""
    told = {name: {"int": value} for name, value in attributes.items()}
    return {"Devices": [{"name": name, "attributes": told} for name in names]}


async def test_a_device_that_is_added_goes_to_the_pod_that_waits(here: World, one: Kubelets) -> None:
    pods = [await here.pod(f"p{index}", templates=("one",)) for index in range(2)]
    (waits,) = await here.left(pods, 1)
    await here.refused(waits, "too few matching devices are free")
    await one.publish("a", sliced("gpu-0"), sliced("gpu-1"))
    got = [await one.running(pod) for pod in pods]
    assert got == [{"main": handed(await here.allocated(await here.claim_of(pod)))} for pod in pods]


async def test_a_device_that_was_away_is_still_whose_it_was(here: World, one: Kubelets) -> None:
    first = await here.pod("first", templates=("one",))
    await one.running(first)
    for names in ((), ("gpu-0",)):
        await one.publish("a", sliced(*names))
        await one.known(*(f"a/{name}" for name in names))
    second = await here.pod("second", templates=("one",))
    await here.refused(second, "too few matching devices are free")
    await one.finish(first)
    await one.running(second)


async def test_the_device_of_a_pod_that_is_going_is_given_once_its_kubelet_has_it_back(
    here: World, one: Kubelets
) -> None:
    first = await here.pod("first", templates=("one",))
    await one.running(first)
    await one.linger(first, still=True)
    await one.delete(first)
    second = await here.pod("second", templates=("one",))
    await here.refused(second, "too few matching devices are free")
    await here.bound(await here.pod("plain"))
    assert await here.unbound(second)
    await one.linger(first, still=False)
    await one.running(second)


async def test_a_pod_that_preempts_another_waits_until_the_kubelet_has_the_device_back(
    here: World, one: Kubelets
) -> None:
    await here.priority("high", 1000)
    # Nobody is evicted for devices alone: the scheduler looks for what it counts itself.
    everything: Object = {"containers": [{"name": "main", "image": "none", "resources": WHOLE_NODE}]}
    first = await here.pod("first", templates=("one",), **everything)
    await one.running(first)
    await one.linger(first, still=True)
    second = await here.pod("second", templates=("one",), priorityClassName=here.full("high"), **everything)
    await here.when(first, lambda read: read["metadata"].get("deletionTimestamp"))
    assert await here.unbound(second)
    await one.linger(first, still=False)
    await one.running(second)


async def test_pods_outlast_their_driver_and_others_are_prepared_once_it_is_back(here: World, one: Kubelets) -> None:
    await one.publish("a", sliced("gpu-0"), sliced("gpu-1"))
    first = await here.pod("first", templates=("one",))
    await one.running(first)
    await one.tell("stop", "a")
    second = await here.pod("second", templates=("one",))
    assert await here.bound(second) == "a"
    await one.refused(second, f"DRA driver {here.driver} is not registered")
    await one.publish("a", sliced("gpu-0"), sliced("gpu-1"))
    await one.running(second)
    one.excuse(second)
    await one.finish(first, second)
    await one.running(await here.pod("third", templates=("one",)))


async def test_a_pool_that_changes_all_the_time_serves_pods_by_what_it_is_now(here: World, kubelets: Kubelets) -> None:
    chance = random.Random(1)  # noqa: S311 - for turns
    await here.device_class()
    for node in ("a", "b"):
        await here.node(node)
    await here.template("any", here.request(count=2))
    running: list[Object] = []
    for turn in range(4):
        now = {"cel": {"expression": f"device.attributes[device.driver].turn == {turn}"}}
        await here.template(f"turn-{turn}", here.request(count=8, selectors=[now]))
        # Some take what there still is, or what there is then; the others what there is not yet.
        pods = [
            await here.pod(f"{turn}-{name}-{index}", templates=(name,))
            for index in range(6)
            for name in ("any", f"turn-{turn}")
        ]
        published = [await renewed(kubelets, node, turn, chance) for node in ("a", "b")]
        for pod in pods:
            assert await kubelets.running(pod) == {"main": handed(await here.allocated(await here.claim_of(pod)))}
        await kubelets.known(*published[0], *published[1])
        # Nothing is prepared any more that is not published.
        for node in ("a", "b"):
            await kubelets.tell("unplug", node)
        gone, running = [*running, *pods][:9], [*running, *pods][9:]
        await kubelets.finish(*gone)


async def renewed(kubelets: Kubelets, node: str, turn: int, chance: random.Random) -> list[str]:
    """Publish other devices than before, in slices of other sizes; return which."""
    names = chance.sample([f"gpu-{index}" for index in range(200)], DEVICES)
    cuts = sorted(chance.sample(range(30, 120), chance.choice((1, 2, 3))))
    parts = [names[begin:end] for begin, end in pairwise([0, *cuts, DEVICES])]
    await kubelets.publish(node, *(sliced(*part, turn=turn) for part in parts))
    return [f"{node}/{name}" for name in names]


@pytest.mark.skipif(
    os.environ.get("KUBELET") != "all", reason="a driver publishes anew after half a minute: KUBELET=all"
)
async def test_pods_outlast_their_kubelet_which_unpublishes_what_there_is_when_it_starts(
    here: World, one: Kubelets
) -> None:
    await one.publish("a", sliced("gpu-0"), sliced("gpu-1"))
    first = await here.pod("first", templates=("one",))
    got = await one.running(first)
    await one.tell("restart", "a")
    second = await here.pod("second", templates=("one",))
    await here.refused(second, "no devices are published for the node")
    assert await one.running(second) == {"main": handed(await here.allocated(await here.claim_of(second)))}
    again = [each["containers"] for each in one.happened if each["what"] == "running"]
    assert again.count(got) == 2
    await one.finish(first, second)
    await one.running(await here.pod("third", templates=("one",)))
