"""A selector's outcome on every device of some slices."""

from collections.abc import Iterable, Iterator

from extender.allocation.cel import SelectorOutcome, compile_selector
from extender.allocation.inventory import inventory_of, key_of
from extender.allocation.selectors import Selector
from extender.model.device import ResourceSlice
from extender.model.names import DeviceKey


def outcomes(text: str, slices: Iterable[ResourceSlice]) -> Iterator[tuple[DeviceKey, SelectorOutcome]]:
    """Compile *text*, raising CompileError, and say what it makes of each device, in the order of *slices*."""
    selector = Selector(compile_selector(text))
    given = list(slices)
    inventory = inventory_of(given)
    sweep = selector.sweep(inventory)
    places = sorted(range(len(given)), key=lambda place: key_of(given[place]))
    start_of = dict(zip(places, inventory.starts.tolist(), strict=False))
    return (
        (DeviceKey(published.driver, published.pool, device.name), sweep.outcome(start_of[place] + position))
        for place, published in enumerate(given)
        for position, device in enumerate(published.devices)
    )
