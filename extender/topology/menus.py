"""Sets that are divided among several chips: what each of them offers of each size, put together, the best first."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import Final, NamedTuple

# Sets of each size that are carried from chip to chip; of large sizes fewer, for there are more sizes below.
CARRIED: Final = 8


class Taking(NamedTuple):
    """Places that can be taken together; the least taking is the best.

    loss: how much less is left, of ONE; left: what its chips have before; ranks: of the devices by name.
    """

    loss: int
    left: int
    ranks: tuple[int, ...]
    places: tuple[int, ...]


NOTHING: Final = Taking(0, 0, (), ())


class Menu(NamedTuple):
    """What one chip offers: its best sets by their size, and all its devices that can be had."""

    sizes: tuple[tuple[Taking, ...], ...]
    singles: tuple[Taking, ...]


def menu_of_loose(ranked: Sequence[tuple[int, int]], size: int) -> Menu:
    """Offer devices that cost nothing, ranks with places, in their order."""
    singles = tuple(NOTHING._replace(ranks=(rank,), places=(place,)) for rank, place in ranked)
    sizes = [NOTHING]
    for single in singles[:size]:
        sizes.append(_both(sizes[-1], single))
    return Menu(tuple((taking,) for taking in sizes), singles)


def ordered(menus: Sequence[Menu], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the best sets, then those within one chip, which a rule may demand, then all others; none twice."""
    seen: set[tuple[int, ...]] = set()
    for places in _every(menus, size):
        if places not in seen:
            seen.add(places)
            yield places


def _every(menus: Sequence[Menu], size: int) -> Iterator[tuple[int, ...]]:
    yield from (taking.places for taking in _best(menus, size))
    within = (taking for menu in menus for taking in (menu.sizes[size] if size < len(menu.sizes) else ()))
    yield from (taking.places for taking in sorted(within))
    singles = sorted(taking for menu in menus for taking in menu.singles)
    for chosen in combinations(singles, size):
        yield tuple(sorted(taking.places[0] for taking in chosen))


def carried(size: int) -> int:
    return max(1, min(CARRIED, 64 // max(1, size)))


def _best(menus: Sequence[Menu], size: int) -> list[Taking]:
    """Divide *size* among chips: no set that is carried is worse than one that is not."""
    best: list[list[Taking]] = [[NOTHING], *([] for _ in range(size))]
    for menu in menus:
        best = [nsmallest(carried(size), _divided(best, menu, total, carried(size))) for total in range(size + 1)]
    return best[size]


def _divided(best: Sequence[Sequence[Taking]], menu: Menu, total: int, most: int) -> Iterable[Taking]:
    for number, takings in enumerate(menu.sizes[: total + 1]):
        for one in best[total - number]:
            for other in takings[:most]:
                yield _both(one, other)


def _both(one: Taking, other: Taking) -> Taking:
    if not one.places or not other.places:
        return one if one.places else other
    return Taking(
        one.loss + other.loss,
        one.left + other.left,
        tuple(sorted(one.ranks + other.ranks)),
        tuple(sorted(one.places + other.places)),
    )
