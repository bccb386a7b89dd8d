"""The owner taint is put on our drivers, and put back whatever is done to it; what cannot be done is said once."""

import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from extender.allocation.features import Features
from extender.config.settings import Ownership, Settings
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, Unknown
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.device import Traits
from extender.model.names import DeviceName, DriverName, ObjectKey
from extender.model.taint import NO_SCHEDULE, DeviceTaintRule, Taint, TaintSelector
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
OTHER = "other.example.com"
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


async def test_the_taint_is_put_on_every_driver_that_is_named_and_on_no_other_that_is_published() -> None:
    async with place() as here:
        await kept(here)
        assert await rule(here) == {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": KEY, "effect": "NoSchedule"},
        }
        await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
        await so(lambda: len(here.service.belief.cluster.snapshot.inventory.slices) == 3)
        await here.do("DELETE", f"{RULES}/{NAME}")
        # Whatever was to be written is written when what was taken away is back.
        await so(lambda: here.metric('owner_taint_writes_total{result="put back"}'))
        assert [item["metadata"]["name"] for item in await here.items(RULES)] == [NAME]
        assert here.metric("owner_taint_missing") == 0


async def test_where_no_driver_is_named_none_is_tainted_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        async with place(settings(accept_unpartitioned=True)) as here:
            await so(here.service.health.warnings)
            assert here.service.health.warnings() == [
                f"no owner taint on {DRIVER}: {keeping.NOT_NAMED}; others can allocate these devices"
            ]
            await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
            await so(lambda: "nic.example.com" in here.service.health.warnings()[0])
            assert here.service.health.missing() == []
            assert here.metric("owner_taint_missing") == 2
            assert await here.items(RULES) == []
    assert [vars(record)["error"] for record in caplog.records] == [keeping.NOT_NAMED]


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
        {"taint": {"effect": "NoExecute"}},
    ],
    ids=["narrowed", "another-driver", "another-key", "no-effect", "eviction"],
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


async def test_nothing_is_written_where_that_is_not_wanted() -> None:
    async with place(settings(keep_taint=False, drivers=(DRIVER,))) as here:
        await so(here.service.health.warnings)
        assert here.service.health.warnings() == [
            f"no owner taint on {DRIVER}: {keeping.NOT_KEPT}; others can allocate these devices"
        ]
        assert here.metric("owner_taint_missing") == 1
        assert await here.items(RULES) == []


async def test_where_no_taint_is_wanted_none_is_missed() -> None:
    async with place(settings(owner_taint="", drivers=(DRIVER,))) as here:
        assert here.service.health.warnings() == []
        assert here.metric("owner_taint_missing") == 0
        assert await here.items(RULES) == []


async def test_where_rules_are_not_served_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        async with place(settings(drivers=(DRIVER, "nic.example.com")), has_rules=False) as here:
            await so(lambda: caplog.records)
            # Another look is worth no other word.
            here.service.attention.stir()
            await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published("node-1", "nic.example.com"))
            await so(lambda: here.metric("owner_taint_missing") == 2)
    (line,) = [vars(record) for record in caplog.records]
    assert line["error"] == "the API server does not serve devicetaintrules"
    assert line["wayOut"] == keeping.WAY_OUT


FORBIDDEN = Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="no right to create rules")


