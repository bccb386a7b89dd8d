"""Parts of timestamps, in UTC or at an offset, and of durations."""

import re
from collections.abc import Callable, Iterator

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.clock import NANOS, Calendar, calendar
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, metered, method
from extender.allocation.cel.types import DURATION, INT, STRING, TIMESTAMP
from extender.allocation.cel.values import Duration, Timestamp

NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
PARTS: dict[str, Callable[[Calendar], int]] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDayOfYear": lambda at: at.day_of_year - 1,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDate": lambda at: at.day,
    "getDayOfWeek": lambda at: at.weekday,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
    "getMilliseconds": lambda at: at.nanos // 1_000_000,
}
# Steps to find a date.
DATE = 5
SPANS = {
    "getHours": 3600 * NANOS,
    "getMinutes": 60 * NANOS,
    "getSeconds": NANOS,
    "getMilliseconds": 1_000_000,
}


def offset_of(zone: str) -> int:
    """Return the seconds east of UTC. Names of places are errors, unlike in cel-go: only files tell what they mean."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        if zone in ("", "UTC"):
            return 0
        raise Failed(f"unknown time zone {zone}")
    if not NUMBER.fullmatch(hours) or not NUMBER.fullmatch(minutes):
        raise Failed(f"invalid time zone offset {zone!r}")
    part = -int(minutes) if zone.startswith("-") else int(minutes)
    return (int(hours) * 60 + part) * 60


def _part(read: Callable[[Calendar], int]) -> Callable[..., int]:
    def compute(budget: Budget, timestamp: Timestamp, zone: str = "") -> int:
        budget.walk(zone)
        budget.spend(DATE)
        return read(calendar(timestamp, offset_of(zone)))

    return compute


def _span(unit: int) -> Callable[[Duration], int]:
    """Return the whole units of a duration; but for milliseconds Go goes through a double, which may round up."""

    def compute(duration: Duration) -> int:
        whole, rest = divmod(abs(duration.nanos), unit)
        whole = int(whole + rest / unit) if unit >= NANOS else whole
        return whole if duration.nanos >= 0 else -whole

    return compute


def overloads() -> Iterator[Overload]:
    for name, read in PARTS.items():
        compute = _part(read)
        yield metered(method(name, (TIMESTAMP,), INT, compute))
        yield metered(method(name, (TIMESTAMP, STRING), INT, compute))
        if name in SPANS:
            yield method(name, (DURATION,), INT, _span(SPANS[name]))
