"""What is free and cannot be had is what the counters of its pool do not suffice for."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.counters import drawn_by
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.spent import drawing
from extender.allocation.work import finished
from extender.model.device import Counter, CounterConsumption, CounterSet, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import DeviceName, DriverName, NodeName, PoolName
from extender.model.quantity import parse_quantity

NAMES = ("memory", "slices")
AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["0", "100m", "1", "2", "40Gi", "80Gi"]), min_size=1)
SETS = st.dictionaries(st.sampled_from(["x", "y"]), AMOUNTS)


def counters(amounts: dict[str, str]) -> tuple[Counter, ...]:
    return tuple(Counter(name, parse_quantity(text)) for name, text in sorted(amounts.items()))


def slice_of(pool: str, declared: dict[str, dict[str, str]], *drawn: dict[str, dict[str, str]]) -> ResourceSlice:
    """Return a pool in one slice: what it declares, and devices with what each draws."""
    return ResourceSlice(
        name=pool,
        driver=DriverName("gpu.example.com"),
        pool=PoolName(pool),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName(pool)),
        devices=tuple(
            Device(
                DeviceName(f"d{index}"),
                traits=Traits(
                    consumes_counters=tuple(CounterConsumption(name, counters(item)) for name, item in draws.items())
                ),
            )
            for index, draws in enumerate(drawn)
        ),
        shared_counters=tuple(CounterSet(name, counters(item)) for name, item in declared.items()),
    )


def reckoned(inventory: Inventory, used: set[int]) -> list[int]:
    """Work the same out pool by pool, exactly."""
    found = []
    for row in range(inventory.rows):
        here = inventory.slices[inventory.slice_at(row)]
        left = {
            (item.name, counter.name): counter.value.nanos for item in here.shared_counters for counter in item.counters
        }
        for other in used:
            if inventory.slices[inventory.slice_at(other)] is here:
                for key, amount in drawn_by(inventory.device(other).traits).items():
                    left[key] = left.get(key, 0) - amount
        if row not in used and any(
            left.get(key, 0) < amount for key, amount in drawn_by(inventory.device(row).traits).items()
        ):
            found.append(row)
    return found


def spent(inventory: Inventory, used: set[int]) -> list[int]:
    flags = np.zeros(inventory.rows, np.bool_)
    flags[list(used)] = True
    return np.flatnonzero(finished(drawing(inventory)).spent(flags)).tolist()


@given(st.lists(st.tuples(SETS, st.lists(SETS, max_size=5)), max_size=3), st.data())
def test_what_is_spent_is_what_the_counters_of_its_pool_do_not_suffice_for(
    pools: list[tuple[dict[str, dict[str, str]], list[dict[str, dict[str, str]]]]], data: st.DataObject
) -> None:
    inventory = inventory_of(slice_of(f"p{index}", sets, *drawn) for index, (sets, drawn) in enumerate(pools))
    used = data.draw(st.sets(st.integers(0, inventory.rows - 1))) if inventory.rows else set()
    assert spent(inventory, used) == reckoned(inventory, used)


def test_many_small_draws_use_up_exactly_what_there_is() -> None:
    tenth = {"x": {"memory": "100m"}}
    inventory = inventory_of([slice_of("p", {"x": {"memory": "1"}}, *[tenth] * 11)])
    assert spent(inventory, set(range(9))) == []
    assert spent(inventory, set(range(10))) == [10]


def test_counters_are_declared_in_another_slice_of_the_pool() -> None:
    whole = {"x": {"slices": "7"}}
    devices = slice_of("p", {}, whole, {"x": {"slices": "1"}}, {})
    inventory = inventory_of([devices, replace(slice_of("p", whole), name="counters")])
    assert spent(inventory, {0}) == [1]
    assert spent(inventory, {1}) == [0]
    assert spent(inventory, {2}) == []


def test_counters_that_nobody_declares_are_told_apart() -> None:
    nothing, something = {"x": {"memory": "0"}}, {"x": {"memory": "0", "slices": "100m"}}
    inventory = inventory_of([slice_of("p", {}, something, nothing)])
    assert spent(inventory, {0}) == reckoned(inventory, {0}) == []
    assert spent(inventory, {1}) == [0]
