"""Amounts that are equal but written otherwise are a change: selectors, policies and results can tell."""

from collections.abc import Callable

import pytest

from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.model.change import Changed, Listed
from extender.model.claim import DeviceClass, DeviceConfig
from extender.model.device import (
    Capacity,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
    ResourceSlice,
    Traits,
    ValidRange,
)
from extender.model.names import DeviceName, NodeName
from extender.model.quantity import Quantity, parse_quantity
from extender.model.spelling import is_spelled_alike
from extender.state.questions import Questions
from tests.allocation.small import ANY, CLASSES, claim, cluster, device, node, published, question, request, verdicts


def with_policy(policy: RequestPolicy) -> ResourceSlice:
    capacity = (("memory", Capacity(parse_quantity("4"), policy)),)
    return published("n", Device(DeviceName("d"), capacity=capacity))


def with_counters(declared: Quantity, consumed: Quantity) -> ResourceSlice:
    traits = Traits(consumes_counters=(CounterConsumption("s", (Counter("c", consumed),)),))
    item = published("n", Device(DeviceName("d"), traits=traits))
    counters = (CounterSet("s", (Counter("c", declared),)),)
    return ResourceSlice(
        name="n", driver=item.driver, pool=item.pool, generation=1, slice_count=1, devices=item.devices,
        shared_counters=counters,
    )  # fmt: skip


ONE = parse_quantity("1")
PLACES: dict[str, Callable[[Quantity], ResourceSlice]] = {
    "capacity": lambda amount: published("n", Device(DeviceName("d"), capacity=(("memory", Capacity(amount)),))),
    "default": lambda amount: with_policy(RequestPolicy(default=amount)),
    "valid value": lambda amount: with_policy(RequestPolicy(valid_values=(ONE, amount))),
    "minimum": lambda amount: with_policy(RequestPolicy(valid_range=ValidRange(minimum=amount))),
    "step": lambda amount: with_policy(RequestPolicy(valid_range=ValidRange(minimum=ONE, step=amount))),
    "counter": lambda amount: with_counters(amount, ONE),
    "consumed counter": lambda amount: with_counters(ONE, amount),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_slice_that_spells_an_amount_otherwise_is_taken_over(place: str) -> None:
    before, after = (PLACES[place](parse_quantity(text)) for text in ("1", "1000m"))
    assert before == after
    assert not is_spelled_alike(before, after)
    for change in (Changed(after), Listed(ResourceSlice, (after,))):
        built = cluster(before)
        old = built.snapshot
        assert built.apply(change).generation == old.generation + 1
        assert is_spelled_alike(built.snapshot.inventory.slices[0], after)
        assert built.apply(change) is built.snapshot


@pytest.mark.parametrize("place", PLACES)
def test_a_slice_that_says_the_same_again_changes_nothing(place: str) -> None:
    built = cluster(PLACES[place](parse_quantity("2")))
    assert built.apply(Changed(PLACES[place](parse_quantity("2")))) is built.snapshot


def test_a_selector_that_can_tell_is_asked_again() -> None:
    whole = "device.capacity['gpu.example.com'].memory.asInteger() == 1"
    built = cluster(node("n"), published("n", device("d", capacity={"memory": "1"})))
    fitter = Fitter(question(request(selectors=[whole])))
    assert verdicts(fitter, built.snapshot) == ["FITS"]
    built.apply(Changed(published("n", device("d", capacity={"memory": "1000m"}))))
    assert verdicts(fitter, built.snapshot) == ["FAILS"]


def test_a_class_whose_configuration_says_true_for_one_is_taken_over() -> None:
    built = cluster()
    for value in (1, True):
        config = (DeviceConfig(opaque={"parameters": {"value": value}}),)
        snapshot = built.apply(Changed(DeviceClass(name=ANY, config=config)))
        assert str(snapshot.classes[ANY].config[0].opaque) == str({"parameters": {"value": value}})
        assert built.apply(Changed(DeviceClass(name=ANY, config=config))) is snapshot


def test_a_node_that_spells_what_it_has_otherwise_is_taken_over() -> None:
    built = cluster()
    for text in ("1", "1000m"):
        allocatable = (("example.com/thing", parse_quantity(text)),)
        snapshot = built.apply(Changed(node("n", allocatable=allocatable)))
        assert str(snapshot.nodes[NodeName("n")].allocatable) == str(allocatable)
        assert built.apply(Changed(node("n", allocatable=allocatable))) is snapshot


def test_requests_that_spell_an_amount_otherwise_ask_another_question() -> None:
    policy = RequestPolicy(default=parse_quantity("1Ki"), valid_values=(ONE,))
    shared = device("d", capacity={"memory": "4Ki"}, policy=policy, allow_multiple_allocations=True)
    snapshot = cluster(node("n"), published("n", shared)).snapshot
    questions = Questions(ALL)
    for text, expected in (("1024", ["NO"]), ("1Ki", ["FITS"])):
        asked = [claim(request(capacity={"memory": text}))]
        assert verdicts(questions.fitter(asked, CLASSES), snapshot) == expected
