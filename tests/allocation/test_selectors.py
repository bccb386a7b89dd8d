"""Sweeps over columns say what each device alone would be told."""

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.cel import Budget, CompileError, Verdict, compile_selector
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.selectors import Selector
from extender.allocation.sight import sight_of
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice
from extender.model.names import DeviceName, DriverName, NodeName, PoolName
from extender.model.quantity import parse_quantity
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
        return
    check(inventory_of(published), text)


def check(inventory: Inventory, text: str) -> None:
    program = compile_selector(text)
    selector = Selector(program)
    for _ in range(2):
        sweep = selector.sweep(inventory, Budget())
        alone = [
            program.evaluate(sight_of(inventory.device(row), inventory.driver_at(row)), Budget())
            for row in range(inventory.rows)
        ]
        assert [sweep.outcome(row).verdict for row in range(inventory.rows)] == [outcome.verdict for outcome in alone]
        assert sweep.verdicts.tolist() == [outcome.verdict for outcome in alone]


def fleet(count: int) -> Inventory:
    devices = tuple(
        Device(DeviceName(f"d{index}"), (("model", Attribute("string", f"m{index % 4}")), ("uuid", uuid(index))))
        for index in range(count)
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


def test_devices_that_agree_in_what_is_read_are_evaluated_once() -> None:
    sweep = Selector(compile_selector("device.attributes['gpu.example.com'].model == 'm1'")).sweep(fleet(100), Budget())
    assert len(sweep.outcomes) == 4
    assert [row for row in range(100) if sweep.verdicts[row] == Verdict.MATCH] == list(range(1, 100, 4))


def test_what_a_spent_budget_left_open_is_not_remembered() -> None:
    selector = Selector(compile_selector("device.attributes['gpu.example.com'].uuid == 'u50'"))
    inventory = fleet(100)
    assert Verdict.ERROR in selector.sweep(inventory, Budget(200)).verdicts
    assert Verdict.ERROR not in selector.sweep(inventory, Budget()).verdicts


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
