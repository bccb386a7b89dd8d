"""A service that is not safe on its cluster answers nobody, writes nothing, and says why."""

import asyncio
from typing import Any

import pytest

from extender.config.settings import Leading, Ownership, Settings, Waking
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.kube.rights import REVIEWS
from extender.kube.versions import Versions
from extender.scheduling.rights import NEEDS, OWNER_RIGHTS
from extender.service.assembly import running
from extender.service.inspection import Inspection, Unsafe
from extender.telemetry import keys
from extender.web.server import Options
from tests.kube.scripted import failure, groups, resources, response, scripted
from tests.service.door import Door, furnish
from tests.service.owned import HERE, RULES, place
from tests.service.test_counted import until

BINDING = "patch resourceclaims/binding"


def settings(**ownership: Any) -> Settings:
    return Settings(ownership=Ownership(**ownership))


@pytest.mark.parametrize(
    ("told", "served", "setting"),
    [
        (settings(), {}, "ownership.drivers"),
        (settings(), {"has_rules": False}, "ownership.keepTaint"),
        (settings(keep_taint=False), {}, "ownership.keepTaint"),
        (settings(owner_taint=""), {}, "ownership.keepTaint"),
        (settings(), {"denied": {BINDING}}, "ownership.mode"),
        (settings(), {"denied": {"create pods/binding"}}, "ownership.mode"),
        (settings(), {"dra_version": "v2"}, "ownership.mode"),
        (settings(mode="advisor"), {"dra_version": "v2"}, "ownership.mode"),
        (Settings(leading=Leading(enabled=True)), {"denied": {BINDING}}, "ownership.mode"),
    ],
    ids=[
        "no-drivers",
        "no-rules",
        "not-kept",
        "no-taint",
        "no-right",
        "no-binding",
        "no-api",
        "advisor-no-api",
        "replica",
    ],
)
async def test_an_unsafe_start_is_refused(told: Settings, served: dict[str, Any], setting: str) -> None:
    server = ApiServer(**served)
    access = Fixed(Access(server=await server.start()))
    try:
        async with running(told, access, Options(verbs=HERE, probes=HERE)) as service:
            async with asyncio.timeout(20):
                with pytest.raises(Unsafe) as refused:
                    await service.ready()
            assert refused.value.reasons[0].startswith(f"{setting}: ")
            assert service.answers.hindrance() != ""
            assert [kind for kind in server.kinds.values() if server.store.all(kind)] == []
    finally:
        await server.stop()


async def test_where_a_start_is_refused_nothing_is_promised_either() -> None:
    server = ApiServer()
    furnish(server, ["n1"])
    access = Fixed(Access(server=await server.start()))
    told = Settings(waking=Waking(nominate_ahead="always"))
    try:
        async with running(told, access, Options(verbs=HERE, probes=HERE)) as service, asyncio.timeout(20):
            with pytest.raises(Unsafe):
                await service.ready()
            await until(lambda: service.belief.loads.is_known)
            door = Door(server, service, ["n1"])
            await door.pod("p")
            await until(lambda: len(list(service.belief.cluster.claims)) == 1)
            for _ in range(100):
                await asyncio.sleep(0)
            assert list(service.belief.ledger) == []
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("told", "served"),
    [
        (settings(drivers=("gpu.example.com",)), {"has_rules": False}),
        (settings(accept_unpartitioned=True), {"has_rules": False}),
        (settings(mode="advisor"), {"has_rules": False, "denied": {BINDING}}),
    ],
    ids=["drivers", "accepted", "advisor"],
)
async def test_what_is_accepted_starts(told: Settings, served: dict[str, Any]) -> None:
    async with place(told, **served) as here:
        assert here.service.inspection.reasons == ()


@pytest.mark.parametrize("ownership", [{}, {"keep_taint": False}], ids=["kept", "not-kept"])
async def test_a_rule_by_hand_is_a_partition(ownership: dict[str, Any]) -> None:
    server = ApiServer()
    rule = {
        "metadata": {"name": "by-hand"},
        "spec": {"taint": {"key": "dra-extender.x-k8s.io/owned", "effect": "NoSchedule"}, "deviceSelector": {}},
    }
    kind = next(kind for kind in server.kinds.values() if kind.name == "DeviceTaintRule")
    server.registry.create(kind, "", rule)
    access = Fixed(Access(server=await server.start()))
    try:
        async with running(settings(**ownership), access, Options(verbs=HERE, probes=HERE)) as service:
            async with asyncio.timeout(20):
                await service.ready()
    finally:
        await server.stop()
    assert RULES.endswith(kind.plural)


RESOURCE = "/apis/resource.k8s.io"
KEY = "dra-extender.x-k8s.io/owned"
RULE: dict[str, Any] = {
    "metadata": {"name": "by-hand"},
    "spec": {"taint": {"key": KEY, "effect": "NoSchedule"}, "deviceSelector": {}},
}
LISTED, NONE = (response({"items": items}) for items in ([RULE], []))
MAY, MAY_NOT = (response({"status": {"allowed": allowed}}) for allowed in (True, False))
OLDER = response({"minor": "35"})
FAULTS = {
    "429": failure(429, "TooManyRequests"),
    "500": failure(500, "InternalError"),
    "503": failure(503, "ServiceUnavailable"),
    "proxy": response(b"<html>", kind="text/html"),
    "nothing": b"",
}


