"""The heaviest way to pair rows with columns, by the Hungarian algorithm."""

from collections.abc import Sequence

Weights = Sequence[Sequence[int]]
# Further than any way through weights that add up.
FAR = 1 << 200


def assigned(weights: Weights, count: int) -> tuple[tuple[int, int], ...]:
    """Pair *count* rows with a column each so that the weights add up to the most; of equal ways always the same."""
    rows, columns = len(weights), len(weights[0]) if weights else 0
    # Rows that go without are paired with nobody, which is worth more than whatever all pairs could gain.
    nobody = [1 + 2 * sum(max(map(abs, row), default=0) for row in weights)] * (rows - count)
    costs = [[0, *(-weight for weight in row), *(-one for one in nobody)] for row in weights]
    holder = [0] * (1 + columns + len(nobody))
    prices, wages = [0] * len(holder), [0] * (rows + 1)
    for row in range(rows):
        _seat(row + 1, costs, holder, prices, wages)
    return tuple(sorted((row - 1, column - 1) for column, row in enumerate(holder[: columns + 1]) if column and row))


def _seat(row: int, costs: Weights, holder: list[int], prices: list[int], wages: list[int]) -> None:
    """Give *row* a column along the cheapest way of moving others. Rows and columns count from 1; 0 is none."""
    left = list(range(1, len(holder)))
    reach, before = [FAR] * len(holder), [0] * len(holder)
    passed: list[int] = []
    holder[0], at = row, 0
    while holder[at]:
        passed.append(at)
        mover = holder[at]
        for column in left:
            cost = costs[mover - 1][column] - wages[mover] - prices[column]
            if cost < reach[column]:
                reach[column], before[column] = cost, at
        at = min(left, key=reach.__getitem__)
        step = reach[at]
        for column in passed:
            wages[holder[column]] += step
            prices[column] -= step
        for column in left:
            reach[column] -= step
        left.remove(at)
    while at:
        holder[at] = holder[before[at]]
        at = before[at]
