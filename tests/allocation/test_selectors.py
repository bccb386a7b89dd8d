"""Sweeps over columns say what each device alone would be told."""

from dataclasses import replace

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from extender.allocation import selectors
from extender.allocation.cel import Budget, CompileError, Program, Verdict, compile_selector
from extender.allocation.choose import choose
from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.question import Question, ask
from extender.allocation.selectors import OUTCOME_SIZE, PIECE, UNTOLD, Selector, Sweep
from extender.allocation.sight import sight_of
from extender.allocation.verdict import VERDICTS
from extender.allocation.work import finished
from extender.model.change import Listed
from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice
from extender.model.names import ClassName, DeviceName, DriverName, NodeName, PoolName
from extender.model.node import Node
from extender.model.parse import parse_claim, parse_node, parse_slice
from extender.model.quantity import parse_quantity
from extender.state.cluster import Cluster
from tests import fleet as published_fleet
from tests.allocation.cel.expressions import expression, seeded
from tests.worlds import slices

TEXTS = (
    "device.driver == 'gpu.example.com'",
    "device.attributes['gpu.example.com'].model == 'A100'",
    "has(device.attributes['gpu.example.com'].numa) && device.attributes['gpu.example.com'].numa == 1",
    "device.allowMultipleAllocations",
    "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('2'))",
    "'model' in device.attributes['nic.example.com']",
    "device.attributes.all(d, d != 'topology.example.com')",
    "true",
)
# They read which attributes there are, not only what these say.
WHOLE = (
    "'topology.example.com' in device.attributes",
    "device.attributes.all(d, d != 'topology.example.com')",
    "device.attributes['gpu.example.com'].exists(k, k == 'model')",
    "has(device.capacity['gpu.example.com'].memory)",
)


@given(st.lists(slices(), max_size=6), st.sampled_from(TEXTS))
def test_a_sweep_says_of_each_device_what_it_alone_is_told(published: list[ResourceSlice], text: str) -> None:
    check(inventory_of(published), text)


@given(st.lists(slices(), max_size=4), st.integers(0, 10_000))
def test_a_sweep_of_a_drawn_selector_says_of_each_device_what_it_alone_is_told(
    published: list[ResourceSlice], seed: int
) -> None:
    text = expression(seeded(seed)).replace("a.example.com", "gpu.example.com").replace("tags", "numa")
    try:
        compile_selector(text)
    except CompileError:
        reject()
    check(inventory_of(published), text)


def check(inventory: Inventory, text: str) -> None:
    program = compile_selector(text)
    selector = Selector(program)
    for _ in range(2):
        check_sweep(selector.sweep(inventory), inventory, program)


def check_sweep(sweep: Sweep, inventory: Inventory, program: Program) -> None:
    alone = [
        program.evaluate(sight_of(inventory.device(row), inventory.driver_at(row)), Budget())
        for row in range(inventory.rows)
    ]
    assert [sweep.outcome(row).verdict for row in range(inventory.rows)] == [outcome.verdict for outcome in alone]
    assert sweep.verdicts.tolist() == [outcome.verdict for outcome in alone]


def fleet(count: int, start: int = 0) -> Inventory:
    devices = tuple(
        Device(DeviceName(f"d{index}"), (("model", Attribute("string", f"m{index % 4}")), ("uuid", uuid(index))))
        for index in range(start, start + count)
    )
    return inventory_of(
        [
            ResourceSlice(
                name="s",
                driver=DriverName("gpu.example.com"),
                pool=PoolName("p"),
                generation=1,
                slice_count=1,
                selection=NodeSelection(node_name=NodeName("n")),
                devices=devices,
            )
        ]
    )


def uuid(index: int) -> Attribute:
    return Attribute("string", f"u{index}")


ROOT = Attribute("string", "pci0000:00")


def rooted(name: str) -> ResourceSlice:
    """Publish one device whose only attribute has this name."""
    device = Device(DeviceName("d0"), ((name, ROOT),))
    return replace(fleet(1).slices[0], devices=(device,))


HERE, THERE = rooted("gpu.example.com/root"), rooted("topology.example.com/root")


@given(st.lists(st.lists(slices(), max_size=3), min_size=2, max_size=4), st.sampled_from(TEXTS + WHOLE))
@example([[HERE], [THERE]], WHOLE[0])
@example([[THERE], [HERE]], WHOLE[0])
def test_what_was_published_before_makes_no_difference(published: list[list[ResourceSlice]], text: str) -> None:
    program = compile_selector(text)
    selector = Selector(program)
    for inventory in map(inventory_of, published):
        check_sweep(selector.sweep(inventory), inventory, program)


