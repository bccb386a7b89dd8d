"""The long test: as many steps as are asked for, and the seed and step of whatever does not hold."""

import sys
import time
from argparse import ArgumentParser
from collections import Counter

from tests.interleavings.play import Broken, played

RUN = 10_000


def main() -> int:
    """Play *steps* steps in runs of ten thousand; of one that breaks something, look for a shorter one.

    In every second run pods are nominated ahead, in every third devices are of all kinds, in two of five there are
    two replicas, in three of seven taint rules and classes come and go, in four of eleven claims tie devices,
    in four of thirteen policies are strict, in four of seventeen pods are evicted for taints, and in five of nineteen
    somebody keeps what is deleted.
    """
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each has the next")
    arguments = parser.parse_args()
    began, total, broken = time.monotonic(), Counter[str](), 0
    for number in range(max(1, arguments.steps // RUN)):
        seed, steps = arguments.seed + number, min(RUN, arguments.steps)
        try:
            total += of_seed(seed, steps)
        except Broken as why:
            broken += 1
            sys.stdout.write(f"seed {seed}: {shorter(seed, steps, why)}\n")
    listed = ", ".join(f"{name} {times:,}" for name, times in sorted(total.items()))
    sys.stdout.write(f"{arguments.steps:,} steps in {time.monotonic() - began:.0f} s, {broken} runs broken\n{listed}\n")
    return 1 if broken else 0


def of_seed(seed: int, steps: int) -> Counter[str]:
    """Play the run that *seed* stands for."""
    kinds = {
        "is_contended": seed % 5 in (2, 4),
        "is_ruled": seed % 7 in (1, 4, 6),
        "is_tied": seed % 11 in (2, 5, 7, 8),
        "is_strict": seed % 13 in (3, 5, 9, 11),
        "is_evicting": seed % 17 in (2, 6, 8, 13),
        "is_lingering": seed % 19 in (4, 7, 11, 14, 17),
    }
    return played(seed, steps, nominates=seed % 2 == 0, is_varied=seed % 3 == 0, **kinds)


def shorter(seed: int, steps: int, why: Broken) -> Broken:
    """Halve the steps for as long as the same seed still breaks something."""
    while steps > 1:
        try:
            of_seed(seed, steps // 2)
        except Broken as found:
            why, steps = found, steps // 2
        else:
            break
    return why


if __name__ == "__main__":
    sys.exit(main())
