"""What others allocate of what is ours: told by metric, log and event, and what opens it again is told too."""

import asyncio
import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from extender.kube.outcome import Succeeded, Unknown
from extender.model.change import Change, Changed, Gone
from extender.model.claim import Consumer, ResourceClaim
from extender.model.device import Seal
from extender.model.names import DeviceKey, DriverName, ObjectKey, Uid
from extender.model.taint import DeviceTaintRule
from extender.service import intrusion as module
from extender.service.gauges import Gauges
from extender.service.intrusion import MOST_AGAIN, REASON, SHOWN, UNKNOWN, Intrusion, text_of
from extender.service.notices import AGAIN_S, RETRY_S, Notices
from extender.state.domain import Domain
from extender.state.foreign import BORNE, Foreign
from extender.state.ownership import OTHERS
from extender.state.sealing import PIECE
from extender.telemetry.metrics import Metrics
from tests.kube_objects import CLAIMS
from tests.scheduling.cast import DRIVER, claim, consumer, device, gpus, held, pod
from tests.service.owned import EVENTS, Place, place, so, until
from tests.service.test_notices import Events, noticing, written
from tests.state.test_ownership import RULE, allocated, believing
from tests.state.test_ownership import closed as closed_in
from tests.telemetry.test_metrics import samples

MERGE = "application/merge-patch+json"


def closed(here: Place) -> list[str]:
    slices = here.service.belief.cluster.snapshot.inventory.slices
    return [item.pool for item in slices if item.seal is Seal.CLOSED]


async def tainted(here: Place) -> None:
    """Put the owner taint on the driver, and wait until the service knows."""
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "owned"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com"},
            "taint": {"key": "dra-extender.x-k8s.io/owned", "effect": "NoSchedule"},
        },
    }
    await here.do("POST", "/apis/resource.k8s.io/v1/devicetaintrules", rule)
    await so(lambda: here.service.belief.ownership.keeps("gpu.example.com"))


async def test_a_foreign_allocation_is_told_with_the_way_out(caplog: pytest.LogCaptureFixture) -> None:
    async with place() as here:
        await tainted(here)
        uid = (await here.claim("theirs"))["metadata"]["uid"]
        with caplog.at_level(logging.ERROR):
            await here.allocate("theirs", manager="kube-scheduler")
            await so(lambda: closed(here) == ["node-1"])
        assert here.metric("foreign_allocations_seen_total") == 1
        assert here.metric("foreign_allocations{") == 1
        (line,) = [vars(record) for record in caplog.records if record.levelno == logging.ERROR]
        accept = f"kubectl annotate resourceclaim -n default theirs {BORNE}={uid}"
        assert (line["claim"], line["devices"], line["writer"], line["closed"]) == (
            "default/theirs",
            "gpu.example.com/node-1/gpu-0",
            "kube-scheduler",
            "pool gpu.example.com/node-1",
        )
        assert line["wayOut"].endswith(accept)
        await until(lambda: here.items(EVENTS))
        (event,) = await here.items(EVENTS)
        assert (event["type"], event["reason"]) == ("Warning", "ForeignAllocation")
        assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("ResourceClaim", uid)
        assert accept in event["note"]
        await here.do("DELETE", f"{CLAIMS}/theirs")
        await so(lambda: closed(here) == [])
        assert here.metric("foreign_allocations{") == 0


@pytest.mark.parametrize("is_borne", [True, False])
def test_what_is_closed_no_more_is_told_once(*, is_borne: bool, caplog: pytest.LogCaptureFixture) -> None:
    here, theirs = Watched(), allocated(by="kube-scheduler")
    here.show(Changed(theirs))
    caplog.set_level(logging.INFO)
    caplog.clear()
    here.show(Changed(replace(theirs, resource_version="2")))
    assert not caplog.records
    borne = replace(theirs, annotations=((BORNE, theirs.uid),))
    change = Changed(borne) if is_borne else Gone(ResourceClaim, theirs.key)
    for _ in range(2):
        here.show(change)
    (line,) = [vars(record) for record in caplog.records]
    assert (line["message"], line["claim"]) == ("what a foreign allocation closed is open again", str(theirs.key))