def test_sweeps_that_take_turns_do_not_mix_up_whose_values_they_know() -> None:
    many = replace(fleet(200).slices[0], name="a")
    program = compile_selector(WHOLE[0])
    selector = Selector(program)
    left, right = inventory_of([HERE, many]), inventory_of([THERE, many])
    work = selector.sweeping(left)
    next(work)
    check_sweep(selector.sweep(right), right, program)
    check_sweep(finished(work), left, program)
    check_sweep(selector.sweep(right), right, program)
    check_sweep(selector.sweep(left), left, program)


def test_devices_that_agree_in_what_is_read_are_evaluated_once() -> None:
    spent: list[int] = []
    program = counting("device.attributes['gpu.example.com'].model == 'm1'", spent)
    sweep = Selector(program).sweep(fleet(100))
    assert len(spent) == 4
    assert [row for row in range(100) if sweep.verdicts[row] == Verdict.MATCH] == list(range(1, 100, 4))


UUID = "device.attributes['gpu.example.com'].uuid == 'u50'"
GPU = ClassName("gpu")
# Takes four tenths of what one evaluation may spend, on every device anew.
COSTLY = f"{UUID} || lists.range(100000).all(i, true)"
TOO_COSTLY = f"{UUID} || lists.range(100000).all(i, i + 1 > 0 && i + 2 > 0)"


def counting(text: str, spent: list[int]) -> Program:
    """Compile *text* so that each evaluation notes in *spent* what it took."""
    program = compile_selector(text)

    def run(frame: list[object]) -> object:
        value = program.run(frame)
        spent.append(budget.spent if isinstance(budget := frame[1], Budget) else 0)
        return value

    return replace(program, run=run)


def test_combinations_that_are_gone_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MEMORY", 64)
    spent: list[int] = []
    selector = Selector(counting(UUID, spent))
    for start in (0, 40, 80, 80):
        selector.sweep(fleet(40, start))
    del spent[:]
    selector.sweep(fleet(41, 80))
    assert len(spent) == 1


def test_of_more_than_there_is_room_for_the_rest_alone_is_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MEMORY", 64)
    spent: list[int] = []
    selector = Selector(counting(UUID, spent))
    for _ in range(3):
        selector.sweep(fleet(70))
    assert len(spent) == 70 + 6 + 6


@pytest.mark.parametrize("text", [COSTLY, TOO_COSTLY], ids=["within the limit", "beyond the limit"])
def test_asking_twice_gives_the_same_outcomes(text: str) -> None:
    count = 32
    selector = Selector(compile_selector(text))
    first, again = selector.sweep(fleet(count)), selector.sweep(fleet(count))
    assert [first.outcome(row) for row in range(count)] == [again.outcome(row) for row in range(count)]
    assert set(first.verdicts.tolist()) == {Verdict.MATCH if text is COSTLY else Verdict.ERROR}


def test_what_is_left_of_a_budget_makes_no_difference() -> None:
    inventory = fleet(100)
    sight = sight_of(inventory.device(50), inventory.driver_at(50))
    assert compile_selector(UUID).evaluate(sight, Budget(0)).verdict is Verdict.MATCH


def asking(*expressions: str) -> Question:
    """Ask for one device that matches all."""
    request = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}} for expression in expressions],
    }
    spec = {"devices": {"requests": [{"name": "one", "exactly": request}]}}
    claim = parse_claim({"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": spec})
    assert isinstance(claim, ResourceClaim)
    return ask([claim], {GPU: DeviceClass(name=GPU)}, Features())


def test_fit_and_choose_see_the_same_outcome_of_a_costly_selector() -> None:
    count = 8
    cluster = Cluster()
    cluster.apply(Listed(Node, tuple(map(parse_node, published_fleet.nodes(count)))))
    cluster.apply(Listed(ResourceSlice, tuple(map(parse_slice, published_fleet.slices(count)))))
    # The same text would be compiled once, and what one of them learns be known to the other.
    first, second = Fitter(asking(COSTLY)), Fitter(asking(f"{COSTLY} "))
    fits = first.fit(cluster.snapshot).verdicts.tolist()
    assert fits == [VERDICTS[type(choose(cluster.snapshot, node, first.question))] for node in range(count)]
    backwards = [VERDICTS[type(choose(cluster.snapshot, node, second.question))] for node in reversed(range(count))]
    assert fits == backwards[::-1]