async def inspected(answers: dict[str, tuple[bytes, ...]]) -> tuple[Inspection, list[str]]:
    """Inspect a cluster that gives these *answers* by path; return what was found, and what was asked."""
    discovery = {"/apis": groups("v1"), f"{RESOURCE}/v1": resources("resourceclaims", "devicetaintrules")}
    async with scripted() as (script, api):
        for path, told in ({path: (told,) for path, told in discovery.items()} | answers).items():
            script.add(path, *told)
        pace = Pace(sleep=lambda _: asyncio.sleep(0))
        inspection = Inspection(settings(), api, Versions(api, pace, lambda _: None), Freshness([]), pace)
        running = asyncio.create_task(inspection.run())
        async with asyncio.timeout(20):
            await inspection.ended.wait()
        running.cancel()
        return inspection, script.asked


@pytest.mark.parametrize(
    "less",
    [
        {"deviceSelector": None},
        {"deviceSelector": {"driver": "gpu.example.com", "device": "gpu-0"}},
        {"deviceSelector": {"driver": "gpu.example.com", "pool": "node-1"}},
        {"taint": {"key": "dra-extender.x-k8s.io/owned", "effect": "NoExecute"}},
        {"taint": {"key": "dra-extender.x-k8s.io/owned", "effect": "None"}},
        {"taint": {"key": "example.com/else", "effect": "NoSchedule"}},
    ],
    ids=["nothing", "device", "pool", "eviction", "no-effect", "another-key"],
)
async def test_a_rule_that_does_not_keep_others_from_a_whole_driver_is_none(less: dict[str, Any]) -> None:
    rule = {**RULE, "spec": {**RULE["spec"], **less}}
    answers: dict[str, tuple[bytes, ...]] = {
        "/version": (OLDER,),
        REVIEWS: (MAY,),
        RULES: (response({"items": [rule]}),),
    }
    inspection, _ = await inspected(answers)
    assert [reason.partition(":")[0] for reason in inspection.reasons] == ["ownership.drivers"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_what_is_not_answered_is_asked_again_and_refuses_no_start(fault: bytes) -> None:
    answers = {"/version": (fault, OLDER), REVIEWS: (fault, MAY), RULES: (fault, fault, LISTED)}
    inspection, asked = await inspected(answers)
    assert inspection.reasons == ()
    # An older API server is not asked about what it does not know.
    assert asked.count(REVIEWS) == 1 + len(OWNER_RIGHTS) - 1 + len(NEEDS) - 1


@pytest.mark.parametrize(
    ("last", "minor"),
    [
        (response({"minor": "37+"}), 37),
        (response({"gitVersion": "v1.37.0"}), None),
        (failure(403, "Forbidden"), None),
        (failure(404, "NotFound"), None),
    ],
)
async def test_the_minor_version_is_asked_for_until_there_is_an_answer(last: bytes, minor: int | None) -> None:
    answers = {"/version": (failure(401, "Unauthorized"), FAULTS["500"], last), REVIEWS: (MAY,), RULES: (LISTED,)}
    inspection, asked = await inspected(answers)
    assert (await inspection.minor(), asked.count("/version")) == (minor, 3)


async def test_why_the_cluster_is_not_inspected_yet_is_told_when_it_is_something_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = [FAULTS[why] for why in ("503", "503", "500", "500")]
    await inspected({"/version": (OLDER,), REVIEWS: (MAY,), RULES: (*faults, LISTED)})
    assert [getattr(record, keys.PROBLEM)[:3] for record in caplog.records] == ["503", "500"]


async def test_a_right_that_is_denied_only_when_asked_again_refuses_the_start() -> None:
    inspection, _ = await inspected({"/version": (OLDER,), REVIEWS: (FAULTS["503"], MAY_NOT), RULES: (LISTED,)})
    assert len(inspection.reasons) == len(OWNER_RIGHTS) - 1


async def test_without_the_right_to_ask_what_is_asked_for_counts_as_there() -> None:
    forbidden = failure(403, "Forbidden")
    inspection, asked = await inspected({"/version": (forbidden,), REVIEWS: (forbidden,), RULES: (LISTED,)})
    assert inspection.reasons == ()
    assert asked.count(REVIEWS) == len(OWNER_RIGHTS) + len(NEEDS)


async def test_rules_that_may_not_be_read_yet_are_not_taken_for_none() -> None:
    allowed = {"/version": (OLDER,), REVIEWS: (MAY,)}
    inspection, _ = await inspected(allowed | {RULES: (failure(403, "Forbidden"), LISTED)})
    assert inspection.reasons == ()
    inspection, _ = await inspected(allowed | {RULES: (failure(404, "NotFound"), NONE)})
    assert [reason.partition(":")[0] for reason in inspection.reasons] == ["ownership.drivers"]


@pytest.mark.parametrize(("mode", "told"), [("owner", ["update resourceclaims of resource.k8s.io"]), ("advisor", [])])
async def test_a_right_that_only_some_pods_need_is_missed_in_the_log_and_refuses_no_start(
    caplog: pytest.LogCaptureFixture, mode: str, told: list[str]
) -> None:
    server = ApiServer(denied={"update resourceclaims"})
    access = Fixed(Access(server=await server.start()))
    try:
        served = settings(mode=mode, accept_unpartitioned=True)
        async with running(served, access, Options(verbs=HERE, probes=HERE)) as service, asyncio.timeout(20):
            await service.ready()
    finally:
        await server.stop()
    missing = [record for record in caplog.records if record.message == "a right is missing"]
    assert [getattr(record, keys.REASON).partition(": ")[0] for record in missing] == told
    assert all("scheduler-config/base/rbac/extender.yaml" in getattr(record, keys.REASON) for record in missing)