class Writing:
    """Stands in for writes that may be forbidden, and tells when each driver was tried."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tried: list[tuple[float, str]] = []
        self.forbidden = {DRIVER}
        self.refusal: RequestOutcome = FORBIDDEN

    async def create_taint(self, _served: object, driver: str, _key: str) -> RequestOutcome:
        self.tried.append((self.now, driver))
        if driver in self.forbidden:
            return self.refusal
        return Succeeded({})


class Found:
    """Stands in for discovery."""

    async def find(self, _resource: object) -> object:
        return object()


def at_work(writing: Writing, *drivers: str) -> tuple[Keeping, Belief, Metrics]:
    belief, metrics = owning(Domain(drivers=frozenset(drivers), taint=KEY)), Metrics()
    return keeping_of(belief, writing, metrics), belief, metrics


def owning(domain: Domain) -> Belief:
    belief = Belief(("ours",), Features(), domain=domain)
    belief.apply(Changed(gpus("n1", 1)))
    return belief


def keeping_of(belief: Belief, writing: Writing, metrics: Metrics | None = None) -> Keeping:
    anybody: Any = (Found(), writing)
    return Keeping(belief, anybody[0], anybody[1], metrics or Metrics(), lambda: True, lambda: writing.now)


async def rounds(work: Keeping, writing: Writing, until_s: float) -> None:
    while writing.now < until_s:
        await work.round()
        writing.now += 1.0


async def test_what_is_forbidden_is_said_once_and_tried_ever_more_rarely(caplog: pytest.LogCaptureFixture) -> None:
    writing = Writing()
    work, _, metrics = at_work(writing, DRIVER)
    with caplog.at_level(logging.ERROR):
        await rounds(work, writing, 20 * keeping.LAST_S)
    assert [vars(record)["error"] for record in caplog.records] == ["no right to create rules"]
    spans = [int(later - earlier) for (earlier, _), (later, _) in pairwise(writing.tried)]
    assert spans == sorted(spans)
    assert (spans[0], spans[-1]) == (keeping.FIRST_S, keeping.LAST_S)
    failed = samples(metrics)["dra_extender_owner_taint_writes_total", frozenset({("result", "failed")})]
    assert failed == len(writing.tried)
    assert work.warning().startswith(f"no owner taint on {DRIVER}: no right to create rules; ")
    work.may_write = lambda: False
    assert work.warning() == ""


@pytest.mark.parametrize(
    "outcome",
    [Unknown("no answer"), Refused(kind=Refusal.UNSENT, status=0, reason="", message="not the leader")],
    ids=["no-answer", "unsent"],
)
async def test_what_time_alone_may_help_is_tried_again_as_soon_each_time(outcome: RequestOutcome) -> None:
    writing = Writing()
    writing.refusal = outcome
    work, _, _ = at_work(writing, DRIVER)
    await rounds(work, writing, 4 * keeping.FIRST_S)
    assert [at for at, _ in writing.tried] == [number * keeping.FIRST_S for number in range(4)]


async def test_who_ceases_to_lead_as_it_writes_says_nothing_of_what_it_does_not_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_over = False

    class Ending(Writing):
        async def create_taint(self, served: object, driver: str, key: str) -> RequestOutcome:
            nonlocal is_over
            is_over = True
            return await super().create_taint(served, driver, key)

    writing = Ending()
    writing.refusal = Refused(kind=Refusal.UNSENT, status=0, reason="", message="not the leader")
    work, _, _ = at_work(writing, DRIVER)
    work.may_write = lambda: not is_over
    await work.round()
    is_over = False
    assert (len(writing.tried), caplog.records, work.warning()) == (1, [], "")


async def test_a_rule_that_keeps_nobody_away_though_it_is_written_is_said_and_written_ever_more_rarely(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "SHOWN_WITHIN_S", 0.0)
    writing = Writing()
    writing.forbidden.clear()
    work, _, _ = at_work(writing, DRIVER)
    with caplog.at_level(logging.ERROR):
        await rounds(work, writing, 5 * keeping.LAST_S)
    assert [vars(record)["error"] for record in caplog.records] == [keeping.NOT_SHOWN]
    spans = [int(later - earlier) for (earlier, _), (later, _) in pairwise(writing.tried)]
    assert spans == sorted(spans)
    assert (spans[0], spans[-1]) == (keeping.FIRST_S, keeping.LAST_S)
    assert work.warning().startswith(f"no owner taint on {DRIVER}: {keeping.NOT_SHOWN}; ")


class Undone(Writing):
    """What is written is shown, and taken away or spoiled, before anybody looks."""

    def __init__(self, *after: Change, is_shown: bool = True) -> None:
        super().__init__()
        self.forbidden.clear()
        self.after, self.is_shown = after, is_shown
        self.belief: Belief | None = None

    async def create_taint(self, served: object, driver: str, key: str) -> RequestOutcome:
        outcome = await super().create_taint(served, driver, key)
        assert self.belief
        whole = rule_for(driver)
        narrowed = replace(whole, selector=TaintSelector(driver=DriverName(driver), device=DeviceName("gpu-0")))
        for change in (Changed(whole if self.is_shown else narrowed), *self.after):
            self.belief.apply(change)
        return outcome


@pytest.mark.parametrize("by", ["delete", "relist", "change"])
async def test_a_rule_that_is_undone_before_anybody_looks_is_put_back_at_once(
    by: str, caplog: pytest.LogCaptureFixture
) -> None:
    narrowed = replace(rule_for(DRIVER), selector=TaintSelector(driver=DriverName(DRIVER), device=DeviceName("gpu-0")))
    undone: dict[str, Change] = {
        "delete": Gone(DeviceTaintRule, ObjectKey("", "by-hand")),
        "relist": Listed(DeviceTaintRule, ()),
        "change": Changed(narrowed),
    }
    writing = Undone(undone[by])
    work, writing.belief, metrics = at_work(writing, DRIVER)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            await work.round()
    assert (work.warning(), caplog.records) == ("", [])
    counted = samples(metrics)
    for result, times in (("put", 1), ("put back", 2)):
        assert counted["dra_extender_owner_taint_writes_total", frozenset({("result", result)})] == times


async def test_a_rule_that_was_left_alone_since_is_put_back_at_once_as_often_as_before() -> None:
    gone = Gone(DeviceTaintRule, ObjectKey("", "by-hand"))
    writing = Undone(gone)
    work, belief, _ = at_work(writing, DRIVER)
    writing.belief = belief
    for _ in range(2):
        for _ in range(keeping.AT_ONCE):
            await work.round()
        belief.apply(Changed(rule_for(DRIVER)))
        await work.round()
        belief.apply(gone)
    assert (work.warning(), len(writing.tried)) == ("", 2 * keeping.AT_ONCE)


@pytest.mark.parametrize("is_shown", [True, False], ids=["shown", "never-whole"])
async def test_a_rule_that_is_undone_each_time_is_told_and_put_back_ever_more_rarely(
    *, is_shown: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "SHOWN_WITHIN_S", 0.0)
    writing = Undone(Gone(DeviceTaintRule, ObjectKey("", "by-hand")), is_shown=is_shown)
    work, writing.belief, _ = at_work(writing, DRIVER)
    with caplog.at_level(logging.ERROR):
        await rounds(work, writing, 5 * keeping.LAST_S)
    assert [vars(record)["error"] for record in caplog.records] == [keeping.UNDONE if is_shown else keeping.NOT_SHOWN]
    spans = [int(later - earlier) for (earlier, _), (later, _) in pairwise(writing.tried)]
    assert spans == sorted(spans)
    assert spans[-1] == keeping.LAST_S


async def test_what_is_forbidden_for_one_driver_keeps_no_other_waiting() -> None:
    writing = Writing()
    work, belief, _ = at_work(writing, DRIVER, "other.example.com")
    belief.apply(Changed(rule_for("other.example.com")))
    await rounds(work, writing, keeping.LAST_S)
    assert {driver for _, driver in writing.tried} == {DRIVER}
    writing.tried.clear()
    belief.apply(Gone(DeviceTaintRule, ObjectKey("", "by-hand")))
    await work.round()
    assert writing.tried == [(writing.now, "other.example.com")]


def rule_for(driver: str) -> DeviceTaintRule:
    taint = Taint(key=KEY, effect=NO_SCHEDULE)
    return DeviceTaintRule(name="by-hand", selector=TaintSelector(driver=DriverName(driver)), taint=taint)


async def test_a_rule_by_somebody_else_with_our_taint_will_do() -> None:
    writing = Writing()
    work, belief, _ = at_work(writing, DRIVER, "other.example.com")
    belief.apply(Changed(rule_for(DRIVER)))
    await work.round()
    assert [driver for _, driver in writing.tried] == ["other.example.com"]


async def test_a_rule_that_keeps_others_from_a_whole_shared_driver_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As ours of before, when the driver was not shared: rules are never deleted by us."""
    writing = Writing()
    belief = owning(Domain(drivers=frozenset({DRIVER}), shared=frozenset({DRIVER}), taint=KEY))
    work = keeping_of(belief, writing)
    left = replace(rule_for(DRIVER), name=NAME)
    channels = replace(rule_for(DRIVER), selector=TaintSelector(driver=DriverName(DRIVER), device=DeviceName("c-0")))
    with caplog.at_level(logging.WARNING):
        belief.apply(Changed(channels))
        await work.round()
        assert (work.warning(), caplog.records) == ("", [])
        belief.apply(Changed(left))
        for _ in range(2):
            await work.round()
        assert [vars(record)["rules"] for record in caplog.records] == [NAME]
        assert work.warning() == f"the owner taint is on all of a shared driver: others get nothing of it: {NAME}"
        belief.apply(Gone(DeviceTaintRule, ObjectKey("", NAME)))
        await work.round()
    assert (work.warning(), writing.tried, len(caplog.records)) == ("", [], 1)


