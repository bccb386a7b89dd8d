"""What a question remembers makes no difference to its answers, to whom it gives them, or for how long."""

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from extender.allocation.causes import Shortage
from extender.allocation.choose import choose
from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.memory import FAULTS, MATCH_SIZE, NO_REASON, Reasons, renumbered
from extender.allocation.node_state import FLAGS_SIZE
from extender.allocation.question import ask
from extender.allocation.reason import Fault, Reason, reason_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Failure, Nothing
from extender.allocation.work import Work, finished
from extender.model.change import Changed
from extender.model.claim import ClaimSpec, Constraint, DerivedAttribute, RequestSlot
from extender.model.names import DeviceName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.state.questions import Questions
from tests.allocation.small import CLASSES, claim, cluster, device, holder, node, published, question, request, verdicts

SICK: Final = Taint(key="sick", effect="NoSchedule")
OTHER: Final = Taint(key="other", effect="NoSchedule")
FULL: Final = "needs 1 free device, has 0: 1 in use"


def alone(fitter: Fitter, snapshot: Snapshot) -> list[str]:
    """Explain each node by itself."""
    answers = [choose(snapshot, place, fitter.question) for place in range(len(snapshot.layout.nodes))]
    return [str(reason_of(answer.situation)) if isinstance(answer, Nothing) else "None" for answer in answers]


def told(fitter: Fitter, snapshot: Snapshot) -> list[str]:
    fit = fitter.fit(snapshot)
    return [str(fit.reason(place)) for place in range(len(fit.verdicts))]


def test_who_asks_the_same_is_told_of_its_own_claim() -> None:
    questions = Questions(ALL)
    snapshot = cluster(node("n"), published("n", device("d")), holder("h", "n", "d")).snapshot
    for name in ("a", "b"):
        asked = [claim(request(), name=name)]
        fit = questions.fitter(asked, CLASSES).fit(snapshot)
        assert str(fit.reason(0, questions.question(asked, CLASSES))) == f"claim {name}, request r {FULL}"


def test_who_asks_the_same_is_told_what_its_own_claim_met() -> None:
    questions = Questions(ALL)
    snapshot = cluster(node("n"), published("n", device("d"))).snapshot
    for name in ("a", "b"):
        asked = [claim(request(selectors=["device.attributes['x'].y == 1"]), name=name)]
        met = questions.fitter(asked, CLASSES).fit(snapshot).reason(0, questions.question(asked, CLASSES))
        assert isinstance(met, Failure)
        assert met.message.startswith(f"claim {name}, request r, selector 0 on device")


def test_the_taint_of_a_rule_is_named_as_it_is_after_devices_changed() -> None:
    rules = [
        DeviceTaintRule(name=name, selector=TaintSelector(device=DeviceName(name)), taint=taint)
        for name, taint in (("d", SICK), ("e", OTHER))
    ]
    built = cluster(node("n"), published("n", device("d")), *rules)
    fitter = Fitter(question(request(mode="All")))
    assert "has taint sick" in told(fitter, built.snapshot)[0]
    built.apply(Changed(published("n", device("e"))))
    assert "has taint other" in told(fitter, built.snapshot)[0]


def test_a_device_that_could_not_be_given_if_it_were_free_is_not_said_to_be_in_use() -> None:
    slices = [published(pool, device("d", taints=(SICK,))) for pool in ("n1", "n2")]
    held = holder("h", "n1", "d"), holder("i", "n2", "d", share="s")
    snapshot = cluster(node("n1"), node("n2"), *slices, *held).snapshot
    fitter = Fitter(question(request()))
    assert told(fitter, snapshot) == alone(fitter, snapshot)
    assert all("1 has taint sick" in reason for reason in told(fitter, snapshot))


def test_what_many_asks_take_of_each_device_counts() -> None:
    devices = [device(f"d{number}", {"id": number}) for number in range(64)]
    snapshot = cluster(node("n"), published("n", *devices)).snapshot

    def asking(count: int) -> Fitter:
        wanted = [request(selectors=(f"device.driver != 'x{number}'",)) for number in range(count)]
        slots = [RequestSlot(name=f"r{number}", exactly=item) for number, item in enumerate(wanted)]
        constraints = (Constraint(distinct_attribute="gpu.example.com/id"),)
        asked = replace(claim(request()), spec=ClaimSpec(requests=tuple(slots), constraints=constraints))
        return Fitter(ask([asked], CLASSES, ALL))

    few, many = asking(1), asking(24)
    assert verdicts(few, snapshot) == verdicts(many, snapshot) == ["FITS"]
    assert many.size - few.size >= 23 * len(devices) * (MATCH_SIZE + FLAGS_SIZE)


