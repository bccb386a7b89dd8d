"""Damaged objects and any JSON value for every parser: ``python -m tests.model.parse.fuzz --seconds 60``."""

import argparse
import time

from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import damaged
from tests.model.parse.test_damage import assert_read, test_no_json_value_makes_a_parser_raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    arguments = parser.parse_args()
    random = seeded(arguments.seed)
    end, objects = time.monotonic() + arguments.seconds, 0
    while time.monotonic() < end:
        for _ in range(1000):
            assert_read(damaged(random))
            objects += 1
        test_no_json_value_makes_a_parser_raise()
    print(f"{objects} damaged objects, no finding")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
