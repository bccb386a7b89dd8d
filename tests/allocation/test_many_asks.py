"""A claim may have hundreds of asks: to examine a node for them, and to explain what it lacks, is cut in pieces."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.attempt import Attempt
from extender.allocation.board import Candidate
from extender.allocation.counters import Balance
from extender.allocation.disagreement import _want
from extender.allocation.eligibility import eligible
from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.question import Question, ask
from extender.allocation.reason import LOOKED_AT
from extender.allocation.situation import EXAMINED
from extender.allocation.values import _published
from extender.allocation.work import Toll
from extender.model.claim import ClaimSpec, Constraint, RequestSlot, ResourceClaim
from extender.model.device import Attribute, Counter, CounterConsumption, CounterSet
from extender.model.names import ObjectKey, Uid
from extender.model.quantity import parse_quantity
from extender.state.cluster import Cluster
from tests.allocation.small import CLASSES, cluster, device, node, published, request, verdicts

SLOTS, CHOICES, COUNT, DEVICES = 10, 8, 3, 64


def partitioned() -> Cluster:
    """Publish partitions of one device, all of which can be had at once."""
    draws = CounterConsumption("set", (Counter("slots", parse_quantity("1")),))
    partitions = [device(f"p{number:03}", {"id": number}, consumes_counters=(draws,)) for number in range(DEVICES)]
    sets = (CounterSet("set", (Counter("slots", parse_quantity(str(DEVICES))),)),)
    counters = replace(published("n", name="counters", count=2), shared_counters=sets)
    return cluster(node("n"), published("n", *partitions, count=2), counters)


def asking(*constraints: Constraint, apart: bool, last: str = "device.driver == 'none'") -> Question:
    """Ask for many things and, at last, for what there may be nothing of; all in words of their own if *apart*."""

    def choice(slot: int, number: int) -> Any:
        text = f"device.driver != 'x{slot}-{number}'" if apart else "device.driver != 'x'"
        return replace(request(COUNT, selectors=(text,)), name=f"c{number}")

    slots = [
        RequestSlot(name=f"r{slot}", first_available=tuple(choice(slot, number) for number in range(CHOICES)))
        for slot in range(SLOTS)
    ]
    slots.append(RequestSlot(name="last", exactly=request(selectors=(last,))))
    spec = ClaimSpec(requests=tuple(slots), constraints=constraints)
    return ask([ResourceClaim(key=ObjectKey("ns", "c"), uid=Uid("c"), spec=spec)], CLASSES, ALL)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count what is examined, given, copied and compared from now on."""
    counts = {"examined": 0, "given": 0, "copied": 0, "compared": 0}
    give, copy, want = Attempt.give, Balance.copy, _want

    def examined(*arguments: Any) -> Any:
        counts["examined"] += 1
        return eligible(*arguments)

    def given(*arguments: Any) -> Any:
        counts["given"] += 1
        return give(*arguments)

    def copied(balance: Balance) -> Balance:
        counts["copied"] += 1
        return copy(balance)

    def compared(*arguments: Any) -> Any:
        counts["compared"] += 1
        return want(*arguments)

    monkeypatch.setattr("extender.allocation.disagreement._want", compared)
    monkeypatch.setattr("extender.allocation.situation.eligible", examined)
    monkeypatch.setattr(Attempt, "give", given)
    monkeypatch.setattr(Balance, "copy", copied)
    return counts


def pieces(fitter: Fitter, built: Cluster, done: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield what each piece did."""
    before = dict(done)
    for _ in fitter.pieces(built.snapshot):
        yield {name: count - before[name] for name, count in done.items()}
        before = dict(done)


def test_no_piece_examines_or_tries_more_than_so_many_candidates(done: dict[str, int]) -> None:
    built, fitter = partitioned(), Fitter(asking(apart=True))
    for piece in pieces(fitter, built, done):
        assert piece["examined"] * DEVICES <= EXAMINED
        assert piece["given"] <= LOOKED_AT
    assert verdicts(fitter, built.snapshot) == ["NO"]
    assert "request last needs 1 free device, has 0" in str(fitter.fit(built.snapshot).reason(0))
    assert done["examined"] == SLOTS * CHOICES + 1


def test_an_explanation_gives_nothing_and_needs_one_balance(done: dict[str, int]) -> None:
    built, fitter = partitioned(), Fitter(asking(apart=True))
    fitter.fit(built.snapshot)
    assert done["given"] == 0
    assert done["copied"] == 1


def test_asks_that_the_same_devices_suit_are_examined_once(done: dict[str, int]) -> None:
    built, fitter = partitioned(), Fitter(asking(apart=False))
    apart = Fitter(asking(apart=True)).fit(built.snapshot)
    before = done["examined"]
    fit = fitter.fit(built.snapshot)
    assert done["examined"] - before == 2
    assert str(fit.reason(0)) == str(apart.reason(0))


def test_what_errs_is_told_by_the_name_of_its_own_ask() -> None:
    built = partitioned()
    question = asking(apart=False)
    errs = "device.attributes['none.example.com'].none == 1"
    both = tuple(RequestSlot(name=name, exactly=replace(request(selectors=(errs,)), name=name)) for name in "ab")
    claim = replace(question.claims[0].claim, spec=ClaimSpec(requests=both))
    asked = ask([claim], CLASSES, ALL)
    assert len(set(asked.alike.values())) == 1
    assert "request a, selector 0 on device" in str(Fitter(asked).fit(built.snapshot).reason(0))


def test_no_piece_looks_at_more_than_one_slot_for_what_a_rule_compares(done: dict[str, int]) -> None:
    rule = Constraint(match_attribute="gpu.example.com/id")
    built, fitter = partitioned(), Fitter(asking(rule, apart=True, last="device.driver != 'none'"))
    compared = [piece["compared"] for piece in pieces(fitter, built, done)]
    assert max(compared) == 1
    assert sum(compared) == SLOTS + 1
    assert "with one value of gpu.example.com/id" in str(fitter.fit(built.snapshot).reason(0))


def test_rules_about_one_attribute_look_it_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim may have 32 of them, and what they keep takes room by the square of the devices."""
    looked = list[str]()

    def counted(name: str, candidate: Candidate) -> Attribute | None:
        looked.append(name)
        return _published(name, candidate)

    monkeypatch.setattr("extender.allocation.values._published", counted)
    rules = [Constraint(match_attribute="gpu.example.com/id", requests=(f"r{slot}", "last")) for slot in range(SLOTS)]
    fit = Fitter(asking(*rules, apart=False, last="true")).fit(partitioned().snapshot)
    assert "with one value of gpu.example.com/id" in str(fit.reason(0))
    assert 0 < len(looked) <= DEVICES


def test_a_toll_is_paid_for_all_that_was_done_and_not_before() -> None:
    toll = Toll(10)
    assert [sum(1 for _ in toll.paid(done)) for done in (4, 5, 1, 0, 25, 4, 1)] == [0, 0, 1, 0, 2, 0, 1]
