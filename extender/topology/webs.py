"""Sets of linked devices, grown along links from each device: all of them, as far as whoever looks has patience.

Links are told by a mask for each device of those that it is linked with. What is yielded is a mask for each set, none
twice, and 0 as often as STRIDE more steps were made, or something took as long.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Final

from extender.allocation.masks import places_of

STRIDE: Final = 50


def meshes(near: Sequence[int], among: int, size: int) -> Iterator[int]:
    """Yield the sets of which each two are linked."""
    chosen, ways, steps = [0], [among], 0
    while ways:
        lowest = ways[-1] & -ways[-1]
        if not lowest or chosen[-1].bit_count() + ways[-1].bit_count() < size:
            chosen.pop()
            ways.pop()
            continue
        ways[-1] ^= lowest
        steps += 1
        if steps % STRIDE == 0:
            yield 0
        more = chosen[-1] | lowest
        if more.bit_count() == size:
            yield more
        else:
            chosen.append(more)
            ways.append(ways[-1] & near[lowest.bit_length() - 1])


def rings(near: Sequence[int], among: int, size: int) -> Iterator[int]:
    """Yield the sets of three and more that have a ring of links over all."""
    inside = _core(near, among, among)
    while inside.bit_count() >= size:
        lowest = inside & -inside
        first = lowest.bit_length() - 1
        yield from _from(near, inside, first, size)
        # A look around each is about as much as a stride.
        yield 0
        inside = _core(near, inside ^ lowest, near[first])


def webs(near: Sequence[int]) -> tuple[int, ...]:
    """Part all devices by whether links lead from one to the other."""
    found, left = list[int](), (1 << len(near)) - 1
    while left:
        web = latest = left & -left
        while latest:
            latest = reduce(or_, map(near.__getitem__, places_of(latest))) & ~web
            web |= latest
        found.append(web)
        left &= ~web
    return tuple(found)


def _from(near: Sequence[int], inside: int, first: int, size: int) -> Iterator[int]:
    """Yield those of which *first* is one and all others are *inside*."""
    back, found, steps = _distances(near, inside, first, size), set[int](), 0
    if _is_vain(near, back[: size // 2 + 1], size):
        return
    passed, ways = [1 << first], [near[first] & inside]
    while ways:
        lowest = ways[-1] & -ways[-1]
        if not lowest:
            passed.pop()
            ways.pop()
            continue
        ways[-1] ^= lowest
        steps += 1
        if steps % STRIDE == 0:
            yield 0
        more = passed[-1] | lowest
        if more.bit_count() < size:
            # As many links lead back to the first at most as devices are wanting.
            passed.append(more)
            ways.append(near[lowest.bit_length() - 1] & inside & ~more & back[size - more.bit_count()])
        elif more not in found:
            found.add(more)
            yield more


def _core(near: Sequence[int], among: int, asked: int) -> int:
    """Leave devices out that have fewer than two links to those that are left: no ring has them. *asked*: who may."""
    while ends := [place for place in places_of(among & asked) if (near[place] & among).bit_count() < 2]:
        asked = 0
        for place in ends:
            among ^= 1 << place
            asked |= near[place]
    return among


def _is_vain(near: Sequence[int], back: Sequence[int], size: int) -> bool:
    """Tell whether links lead from one side to the other alone, and one has fewer than the half that a ring needs."""
    sides = [0, 0]
    for distance, layer in enumerate(one & ~other for one, other in zip(back, (0, *back), strict=False)):
        if any(near[place] & layer for place in places_of(layer)):
            return False
        sides[distance % 2] += layer.bit_count()
    return 2 * min(sides) < size or size % 2 == 1


def _distances(near: Sequence[int], inside: int, first: int, most: int) -> list[int]:
    """Return for each number of links up to *most* what is *inside* and can be reached from *first* by them."""
    found, latest = [1 << first], 1 << first
    for _ in range(most):
        reached = found[-1]
        for place in places_of(latest):
            reached |= near[place] & inside
        latest = reached & ~found[-1]
        found.append(reached)
    return found
