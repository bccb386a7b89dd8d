"""CEL for selectors of devices, and for derived attributes: compiled once, evaluated often, always within limits."""

from extender.allocation.cel.compile import compile_attribute, compile_expression, compile_selector
from extender.allocation.cel.device import DeviceValue, to_cel
from extender.allocation.cel.errors import CompileError, EvaluationError
from extender.allocation.cel.limits import EVALUATION_STEPS, Budget
from extender.allocation.cel.program import Program, SelectorOutcome, Verdict
from extender.allocation.cel.reads import Path
from extender.allocation.cel.values import CelValue

__all__ = [
    "EVALUATION_STEPS",
    "Budget",
    "CelValue",
    "CompileError",
    "DeviceValue",
    "EvaluationError",
    "Path",
    "Program",
    "SelectorOutcome",
    "Verdict",
    "compile_attribute",
    "compile_expression",
    "compile_selector",
    "to_cel",
]
