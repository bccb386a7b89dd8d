"""What our CEL makes of an expression, in a form in which it can be compared with what others say."""

import json
from typing import Any

from extender.allocation.cel import (
    Budget,
    CompileError,
    DeviceValue,
    EvaluationError,
    compile_expression,
)
from tests.allocation.cel.description import describe

Json = dict[str, Any]


def plain(value: Json) -> object:
    """Bring a description into a form in which equal values are equal: numbers as numbers, maps in any order."""
    kind, inner = value["type"], value["value"]
    if kind == "double":
        return kind, repr(float(inner))
    if kind == "list":
        return kind, [plain(item) for item in inner]
    if kind == "map":
        return kind, sorted(([plain(key), plain(item)] for key, item in inner), key=repr)
    if kind == "optional":
        return kind, plain(inner) if inner is not None else None
    return kind, inner


def computed(expression: str, device: DeviceValue) -> tuple[str, object]:
    try:
        program = compile_expression(expression)
    except CompileError:
        return "refused", None
    try:
        return "value", plain(json.loads(json.dumps(describe(program.compute(device, Budget())))))
    except EvaluationError:
        return "error", None
