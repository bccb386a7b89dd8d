"""What devices have in which column, and columns being filled with it."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from extender.allocation.cel import Path
from extender.allocation.columns import Column, Dictionary, frozen
from extender.allocation.sight import is_qualified
from extender.model.device import Capacity, Device, ResourceSlice
from extender.model.names import DriverName, split_qualified

# Beside these, each attribute and each capacity has a column: ("attributes", domain, name), ("capacity", domain, name).
DRIVER: Final[Path] = ("driver",)
SHAREABLE: Final[Path] = ("allowMultipleAllocations",)
TRAITS: Final[Path] = ("traits",)
FAULT: Final[Path] = ("fault",)

# So much is remembered of what devices have alike; all goes at once, for a fleet that has more has little alike.
REMEMBERED: Final = 4096

Columns = Mapping[Path, Column[Hashable]]


class Stated(NamedTuple):
    """A capacity and the name it is published by: requests for it must spell that name alike.

    The spelling of its amounts is part of it: CEL and policies can tell 1 from 1000m, though they are equal.
    *beside* is the capacity of the bare name where one with a domain hides it from selectors: requests see both.
    """

    name: str
    capacity: Capacity
    spelling: Hashable
    beside: "Stated | None" = None


def stated(name: str, capacity: Capacity, beside: Stated | None = None) -> Stated:
    return Stated(name, capacity, (capacity.value.spelling, capacity.policy and str(capacity.policy)), beside)


class Pile:
    """A column being filled: the rows that have a value, and its code. Of two for one row the later one counts."""

    __slots__ = ("_codes", "_dictionary", "_rows")

    def __init__(self, dictionary: Dictionary[Hashable]) -> None:
        self._rows: list[int] = []
        self._codes: list[int] = []
        self._dictionary = dictionary

    def code(self, value: Hashable) -> int:
        return self._dictionary.code(value)

    def put(self, row: int, code: int) -> None:
        self._rows.append(row)
        self._codes.append(code)

    def column(self, rows: int) -> Column[Hashable]:
        codes = np.zeros(rows, np.int32)
        codes[self._rows] = self._codes
        return frozen(codes, self._dictionary)


def piles_of(slices: Sequence[ResourceSlice], known: Columns | None = None) -> dict[Path, Pile]:
    """Encode every device by the dictionaries of *known* columns, by new ones elsewhere; rows count from 0."""
    piles = _Piles(known or {})
    row = 0
    for published in slices:
        for device in published.devices:
            piles.put(row, published.driver, device)
            row += 1
    return piles.by_path


class _Piles:
    """Piles by their paths. Devices of a fleet differ in the values of their attributes, and in little else.

    What capacities and traits are encoded as is found once for all that have the same objects, which live on in the
    slices; and where attributes belong, once for all that have the same names.
    """

    def __init__(self, known: Columns) -> None:
        self.by_path: dict[Path, Pile] = {}
        self._known = known
        self._common: dict[tuple[DriverName, int, int], list[tuple[Pile, int]]] = {}
        self._places: dict[tuple[DriverName, tuple[str, ...]], list[tuple[Pile, int]]] = {}

    def put(self, row: int, driver: DriverName, device: Device) -> None:
        for pile, code in self._encoded(driver, device):
            pile.put(row, code)
        attributes = device.attributes
        for pile, place in self._placed(driver, tuple([name for name, _ in attributes])):
            attribute = attributes[place][1]
            pile.put(row, pile.code(attribute))
            if attribute.kind == "invalid":
                fault = self._pile(FAULT)
                fault.put(row, fault.code(attribute.fault))

    def _pile(self, path: Path) -> Pile:
        pile = self.by_path.get(path)
        if pile is None:
            column = self._known.get(path)
            pile = self.by_path[path] = Pile(column.dictionary if column else Dictionary())
        return pile

    def _encoded(self, driver: DriverName, device: Device) -> list[tuple[Pile, int]]:
        """Return the codes of all that a device has but its attributes."""
        key = driver, id(device.capacity), id(device.traits)
        encoded = self._common.get(key)
        if encoded is None:
            if len(self._common) >= REMEMBERED:
                self._common.clear()
            piles = [(self._pile(path), value) for path, value in _common_cells(driver, device)]
            encoded = self._common[key] = [(pile, pile.code(value)) for pile, value in piles]
        return encoded

    def _placed(self, driver: DriverName, names: tuple[str, ...]) -> list[tuple[Pile, int]]:
        """Tell where each attribute belongs.

        Where a name is published with its domain and without, the one with it wins: it comes last.
        """
        placed = self._places.get((driver, names))
        if placed is None:
            if len(self._places) >= REMEMBERED:
                self._places.clear()
            order = sorted(range(len(names)), key=lambda place: is_qualified((names[place], None)))
            paths = [("attributes", *split_qualified(names[place], driver)) for place in order]
            placed = [(self._pile(path), place) for path, place in zip(paths, order, strict=True)]
            self._places[driver, names] = placed
        return placed


def _common_cells(driver: DriverName, device: Device) -> Iterator[tuple[Path, Hashable]]:
    yield DRIVER, driver
    yield TRAITS, device.traits
    if device.traits.allow_multiple_allocations:
        yield SHAREABLE, True
    stating: dict[Path, Stated] = {}
    # Of a name with its domain and without, the one with it wins here, too, and has the other beside it.
    for name, capacity in sorted(device.capacity, key=is_qualified):
        path = ("capacity", *split_qualified(name, driver))
        stating[path] = stated(name, capacity, stating.get(path))
    yield from stating.items()
