"""Damaged questions for the allocator's door: ``python -m tests.cli.fuzz --seconds 60``."""

import argparse
import json
import time
from copy import deepcopy
from random import Random
from typing import Any

from extender.cli.allocate import MANNERS, answer
from tests.allocation.cel.expressions import seeded
from tests.allocation.clusters import question
from tests.model.parse.damage import damage


def damaged(random: Random) -> Any:
    """Return a drawn question, damaged in up to four places."""
    raw = deepcopy(question(f"damaged {random.randrange(1000)}"))
    for _ in range(random.randint(1, 4)):
        damage(random, raw)
    return raw


def ask(raw: Any) -> None:
    """Ask in both orders; whatever is wrong must be part of the answer."""
    try:
        line = json.dumps(raw).encode()
    except ValueError:
        return  # a number that Python does not write in one piece
    for manner in MANNERS.values():
        told = answer(line, manner)
        assert ("error" in told) != ("nodes" in told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    random = seeded(arguments.seed)
    end, asked = time.monotonic() + arguments.seconds, 0
    while time.monotonic() < end:
        ask(damaged(random))
        asked += 1
    print(f"{asked} damaged questions, no finding")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
