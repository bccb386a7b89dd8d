"""The command line: reads, calls the floors below, prints. One module per subcommand; nothing is decided here."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from extender.cli import allocate, select

SUBCOMMANDS = {"select": select, "allocate": allocate}
# What a shell reports for a command that the signal of this name ended: 128 + the signal's number.
SIGINT_STATUS = 130
SIGPIPE_STATUS = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status; wrong usage exits with status 2."""
    arguments = build_parser().parse_args(argv)
    try:
        status = int(arguments.run(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left (| head). What is still buffered goes nowhere, or Python would complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGPIPE_STATUS
    except KeyboardInterrupt:
        return SIGINT_STATUS
    return status


def build_parser() -> ArgumentParser:
    """Describe every subcommand to argparse."""
    parser = ArgumentParser(prog="dra-extender", description="Allocate DRA devices by topology.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in SUBCOMMANDS.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser
