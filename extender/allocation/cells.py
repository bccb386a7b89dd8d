"""What devices have in which column, and columns being filled with it."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
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

# Sets of capacities and traits of which it is remembered what they are encoded as.
COMMON: Final = 4096

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

    __slots__ = ("_dictionary", "codes", "rows")

    def __init__(self, dictionary: Dictionary[Hashable]) -> None:
        self.rows: list[int] = []
        self.codes: list[int] = []
        self._dictionary = dictionary

    def put(self, row: int, value: Hashable) -> None:
        self.rows.append(row)
        self.codes.append(self._dictionary.codes.get(value) or self._dictionary.code(value))

    def code(self, value: Hashable) -> int:
        return self._dictionary.code(value)

    def column(self, rows: int) -> Column[Hashable]:
        codes = np.zeros(rows, np.int32)
        codes[self.rows] = self.codes
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

    So where the attributes of these names belong is found once for all that have them, and so is what a set of
    capacities, shared by many devices, is encoded as: it is known by being the same object.
    """

    def __init__(self, known: Columns) -> None:
        self.by_path: dict[Path, Pile] = {}
        self._known = known
        self._places: dict[tuple[str, ...], list[tuple[Pile, int]]] = {}
        self._common: dict[tuple[str, int, int], list[tuple[Pile, int]]] = {}

    def put(self, row: int, driver: DriverName, device: Device) -> None:
        common = driver, id(device.capacity), id(device.traits)
        for pile, code in self._common.get(common) or self._encoded(common, driver, device):
            pile.rows.append(row)
            pile.codes.append(code)
        attributes = device.attributes
        names = (driver, *[name for name, _ in attributes])
        for pile, place in self._places.get(names) or self._placed(names):
            attribute = attributes[place][1]
            pile.put(row, attribute)
            if attribute.kind == "invalid":
                self._pile(FAULT).put(row, attribute.value)

    def _pile(self, path: Path) -> Pile:
        pile = self.by_path.get(path)
        if pile is None:
            column = self._known.get(path)
            pile = self.by_path[path] = Pile(column.dictionary if column else Dictionary())
        return pile

    def _placed(self, names: tuple[str, ...]) -> list[tuple[Pile, int]]:
        """Tell where each attribute belongs.

        Where a name is published with its domain and without, the one with it wins: it comes last.
        """
        driver, *rest = names
        order = sorted(range(len(rest)), key=lambda place: is_qualified((rest[place], None)))
        paths = ((("attributes", *split_qualified(rest[place], DriverName(driver))), place) for place in order)
        placed = self._places[names] = [(self._pile(path), place) for path, place in paths]
        return placed

    def _encoded(self, common: tuple[str, int, int], driver: DriverName, device: Device) -> list[tuple[Pile, int]]:
        """Encode all of a device but its attributes."""
        if len(self._common) >= COMMON:
            self._common.clear()
        cells = [(self._pile(path), value) for path, value in _common_cells(driver, device)]
        encoded = self._common[common] = [(pile, pile.code(value)) for pile, value in cells]
        return encoded


def _common_cells(driver: DriverName, device: Device) -> Iterable[tuple[Path, Hashable]]:
    yield DRIVER, driver
    yield TRAITS, device.traits
    if device.traits.allow_multiple_allocations:
        yield SHAREABLE, True
    stating: dict[Path, Stated] = {}
    for name, capacity in sorted(device.capacity, key=is_qualified):
        path = ("capacity", *split_qualified(name, driver))
        stating[path] = stated(name, capacity, stating.get(path))
    yield from stating.items()