def test_a_piece_of_a_sweep_takes_few_steps() -> None:
    for text, most in ((UUID, 5), (f"{UUID} || lists.range(1000).all(i, true)", 5_000), (COSTLY, 500_000)):
        spent: list[int] = []
        done = pieces = 0
        for _ in Selector(counting(text, spent)).sweeping(fleet(3000 if most < PIECE else 20)):
            assert sum(spent[done:-1]) <= PIECE
            done, pieces = len(spent), pieces + 1
        assert pieces >= sum(spent) // (PIECE + most)
        assert pieces >= 10


def test_a_sweep_of_what_is_known_is_cut_in_pieces_too() -> None:
    selector = Selector(compile_selector(UUID))
    selector.sweep(fleet(6000))
    assert sum(1 for _ in selector.sweeping(fleet(6000))) >= 2


def test_a_sweep_that_was_given_up_goes_on_where_it_stopped() -> None:
    spent: list[int] = []
    selector = Selector(counting(UUID, spent))
    work = selector.sweeping(fleet(1000))
    next(work)
    work.close()
    assert 0 < len(spent) < 1000
    assert selector.sweep(fleet(1000)).verdicts.tolist().count(Verdict.MATCH) == 1
    assert len(spent) == 1000


def test_what_there_is_no_room_for_is_evaluated_anew_and_errors_among_it_say_nothing() -> None:
    spent: list[int] = []
    text = f"{UUID} || device.attributes['none.example.com'][device.attributes['gpu.example.com'].uuid]"
    for wanted, is_error in ((UUID, False), (text, True)):
        spent.clear()
        plenty, little = Selector(compile_selector(wanted)), Selector(counting(wanted, spent), room=20 * OUTCOME_SIZE)
        for _ in range(2):
            sweep = little.sweep(fleet(100))
            assert sweep.verdicts.tolist() == plenty.sweep(fleet(100)).verdicts.tolist()
        assert is_error or len(spent) > 150
        assert little.taken <= 21 * (OUTCOME_SIZE + 100)
        assert (UNTOLD in sweep.outcomes) is is_error
        assert len(sweep.outcomes) <= 23


def test_the_selectors_of_one_question_share_what_they_may_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    built = Cluster()
    built.apply(Listed(Node, tuple(map(parse_node, published_fleet.nodes(8)))))
    built.apply(Listed(ResourceSlice, tuple(map(parse_slice, published_fleet.slices(8)))))
    texts = [f"device.attributes['gpu.example.com'].uuid != '{number}'" for number in range(6)]
    expected = Fitter(asking(*texts)).fit(built.snapshot).verdicts.tolist()
    monkeypatch.setattr("extender.allocation.fit.OUTCOMES", 40 * OUTCOME_SIZE)
    fitter = Fitter(asking(*(f"{text} " for text in texts)))
    assert fitter.fit(built.snapshot).verdicts.tolist() == expected
    taken = [test.selector.taken for ask in fitter.question.asks.values() for test in ask.tests if test.selector]
    assert len(taken) == len(texts)
    assert 0 < sum(taken) <= (40 + len(texts)) * OUTCOME_SIZE


def test_a_name_with_its_domain_wins_over_the_bare_one() -> None:
    bare, qualified = Attribute("string", "bare"), Attribute("string", "qualified")
    for names in (("model", "gpu.example.com/model"), ("gpu.example.com/model", "model")):
        values = {"model": bare, "gpu.example.com/model": qualified}
        device = Device(DeviceName("d"), tuple((name, values[name]) for name in names))
        sight = sight_of(device, DriverName("gpu.example.com"))
        assert sight.attributes == {"gpu.example.com": {"model": "qualified"}}


def test_equal_amounts_that_are_spelled_differently_are_told_apart() -> None:
    driver = DriverName("gpu.example.com")
    devices = tuple(
        Device(DeviceName(f"d{index}"), (), (("m", Capacity(parse_quantity(text))),))
        for index, text in enumerate(("1", "1000m"))
    )
    published = ResourceSlice(name="s", driver=driver, pool=PoolName("p"), generation=1, slice_count=1, devices=devices)
    check(inventory_of([published]), "device.capacity['gpu.example.com'].m.isInteger()")
