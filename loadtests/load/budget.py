"""What a run may take, and whether it did. Needs nothing but the standard library."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class Measured(NamedTuple):
    """What was measured of one verb: how many calls, how many of them failed, milliseconds, calls a second."""

    calls: int
    failures: int
    p50_ms: float
    p99_ms: float
    per_second: float


class Budget(NamedTuple):
    """What one verb may take, at so many *names* of nodes."""

    verb: str
    names: int
    p50_ms: float
    p99_ms: float


# Of a closed loop of one user, where nobody waits for another; generous by half for machines that others use, too.
# Where users are many, what they wait for is each other.
ALONE = (
    Budget("filter", 100, 4, 20),
    Budget("filter", 1000, 5, 20),
    Budget("filter", 5000, 8, 40),
    Budget("filter", 15000, 15, 60),
    Budget("prioritize", 15000, 4, 20),
    Budget("bind", 15000, 8, 60),
)


def applying(budgets: Iterable[Budget], names: int) -> Iterator[Budget]:
    """Yield for each verb the budget of the fewest names that are at least *names*."""
    ranked = sorted(budgets, key=lambda budget: budget.names)
    for verb in dict.fromkeys(budget.verb for budget in ranked):
        found = next((budget for budget in ranked if budget.verb == verb and budget.names >= names), None)
        if found is not None:
            yield found


def exceeded(found: Mapping[str, Measured], budgets: Iterable[Budget], names: int) -> list[str]:
    """Say what is beyond its budget, in a sentence each; a verb that was not measured at all is, too."""
    said = [
        f"{verb}: {measured.failures} of {measured.calls} failed"
        for verb, measured in found.items()
        if measured.failures
    ]
    for budget in applying(budgets, names):
        measured = found.get(budget.verb)
        if measured is None or not measured.calls:
            said.append(f"{budget.verb}: was not asked")
            continue
        for label, value, most in (("p50", measured.p50_ms, budget.p50_ms), ("p99", measured.p99_ms, budget.p99_ms)):
            if value > most:
                said.append(f"{budget.verb}: {label} of {value:g} ms is more than {most:g} ms")
    return said
