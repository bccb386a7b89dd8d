"""Where devices are among the rows."""

from extender.allocation.inventory import LARGE, MANY, inventory_of
from extender.model.names import DeviceKey, DeviceName, PoolName
from tests.allocation.small import DRIVER, device, published

PARTS = 6
ALL = 2 * LARGE * PARTS


class Name(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def key(name: str) -> DeviceKey:
    return DeviceKey(DRIVER, PoolName("p"), DeviceName(name))


def test_devices_of_a_large_pool_are_not_looked_for_one_after_the_other() -> None:
    """Hundreds of slices of one pool have ten thousands of devices: that many claims took their square to be listed."""
    names = [Name(f"d{number}") for number in range(ALL)]
    slices = [
        published("p", *map(device, names[first : first + PARTS]), name=f"s{first:03}", count=2 * LARGE, all_nodes=True)
        for first in range(0, ALL, PARTS)
    ]
    inventory, Name.compared = inventory_of(slices), 0
    assert [inventory.rows_of(key(f"d{number}")) for number in range(ALL)] == [(row,) for row in range(ALL)]
    assert Name.compared < (MANY + 4) * ALL


def test_a_name_that_a_large_pool_repeats_has_all_its_rows_and_another_none() -> None:
    slices = [
        published("p", device("twin"), device(f"d{number}"), name=f"s{number:02}", count=LARGE, all_nodes=True)
        for number in range(LARGE)
    ]
    inventory = inventory_of(slices)
    for number in range(2 * MANY):
        assert inventory.rows_of(key(f"none-{number}")) == ()
    assert inventory.rows_of(key("twin")) == tuple(range(0, 2 * LARGE, 2))
