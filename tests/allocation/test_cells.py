"""What devices are encoded as does not depend on what else is encoded with them."""

from collections.abc import Hashable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation import cells
from extender.allocation.inventory import Inventory, inventory_of, key_of
from extender.model.device import Capacity, ResourceSlice
from tests.worlds import slices

Capacities = tuple[tuple[str, Capacity], ...]


def told(inventory: Inventory) -> dict[Hashable, list[object]]:
    """Decode the columns that have any value."""
    decoded = {path: column.decoded() for path, column in inventory.columns.items()}
    return {path: values for path, values in decoded.items() if any(value is not None for value in values)}


def sharing(published: list[ResourceSlice]) -> list[ResourceSlice]:
    """Have equal capacities be the same object, as those that are read are."""
    shared: dict[Capacities, Capacities] = {}
    return [
        replace(
            each,
            devices=tuple(
                replace(device, capacity=shared.setdefault(device.capacity, device.capacity)) for device in each.devices
            ),
        )
        for each in published
    ]


@given(st.lists(slices(), max_size=8, unique_by=key_of), st.sampled_from((1, 2, cells.REMEMBERED)))
def test_slices_are_encoded_together_as_one_by_one(published: list[ResourceSlice], remembered: int) -> None:
    one_by_one = inventory_of(())
    for each in published:
        one_by_one = one_by_one.with_slice(each)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cells, "REMEMBERED", remembered)
        together = inventory_of(sharing(published))
    assert told(together) == told(one_by_one)
