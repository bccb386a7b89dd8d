"""Texts that only Go reads, and bytes of any kind, for the decoder: ``python -m tests.kube.fuzz --seconds 60``."""

import argparse
import time

from tests.kube.test_decoding import (
    test_another_reader_that_lets_everything_through_reads_the_same,
    test_bytes_of_any_kind_are_read_or_refused,
    test_however_deep_it_is_read,
    test_what_can_be_read_is_not_touched,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    end, rounds = time.monotonic() + parser.parse_args().seconds, 0
    while time.monotonic() < end:
        test_another_reader_that_lets_everything_through_reads_the_same()
        test_bytes_of_any_kind_are_read_or_refused()
        test_however_deep_it_is_read()
        test_what_can_be_read_is_not_touched()
        rounds += 1
    print(f"{rounds} rounds of texts, no finding")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
