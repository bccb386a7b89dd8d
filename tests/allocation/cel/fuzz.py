"""Throw damaged expressions at the compiler and the evaluator: ``python -m tests.allocation.cel.fuzz --seconds 600``.

Whatever the text, it must end with a value, with an outcome, or with an error of ours.
"""

import argparse
import sys
import time
from random import Random

from extender.allocation.cel import Budget, CompileError, DeviceValue, compile_expression
from extender.allocation.cel.errors import EvaluationError
from tests.allocation.cel.cases import FAILING, REFUSED, TRUE
from tests.allocation.cel.description import describe
from tests.allocation.cel.expressions import device, expression, seeded

TOKENS = (
    *"()[]{}.,:?!-+*/%<>'\"\\`#|&=\n\t \x00é😀",
    *(
        "&&",
        "||",
        "==",
        "!=",
        "<=",
        ">=",
        " in ",
        "//",
        "'''",
        '"""',
        "r'",
        "b'",
        "\\u00",
        "\\x4",
        "\\",
        "0x",
        "1u",
        "1.",
        "1e9",
    ),
    *(
        "true",
        "null",
        "device",
        "device.attributes",
        "has(",
        ".all(x, ",
        ".map(x, ",
        "cel.bind(x, ",
        ".optMap(x, ",
        "dyn(",
    ),
    *("9223372036854775808", "-9223372036854775808", "quantity('1')", "[?", ".?", "optional.none()", "'%s'.format(["),
)
CORPUS = tuple(text for group in (TRUE, FAILING, REFUSED) for texts in group.values() for text in texts)
STEPS = 200_000


def garbage(random: Random) -> str:
    """Write an expression, then damage it."""
    text = (
        random.choice(CORPUS)
        if random.random() < 0.5
        else expression(random, random.choice(("bool", "dyn", "list", "string")))
    )
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        place, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
        match random.randrange(4):
            case 0:
                text = text[:place] + random.choice(TOKENS) + text[place:]
            case 1:
                text = text[:place] + text[end:]
            case 2:
                text = text[:end] + text[place:]
            case _:
                other = random.choice(CORPUS)
                text = text[:place] + other[: random.randrange(len(other) + 1)] + text[end:]
    return text[:2_000]


def attack(text: str, seen: DeviceValue) -> str:
    """Compile and evaluate *text*; return how that ended. Any other exception is a finding."""
    try:
        program = compile_expression(text)
    except CompileError as error:
        error.pointed(text)
        return "refused"
    outcome = program.evaluate(seen, Budget(STEPS))
    assert not outcome.error.startswith("internal error"), outcome.error
    try:
        describe(program.compute(seen, Budget(STEPS)))
    except EvaluationError:
        return "failed"
    return "evaluated"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts: dict[str, int] = {}
    end, number, slowest = time.monotonic() + arguments.seconds, 0, (0.0, "")
    while time.monotonic() < end:
        random = seeded(f"{arguments.seed}:{number}")
        text, number, began = garbage(random), number + 1, time.monotonic()
        try:
            result = attack(text, device(random))
        except Exception:
            sys.stderr.write(f"seed {arguments.seed}, number {number}: {text!r}\n")
            raise
        counts[result] = counts.get(result, 0) + 1
        slowest = max(slowest, (time.monotonic() - began, text))
    sys.stdout.write(f"{number} expressions: {counts}\nslowest: {slowest[0]:.3f} s: {slowest[1]!r}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
