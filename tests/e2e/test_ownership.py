"""What is ours stays ours on a real control plane: the taint is put back, strangers close their pools and no others.

And where kube-scheduler's own plugin allocates, our scores decide the node.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from extender.config.settings import Ownership, Settings
from extender.kube.answer import Answer, Unanswered
from extender.kube.objects import rule_name
from extender.model.device import Seal
from extender.service.inspection import Unsafe
from extender.state.foreign import BORNE
from tests.controlplane.client import MERGE, Object, until
from tests.controlplane.manifests import RIGHTS, documents
from tests.controlplane.plane import Plane
from tests.e2e.faults import Call, allocation_of, faulty
from tests.e2e.world import DRIVER, NUMBERS, Stage, World, impatient, served, staged, stock, world_on
from tests.scheduling.cast import promised

ONE: Object = {"name": "gpu-0"}
hasty = partial(staged, changed=impatient)
ROLE = next(item for item in documents(RIGHTS["extender"]) if item["kind"] == "ClusterRole")


def owning(**ownership: Any) -> Settings:
    return Settings(ownership=Ownership(**ownership))


def rule_of(plane: Plane, driver: str) -> Object:
    version = "v1" if plane.minor != "1.36" else "v1beta2"
    metadata = {"name": rule_name(driver)}
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceTaintRule", "metadata": metadata}


@asynccontextmanager
async def owned(plane: Plane, run: Callable[..., AbstractAsyncContextManager[Stage]]) -> AsyncIterator[World]:
    """Give two nodes with two devices each, tainted by us, who *run* there; take our rule away at the end."""
    name = f"o{next(NUMBERS)}"
    driver = f"{name}.{DRIVER}"
    async with (
        untainted_afterwards(plane, driver),
        run(plane, owning(drivers=(driver,))) as stage,
        world_on(stage, name) as here,
    ):
        assert here.driver == driver
        await here.device_class()
        for node in ("a", "b"):
            await here.node(node)
            await here.slice(node, [ONE, {"name": "gpu-1"}])
        await so(lambda: stage.service.belief.ownership.keeps(driver), "our devices to be tainted")
        yield here


@asynccontextmanager
async def untainted_afterwards(plane: Plane, driver: str) -> AsyncIterator[None]:
    """Take our rule for *driver* away at the end."""
    try:
        yield
    finally:
        async with plane.client() as admin:
            await admin.delete(rule_of(plane, driver))


async def so(condition: Callable[[], object], what: str) -> None:
    """Wait until *condition* holds, which is ours to see."""

    async def holds() -> object:
        return condition()

    await until(holds, what)


def closed(here: World) -> set[str]:
    """Name the nodes whose pools are closed."""
    slices = here.service.belief.cluster.snapshot.inventory.slices
    mine = [item for item in slices if item.driver == here.driver and item.seal is Seal.CLOSED]
    return {item.pool.removeprefix(f"{here.name}-") for item in mine}


async def warnings(here: World, item: Object) -> list[str]:
    """Wait for our warnings about a foreign allocation, and return what they say."""
    uid = (await here.admin.read(item))["metadata"]["uid"]

    async def said() -> list[str]:
        events = await here.admin.list(f"/apis/events.k8s.io/v1/namespaces/{here.namespace}/events")
        mine = [event for event in events if event["regarding"].get("uid") == uid]
        return [event["note"] for event in mine if event["reason"] == "ForeignAllocation"]

    return await until(said, f"a warning about {item['metadata']['name']}")


async def test_the_taint_is_put_back_after_it_was_deleted_or_changed(control_plane: Plane) -> None:
    async with owned(control_plane, served) as here:
        taints = {"key": "dra-extender.x-k8s.io/owned", "effect": "NoSchedule"}

        def is_whole(rule: Object) -> bool:
            spec = rule["spec"]
            asked = {key: spec["taint"].get(key) for key in taints}
            return asked == taints and spec["deviceSelector"] == {"driver": here.driver}

        before = await here.when(rule_of(control_plane, here.driver), is_whole)
        await here.admin.delete(before)

        async def is_another() -> bool:
            reply = await here.admin.call("GET", await here.admin.path(before))
            return reply.status == 200 and reply.body["metadata"]["uid"] != before["metadata"]["uid"]

        await until(is_another, "the rule to be put back")
        for change in ({"deviceSelector": {"pool": "nowhere"}}, {"taint": {"key": "example.com/else"}}):
            await here.admin.patch(before, {"spec": change})
            await here.when(before, is_whole, "the rule to say the same again")
        # Nothing is left to do when the watch has shown it; counted, whoever was faster.
        await so(lambda: here.stage.counted("owner_taint_writes_total", result="put back") >= 3, "three times put back")


async def test_the_stock_scheduler_cannot_allocate_what_we_own_and_we_can(control_plane: Plane) -> None:
    async with owned(control_plane, staged) as here, stock(control_plane):
        await here.claim("c", here.request())
        theirs = await here.pod("theirs", claims=("c",), schedulerName="default-scheduler")
        await here.refused(theirs, "cannot allocate all claims")
        assert await here.bound(await here.pod("ours", claims=("c",))) in ("a", "b")
        assert here.stage.counted("foreign_allocations_seen_total") == 0


async def test_a_foreign_allocation_closes_its_pool_and_nothing_else(control_plane: Plane) -> None:
    async with owned(control_plane, hasty) as here:
        theirs = await here.claim("theirs", here.request())
        await here.allocate(theirs, here.full("a"), "gpu-0")
        await so(lambda: closed(here) == {"a"}, "the pool to be closed")
        (note,) = await warnings(here, theirs)
        assert f"{here.driver}/{here.full('a')}/gpu-0" in note
        assert "kubectl annotate" in note
        assert here.stage.counted("foreign_allocations", driver=here.driver) >= 1
        first = await here.claim("first", here.request(count=2))
        assert await here.bound(await here.pod("first", claims=("first",))) == "b"
        await here.claim("second", here.request())
        waiting = await here.pod("second", claims=("second",))
        await here.refused(waiting, "in a pool that is closed")
        assert await here.devices(first) == ["b/gpu-0", "b/gpu-1"]
        await here.admin.delete(theirs)
        # Nobody has to ask again: what opens wakes who waits.
        assert await here.bound(waiting) == "a"
        assert closed(here) == set()


async def test_somebody_can_bear_with_a_foreign_allocation(control_plane: Plane) -> None:
    async with owned(control_plane, served) as here:
        theirs = await here.claim("theirs", here.request())
        await here.allocate(theirs, here.full("a"), "gpu-0")
        await so(lambda: closed(here) == {"a"}, "the pool to be closed")
        uid = (await here.admin.read(theirs))["metadata"]["uid"]
        await here.admin.patch(theirs, {"metadata": {"annotations": {BORNE: uid}}})
        await so(lambda: closed(here) == set(), "the pool to be open")


async def test_where_the_taint_is_missing_the_whole_driver_is_closed(control_plane: Plane) -> None:
    settings = owning(keep_taint=False, accept_unpartitioned=True)
    async with served(control_plane, settings) as stage, world_on(stage) as here:
        for name in ("a", "b"):
            await here.node(name)
            await here.slice(name, [ONE])
        theirs = await here.claim("theirs", here.request())
        await so(lambda: len(here.service.belief.cluster.snapshot.inventory.slices) >= 2, "the devices")
        await here.allocate(theirs, here.full("a"), "gpu-0")
        await so(lambda: closed(here) == {"a", "b"}, "the driver to be closed")


async def test_what_we_wrote_ourselves_names_us_and_is_not_foreign_to_the_next_process(control_plane: Plane) -> None:
    async with owned(control_plane, staged) as here:
        claim = await here.claim("c", here.request())
        await here.bound(await here.pod("p", claims=("c",)))
        managers = {
            entry["manager"]
            for entry in (await here.admin.read(claim))["metadata"]["managedFields"]
            if "f:allocation" in entry["fieldsV1"].get("f:status", {})
        }
        assert managers == {"dra-extender.dra-scheduler"}
        (known,) = [item for item in here.service.belief.cluster.claims if item.key.name == claim["metadata"]["name"]]
        assert known.writers == ("dra-extender.dra-scheduler",)
        assert closed(here) == set()
        assert here.stage.counted("foreign_allocations_seen_total") == 0


async def test_monitoring_looks_at_what_is_ours_by_admin_access_and_closes_nothing(control_plane: Plane) -> None:
    async with owned(control_plane, hasty) as here, stock(control_plane):
        await here.own_namespace(**{"resource.kubernetes.io/admin-access": "true"})
        await here.template("one", here.request())
        for name, tolerations in (("bare", []), ("tolerant", [{"operator": "Exists"}])):
            everything = here.request(allocationMode="All", adminAccess=True, tolerations=tolerations)
            await here.template(name, everything)
        used = await here.pod("used", templates=("one",))
        node = await here.bound(used)
        looks = await here.pod("looks", templates=("tolerant",), schedulerName="default-scheduler")
        bare = await here.pod("bare", templates=("bare",), schedulerName="default-scheduler")
        ours = await here.pod("ours", templates=("bare",))
        assert {await here.bound(looks), await here.bound(ours)} <= {"a", "b"}
        await here.refused(bare, "cannot allocate all claims")
        rest = [await here.pod(f"rest-{number}", templates=("one",)) for number in range(3)]
        assert sorted([await here.bound(pod) for pod in rest] + [node]) == ["a", "a", "b", "b"]
        assert closed(here) == set()


async def test_of_a_shared_driver_others_have_what_our_classes_do_not_name(control_plane: Plane) -> None:
    """So it is with NVIDIA's ComputeDomains: the channel is for the workload, the daemon for a pod of a DaemonSet."""
    name = f"o{next(NUMBERS)}"
    gpus, domains = f"{name}.{DRIVER}", f"domain.{name}.{DRIVER}"
    ours = tuple(f"{name}-{each}" for each in ("gpu", "channel"))
    settings = owning(drivers=(gpus, domains), classes=ours, shared_drivers=(domains,))
    async with (
        untainted_afterwards(control_plane, gpus),
        hasty(control_plane, settings) as stage,
        world_on(stage, name) as here,
    ):
        await tray(here, domains)
        await here.create(_barring_channels(control_plane, domains))
        await so(lambda: stage.service.belief.ownership.keeps(gpus), "the GPUs to be tainted")
        async with stock(control_plane):
            worker = await here.pod("worker", templates=("gpu", "channel"))
            assert await here.bound(worker) == "a"
            daemon = await here.pod("daemon", templates=("daemon",), schedulerName="default-scheduler")
            assert await here.bound(daemon) == "a"
            thief = await here.pod("thief", templates=("channel",), schedulerName="default-scheduler")
            await here.finish(worker)
            await here.refused(thief, "cannot allocate all claims")
            after = await here.pod("after", templates=("gpu", "channel"))
            assert await here.bound(after) == "a"
        assert closed(here) == set()
        assert stage.counted("owner_taint_missing") == 0


