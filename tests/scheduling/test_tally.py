"""What is told of rejected nodes: each thing that is wrong by itself, in few words and at little cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from extender.allocation.causes import Shortage
from extender.allocation.memory import NO_REASON, Reasons, Told
from extender.allocation.reason import Fault, Reason
from extender.allocation.solve import BEST, FIRST, Failure, Manner, Undecided
from extender.allocation.verdict import Fit, Verdict
from extender.model.claim import DeviceClass, Selector
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import ClassName, NodeName
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.tally import MOST, MOST_ERRORS, Tally, Unwanted, Why, fatal_node, limited, tallied, text_of
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import belief_of, claim, gpus, names, node, planner_of, pod, request

P = pod("p", "c")
FUSSY = ClassName("fussy")
FUSSY_CLASS = DeviceClass(name=FUSSY, selectors=(Selector("device.attributes['a'].arch == 1"),))
CLAIM = replace(claim("c"), spec=replace(claim("c").spec, requests=(request(class_name=FUSSY),)))
IN_USE = Reason(Shortage.IN_USE, "in use", missing=1)


def invalid(name: str) -> ResourceSlice:
    good = gpus(name, 1)
    return replace(good, devices=good.devices * 2)


def fitting(name: str) -> ResourceSlice:
    good = gpus(name, 1)
    told = (("a/arch", Attribute("int", 1)),)
    return replace(good, devices=tuple(replace(item, attributes=told) for item in good.devices))


def rejected(*slices: ResourceSlice, manner: Manner = BEST) -> Rejection:
    nodes = [node(str(item.pool)) for item in slices]
    planner = planner_of(belief_of(*nodes, *slices, FUSSY_CLASS, CLAIM, manner=manner))
    found = planner.plan(P, names(*(item.name for item in nodes)), 0.0)
    assert isinstance(found, Rejection)
    return found


def test_what_fails_different_nodes_is_told_apart() -> None:
    told = rejected(gpus("n1", 1), invalid("n2"), gpus("n3", 1)).rejected
    assert [(tally.word, tally.nodes, tally.example) for tally in told] == [
        (Word.NODE_ERROR, 2, "n1"),
        (Word.NODE_ERROR, 1, "n2"),
    ]
    assert "n1/d0: no such key: arch" in told[0].message
    assert told[1].message == "pool gpu.example.com/n2 is invalid: two devices are named d0"


@pytest.mark.parametrize("bad", [("n1", "n2"), ("n2", "n1")], ids=["invalid-first", "error-first"])
def test_an_error_that_fails_the_pod_does_so_whatever_fails_other_nodes(bad: tuple[str, str]) -> None:
    found = rejected(invalid(bad[0]), gpus(bad[1], 1), fitting("n3"), manner=FIRST)
    assert found.word is Word.NODE_ERROR
    assert f"{bad[1]}/d0: no such key: arch" in found.detail


def test_what_fails_a_node_alone_does_not_fail_the_pod() -> None:
    slices = invalid("n1"), fitting("n2")
    belief = belief_of(node("n1"), node("n2"), *slices, FUSSY_CLASS, CLAIM, manner=FIRST)
    assert isinstance(planner_of(belief).plan(P, names("n1", "n2"), 0.0), Offer)


def fit(verdicts: list[Verdict], codes: list[int], reasons: Sequence[Told]) -> Fit:
    unseen: Any = None
    verdict, code = np.array(verdicts, np.int8), np.array(codes, np.int32)
    return Fit(unseen, unseen, BEST, verdict, code, reasons)


def called(count: int) -> list[NodeName]:
    return [NodeName(f"n{number}") for number in range(count)]


@pytest.mark.parametrize("first", [Verdict.FAILS, Verdict.FITS, Verdict.UNDECIDED], ids=str)
def test_nodes_that_a_policy_refuses_are_not_counted_with_those_that_err(first: Verdict) -> None:
    codes = {Verdict.FAILS: 0, Verdict.FITS: NO_REASON, Verdict.UNDECIDED: NO_REASON}
    why: dict[Verdict, Why] = {
        Verdict.FAILS: Failure("errs"),
        Verdict.FITS: Unwanted("linked"),
        Verdict.UNDECIDED: Undecided(5),
    }
    verdicts = [first, Verdict.FITS, Verdict.FAILS, Verdict.UNDECIDED, Verdict.FITS]
    told = fit(verdicts, [codes[item] for item in verdicts], [Fault("errs", is_local=False)])
    tallies = tallied(told, np.arange(5), lambda place: why[verdicts[place]], called(5))
    assert Counter({tally.message: tally.nodes for tally in tallies}) == Counter(
        text_of(why[item]) for item in verdicts
    )
    assert {tally.word for tally in tallies} == {Word.POLICY, Word.NODE_ERROR, Word.GIVEN_UP}


def test_of_thousands_of_different_errors_the_most_frequent_are_told_and_the_others_counted() -> None:
    count, asked = 15_000, list[int]()
    known = Reasons()
    kinds = [0, 0, *([7] * 10), *range(20, count + 8)]
    codes = [known.number(Fault(f"error {kind}", is_local=True) if kind else IN_USE) for kind in kinds]
    verdicts = [Verdict.NO, Verdict.NO, *([Verdict.FAILS] * (count - 2))]

    def why(place: int) -> Why:
        asked.append(place)
        return IN_USE if verdicts[place] is Verdict.NO else Failure(f"error on n{place}", is_local=True)

    told = tallied(fit(verdicts, codes, known.all), np.arange(count), why, called(count))
    assert len(asked) == 1 + MOST_ERRORS + 1
    assert told[:2] == [
        Tally(Word.NODE_ERROR, 10, "error on n2", NodeName("n2")),
        Tally(Word.IN_USE, 2, "in use", NodeName("n0"), 1),
    ]
    others = count - 12 - (MOST_ERRORS - 1)
    assert (told[-1].nodes, told[-1].message) == (others, f"other errors, such as error on {told[-1].example}")
    assert len(told) == len(asked)
    assert sum(tally.nodes for tally in told) == count


def test_of_errors_that_fail_the_pod_that_of_the_first_node_is_told() -> None:
    faults: list[Reason | Fault] = [Fault("a", is_local=False), Fault("b", is_local=True), Fault("c", is_local=False)]
    told = fit([Verdict.NO, *([Verdict.FAILS] * 4)], [NO_REASON, 1, 2, 0, 1], faults)
    assert fatal_node(told, np.ones(5, np.bool_)) == 2
    assert fatal_node(told, np.array([True, True, False, True, True])) == 3
    assert fatal_node(told, np.array([True, True, False, False, True])) is None


def crowd(count: int) -> list[Tally]:
    """Return tallies of so many reasons, the most frequent first, and half of them of each word."""
    words = Word.IN_USE, Word.NO_MATCH
    return [
        Tally(words[place % 2], count - place, f"reason {place}", NodeName(f"n{place}"), place)
        for place in range(count)
    ]


def test_of_hundreds_of_reasons_the_most_frequent_are_told_and_the_others_by_their_words() -> None:
    every = crowd(300)
    told = limited(every)
    assert told[:MOST] == every[:MOST]
    assert [(tally.word, tally.message, tally.example, tally.missing) for tally in told[MOST:]] == [
        (Word.IN_USE, f"other reasons, such as reason {MOST}", f"n{MOST}", MOST),
        (Word.NO_MATCH, f"other reasons, such as reason {MOST + 1}", f"n{MOST + 1}", MOST + 1),
    ]
    assert sum(tally.nodes for tally in told) == sum(tally.nodes for tally in every)


def test_the_reason_that_is_nearest_to_a_success_is_told_however_seldom_it_is() -> None:
    every = crowd(MOST + 3)
    nearest = every[MOST + 1]
    told = limited(every, nearest)
    assert told[: MOST + 1] == [*every[:MOST], nearest]
    assert [(tally.nodes, tally.message) for tally in told[MOST + 1 :]] == [
        (every[MOST].nodes + every[-1].nodes, f"other reasons, such as reason {MOST}")
    ]


def test_few_reasons_are_all_told() -> None:
    assert limited(crowd(MOST)) == crowd(MOST)
    assert limited(crowd(MOST + 2)) == crowd(MOST + 2)
