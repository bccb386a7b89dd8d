"""Kubernetes quantities, exact: an integer number of nano units, parsed, added and printed as apimachinery does.

Named differences from Go: texts and exponents beyond the limits below are refused, because materialising them
takes for ever; ``whole`` and ``milli`` saturate where Go's int64 wraps or turns into zero; the text is always the
canonical one, where Go repeats spellings such as ``+5``, and 1000E keeps its suffix, which Go loses.
"""

import math
import re
from functools import lru_cache
from typing import Final, Literal

from extender.model.frozen import dataclass

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANO: Final = 10**9
# Resources, sorted, with how much of each: cpu in thousandths, everything else in whole units.
Amounts = tuple[tuple[str, int], ...]
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)
MAX_LENGTH: Final = 512
MAX_EXPONENT: Final = 1000

# Possessive throughout: a text that does not match must fail in linear time.
_TEXT: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[+-]?+[0-9]*+)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_POWERS: Final = {suffix: 3 * place - 9 for place, suffix in enumerate(_DECIMAL_SUFFIXES)}
_BINARY_PLACES: Final = {suffix: place for place, suffix in enumerate(_BINARY_SUFFIXES) if suffix}


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount, and what Go remembers of its spelling: the format to print it in and its representation.

    Go holds a value as int64 times ten to the *exponent* (*is_int64*) or as a decimal of any size whose last place is
    the *exponent*; CEL can see which. Equality and hash speak of the number alone: ``1Gi`` equals ``1073741824``.
    Where the spelling matters too, as in a dictionary of values for CEL, use ``spelling``. There is no ``<`` on
    purpose, for Kubernetes has none in expressions: compare ``nanos``.
    """

    nanos: int
    format: Format = "DecimalSI"
    exponent: int = -9
    is_int64: bool = False

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __str__(self) -> str:
        """Return the canonical form: no fraction, and the largest suffix that loses nothing."""
        whole, rest = divmod(self.nanos, NANO)
        # Below 1024 the decimal suffixes are the better known ones, and a fraction has no binary suffix.
        if self.format == "BinarySI" and not rest and abs(whole) >= 1024:
            mantissa, place = _without_factors(whole, 1024, len(_BINARY_SUFFIXES) - 1)
            return f"{mantissa}{_BINARY_SUFFIXES[place]}"
        if self.format == "DecimalExponent":
            mantissa, place = _without_factors(self.nanos, 1000, None)
            return f"{mantissa}e{3 * place - 9}" if mantissa and place != 3 else str(mantissa)
        mantissa, place = _without_factors(self.nanos, 1000, len(_DECIMAL_SUFFIXES) - 1)
        return f"{mantissa}{_DECIMAL_SUFFIXES[place]}" if mantissa else "0"

    @property
    def spelling(self) -> tuple[int, Format, int, bool]:
        """All that can be seen of the quantity, for keys that must not merge ``1024`` and ``1Ki``."""
        return self.nanos, self.format, self.exponent, self.is_int64

    @property
    def whole(self) -> int:
        """The amount rounded away from zero to an integer, kept within int64."""
        return _saturated(_divided_up(self.nanos, NANO))

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero and kept within int64."""
        return _saturated(_divided_up(self.nanos, 10**6))

    @property
    def as_int64(self) -> int | None:
        """The integer that CEL's ``asInteger()`` gives, None where it errs: even ``1000m`` and ``1Pi`` do."""
        if not self.is_int64 or self.exponent < 0:
            return None
        value = self.nanos // NANO
        return value if _fits(value) else None

    @property
    def approximate(self) -> float:
        """The amount as CEL's ``asApproximateFloat()`` gives it: a float of the digits times a power of ten."""
        try:
            digits = float(_unscaled(self.nanos, self.exponent))
        except OverflowError:
            digits = math.inf if self.nanos > 0 else -math.inf
        return digits * _power_of_ten(self.exponent) if self.exponent else digits

    def add(self, other: "Quantity") -> "Quantity":
        """Return the sum, in the format of the first that is not zero."""
        nanos = self.nanos + other.nanos
        unit = self.format if self.nanos else other.format
        exponent = min(self.exponent, other.exponent)
        if not (self.is_int64 and other.is_int64):
            return Quantity(nanos, unit, exponent)
        if not other.nanos:
            return Quantity(nanos, unit, self.exponent, is_int64=True)
        if not self.nanos:
            return Quantity(nanos, unit, other.exponent, is_int64=True)
        parts = (self.nanos, other.nanos, nanos)
        return Quantity(nanos, unit, exponent, is_int64=all(_fits(_unscaled(part, exponent)) for part in parts))

    def sub(self, other: "Quantity") -> "Quantity":
        return self.add(other.neg())

    def neg(self) -> "Quantity":
        return Quantity(-self.nanos, self.format, self.exponent, self.is_int64)