@pytest.mark.parametrize(
    "domain", [Domain(drivers=frozenset({OTHER}), taint=KEY), Domain(heeded=KEY)], ids=["owner", "advisor"]
)
async def test_a_rule_that_keeps_everybody_from_a_driver_that_is_not_ours_is_told_once(
    caplog: pytest.LogCaptureFixture, domain: Domain
) -> None:
    """As ours of before, when the driver was ours, or that of an owner.yaml beside settings that name another."""
    writing = Writing()
    belief = owning(domain)
    work = keeping_of(belief, writing)
    for name, driver in (("kept", OTHER), ("of-nothing", "unpublished.example.com")):
        belief.apply(Changed(replace(rule_for(driver), name=name)))
    narrow = TaintSelector(driver=DriverName(DRIVER), device=DeviceName("gpu-0"))
    belief.apply(Changed(replace(rule_for(DRIVER), name="narrow", selector=narrow)))
    with caplog.at_level(logging.WARNING):
        await work.round()
        assert (work.warning(), caplog.records) == ("", [])
        belief.apply(Changed(replace(rule_for(DRIVER), name=NAME)))
        for _ in range(2):
            await work.round()
        assert [(vars(record)["rules"], vars(record)["driver"]) for record in caplog.records] == [(NAME, DRIVER)]
        assert work.warning() == f"rule {NAME} keeps everybody from {DRIVER}, which is {keeping.STRAY}"
        belief.apply(Gone(DeviceTaintRule, ObjectKey("", NAME)))
        await work.round()
    assert (work.warning(), writing.tried, len(caplog.records)) == ("", [], 1)


