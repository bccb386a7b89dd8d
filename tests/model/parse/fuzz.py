"""Any JSON value for the slice parser, for as long as one likes: python -m tests.model.parse.fuzz --seconds 60."""

import argparse
import time

from tests.model.parse.test_slice import test_no_json_value_raises


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    end = time.monotonic() + parser.parse_args().seconds
    rounds = 0
    while time.monotonic() < end:
        test_no_json_value_raises()
        rounds += 1
    print(f"{rounds} rounds of 100 draws, no finding")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
