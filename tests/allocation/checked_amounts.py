"""What a request takes of a device's capacities: the checker's own arithmetic, in nano units."""

from typing import Any

from extender.model.quantity import MAX_INT64, NANO, quantity_of

Json = dict[str, Any]
MILLI = 10**6


def nanos(value: object) -> int:
    return quantity_of(value).nanos


def amounts_of(requested: Json, capacity: Json, *, fractional: bool) -> dict[str, int] | str:
    """Return how much of each capacity a share takes, or say why the device cannot give it."""
    if missing := sorted(set(requested) - set(capacity)):
        return f"the device has no capacity {missing[0]}"
    amounts = {}
    for name, entry in capacity.items():
        policy = entry.get("requestPolicy")
        amount = _amount(requested.get(name), entry["value"], policy, fractional=fractional)
        if isinstance(amount, str):
            return f"capacity {name}: {amount}"
        if amount < 0:
            return f"capacity {name}: a negative amount"
        if policy is not None and not _is_valid(amount, policy, fractional=fractional):
            return f"capacity {name}: {amount}n is against the policy"
        amounts[name] = amount
    return amounts


def _amount(requested: object, value: object, policy: Json | None, *, fractional: bool) -> int | str:
    if requested is None:
        return nanos(policy["default"]) if policy and policy.get("default") is not None else nanos(value)
    asked = nanos(requested)
    if policy is None:
        return asked
    if policy.get("validRange"):
        return _up_in_range(asked, policy["validRange"], fractional=fractional)
    return next((nanos(value) for value in policy.get("validValues") or () if nanos(value) >= asked), asked)


def _up_in_range(asked: int, limits: Json, *, fractional: bool) -> int | str:
    minimum = nanos(limits["min"])
    if asked < minimum:
        return minimum
    if limits.get("step") is None:
        return asked
    unit = _unit(limits, fractional=fractional)
    if unit == MILLI and asked % MILLI:
        return "not exact in the arithmetic of the range"
    steps = _up(_up(asked, unit) - _up(minimum, unit), _up(nanos(limits["step"]), unit))
    rounded = _up(minimum, unit) + steps * _up(nanos(limits["step"]), unit)
    return "too large" if max(rounded, _up(asked, unit)) > MAX_INT64 else rounded * unit


def _is_valid(amount: int, policy: Json, *, fractional: bool) -> bool:
    default = policy.get("default")
    if default is not None and amount == nanos(default) and quantity_of(default).is_int64:
        return True
    if policy.get("validRange"):
        limits = policy["validRange"]
        if limits.get("max") is not None and amount > nanos(limits["max"]):
            return False
        if limits.get("step") is None:
            return True
        unit = _unit(limits, fractional=fractional)
        if unit == MILLI and not _is_milli(amount):
            return False
        off = _up(amount, unit) - _up(nanos(limits["min"]), unit)
        return off % _up(nanos(limits["step"]), unit) == 0
    values = policy.get("validValues")
    return not values or amount in map(nanos, values)


def _unit(limits: Json, *, fractional: bool) -> int:
    """Return the unit of the arithmetic: milli where the gate is on and all limits are exact in it."""
    given = [nanos(limits[name]) for name in ("min", "max", "step") if limits.get(name) is not None]
    return MILLI if fractional and all(map(_is_milli, given)) else NANO


def _is_milli(amount: int) -> bool:
    return amount % MILLI == 0 and amount // MILLI <= MAX_INT64


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit)