async def test_a_rule_of_an_earlier_key_is_told_where_no_driver_is_named_that_ours_could_be_put_on() -> None:
    writing = Writing()
    work, belief, _ = at_work(writing)
    belief.apply(Changed(replace(rule_for(DRIVER), name=NAME, taint=Taint(key="earlier", effect=NO_SCHEDULE))))
    await work.round()
    assert work.warning() == (
        f"no owner taint on {DRIVER}: {keeping.NOT_NAMED}; others can allocate these devices; "
        f"rule {NAME} keeps everybody from {DRIVER} by {keeping.OUTDATED}"
    )
    assert writing.tried == []


async def test_an_advisor_is_told_that_a_rule_of_another_key_may_be_that_of_another_extender() -> None:
    belief = owning(Domain(heeded=KEY))
    work = keeping_of(belief, Writing())
    belief.apply(Changed(replace(rule_for(DRIVER), name=NAME, taint=Taint(key="owner's", effect=NO_SCHEDULE))))
    await work.round()
    assert work.warning().endswith("delete the rule, or another extender gives its devices")


@pytest.mark.parametrize("key", ["", KEY], ids=["no-taint", "another-key"])
async def test_a_rule_of_an_earlier_key_that_keeps_us_from_our_driver_is_told_once(
    caplog: pytest.LogCaptureFixture, key: str
) -> None:
    writing = Writing()
    belief = owning(Domain(drivers=frozenset({DRIVER}), taint=key))
    work = keeping_of(belief, writing)
    earlier = replace(rule_for(DRIVER), name="dra-extender-owned", taint=Taint(key="earlier", effect=NO_SCHEDULE))
    narrow = TaintSelector(driver=DriverName(DRIVER), device=DeviceName("gpu-0"))
    others = replace(earlier, name="maintenance"), replace(earlier, name="dra-extender-owned-1", selector=narrow)
    for rule in (rule_for(DRIVER), *others):
        belief.apply(Changed(rule))
    with caplog.at_level(logging.WARNING):
        await work.round()
        assert (work.warning(), caplog.records) == ("", [])
        belief.apply(Changed(earlier))
        for _ in range(2):
            await work.round()
        said = [(vars(record)["rules"], vars(record)["driver"]) for record in caplog.records]
        assert said == [(earlier.name, DRIVER)]
        assert work.warning() == f"rule {earlier.name} keeps everybody from {DRIVER} by {keeping.OUTDATED}"
        belief.apply(Gone(DeviceTaintRule, ObjectKey("", earlier.name)))
        await work.round()
    assert (work.warning(), writing.tried, len(caplog.records)) == ("", [], 1)


