"""Timestamps and durations: reading and writing them as Go does, and the calendar, all in integers."""

import re
from typing import NamedTuple

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

NANOS = 1_000_000_000
DAY_S = 86_400
FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799
TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII
)
# Digits are taken once and for all: looked at again and again, many of them without a unit would take long.
DURATION_PART = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?(ns|us|µs|μs|ms|s|m|h)")
UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MAX_DIGITS = 40


class Calendar(NamedTuple):
    """An instant as people in one time zone read it; month and days count from one, Sunday is 0."""

    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    hour: int
    minute: int
    second: int
    nanos: int


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else MONTHS[month - 1]


def day_number(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01. Years begin in March here, so that the leap day comes last."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def calendar(timestamp: Timestamp, offset_s: int) -> Calendar:
    """Return the date and the time of day at an offset from UTC."""
    seconds, nanos = divmod(timestamp.nanos, NANOS)
    days, second_of_day = divmod(seconds + offset_s, DAY_S)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    shifted = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * shifted + 2) // 153
    day = shifted - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return Calendar(
        year,
        month,
        day,
        days - day_number(year, 1, 1) + 1,
        (days + 4) % 7,
        second_of_day // 3600,
        second_of_day // 60 % 60,
        second_of_day % 60,
        nanos,
    )


def parse_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 timestamp. Like Go, take one digit for the hour and a comma before the fraction."""
    match = TIMESTAMP.fullmatch(text)
    if match is None:
        raise Failed("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    is_date = 1 <= month <= 12 and 1 <= day <= days_in(year, month)
    fraction, _zulu, sign, offset_hours, offset_minutes = match.groups()[6:]
    zone_hours, zone_minutes = int(offset_hours or 0), int(offset_minutes or 0)
    if not is_date or hour > 23 or minute > 59 or second > 59 or zone_hours > 24 or zone_minutes > 60:
        raise Failed("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    offset_s = (zone_hours * 60 + zone_minutes) * 60 * (-1 if sign == "-" else 1)
    seconds = day_number(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - offset_s
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise Failed("timestamp overflow")
    return Timestamp(seconds * NANOS + int((fraction or "")[:9].ljust(9, "0")), offset_s)


def format_timestamp(timestamp: Timestamp) -> str:
    """Write an RFC 3339 timestamp at the offset with which it was read."""
    at = calendar(timestamp, timestamp.offset_s)
    fraction = f".{at.nanos:09d}".rstrip("0") if at.nanos else ""
    minutes = abs(timestamp.offset_s) // 60
    sign = "-" if timestamp.offset_s < 0 else "+"
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if timestamp.offset_s else "Z"
    return f"{at.year:04d}-{at.month:02d}-{at.day:02d}T{at.hour:02d}:{at.minute:02d}:{at.second:02d}{fraction}{zone}"


def parse_duration(text: str) -> Duration:
    """Read a duration as Go does: ``1h30m``, ``-1.5s``, ``0``."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, end = 0, 0
    while match := DURATION_PART.match(body, end):
        digits, fraction, unit = match.groups()
        # Python counts zeros, too, when it refuses to read too many digits.
        whole = digits.lstrip("0")
        if not (digits or fraction) or len(whole) > MAX_DIGITS:
            break
        end = match.end()
        total += int(whole or "0") * UNITS[unit] + _fraction(fraction or "", UNITS[unit])
    nanos = -total if text[:1] == "-" else total
    if not body or end != len(body) or not INT_MIN <= nanos <= INT_MAX:
        raise Failed("type conversion error from 'string' to 'google.protobuf.Duration'")
    return Duration(nanos)


def _fraction(digits: str, unit: int) -> int:
    """Return the nanoseconds of a fraction of *unit*; the arithmetic is Go's, in doubles."""
    # Go stops reading digits where they leave 63 bits.
    digits = digits[:18]
    return int(float(int(digits or "0")) * (unit / float(10 ** len(digits)))) if digits else 0


def format_duration(duration: Duration) -> str:
    """Write a duration in seconds, without an exponent."""
    sign = -1 if duration.nanos < 0 else 1
    whole, rest = divmod(abs(duration.nanos), NANOS)
    seconds = sign * (whole + rest / 1e9)
    text = f"{seconds:.9f}" if seconds != int(seconds) else f"{int(seconds)}"
    shortest = repr(float(seconds))
    if "e" not in shortest and "." in shortest and seconds != int(seconds):
        text = shortest
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}s"
