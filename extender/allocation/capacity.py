"""What a request takes of a device's capacities, by the policies of the device. All in nano units."""

from collections.abc import Mapping

from extender.model.device import Capacity, RequestPolicy, ValidRange
from extender.model.frozen import dataclass
from extender.model.quantity import MAX_INT64, NANO, Quantity

MILLI = 10**6


class Unusable(ValueError):  # noqa: N818 - an answer about a request and a device
    """The amount cannot be computed as the API defines it: nobody may guess what was meant."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What one allocation takes of each capacity: name, quantity."""

    amounts: tuple[tuple[str, Quantity], ...]


def draw(
    asked: Mapping[str, Quantity], capacities: tuple[tuple[str, Capacity], ...], *, fractional: bool
) -> Draw | None:
    """Say what *asked* takes of a device; None where it cannot give that. Raise Unusable where nobody can tell."""
    if not asked.keys() <= {name for name, _ in capacities}:
        return None
    amounts = []
    for name, capacity in capacities:
        amount = _amount(asked.get(name), capacity, fractional=fractional)
        if amount.nanos < 0:
            raise Unusable(f"capacity {name}: the amount {amount} is negative")
        amounts.append((name, amount))
    for (_, amount), (_, capacity) in zip(amounts, capacities, strict=True):
        if _violates(amount, capacity.policy, fractional=fractional):
            return None
    return Draw(tuple(amounts))


def fits(
    drawn: Draw, capacities: tuple[tuple[str, Capacity], ...], taken: Mapping[str, int], besides: Mapping[str, int]
) -> bool:
    """Tell whether each capacity is enough for what is *taken* already, *besides* in this attempt, and *drawn* now."""
    return not drawn.amounts or all(
        amount.nanos + taken.get(name, 0) + besides.get(name, 0) <= capacity.value.nanos
        for (name, amount), (_, capacity) in zip(drawn.amounts, capacities, strict=True)
    )


def gives(
    asked: Mapping[str, Quantity], capacities: tuple[tuple[str, Capacity], ...], *, fractional: bool
) -> bool | None:
    """Tell whether a device of which nothing is taken has what is *asked*; None where nobody can tell."""
    try:
        drawn = draw(asked, capacities, fractional=fractional)
    except Unusable:
        return None
    return drawn is not None and fits(drawn, capacities, {}, {})


def _amount(asked: Quantity | None, capacity: Capacity, *, fractional: bool) -> Quantity:
    policy = capacity.policy
    if asked is None:
        return policy.default if policy and policy.default is not None else capacity.value
    if policy is None:
        return asked
    if policy.valid_range is not None:
        return _rounded(asked, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if asked.nanos <= value.nanos), asked)


def _rounded(asked: Quantity, limits: ValidRange, *, fractional: bool) -> Quantity:
    if asked.nanos < limits.minimum.nanos:
        return limits.minimum
    if limits.step is None:
        return asked
    unit = _unit(limits, fractional=fractional)
    amount, minimum, step = _units(asked, unit), _units(limits.minimum, unit), _step(limits.step, unit)
    if (unit == MILLI and asked.nanos % MILLI) or amount > MAX_INT64:
        raise Unusable(f"the request {asked} cannot be represented in the arithmetic of its range")
    rounded = minimum + -(-(amount - minimum) // step) * step
    if rounded > MAX_INT64:
        raise Unusable(f"the request {asked} rounded up to the next step cannot be represented")
    return Quantity(rounded * unit, limits.step.format)


def _violates(amount: Quantity, policy: RequestPolicy | None, *, fractional: bool) -> bool:
    """Tell whether *policy* forbids *amount*. The default is allowed even off the grid of the range."""
    if policy is None or _is_default(amount, policy):
        return False
    if policy.valid_range is not None:
        return _leaves(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and all(amount.nanos != value.nanos for value in policy.valid_values)


def _is_default(amount: Quantity, policy: RequestPolicy) -> bool:
    """Compare as Go compares the structs: spelled alike, and never equal where they hold a decimal of any size."""
    default = policy.default
    return default is not None and amount.is_int64 and (amount is default or amount.spelling == default.spelling)


def _leaves(amount: Quantity, limits: ValidRange, *, fractional: bool) -> bool:
    if limits.maximum is not None and amount.nanos > limits.maximum.nanos:
        return True
    if limits.step is None:
        return False
    unit = _unit(limits, fractional=fractional)
    if unit == MILLI and not _is_exact(amount):
        return True
    return (_units(amount, unit) - _units(limits.minimum, unit)) % _step(limits.step, unit) != 0


def _unit(limits: ValidRange, *, fractional: bool) -> int:
    """Return milli units where the gate is on and all limits are exact in them, whole units otherwise."""
    given = [value for value in (limits.minimum, limits.maximum, limits.step) if value is not None]
    exact = fractional and all(map(_is_exact, given))
    return MILLI if exact and limits.step is not None and limits.step.nanos >= MILLI else NANO


def _is_exact(amount: Quantity) -> bool:
    """Tell whether int64 can hold *amount* in milli units."""
    return amount.nanos % MILLI == 0 and abs(amount.nanos) // MILLI <= MAX_INT64


def _step(step: Quantity, unit: int) -> int:
    """Count the units of a step. The API refuses a step of nothing, at which upstream panics."""
    units = _units(step, unit)
    if not units:
        raise Unusable(f"a range with the step {step} has no grid")
    return units


def _units(value: Quantity, unit: int) -> int:
    """Count units, fractions of one rounded up, as Kubernetes rounds."""
    return -(-value.nanos // unit)