async def test_a_rule_on_a_driver_that_is_not_ours_is_told_for_nobody_gives_its_devices(control_plane: Plane) -> None:
    """As where the driver in owner.yaml was edited, and that in extender.yaml was not."""
    name = f"o{next(NUMBERS)}"
    driver, shipped = f"{name}.{DRIVER}", f"shipped.{name}.{DRIVER}"
    taint = {"key": "dra-extender.x-k8s.io/owned", "effect": "NoSchedule"}
    rule = {**rule_of(control_plane, driver), "spec": {"deviceSelector": {"driver": driver}, "taint": taint}}
    async with (
        untainted_afterwards(control_plane, driver),
        untainted_afterwards(control_plane, shipped),
        hasty(control_plane, owning(drivers=(shipped,))) as stage,
        world_on(stage, name) as here,
        stock(control_plane),
    ):
        await here.device_class()
        await here.node("a")
        await here.slice("a", [ONE])
        await here.create(rule)
        await here.claim("c", here.request())
        theirs = await here.pod("theirs", claims=("c",), schedulerName="default-scheduler")
        await here.refused(theirs, "cannot allocate all claims")
        await here.refused(await here.pod("ours", claims=("c",)), "not ours to allocate")
        await so(stage.service.health.warnings, "a word below ok")
        assert f"rule {rule_name(driver)} keeps everybody from {driver}, which is" in stage.service.health.warnings()[0]
        await here.admin.delete(rule)
        await so(lambda: not stage.service.health.warnings(), "nothing to be told")
        assert await here.bound(theirs) == "a"


