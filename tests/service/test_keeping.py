"""The owner taint is put on our drivers, and put back whatever is done to it; what cannot be done is said once."""

import logging
from typing import Any

import pytest

from extender.allocation.features import Features
from extender.config.settings import Ownership, Settings
from extender.kube.outcome import Refused
from extender.model.change import Changed
from extender.scheduling.steps import Refusal
from extender.service import keeping
from extender.service.keeping import Keeping
from extender.state.belief import Belief
from extender.state.domain import Domain
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import gpus
from tests.service.owned import DRIVER, RULES, Json, Place, place, published, so, until
from tests.telemetry.test_metrics import samples

MERGE = "application/merge-patch+json"
NAME = f"dra-extender-owned-{DRIVER}"
KEY = "dra-extender.x-k8s.io/owned"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the watch does not show at once it will not show: the tests wait for the next look."""
    monkeypatch.setattr(keeping, "TICK_S", 0.05)
    monkeypatch.setattr(keeping, "SHOWN_WITHIN_S", 0.2)


def settings(**ownership: object) -> Settings:
    return Settings(ownership=Ownership(**ownership))  # type: ignore[arg-type]  # settings by name


async def kept(here: Place) -> None:
    await so(lambda: here.service.belief.ownership.keeps(DRIVER))


async def rule(here: Place) -> Json:
    found: Json = (await here.do("GET", f"{RULES}/{NAME}"))["spec"]
    return {name: {key: value for key, value in part.items() if value is not None} for name, part in found.items()}


async def test_the_taint_is_put_on_every_driver_that_is_published() -> None:
    async with place() as here:
        await kept(here)
        assert await rule(here) == {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": KEY, "effect": "NoSchedule"},
        }
        await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
        await so(lambda: here.service.belief.ownership.keeps("nic.example.com"))
        await so(lambda: here.metric('owner_taint_writes_total{result="put"}') == 2)
        assert here.metric("owner_taint_missing") == 0


async def test_named_drivers_are_tainted_before_they_publish_anything_and_no_others() -> None:
    async with place(settings(drivers=("nic.example.com",))) as here:
        await so(lambda: here.service.belief.ownership.keeps("nic.example.com"))
        assert [item["metadata"]["name"] for item in await here.items(RULES)] == ["dra-extender-owned-nic.example.com"]


async def test_a_rule_that_is_deleted_is_put_back(caplog: pytest.LogCaptureFixture) -> None:
    async with place() as here:
        await kept(here)
        with caplog.at_level(logging.WARNING):
            await here.do("DELETE", f"{RULES}/{NAME}")
            await so(lambda: here.metric('owner_taint_writes_total{result="put back"}'))
            await kept(here)
        told = [record for record in caplog.records if "put back" in record.getMessage()]
        assert vars(told[0])["driver"] == DRIVER


@pytest.mark.parametrize(
    "change",
    [
        {"deviceSelector": {"pool": "node-1"}},
        {"deviceSelector": {"driver": "other.example.com"}},
        {"taint": {"key": "example.com/else"}},
        {"taint": {"effect": "None"}},
    ],
    ids=["narrowed", "another-driver", "another-key", "no-effect"],
)
async def test_a_rule_that_is_changed_is_put_back(change: Json) -> None:
    async with place() as here:
        await kept(here)
        before = await rule(here)
        await here.do("PATCH", f"{RULES}/{NAME}", {"spec": change}, MERGE)

        async def is_back() -> bool:
            return await rule(here) == before

        await so(lambda: here.metric('owner_taint_writes_total{result="put back"}'))
        await until(is_back)
        await kept(here)


async def test_a_rule_by_somebody_else_with_our_taint_will_do() -> None:
    theirs = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "by-hand"},
        "spec": {"deviceSelector": {"driver": "nic.example.com"}, "taint": {"key": KEY, "effect": "NoSchedule"}},
    }
    async with place() as here:
        await here.do("POST", RULES, theirs)
        await so(lambda: here.service.belief.ownership.keeps("nic.example.com"))
        await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
        await kept(here)
        assert {item["metadata"]["name"] for item in await here.items(RULES)} == {"by-hand", NAME}


async def test_nothing_is_written_where_that_is_not_wanted() -> None:
    async with place(settings(keep_taint=False, accept_unpartitioned=True)) as here:
        assert here.metric("owner_taint_missing") == 1
        assert await here.items(RULES) == []


async def test_where_rules_are_not_served_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        async with place(settings(accept_unpartitioned=True), has_rules=False) as here:
            await so(lambda: caplog.records)
            # Another look is worth no other word.
            here.service.attention.stir()
            await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
            await so(lambda: here.metric("owner_taint_missing") == 2)
    (line,) = [vars(record) for record in caplog.records]
    assert line["error"] == "the API server does not serve devicetaintrules"
    assert line["wayOut"] == keeping.WAY_OUT


class Refusing:
    """Stands in for writes that are forbidden."""

    async def create_taint(self, *_: object) -> Refused:
        return Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="no right to create rules")


class Found:
    """Stands in for discovery."""

    async def find(self, _resource: object) -> object:
        return object()


async def test_where_rules_may_not_be_written_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    anybody: Any = (Found(), Refusing())
    metrics = Metrics()
    belief = Belief(("ours",), Features(), domain=Domain(taint=KEY))
    belief.apply(Changed(gpus("n1", 1)))
    work = Keeping(belief, anybody[0], anybody[1], metrics, lambda: True)
    with caplog.at_level(logging.ERROR):
        await work.round()
        await work.round()
    assert [vars(record)["error"] for record in caplog.records] == ["no right to create rules"]
    assert samples(metrics)["dra_extender_owner_taint_writes_total", frozenset({("result", "failed")})] == 2