async def test_a_rule_of_ours_that_is_about_to_be_given_the_new_key_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    writing = Writing()
    work, belief, _ = at_work(writing, DRIVER)
    earlier = Taint(key="earlier", effect=NO_SCHEDULE)
    belief.apply(Changed(replace(rule_for(DRIVER), name=NAME, taint=earlier)))
    with caplog.at_level(logging.WARNING):
        await work.round()
        assert [driver for _, driver in writing.tried] == [DRIVER]
        assert not [record for record in caplog.records if "earlier" in record.message]
        work.is_wanted = False
        await work.round()
    # Where others are to write rules, nobody is about to.
    assert [record for record in caplog.records if "earlier" in record.message]


STRAYS = f", which is {keeping.STRAY}"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        pytest.param({"drivers": (OTHER,)}, STRAYS, id="driver-taken-out"),
        pytest.param({"mode": "advisor"}, STRAYS, id="advisor"),
        pytest.param({"drivers": (DRIVER,), "owner_taint": ""}, f" by {keeping.OUTDATED}", id="taint-emptied"),
    ],
)
async def test_a_rule_that_was_ours_is_told_by_readyz_and_left(told: dict[str, Any], why: str) -> None:
    left = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": NAME},
        "spec": {"deviceSelector": {"driver": DRIVER}, "taint": {"key": KEY, "effect": "NoSchedule"}},
    }
    async with place(settings(**told)) as here:
        assert here.service.health.warnings() == []
        await here.do("POST", RULES, left)
        await so(here.service.health.warnings)
        assert here.service.health.warnings() == [f"rule {NAME} keeps everybody from {DRIVER}{why}"]
        assert here.service.health.missing() == []
        assert NAME in [item["metadata"]["name"] for item in await here.items(RULES)]
        await here.do("DELETE", f"{RULES}/{NAME}")
        await so(lambda: not here.service.health.warnings())


async def test_what_is_allowed_again_is_forgotten() -> None:
    writing = Writing()
    work, belief, _ = at_work(writing, DRIVER)
    await rounds(work, writing, keeping.LAST_S)
    belief.apply(Changed(rule_for(DRIVER)))
    await work.round()
    assert work.warning() == ""
    belief.apply(Gone(DeviceTaintRule, ObjectKey("", "by-hand")))
    before = len(writing.tried)
    await rounds(work, writing, writing.now + keeping.FIRST_S + 1)
    assert len(writing.tried) == before + 2


async def test_what_somebody_else_has_tainted_meanwhile_is_no_trouble_any_more() -> None:
    writing = Writing()
    writing.forbidden = {DRIVER, "other.example.com"}
    work, belief, _ = at_work(writing, *writing.forbidden)
    await work.round()
    assert work.warning().startswith(f"no owner taint on {DRIVER}, other.example.com: ")
    belief.apply(Changed(rule_for(DRIVER)))
    await work.round()
    assert work.warning().startswith("no owner taint on other.example.com: ")
    belief.apply(Changed(replace(rule_for("other.example.com"), name="another")))
    await work.round()
    assert work.warning() == ""


@pytest.mark.parametrize("tainting", [True, False], ids=["begins", "ends"])
async def test_a_driver_that_begins_or_ends_to_taint_its_devices_itself_is_noticed(*, tainting: bool) -> None:
    writing = Writing()
    writing.forbidden = set()
    work, belief, _ = at_work(writing, DRIVER)
    itself = Traits(taints=(Taint(key=KEY, effect=NO_SCHEDULE),))
    belief.apply(Changed(gpus("n1", 1, Traits() if tainting else itself)))
    assert work._missing() == ((DRIVER,) if tainting else ())
    belief.apply(Changed(gpus("n1", 1, itself if tainting else Traits())))
    await work.round()
    assert [driver for _, driver in writing.tried] == ([] if tainting else [DRIVER])