async def tray(here: World, domains: str) -> None:
    """Make a node with a GPU, a channel and a daemon, and templates for each."""
    await here.node("a")
    await here.slice("a", [ONE])
    kinds = ("channel", "daemon")
    listed = [{"name": f"{kind}-0", "attributes": {"type": {"string": kind}}} for kind in kinds]
    await here.slice("a", listed, driver=domains, pool={"name": "a", "generation": 1, "resourceSliceCount": 1})
    await here.device_class()
    await here.template("gpu", here.request())
    for kind in kinds:
        of_kind = f"device.driver == '{domains}' && device.attributes['{domains}'].type == '{kind}'"
        await here.device_class(kind, selectors=[{"cel": {"expression": of_kind}}])
        await here.template(kind, here.request(device_class=kind))


def _barring_channels(plane: Plane, driver: str) -> Object:
    """Return a rule that keeps others away from one device of each pool."""
    taint = {"key": Ownership().owner_taint, "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": driver, "device": "channel-0"}, "taint": taint}
    return {**rule_of(plane, driver), "spec": spec}


async def test_an_advisors_scores_decide_where_the_plugin_allocates(control_plane: Plane) -> None:
    """Pairs under one root are everywhere; on b the first fit is one. The plugin takes the first, we say where."""

    def in_tree(configuration: Object) -> None:
        for profile in configuration["profiles"]:
            del profile["plugins"]
        (extender,) = configuration["extenders"]
        del extender["bindVerb"], extender["preemptVerb"]
        extender |= {"ignorable": True, "weight": 100}

    def device(index: int, root: str) -> Object:
        attributes = {"resource.kubernetes.io/pcieRoot": {"string": root}}
        return {"name": f"gpu-{index}", "attributes": attributes}

    near, far = ("pci0000:00", "pci0000:00", "pci0000:40", "pci0000:40"), ("pci0000:00", "pci0000:40") * 2
    async with staged(control_plane, owning(mode="advisor"), changed=in_tree) as stage, world_on(stage) as here:
        await here.device_class()
        # One of eight: chance alone would hardly find it.
        for name in "abcdefgh":
            await here.node(name)
            roots = near if name == "b" else far
            await here.slice(name, [device(index, root) for index, root in enumerate(roots)])
        claim = await here.claim("c", here.request(count=2))
        # What an advisor does not know yet it leaves to the plugin alone.
        known = stage.service.belief.cluster
        await so(lambda: here.full("c") in {item.key.name for item in known.claims}, "the claim to be known")
        assert await here.bound(await here.pod("p", claims=("c",))) == "b"
        assert await here.devices(claim) == ["b/gpu-0", "b/gpu-1"]
        read = await here.admin.read(claim)
        (manager,) = {
            entry["manager"]
            for entry in read["metadata"]["managedFields"]
            if "f:allocation" in entry["fieldsV1"].get("f:status", {})
        }
        assert manager == "kube-scheduler"
        assert stage.counted("foreign_allocations_seen_total") == 0
        assert not await here.admin.list(await here.admin.path(rule_of(control_plane, here.driver), name=False))


