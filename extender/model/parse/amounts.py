"""Capacities with their policies, and counters. Each reader also names the fields that it does not know."""

from functools import lru_cache
from typing import Final

from extender.model.device import Capacity, Counter, CounterConsumption, CounterSet, RequestPolicy, ValidRange
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields, quantity_at, shared_name
from extender.model.quantity import Quantity, parse_quantity

CAPACITY = frozenset(("value", "requestPolicy"))
POLICY = frozenset(("default", "validValues", "validRange"))
RANGE = frozenset(("min", "max", "step"))
CONSUMPTION = frozenset(("counterSet", "counters", "compatibilityGroups"))
SET = frozenset(("name", "counters"))
COUNTER = frozenset(("value",))
BARE = "bare"

Capacities = tuple[tuple[str, Capacity], ...]


def capacities_of(body: Fields, *, bare: bool) -> tuple[Capacities, tuple[str, ...]]:
    """Read all capacities of a device, sorted by name; v1alpha3 writes each as a *bare* quantity."""
    plain = None if bare else _plain(body.child("capacity").raw)
    return (plain, ()) if plain is not None else _others(body, BARE if bare else "")


def _others_of(body: Fields, how: str) -> tuple[Capacities, tuple[str, ...]]:
    found, unknown = [], []
    for name, value, path in body.entries("capacity"):
        amount, strange = _capacity(value, path, bare=how == BARE)
        found.append((shared_name(name), amount))
        unknown += [f"capacity[{name}].{field}" for field in strange]
    return tuple(found), tuple(unknown)


# With their policies they serve every device that has them, too.
_others: Final = alike(_others_of, 1024, lambda body: body.raw.get("capacity"))


def _plain(raw: dict[str, object]) -> Capacities | None:
    """Read capacities that have a value and nothing else, as nearly all have; None where that is not so."""
    texts = []
    for name, value in raw.items():
        if type(value) is not dict or len(value) != 1 or type(text := value.get("value")) is not str:
            return None
        texts.append((name, text))
    try:
        return _shared(tuple(sorted(texts)))
    except ValueError:
        # Read it again with the path at hand.
        return None


@lru_cache(maxsize=4096)
def _shared(texts: tuple[tuple[str, str], ...]) -> Capacities:
    """Make the same capacities serve every device that has them."""
    return tuple((shared_name(name), Capacity(parse_quantity(text))) for name, text in texts)


def _capacity(value: object, path: str, *, bare: bool) -> tuple[Capacity, tuple[str, ...]]:
    if bare:
        return Capacity(quantity_at(value, path)), ()
    fields = Fields.of(value, path)
    unknown = fields.unknown(CAPACITY)
    if not fields.has("requestPolicy"):
        return Capacity(fields.quantity("value")), unknown
    policy = fields.child("requestPolicy")
    limits = policy.child("validRange")
    unknown += policy.unknown(POLICY, "requestPolicy.") + limits.unknown(RANGE, "requestPolicy.validRange.")
    return Capacity(fields.quantity("value"), _policy(policy, limits)), unknown


def _policy(policy: Fields, limits: Fields) -> RequestPolicy:
    values = tuple(quantity_at(value, path) for value, path in policy.items("validValues"))
    valid_range = _range(limits) if policy.has("validRange") else None
    return RequestPolicy(default=policy.optional_quantity("default"), valid_values=values, valid_range=valid_range)


def _range(limits: Fields) -> ValidRange:
    minimum = limits.optional_quantity("min") or Quantity(0)
    return ValidRange(minimum=minimum, maximum=limits.optional_quantity("max"), step=limits.optional_quantity("step"))


def counter_set_of(fields: Fields) -> tuple[CounterSet, tuple[str, ...]]:
    """Read a counter set that a pool declares."""
    return CounterSet(fields.required("name"), _counters(fields)), fields.unknown(SET) + _unknown_in_counters(fields)


def consumption_of(fields: Fields) -> tuple[CounterConsumption, tuple[str, ...]]:
    """Read what a device takes from one counter set."""
    groups = fields.texts("compatibilityGroups")
    consumption = CounterConsumption(fields.required("counterSet"), _counters(fields), groups)
    return consumption, fields.unknown(CONSUMPTION) + _unknown_in_counters(fields)


def _counters(fields: Fields) -> tuple[Counter, ...]:
    entries = fields.entries("counters")
    return tuple(Counter(name, Fields.of(value, path).quantity("value")) for name, value, path in entries)


def _unknown_in_counters(fields: Fields) -> tuple[str, ...]:
    entries = fields.entries("counters")
    return tuple(
        field for name, raw, path in entries for field in Fields.of(raw, path).unknown(COUNTER, f"counters[{name}].")
    )
