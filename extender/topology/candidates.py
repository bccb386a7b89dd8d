"""Sets of devices that are worth a look where there are too many devices to look at all sets."""

from itertools import islice
from operator import add

from extender.allocation.masks import mask_of, places_of
from extender.topology.cells import Cell, cells, whole
from extender.topology.shape import Shape

# Devices up to which all sets are looked at.
EXACT = 12
# Sets that are grown where links are arbitrary: each costs about as many steps as there are pairs.
SEEDS = 8
# Cells that are looked at there.
CELLS = 24


def candidates(shape: Shape, free: int, size: int) -> list[int]:
    """List sets of *size* out of *free*, where there must be enough devices: never none.

    In a tree it does not matter how devices are numbered; among arbitrary links equally strong ones go by number.
    """
    found = _out_of_cells(whole(shape), free, size)
    if not shape.is_tree:
        found = [*found[: 2 * CELLS], *_grown(shape, free, size)]
    return list(dict.fromkeys(found))


def _out_of_cells(root: Cell, free: int, size: int) -> list[int]:
    """Take from each cell that has enough: the parts with the fewest free devices first, or with the most."""
    every = [cell for cell in (root, *cells(root)) if (cell.mask & free).bit_count() >= size]
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
    """Grow sets from a few devices all over the shape."""
    seeds = places_of(free)
    return [grown(shape, free, size, seed) for seed in seeds[:: -(-len(seeds) // SEEDS)]]


def grown(shape: Shape, free: int, size: int, seed: int) -> int:
    """Grow a set from *seed* by that with the strongest links to it."""
    chosen, left, pull = 1 << seed, [place for place in places_of(free) if place != seed], shape.weights[seed]
    for _ in range(size - 1):
        strongest = max(left, key=pull.__getitem__)
        chosen |= 1 << strongest
        left.remove(strongest)
        pull = tuple(map(add, pull, shape.weights[strongest]))
    return chosen