async def test_without_the_right_to_bind_claims_the_start_is_refused(control_plane: Plane) -> None:
    less = [
        {**rule, "resources": [each for each in rule["resources"] if each != "resourceclaims/binding"]}
        for rule in ROLE["rules"]
        if rule["resources"] != ["resourceclaims/binding"]
    ]
    async with control_plane.client() as admin:
        role = await admin.path(ROLE)
        await admin.must("PATCH", role, {"rules": less}, content=MERGE)
        try:
            with pytest.raises(Unsafe, match="resourceclaims/binding"):
                async with served(control_plane):
                    await asyncio.sleep(0)
        finally:
            await admin.must("PATCH", role, {"rules": ROLE["rules"]}, content=MERGE)


async def test_an_advisor_binds_nothing_and_says_what_to_configure(control_plane: Plane) -> None:
    async with served(control_plane, owning(mode="advisor")) as stage:
        status, said = await stage.post("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"})
        assert (status, "remove bindVerb" in said) == (200, True)


async def test_a_stranger_who_is_faster_has_the_device_and_we_take_one_from_another_pool(control_plane: Plane) -> None:
    async with owned(control_plane, hasty) as here:
        ours, theirs = await here.claim("ours", here.request()), await here.claim("theirs", here.request())
        taken: list[str] = []

        async def overtaken(call: Call) -> Answer | Unanswered:
            """Have somebody else's write of the same device land just before ours."""
            (device,) = promised(here.service.belief)
            taken.append(device.pool.removeprefix(f"{here.name}-"))
            await here.allocate(theirs, device.pool, device.device)
            return await call()

        with faulty(here.stage, allocation_of(ours), overtaken):
            node = await here.bound(await here.pod("p", claims=("ours",)))
        assert {node, *taken} == {"a", "b"}
        assert closed(here) == set(taken)
        assert here.stage.counted("foreign_allocations_seen_total", driver=here.driver) == 1
