"""A compiled expression: immutable, and shareable between threads as long as each has its own budget."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from extender.allocation.cel.device import DeviceValue
from extender.allocation.cel.errors import EvaluationError
from extender.allocation.cel.limits import EVALUATION_STEPS, MAX_ERROR, Budget
from extender.allocation.cel.reads import Path
from extender.allocation.cel.values import Value, held, writable
from extender.model.frozen import dataclass

# Holds the device, the budget, and the local variables of one evaluation, at these places.
Frame = list[Value]
DEVICE, BUDGET, FIRST_VARIABLE = 0, 1, 2
Closure = Callable[[Frame], object]
# What a variable holds before it is first read.
UNSET = object()
TOO_DEEP = "the expression is nested too deeply for the stack"


class Verdict(IntEnum):
    """What a selector says of a device. The order is that of CEL's logic: ``&&`` is the minimum, ``||`` the maximum."""

    NO = 0
    ERROR = 1
    MATCH = 2


class SelectorOutcome(NamedTuple):
    """A verdict; *error* tells why there is none."""

    verdict: Verdict
    error: str = ""


MATCH = SelectorOutcome(Verdict.MATCH)
NO = SelectorOutcome(Verdict.NO)


def failure(error: str) -> SelectorOutcome:
    return SelectorOutcome(Verdict.ERROR, shortened(error))


def shortened(error: str) -> str:
    """Return *error*, or its beginning: it may quote what was built, and is remembered of each device.

    It can be written: as upstream's, it says so where there is a byte that is no UTF-8.
    """
    told = error if len(error) <= MAX_ERROR else f"{error[:MAX_ERROR]}…"
    return told if told.isascii() else writable(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An expression ready to be evaluated. *reads* is what it can depend on, None for the whole device."""

    reads: frozenset[Path] | None
    size: int
    run: Closure
    variables: int

    def evaluate(self, device: DeviceValue, budget: Budget) -> SelectorOutcome:
        """Tell whether *device* matches. Never raises: what goes wrong is an outcome.

        Whatever is left of *budget*, this evaluation may spend EVALUATION_STEPS, the size of the text among them.
        """
        budget.left = EVALUATION_STEPS - self.size
        if device.fault is not None:
            return failure(device.fault)
        frame: Frame = [device, budget]
        if self.variables:
            frame += [None] * self.variables
        try:
            # Upstream takes what an optional holds for the result, where the checker did not see that it is one.
            value = held(self.run(frame))
        except EvaluationError as error:
            return failure(str(error))
        except RecursionError:
            return failure(TOO_DEEP)
        except Exception as error:  # noqa: BLE001 - a selector is a stranger's text: even our bug must not stop the sweep
            return failure(f"internal error: {type(error).__name__}: {error}")
        if value is True:
            return MATCH
        return NO if value is False else failure("the result is not a bool")

    def compute(self, device: DeviceValue, budget: Budget) -> object:
        """Return the value for *device*; raise EvaluationError where there is none."""
        if device.fault is not None:
            raise EvaluationError(device.fault)
        budget.left = EVALUATION_STEPS - self.size
        try:
            return self.run([device, budget, *([None] * self.variables)])
        except RecursionError:
            raise EvaluationError(TOO_DEEP) from None
        except EvaluationError as error:
            error.args = (shortened(str(error)),)
            raise
