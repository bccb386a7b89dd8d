"""Sets that are divided among several chips: what each of them offers of each size, put together, the best first."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import Final, NamedTuple

# Sets of each size that are carried from chip to chip; of large sizes fewer, for there are more sizes below.
CARRIED: Final = 8


class Offer(NamedTuple):
    """Places that can be taken together; the least offer is the best.

    loss: how much less is left, of ONE; left: what its chips have before; ranks: of the devices by name.
    """

    loss: int
    left: int
    ranks: tuple[int, ...]
    places: tuple[int, ...]


NO_OFFER: Final = Offer(0, 0, (), ())


class Menu(NamedTuple):
    """What one chip offers: its best sets by their size, and all its devices that can be had."""

    sizes: tuple[tuple[Offer, ...], ...]
    singles: tuple[Offer, ...]


def menu_of_loose(ranked: Sequence[tuple[int, int]], size: int) -> Menu:
    """Offer devices that cost nothing, ranks with places, in their order."""
    singles = tuple(NO_OFFER._replace(ranks=(rank,), places=(place,)) for rank, place in ranked)
    sizes = [NO_OFFER]
    for single in singles[:size]:
        sizes.append(_both(sizes[-1], single))
    return Menu(tuple((offer,) for offer in sizes), singles)


def ordered(menus: Sequence[Menu], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the best sets, then those within one chip, which a rule may demand, then all others; none twice."""
    seen: set[tuple[int, ...]] = set()
    for places in _every(menus, size):
        if places not in seen:
            seen.add(places)
            yield places


def _every(menus: Sequence[Menu], size: int) -> Iterator[tuple[int, ...]]:
    yield from (offer.places for offer in _best(menus, size))
    within = (offer for menu in menus for offer in (menu.sizes[size] if size < len(menu.sizes) else ()))
    yield from (offer.places for offer in sorted(within))
    singles = sorted(offer for menu in menus for offer in menu.singles)
    for chosen in combinations(singles, size):
        yield tuple(sorted(offer.places[0] for offer in chosen))


def carried(size: int) -> int:
    return max(1, min(CARRIED, 64 // max(1, size)))


def _best(menus: Sequence[Menu], size: int) -> list[Offer]:
    """Divide *size* among chips: no set that is carried is worse than one that is not."""
    best: list[list[Offer]] = [[NO_OFFER], *([] for _ in range(size))]
    for menu in menus:
        best = [nsmallest(carried(size), _divided(best, menu, total, carried(size))) for total in range(size + 1)]
    return best[size]


def _divided(best: Sequence[Sequence[Offer]], menu: Menu, total: int, most: int) -> Iterable[Offer]:
    for number, offers in enumerate(menu.sizes[: total + 1]):
        for one in best[total - number]:
            for other in offers[:most]:
                yield _both(one, other)


def _both(one: Offer, other: Offer) -> Offer:
    if not one.places or not other.places:
        return one if one.places else other
    return Offer(
        one.loss + other.loss,
        one.left + other.left,
        tuple(sorted(one.ranks + other.ranks)),
        tuple(sorted(one.places + other.places)),
    )
