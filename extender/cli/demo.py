"""``dra-extender demo``: the extender at work on a cluster in memory, each decision told in a line."""

import asyncio
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from math import isfinite

from extender.cli.table import cut, printable, width_shown
from extender.demo.stage import stage
from extender.demo.story import Tell

MOST_DIGITS = 6
SUMMARY = "show the extender at work on a cluster in memory"
DESCRIPTION = "Let pods arrive in a cluster in memory and tell each decision in a line. Exit status: 0."


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("--nodes", type=_amount, default=3, help="how many nodes there are (3)")
    parser.add_argument("--pods", type=_amount, default=14, help="how many pods arrive (14)")
    parser.add_argument("--pause", type=_seconds, default=0.1, help="seconds between two of them (0.1)")


def _amount(text: str) -> int:
    # Of longer numbers no more would be seen.
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text)):
        raise ArgumentTypeError(f"must be a number, from 1 to {10**MOST_DIGITS - 1}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not (isfinite(seconds) and seconds >= 0):
        raise ArgumentTypeError("must be a number of seconds")
    return seconds


def run(arguments: Namespace) -> int:
    """Tell the story."""
    width = width_shown()

    def tell(line: str) -> None:
        sys.stdout.write(f"{cut(printable(line), width)}\n")
        sys.stdout.flush()

    asyncio.run(_play(arguments, tell))
    return 0


async def _play(arguments: Namespace, tell: Tell) -> None:
    async with stage(tell) as story:
        await story.furnish(arguments.nodes)
        placed = await story.play(arguments.pods, arguments.pause)
        tell(f"{placed} of {arguments.pods} pods were placed")
