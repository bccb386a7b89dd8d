"""Pods that ask the same share one question."""

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.formula import CHARACTER_SIZE
from extender.allocation.memory import Basis, Draft
from extender.allocation.passage import passage
from extender.allocation.question import Refusal, formulas
from extender.allocation.selectors import OUTCOME_SIZE
from extender.allocation.snapshot import Snapshot
from extender.allocation.work import Work
from extender.model.change import Change, Changed, Gone
from extender.model.claim import (
    ClaimSpec,
    Constraint,
    DeviceClass,
    DeviceConfig,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.names import ClassName, NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.state.cluster import Cluster
from extender.state.questions import AGE, LOOK_EVERY, PAUSE, ROOM, Questions
from tests.allocation.small import cluster, device, holder, node, published

GPU = ClassName("gpu")
CLASSES = {GPU: DeviceClass(name=GPU)}


def claim(name: str, count: int = 1, **spec: object) -> ResourceClaim:
    request = DeviceRequest(name="r", class_name=GPU, mode="ExactCount", count=count)
    asked = replace(ClaimSpec(requests=(RequestSlot(name="r", exactly=request),)), **spec)  # type: ignore[arg-type]  # fields of a spec
    return ResourceClaim(key=ObjectKey("ns", name), uid=Uid(name), spec=asked)


def test_claims_that_say_the_same_ask_one_question_whatever_they_are_called() -> None:
    questions = Questions(Features())
    assert questions.fitter([claim("a")], CLASSES) is questions.fitter([claim("b")], CLASSES)
    assert questions.fitter([claim("a", count=2)], CLASSES) is not questions.fitter([claim("a")], CLASSES)


def test_a_claim_that_names_a_controller_is_refused_though_others_ask_the_same() -> None:
    questions = Questions(Features())
    questions.fitter([claim("a")], CLASSES)
    with pytest.raises(Refusal):
        questions.fitter([replace(claim("b"), is_classic=True)], CLASSES)


def test_what_cannot_be_handed_to_a_driver_is_refused_though_others_ask_the_same() -> None:
    questions, flawed = Questions(Features()), DeviceConfig(flaw="is flawed")
    questions.fitter([claim("a")], CLASSES)
    with pytest.raises(Refusal, match=re.escape("claim b: devices.config[1].opaque: is flawed")):
        questions.fitter([claim("b", config=(DeviceConfig(), flawed))], CLASSES)
    with pytest.raises(Refusal, match=re.escape("class gpu: config[0].opaque: is flawed")):
        questions.fitter([claim("a")], {GPU: DeviceClass(name=GPU, config=(flawed,))})


def test_each_who_asks_a_shared_question_is_refused_by_its_own_claims_names() -> None:
    questions = Questions(Features())
    request = DeviceRequest(name="r", class_name=ClassName("absent"), mode="ExactCount", count=1)
    for name in ("b", "d"):
        nowhere = claim(name, requests=(RequestSlot(name="r", exactly=request),))
        with pytest.raises(Refusal, match=f"claim {name}, request r"):
            questions.question([claim("a"), nowhere], CLASSES)


def test_a_question_is_known_once_anybody_has_asked_it() -> None:
    questions = Questions(Features())
    assert not questions.is_known([claim("a")], CLASSES)
    questions.fitter([claim("a")], CLASSES)
    assert questions.is_known([claim("b")], CLASSES)
    assert not questions.is_known([claim("b", count=2)], CLASSES)


def test_configuration_for_drivers_makes_no_other_question() -> None:
    questions = Questions(Features())
    config = (DeviceConfig(opaque={"driver": "d", "parameters": {"a": [1]}}),)
    assert questions.fitter([claim("a", config=config)], CLASSES) is questions.fitter([claim("a")], CLASSES)


def test_a_changed_class_makes_another_question_and_one_that_is_not_named_does_not() -> None:
    questions = Questions(Features())
    first = questions.fitter([claim("a")], CLASSES)
    other = ClassName("other")
    assert questions.fitter([claim("a")], {**CLASSES, other: DeviceClass(name=other)}) is first
    changed = {GPU: DeviceClass(name=GPU, selectors=(Selector("false"),))}
    assert questions.fitter([claim("a")], changed) is not first


def test_the_least_recently_asked_question_is_forgotten_first() -> None:
    questions = Questions(Features(), most=2)
    one, two = claim("a", count=1), claim("a", count=2)
    first = questions.fitter([one], CLASSES)
    questions.fitter([two], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    questions.fitter([claim("a", count=3)], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    assert len(questions) == 2


def test_the_largest_questions_make_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = (1, 4, 2, 3)
    monkeypatch.setattr(Fitter, "size", property(lambda fitter: 100 * next(iter(fitter.question.asks.values())).count))
    questions = Questions(Features(), room=700)
    for count in counts:
        questions.fitter([claim("a", count=count)], CLASSES)
    assert [questions.is_known([claim("b", count=count)], CLASSES) for count in counts] == [True, False, True, True]


def test_a_question_that_is_asked_is_not_forgotten_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fitter, "size", ROOM + 1)
    questions = Questions(Features())
    first = questions.fitter([claim("a")], CLASSES)
    questions.fitter([claim("b", count=2)], CLASSES)
    assert not questions.is_known([claim("a")], CLASSES)
    again = questions.fitter([claim("a")], CLASSES)
    assert again is not first
    assert all(questions.fitter([claim("a")], CLASSES) is again for _ in range(2 * LOOK_EVERY))


def test_a_question_that_was_forgotten_is_not_late_for_ever() -> None:
    questions, slow = Questions(Features(), most=1), claim("slow")
    questions.asked([slow], CLASSES)[1].is_late = True
    questions.fitter([claim("other", count=2)], CLASSES)
    assert not questions.is_known([slow], CLASSES)
    _, again = questions.asked([slow], CLASSES)
    assert not again.is_late


def test_asking_again_what_was_asked_last_keeps_it_from_being_forgotten() -> None:
    questions, one = Questions(Features(), most=2), claim("a", count=1)
    _, first = questions.asked([one], CLASSES)
    for count in (2, 3, 4):
        questions.fitter([claim("other", count=count)], CLASSES)
        questions.asked([one], CLASSES)
    assert questions.fitter([one], CLASSES) is first
    assert len(questions) == 2


def test_a_question_that_makes_no_sense_is_refused_and_not_remembered() -> None:
    questions = Questions(Features())
    with pytest.raises(Refusal, match="there is no class gpu"):
        questions.fitter([claim("a")], {})
    assert len(questions) == 0


POOLS = [f"n{number}" for number in range(8)]


def fleet() -> Cluster:
    return cluster(*map(node, POOLS), *(published(pool, device("d"), device("e")) for pool in POOLS))


def taken(built: Cluster, times: int, told: Callable[[Snapshot], None]) -> None:
    """Take a device, and give it back, over and over."""
    for number in range(times):
        built.apply(Gone(ResourceClaim, ObjectKey("ns", "h")) if number % 2 else Changed(holder("h", "n0", "d")))
        told(built.snapshot)


@pytest.mark.parametrize("selector", ["true", "device.attributes['gpu.example.com'].?id.orValue('') == ''"])
def test_a_question_that_nobody_asks_keeps_nothing_of_slices_that_are_replaced(selector: str) -> None:
    questions, built = Questions(Features()), fleet()
    selective = {GPU: DeviceClass(name=GPU, selectors=(Selector(selector),))}
    question = questions.fitter([claim("a")], selective)
    question.states_of(built.snapshot, np.arange(2))
    question.fit(built.snapshot)
    seen = ref(built.snapshot.inventory)
    for pool in POOLS:
        built.apply(Changed(published(pool, device("d"), device("f"))))
    taken(built, AGE + 2 * PAUSE, questions.move_on)
    passage.cache_clear()
    gc.collect()
    assert seen() is None
    assert question.fit(built.snapshot).mask.all()


@pytest.mark.parametrize(
    "changes",
    [
        [Gone(Node, ObjectKey("", "n7")), Gone(Node, ObjectKey("", "n6"))],
        [Changed(published("n7", device("d"))), Changed(published("n6", device("d")))],
    ],
    ids=["nodes", "slices"],
)
def test_of_layouts_that_are_past_an_idle_question_keeps_one_at_most(changes: list[Change]) -> None:
    questions, built = Questions(Features()), fleet()
    question = questions.fitter([claim("a")], CLASSES)
    question.fit(built.snapshot)
    questions.move_on(built.snapshot)
    seen = ref(built.snapshot.layout.rows)
    for change in changes:
        questions.move_on(built.apply(change))
    passage.cache_clear()
    gc.collect()
    assert seen() is None


def test_a_question_that_is_asked_goes_on_from_what_it_knew_however_much_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions, built = Questions(Features()), fleet()
    question = questions.fitter([claim("a")], CLASSES)
    question.fit(built.snapshot)
    looked_at = set[int]()
    answered = Fitter._answered

    def counted(self: Fitter, draft: Draft, basis: Basis, nodes: NDArray[np.int64]) -> Work[None]:
        looked_at.update(nodes.tolist())
        return answered(self, draft, basis, nodes)

    def asked(snapshot: Snapshot) -> None:
        questions.move_on(snapshot)
        question.fit(snapshot)

    monkeypatch.setattr(Fitter, "_answered", counted)
    taken(built, AGE + 2 * PAUSE, asked)
    assert looked_at <= {0}


def test_what_was_found_out_about_states_is_not_let_go() -> None:
    questions, built = Questions(Features()), fleet()
    apart = claim("a", count=2, constraints=(Constraint(distinct_attribute="gpu.example.com/id"),))
    question = questions.fitter([apart], CLASSES)
    question.fit(built.snapshot)
    states, _ = question.states_of(built.snapshot, np.arange(1))
    assert states.known
    taken(built, AGE + 2 * PAUSE, questions.move_on)
    assert question.states_of(built.snapshot, np.arange(1))[0] is states


def asked_in(questions: Questions) -> list[Fitter]:
    return list(questions._fitters.values())


def test_what_selectors_remember_counts_once_and_goes_with_the_last_who_asks() -> None:
    slices = [published(pool, *(device(f"{pool}-{n}", {"id": f"{pool}-{n}"}) for n in range(9))) for pool in POOLS]
    built, questions = cluster(*map(node, POOLS), *slices), Questions(Features(), most=2)
    apart = {GPU: DeviceClass(name=GPU, selectors=(Selector("device.attributes['gpu.example.com'].id != 'x'"),))}
    for count in (1, 2):
        questions.fitter([claim("a", count=count)], apart).fit(built.snapshot)
    (selector,) = {
        test.selector for fitter in asked_in(questions) for ask in fitter.question.asks.values() for test in ask.tests
    }
    assert selector is not None
    assert selector.size > 9 * len(POOLS) * OUTCOME_SIZE
    (formula,) = formulas(asked_in(questions)[0].question)
    assert formula.size > selector.size + len(formula.text) * CHARACTER_SIZE
    assert questions.size == sum(fitter.size for fitter in asked_in(questions)) + formula.size
    gone = ref(selector)
    del selector, formula
    for count in (3, 4):
        questions.fitter([claim("a", count=count)], CLASSES)
    gc.collect()
    assert gone() is None


def test_questions_whose_selectors_remember_much_make_room() -> None:
    slices = [published(pool, *(device(f"{pool}-{n}", {"id": f"{pool}-{n}"}) for n in range(9))) for pool in POOLS]
    built, questions = cluster(*map(node, POOLS), *slices), Questions(Features(), room=1 << 15)
    for number in range(9):
        text = Selector(f"device.attributes['gpu.example.com'].id != '{number}'")
        apart = {GPU: DeviceClass(name=GPU, selectors=(text,))}
        questions.fitter([claim("a")], apart).fit(built.snapshot)
    questions.fitter([claim("b", count=2)], CLASSES)
    assert questions.size <= 1 << 15
    assert 1 < len(questions) < 9


def test_long_selectors_make_room_before_anybody_has_compiled_them() -> None:
    questions, length = Questions(Features(), room=4 * 5000 * CHARACTER_SIZE), 5000
    for number in range(9):
        long = {GPU: DeviceClass(name=GPU, selectors=(Selector(f"{number}>=0" + "||1>2" * (length // 5)),))}
        questions.fitter([claim("a")], long)
        assert questions.size >= min(3, len(questions)) * length * CHARACTER_SIZE
    assert len(questions) == 3


def test_nodes_that_are_past_are_not_kept_for_what_they_served() -> None:
    class Nodes(dict[NodeName, Node]):
        """Whether it is kept can be seen, which no plain dictionary lets."""

    questions, nodes = Questions(Features()), Nodes()
    questions.by_service(replace(Cluster().snapshot, nodes=nodes), ("ex.com/gpu",))
    past = ref(nodes)
    del nodes
    questions.move_on(Cluster().snapshot)
    assert past() is None
