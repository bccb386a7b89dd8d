"""Sets of devices that are worth a look where there are too many devices to look at all sets."""

from itertools import islice

from extender.topology.cells import Cell, cells, whole
from extender.topology.shape import Shape, mask_of, places_of

# Devices up to which all sets are looked at.
EXACT = 12
# Sets that are kept where links are arbitrary.
TOP = 64


def candidates(shape: Shape, free: int, size: int) -> list[int]:
    """List sets of *size* out of *free*: never none if there are enough devices.

    In a tree it does not matter how devices are numbered; among arbitrary links equally strong ones go by number.
    """
    if free.bit_count() < size:
        return []
    grown = _out_of_cells(shape, free, size) if shape.is_tree else _grown(shape, free, size)
    return list(dict.fromkeys(grown))


def _out_of_cells(shape: Shape, free: int, size: int) -> list[int]:
    """Take from each cell that has enough: the parts with the fewest free devices first, or with the most."""
    every = [cell for cell in (whole(shape), *cells(whole(shape))) if (cell.mask & free).bit_count() >= size]
    # Cells that leave the fewest devices behind come first.
    every.sort(key=lambda cell: (cell.mask & free).bit_count())
    return [out_of(cell, free, size, sign) for cell in every for sign in (1, -1)]


def out_of(cell: Cell, free: int, size: int, sign: int) -> int:
    """Take *size* free devices out of *cell*, with as few of its parts as can be."""
    if not cell.children:
        return mask_of(islice(places_of(cell.mask & free), size))
    counted = [(part.signature(free), part) for part in cell.children]
    # Parts with the same signature are as good as each other, whatever their numbers.
    counted.sort(key=lambda entry: (sign * entry[0][0], entry[0]))
    for (count, _, _), part in counted:
        if count >= size:
            return out_of(part, free, size, sign)
    chosen = 0
    for (count, _, _), part in counted:
        chosen |= out_of(part, free, min(count, size - chosen.bit_count()), sign)
    return chosen


def _grown(shape: Shape, free: int, size: int) -> list[int]:
    """Grow a set from each device by that with the strongest links to it, and keep the heaviest."""
    found = []
    for seed in places_of(free):
        chosen, left = [seed], free & ~(1 << seed)
        pull = list(shape.weights[seed])
        while len(chosen) < size:
            strongest = max(places_of(left), key=pull.__getitem__)
            chosen.append(strongest)
            left &= ~(1 << strongest)
            pull = [one + other for one, other in zip(pull, shape.weights[strongest], strict=True)]
        found.append((sum(pull[place] for place in chosen), mask_of(chosen)))
    found.sort(key=lambda entry: -entry[0])
    return [mask for _, mask in found[:TOP]]
