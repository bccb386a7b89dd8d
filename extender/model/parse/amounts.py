"""Capacities with their policies, and counters. Each reader also names the fields that it does not know."""

from functools import lru_cache

from extender.model.device import Capacity, Counter, CounterConsumption, CounterSet, RequestPolicy, ValidRange
from extender.model.parse.fields import Fields, Malformed, quantity_at
from extender.model.quantity import Quantity, parse_quantity

CAPACITY = frozenset(("value", "requestPolicy"))
POLICY = frozenset(("default", "validValues", "validRange"))
RANGE = frozenset(("min", "max", "step"))
CONSUMPTION = frozenset(("counterSet", "counters", "compatibilityGroups"))


def capacity_of(value: object, path: str, *, bare: bool) -> tuple[Capacity, tuple[str, ...]]:
    """Read a capacity, which v1alpha3 writes as a *bare* quantity."""
    if bare:
        return Capacity(quantity_at(value, path)), ()
    if type(value) is dict and len(value) == 1 and type(value.get("value")) is str:
        try:
            return _plain(value["value"]), ()
        except ValueError as error:
            raise Malformed(f"{path}.value", str(error)) from error
    fields = Fields.of(value, path)
    unknown = fields.unknown(CAPACITY)
    if not fields.has("requestPolicy"):
        return Capacity(fields.quantity("value")), unknown
    policy = fields.child("requestPolicy")
    limits = policy.child("validRange")
    unknown += policy.unknown(POLICY, "requestPolicy.") + limits.unknown(RANGE, "requestPolicy.validRange.")
    return Capacity(fields.quantity("value"), _policy(policy, limits)), unknown


@lru_cache(maxsize=4096)
def _plain(text: str) -> Capacity:
    """Make one capacity serve every device that has the same."""
    return Capacity(parse_quantity(text))


def _policy(policy: Fields, limits: Fields) -> RequestPolicy:
    values = tuple(quantity_at(value, path) for value, path in policy.items("validValues"))
    valid_range = _range(limits) if policy.has("validRange") else None
    return RequestPolicy(default=policy.optional_quantity("default"), valid_values=values, valid_range=valid_range)


def _range(limits: Fields) -> ValidRange:
    minimum = limits.optional_quantity("min") or Quantity(0)
    return ValidRange(minimum=minimum, maximum=limits.optional_quantity("max"), step=limits.optional_quantity("step"))


def counter_set_of(fields: Fields) -> CounterSet:
    """Read a counter set that a pool declares."""
    return CounterSet(fields.required("name"), _counters(fields))


def consumption_of(fields: Fields) -> tuple[CounterConsumption, tuple[str, ...]]:
    """Read what a device takes from one counter set."""
    groups = fields.texts("compatibilityGroups")
    consumption = CounterConsumption(fields.required("counterSet"), _counters(fields), groups)
    return consumption, fields.unknown(CONSUMPTION)


def _counters(fields: Fields) -> tuple[Counter, ...]:
    entries = fields.entries("counters")
    return tuple(Counter(name, Fields.of(value, path).quantity("value")) for name, value, path in entries)
