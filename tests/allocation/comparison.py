"""Answers in a form in which equal ones are equal: no share ids, no spellings of amounts."""

from collections.abc import Mapping
from typing import Any

from extender.model.quantity import quantity_of

Json = dict[str, Any]


def normalised(allocations: list[Json] | None) -> list[Json]:
    """Return the allocations of one node, one for each claim."""
    return [_allocation(allocation) for allocation in allocations or []]


def is_same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Tell whether two answers for one node are the same, but for the wording of errors."""
    return summary(ours) == summary(theirs)


def summary(answer: Mapping[str, Any]) -> Json:
    """Return what must be the same in two answers for one node."""
    return {
        "fits": bool(answer.get("fits")),
        "nodeError": bool(answer.get("nodeError")),
        "fatalError": bool(answer.get("fatalError")),
        "allocations": normalised(answer.get("allocations")),
    }


def _allocation(allocation: Json) -> Json:
    devices = allocation.get("devices") or {}
    results = [_result(result) for result in devices.get("results") or []]
    config = [_without_empty(entry) for entry in devices.get("config") or []]
    selector = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms")
    terms = None if selector is None else [_term(term) for term in selector]
    return {"results": results, "config": config, "terms": terms}


def _result(result: Json) -> Json:
    shown = _without_empty(result)
    if "shareID" in shown:
        shown["shareID"] = "SHARE"
    if "consumedCapacity" in shown:
        shown["consumedCapacity"] = {
            name: quantity_of(amount).nanos for name, amount in sorted(shown["consumedCapacity"].items())
        }
    shown["tolerations"] = [_without_empty(toleration) for toleration in shown.get("tolerations", [])]
    return dict(sorted(shown.items()))


def _term(term: Json) -> Json:
    return {
        kind: [_without_empty(requirement) for requirement in term.get(kind) or []]
        for kind in ("matchExpressions", "matchFields")
    }


def _without_empty(value: Json) -> Json:
    return {key: item for key, item in sorted(value.items()) if item not in (None, "", [], {}, False)}
