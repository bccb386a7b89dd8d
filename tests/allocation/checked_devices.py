"""What a device must be for a request: selectors, taints, attributes, as dra.md says and one device at a time."""

from functools import lru_cache
from typing import Any

from extender.allocation.cel import (
    Budget,
    CompileError,
    DeviceValue,
    EvaluationError,
    Program,
    Verdict,
    compile_attribute,
    compile_selector,
    to_cel,
)
from extender.model.device import Attribute, AttributeKind
from extender.model.quantity import quantity_of
from extender.model.semver import Semver
from tests.allocation.checked_pools import Published

Json = dict[str, Any]
# Kind and values; a scalar is a set of one.
Values = tuple[str, frozenset[object]]

KINDS: tuple[AttributeKind, ...] = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")


def selector_problem(published: Published, selectors: list[Json]) -> str | None:
    """Say why a device does not pass selectors, or None where it does; an error is a problem like a mismatch."""
    sight = _sight(published)
    for selector in selectors:
        text = selector["cel"]["expression"]
        try:
            program = _selector(text)
        except CompileError as error:
            return f"error: {error}"
        outcome = program.evaluate(sight, Budget())
        if outcome.verdict is Verdict.ERROR:
            return f"error: {outcome.error}"
        if outcome.verdict is Verdict.NO:
            return f"does not match {text!r}"
    return None


@lru_cache(maxsize=4096)
def _selector(text: str) -> Program:
    return compile_selector(text)


def _sight(published: Published) -> DeviceValue:
    attributes: dict[str, dict[str, Any]] = {}
    fault = None
    for name, raw in (published.device.get("attributes") or {}).items():
        domain, bare = name.split("/", 1) if "/" in name else (published.driver, name)
        try:
            attributes.setdefault(domain, {})[bare] = to_cel(_attribute(raw))
        except ValueError as error:
            fault = str(error)
    capacity: dict[str, dict[str, Any]] = {}
    for name, raw in (published.device.get("capacity") or {}).items():
        domain, bare = name.split("/", 1) if "/" in name else (published.driver, name)
        capacity.setdefault(domain, {})[bare] = quantity_of(raw["value"])
    return DeviceValue(
        driver=published.driver,
        allow_multiple_allocations=bool(published.device.get("allowMultipleAllocations")),
        attributes=attributes,
        capacity=capacity,
        fault=fault,
    )


def _attribute(raw: Json) -> Attribute:
    for kind in KINDS:
        value = raw.get(kind)
        if value not in (None, []):
            return Attribute(kind, tuple(value) if isinstance(value, list) else value)
    raise ValueError("unsupported attribute value")


def is_tolerated(taint: Json, tolerations: list[Json]) -> bool:
    return any(
        toleration.get("effect") in (None, "", taint.get("effect"))
        and toleration.get("key") in (None, "", taint.get("key"))
        and (
            toleration.get("operator") == "Exists"
            or (
                toleration.get("operator") in (None, "", "Equal")
                and (toleration.get("value") or "") == (taint.get("value") or "")
            )
        )
        for toleration in tolerations
    )


def taints_of(published: Published, rules: list[Json]) -> list[Json]:
    """Return a device's own taints and those of rules; a rule without a selector selects nothing."""
    names = dict(zip(("driver", "pool", "device"), published.key, strict=True))
    taints = list(published.device.get("taints") or ())
    for rule in rules:
        selector = rule["spec"].get("deviceSelector")
        if selector is not None and all(selector.get(field) in (None, name) for field, name in names.items()):
            taints.append(rule["spec"]["taint"])
    return taints


def values_of(published: Published, name: str, derived: list[Json]) -> Values | str:
    """Return what a constraint on attribute *name* compares, or say why there is nothing."""
    for entry in derived:
        if entry["name"] == name:
            return _derived(published, entry["expression"])
    attributes = published.device.get("attributes") or {}
    domain, _, bare = name.partition("/")
    raw = attributes.get(name)
    if raw is None and domain == published.driver:
        raw = attributes.get(bare)
    if raw is None:
        return f"lacks {name}"
    try:
        kind, value = _attribute(raw)
    except ValueError as error:
        return str(error)
    return kind, frozenset(value if isinstance(value, tuple) else (value,))


def _derived(published: Published, text: str) -> Values | str:
    try:
        value = compile_attribute(text).compute(_sight(published), Budget())
    except (CompileError, EvaluationError) as error:
        return f"error: {error}"
    items = value if isinstance(value, tuple) and not isinstance(value, Semver) else (value,)
    kinds = {bool: "bool", int: "int", str: "string", Semver: "version"}
    found = {kinds.get(type(item)) for item in items}
    if len(found) != 1 or None in found:
        return "error: a derived value of no known type"
    (kind,) = found
    plural = "" if items is not value else "s"
    return f"{kind}{plural}", frozenset(str(item) if isinstance(item, Semver) else item for item in items)