async def test_a_foreign_allocation_is_told_to_the_pods_that_use_it() -> None:
    async with place() as here:
        await here.claim("theirs")
        user = {"resource": "pods", "name": "p", "uid": "of-p"}
        results = [{"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]
        status = {"reservedFor": [user], "allocation": {"devices": {"results": results}}}
        await here.do("PATCH", f"{CLAIMS}/theirs/status", {"status": status}, MERGE)

        async def both() -> bool:
            return {event["regarding"]["kind"] for event in await here.items(EVENTS)} == {"ResourceClaim", "Pod"}

        await until(both)


async def test_somebody_who_may_patch_the_claim_can_bear_with_it() -> None:
    async with place() as here:
        await tainted(here)
        uid = (await here.claim("theirs"))["metadata"]["uid"]
        await here.allocate("theirs")
        await so(lambda: closed(here) == ["node-1"])
        await here.do("PATCH", f"{CLAIMS}/theirs", {"metadata": {"annotations": {BORNE: uid}}}, MERGE)
        await so(lambda: closed(here) == [])


@pytest.mark.parametrize("leads", [True, False])
def test_while_another_replica_leads_allocations_are_its_own(*, leads: bool) -> None:
    nobody: Any = None  # events wait to be written; nobody writes them here
    belief = believing()
    intrusion = Intrusion(belief, Metrics(), Notices(nobody, "one", 20), lambda: leads, lambda: 0.0)
    change = Changed(allocated(by="kube-scheduler"))
    intrusion.before(change)
    belief.apply(change)
    intrusion.after(change)
    assert bool(belief.ownership.foreign) is leads


def counted(intrusion: Intrusion, name: str) -> float:
    """Return what a counter of *intrusion* has counted, whatever the driver."""
    return sum(value for (found, _), value in samples(intrusion.metrics).items() if found == f"dra_extender_{name}")


class Watched:
    """An intrusion beside what it writes; *at* is the time of the day."""

    def __init__(self, domain: Domain | None = None) -> None:
        self.at, self.is_leading, self.events = 0.0, True, Events()
        self.belief, self.notices = believing(domain=domain), noticing(self.events)
        self.intrusion = Intrusion(self.belief, Metrics(), self.notices, lambda: self.is_leading, lambda: self.at)

    def show(self, change: Change) -> None:
        self.intrusion.before(change)
        self.belief.apply(change)
        self.intrusion.after(change)

    async def told(self) -> list[str]:
        return await written(self.notices, self.events)

    async def reminded(self, at: float) -> list[str]:
        """Return the reasons that are told again at a time."""
        self.at = at
        await self.intrusion.remind()
        return await self.told()


THEIRS = allocated(by="kube-scheduler")


async def test_the_rest_of_a_driver_is_closed_and_opened_in_pieces_between_which_others_run() -> None:
    here, many = Watched(), 5 * PIECE
    here.belief.apply(Gone(DeviceTaintRule, ObjectKey("", RULE.name)))
    for number in range(many):
        here.belief.apply(Changed(gpus(f"w{number}", 1)))
    running = asyncio.create_task(here.intrusion.run())

    async def counts() -> list[int]:
        """Return how many are closed, one turn after the other, until nothing waits to be closed or opened."""
        found = [len(closed_in(here.belief))]
        while here.belief.sealing.is_due:
            await asyncio.sleep(0)
            found.append(len(closed_in(here.belief)))
        return found

    async with asyncio.timeout(10):
        for change, end in ((Changed(THEIRS), many + 2), (Gone(ResourceClaim, THEIRS.key), 0)):
            here.show(change)
            steps = await counts()
            assert steps[-1] == end
            assert all(abs(after - before) <= PIECE for before, after in pairwise(steps))
    running.cancel()


async def test_what_stays_closed_is_told_again_before_the_api_server_has_forgotten_it() -> None:
    here = Watched()
    here.show(Changed(THEIRS))
    assert len(here.notices._waiting) == 1
    assert await here.told() == [REASON]
    assert await here.reminded(AGAIN_S - 1) == []
    assert await here.reminded(AGAIN_S) == [REASON]
    here.is_leading = False
    assert await here.reminded(2 * AGAIN_S) == []
    here.is_leading = True
    here.show(Gone(ResourceClaim, THEIRS.key))
    assert await here.reminded(2 * AGAIN_S) == []


def test_a_foreign_allocation_is_a_conflict_where_an_earlier_claim_holds_the_device(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, line = Watched(), "another allocator has given a device that is held"
    for item, conflicts in ((THEIRS, 0), (allocated("b", by="kube-scheduler"), 1)):
        here.show(Changed(item))
        assert counted(here.intrusion, "foreign_conflicts_total") == conflicts
        assert [record.message for record in caplog.records].count(line) == conflicts
    assert counted(here.intrusion, "foreign_allocations_seen_total") == 2


@pytest.mark.parametrize(
    ("made_up", "ours", "label"),
    [
        (False, frozenset(), DRIVER),
        (True, frozenset(), OTHERS),
        (True, frozenset({"made-up.example.com"}), "made-up.example.com"),
    ],
    ids=["published", "unknown", "named"],
)
def test_drivers_that_strangers_make_up_are_counted_under_one_name(
    ours: frozenset[str], label: str, *, made_up: bool
) -> None:
    here = Watched(Domain(drivers=ours))
    for name in ("a", "b"):
        claim = allocated(name, by="kube-scheduler")
        here.show(Changed(given_of(claim, "made-up.example.com") if made_up else claim))
    drivers = {dict(labels)["driver"] for (name, labels) in samples(here.intrusion.metrics) if "_foreign_" in name}
    assert drivers == {label}
    nobody: Any = None
    gauges = Gauges(here.belief, nobody, nobody, lambda: 0.0)
    assert gauges.foreign() == {DRIVER: 0} | {label: 2}


def given_of(claim: ResourceClaim, driver: str) -> ResourceClaim:
    """Return *claim* with a device of another *driver*."""
    assert claim.allocation is not None
    given = claim.allocation.devices
    moved = tuple(replace(item, device=item.device._replace(driver=DriverName(driver))) for item in given)
    return replace(claim, allocation=replace(claim.allocation, devices=moved))


async def test_an_event_about_what_is_closed_that_was_lost_is_written_later() -> None:
    here = Watched()
    here.events.outcome = Unknown("no answer")
    here.show(Changed(THEIRS))
    await here.told()
    here.events.outcome = Succeeded({})
    assert await here.reminded(RETRY_S) == [REASON]


async def test_a_pod_that_comes_to_use_what_is_closed_is_told_too() -> None:
    here = Watched()
    here.show(Changed(THEIRS))
    await here.told()
    job = Consumer(resource="jobs", name="job", uid=Uid("of-job"), api_group="batch")
    here.show(Changed(replace(THEIRS, resource_version="3", reserved_for=(consumer(pod("late")), job))))
    assert await here.reminded(1.0) == [REASON]
    assert {str(uid) for uid in here.notices._told} == {THEIRS.uid, pod("late").uid}


async def test_of_very_many_foreign_allocations_some_are_told_again() -> None:
    here = Watched()
    here.show(Changed(THEIRS))
    (found,) = here.belief.ownership.foreign.values()
    for number in range(MOST_AGAIN + 1):
        claim = allocated(f"c{number}", by="kube-scheduler")
        here.belief.ownership.foreign[claim.uid] = replace(found, claim=claim)
    await here.intrusion.remind()
    assert (len(here.notices._waiting), len(here.notices._again)) == (1, MOST_AGAIN - 1)


async def test_between_two_that_are_told_again_others_run_and_what_opens_meanwhile_is_told_of_no_more() -> None:
    here, others = Watched(), allocated("b", by="kube-scheduler", where="n2")
    for item in (THEIRS, others):
        here.show(Changed(item))
    await here.told()
    here.notices._told.clear()
    reminding = asyncio.create_task(here.intrusion.remind())
    await asyncio.sleep(0)
    here.show(Gone(ResourceClaim, others.key))
    await reminding
    assert list(here.notices._again) == [THEIRS.uid]


@pytest.mark.parametrize(
    ("count", "shown"),
    [(SHOWN, f"{DRIVER}/n1/d3 allocated"), (SHOWN + 1, f"{DRIVER}/n1/d3 and 1 more allocated")],
)
def test_an_event_names_a_few_devices_and_counts_the_rest(count: int, shown: str) -> None:
    assert shown in text_of(foreign(*(device("n1", number) for number in range(count))))


@pytest.mark.parametrize(("writers", "named"), [((), UNKNOWN), (("kube-scheduler", "me"), "kube-scheduler, me")])
def test_an_event_says_who_has_written_as_far_as_that_is_known(writers: tuple[str, ...], named: str) -> None:
    found = foreign(device("n1", 0))
    assert f"(writer: {named})" in text_of(replace(found, claim=replace(found.claim, writers=writers)))


def test_an_event_says_what_is_closed_whole_drivers_first() -> None:
    pools, names = [device(f"n{number}", 0) for number in range(9)], ", ".join(f"{DRIVER}/n{n}" for n in range(9))
    assert f"closed: pool {names}. " in text_of(foreign(*pools))
    untainted = frozenset(DriverName(f"{letter}.example.com") for letter in "abcdefgh")
    whole = [item._replace(driver=driver) for driver in untainted for item in pools]
    drivers = "; ".join(f"all pools of {name}, which had no owner taint" for name in sorted(untainted))
    assert f"closed: {drivers}; pool {names}. " in text_of(replace(foreign(*whole, *pools), untainted=untainted))
    assert f"closed: {drivers}. " in text_of(replace(foreign(*whole), untainted=untainted))


def foreign(*devices: DeviceKey) -> Foreign:
    return Foreign(claim=held(claim("a"), *devices), devices=devices, untainted=frozenset())


async def test_reminding_goes_on_beside_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    async with place() as here:
        await tainted(here)
        await here.claim("theirs")
        await here.allocate("theirs", manager="kube-scheduler")
        await so(lambda: closed(here) == ["node-1"])
        # Nobody wrote it, as far as is known.
        await until(lambda: here.items(EVENTS))
        here.service.journal.notices._told.clear()

        async def twice() -> bool:
            return len(await here.items(EVENTS)) > 1

        await until(twice)


async def test_what_another_replica_or_an_earlier_process_wrote_is_not_foreign() -> None:
    async with place() as here:
        await here.claim("late")
        await here.allocate("late", manager=here.service.belief.ownership.domain.writer)
        await here.claim("theirs")
        await here.allocate("theirs", "gpu-1")
        await so(lambda: here.service.belief.ownership.foreign)
        (found,) = here.service.belief.ownership.foreign.values()
        assert found.claim.key.name == "theirs"
        assert here.metric("foreign_allocations_seen_total") == 1
