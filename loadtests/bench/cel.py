"""Five selectors on one device, beside the measured sketch of closures, where that is at hand."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from extender.allocation.cel import Budget, Verdict, compile_selector
from extender.model.quantity import Quantity
from extender.model.semver import Semver
from loadtests.bench.report import Report, median_ms
from tests.allocation.cel.selectors import DEVICE, SELECTORS

SKETCH = Path(__file__).parents[3] / "shared" / "prototypes" / "cel"
EVALUATIONS = 2000
ROUNDS = 15


def ours(text: str) -> Callable[[], object]:
    program = compile_selector(text)
    budget = Budget(10**12)
    if program.evaluate(DEVICE, budget).verdict is not Verdict.MATCH:
        raise ValueError(text)

    def evaluate() -> None:
        for _ in range(EVALUATIONS):
            program.evaluate(DEVICE, budget)

    return evaluate


def theirs(text: str) -> Callable[[], object]:
    sketch = importlib.import_module("closures")
    numbers = importlib.import_module("quantity")
    run = sketch.compile_(importlib.import_module("ast_").parse(text))

    def converted(value: object) -> object:
        if isinstance(value, Quantity):
            return numbers.Quantity(value.nanos)
        return numbers.Semver.parse(str(value)) if isinstance(value, Semver) else value

    def domains(groups: dict[str, dict[str, object]]) -> object:
        return sketch.Domains({name: {key: converted(v) for key, v in inner.items()} for name, inner in groups.items()})

    device = {
        "driver": DEVICE.driver,
        "attributes": domains(DEVICE.attributes),  # type: ignore[arg-type]  # read only
        "capacity": domains(DEVICE.capacity),  # type: ignore[arg-type]  # read only
        "allowMultipleAllocations": False,
    }
    # Made once, as ours are: what is compared is the evaluation.
    variables = {"device": device, "#": sketch.Budget(10**12)}
    if run(variables) is not True:
        raise ValueError(text)

    def evaluate() -> None:
        for _ in range(EVALUATIONS):
            run(variables)

    return evaluate


def main() -> None:
    report = Report("cel")
    sys.path.insert(0, str(SKETCH))
    for name, text in SELECTORS.items():
        mine = ours(text)
        if not SKETCH.is_dir():
            report.add(
                f"{name}, us", f"{1000 * median_ms(mine, ROUNDS) / EVALUATIONS:.2f}", "", "the sketch is not at hand"
            )
            continue
        other = theirs(text)
        pairs = [(median_ms(mine, 1), median_ms(other, 1)) for _ in range(ROUNDS)]
        spent = 1000 * median(pair[0] for pair in pairs) / EVALUATIONS
        ratio = median(one / two for one, two in pairs)
        report.add(f"{name}, us", f"{spent:.2f}", "", f"ratio to the sketch {ratio:.2f}, target 1")
    report.keep()


if __name__ == "__main__":
    main()