def parse_quantity(text: str) -> Quantity:
    """Parse what apimachinery's ParseQuantity parses; ValueError says what is wrong with the rest."""
    return _parse(text)


def quantity_of(value: object) -> Quantity:
    """Parse a quantity of a JSON document, where numbers may stand for strings."""
    if isinstance(value, str):
        return _parse(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a quantity must be a string or a number, not {type(value).__name__}")  # noqa: TRY004 - bad input, not a bug
    if isinstance(value, int) and value.bit_length() > MAX_LENGTH:
        raise ValueError("the integer is too large for a quantity")
    return _parse(repr(value))


def integer_quantity(value: int, unit: Format) -> Quantity:
    """Return an integer as a quantity that CEL takes for an integer."""
    return Quantity(value * NANO, unit, 0, is_int64=True)


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a quantity has at most {MAX_LENGTH} characters, not {len(text)}")
    match = _TEXT.fullmatch(text) if text else None
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: expected a number and a suffix such as m, k, Mi or e3")
    sign, zeros, whole, fraction, suffix = match.groups("")
    number = int(f"{sign}{whole or '0'}{fraction}")
    unit, power = _unit_of(suffix, text)
    places = len(whole or "0") + len(fraction)
    if unit == "BinarySI":
        # Go estimates how many digits int64 has left beside the suffix: three fewer for each step.
        if not fraction and places <= 14 - 3 * power:
            return Quantity((number << 10 * power) * NANO, unit, 0, is_int64=True)
        number, power = number << 10 * power, 0
    exponent = power - len(fraction)
    if unit != "BinarySI" and places <= 18 and exponent >= -9:
        return Quantity(number * 10 ** (exponent + 9), unit, exponent, is_int64=True)
    if not (zeros or whole or fraction):
        raise ValueError(f"{text!r} is not a quantity: it has no digits")
    return _rounded(number, exponent, unit)


def _unit_of(suffix: str, text: str) -> tuple[Format, int]:
    """Return the format that *suffix* stands for, with its power of ten or of 1024."""
    if (power := _DECIMAL_POWERS.get(suffix)) is not None:
        return "DecimalSI", power
    if (power := _BINARY_PLACES.get(suffix)) is not None:
        return "BinarySI", power
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: unknown suffix {suffix!r}")
    exponent = int(match[1])
    if abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"{text!r} is not a quantity that we accept: its exponent is beyond {MAX_EXPONENT}")
    return "DecimalExponent", exponent


def _rounded(number: int, exponent: int, unit: Format) -> Quantity:
    """Return a quantity of arbitrary size: rounded away from zero to nano, capped where its suffix is binary."""
    if not number:
        return Quantity(0, unit, exponent)
    shift = exponent + 9
    nanos = number * 10**shift if shift >= 0 else _divided_up(number, 10**-shift)
    if unit != "BinarySI":
        return Quantity(nanos, unit)
    if abs(nanos) > MAX_INT64 * NANO:
        return Quantity(MAX_INT64 * NANO if nanos > 0 else -MAX_INT64 * NANO, unit, 0)
    return Quantity(nanos, unit if abs(nanos) >= NANO else "DecimalSI")


def _divided_up(number: int, divisor: int) -> int:
    """Divide, rounding away from zero."""
    return -(-number // divisor) if number > 0 else number // divisor


def _unscaled(nanos: int, exponent: int) -> int:
    """Return the digits that stand before ten to the *exponent*."""
    shift = exponent + 9
    factor: int = 10 ** abs(shift)
    return nanos // factor if shift >= 0 else nanos * factor


def _fits(value: int) -> bool:
    return MIN_INT64 <= value <= MAX_INT64


def _saturated(value: int) -> int:
    return min(max(value, MIN_INT64), MAX_INT64)


def _without_factors(number: int, factor: int, limit: int | None) -> tuple[int, int]:
    """Divide *number* by *factor* while nothing is lost, at most *limit* times; return the rest and how often."""
    times = 0
    while number and number % factor == 0 and times != limit:
        number //= factor
        times += 1
    return number, times


def _power_of_ten(exponent: int) -> float:
    """Return Go's math.Pow10, which multiplies two table entries and so is not always the nearest float."""
    if exponent > 308:
        return math.inf
    if exponent < -323:
        return 0.0
    tens, ones = divmod(abs(exponent), 32)
    if exponent >= 0:
        return float(f"1e{32 * tens}") * float(f"1e{ones}")
    return float(f"1e-{32 * tens}") / float(f"1e{ones}")