@pytest.mark.parametrize("sick", ["n1", "n2"])
def test_one_node_is_not_told_the_taint_of_another_whose_devices_are_in_use_as_well(sick: str) -> None:
    pools = [f"n{index}" for index in range(4)]
    slices = [published(pool, device("d", taints=(SICK,) if pool == sick else ())) for pool in pools]
    held = [holder(f"h{pool}", pool, "d") for pool in pools]
    snapshot = cluster(*map(node, pools), *slices, *held).snapshot
    fitter = Fitter(question(request()))
    assert told(fitter, snapshot) == alone(fitter, snapshot)
    assert [pool for pool, reason in zip(pools, told(fitter, snapshot), strict=True) if "taint" in reason] == [sick]


# Searched rather than counted, so that states are remembered.
SEARCHED: Final = question(request(derived_attributes=(DerivedAttribute("a.example.com/z", "1"),)))


def tainted(*names: str) -> Snapshot:
    pools = [f"n{index}" for index in range(6)]
    slices = [
        published(pool, device("d", allow_multiple_allocations=True, taints=(SICK,) if pool in names else ()))
        for pool in pools
    ]
    return cluster(*map(node, pools), *slices).snapshot


def begun(fitter: Fitter, snapshot: Snapshot, pieces: int) -> Work[object]:
    work = fitter.pieces(snapshot)
    for _ in range(pieces):
        next(work)
    return work


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_fits_that_are_made_in_turns_do_not_mislead_each_other(pieces: int) -> None:
    even, odd = tainted("n0", "n2", "n4"), tainted("n1", "n3", "n5")
    fitter = Fitter(SEARCHED)
    first = begun(fitter, even, pieces)
    second = begun(fitter, odd, pieces)
    third = begun(fitter, even, pieces)
    fits = [finished(work) for work in (first, second, third)]
    expected = [verdicts(Fitter(SEARCHED), snapshot) for snapshot in (even, odd, even)]
    assert [[int(code) for code in fit.verdicts] for fit in fits] == [  # type: ignore[attr-defined]  # they are fits
        [int(name == "FITS") for name in names] for names in expected
    ]
    for snapshot, names in zip((even, odd), expected, strict=False):
        assert verdicts(fitter, snapshot) == names


FEW: Final = 16


def test_reasons_that_no_node_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.allocation.memory.SPARE", FEW)
    built = cluster(node("n"), published("n", device("d")))
    fitter = Fitter(question(request(2)))
    reasons: set[int] = set()
    for number in range(3 * FEW):
        taint = Taint(key=f"t{number}", effect="NoSchedule")
        built.apply(Changed(published("n", device("d", taints=(taint,)))))
        fit = fitter.fit(built.snapshot)
        assert f"1 has taint t{number}=" in str(fit.reason(0))
        reasons.add(len(fit.reasons))
    assert max(reasons) <= FEW + 3


def test_renumbered_reasons_say_the_same() -> None:
    known = Reasons()
    codes = np.array([known.number(Reason(Shortage.IN_USE, text)) for text in "abcab"] + [NO_REASON], np.int32)
    kept, fresh = renumbered(known.all, codes[[4, 5, 0]])
    assert [kept.all[code].text if code != NO_REASON else None for code in fresh] == ["b", None, "a"]
    assert len(kept.all) == 2


def test_taints_that_no_rule_sets_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.allocation.fit.SPARE", FEW)
    built = cluster(node("n"), published("n", device("d")))
    fitter = Fitter(question(request()))
    for number in range(3 * FEW):
        taint = Taint(key=f"t{number}", effect="NoSchedule")
        built.apply(Changed(DeviceTaintRule(name="r", selector=TaintSelector(), taint=taint)))
        assert f"1 has taint t{number}=" in told(fitter, built.snapshot)[0]


def test_of_too_many_faults_only_how_far_they_reach_is_told() -> None:
    known = Reasons()
    for is_local in (True, False):
        for number in range(FAULTS):
            known.number(Fault(str(number), is_local))
    assert len(known.all) == FAULTS + 1
    assert known.all[known.number(Fault("fresh", is_local=True))] == Fault("", is_local=True)
    assert known.all[known.number(Fault("fresh", is_local=False))] == Fault("", is_local=False)
    assert known.all[known.number(Fault("0", is_local=True))] == Fault("0", is_local=True)
