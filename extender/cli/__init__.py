"""The command line: reads, calls the floors below, prints. One module per subcommand; nothing is decided here."""

import errno
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TextIO

from extender import VERSION

# Loaded when they are asked for: what serving needs takes longer to load than most questions take to answer.
SUBCOMMANDS = ("demo", "serve", "explain", "select", "allocate", "topology")
# What writes nothing but its log.
SILENT = ("serve",)
# What a shell reports for a command that the signal of this name ended: 128 + the signal's number.
SIGINT_STATUS = 130
SIGPIPE_STATUS = 141
# Where nothing more can be written, and what is returned then: who reads the output has not all of it.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LOST_STATUS = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status; wrong usage exits with status 2."""
    words = sys.argv[1:] if argv is None else argv
    # Where nobody hears of what goes wrong the status tells.
    sys.stderr = sys.stderr or _nowhere()
    arguments = build_parser(words).parse_args(words)
    if sys.stdout is None and words[0] not in SILENT:
        return _lost("is closed")
    sys.stdout = sys.stdout or _nowhere()
    try:
        status = int(arguments.run(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left (| head).
        _leave_nothing_buffered()
        return SIGPIPE_STATUS
    except OSError as error:
        if error.errno not in FULL:
            raise
        _leave_nothing_buffered()
        return _lost(error.strerror)
    except KeyboardInterrupt:
        return SIGINT_STATUS
    return status


def _nowhere() -> TextIO:
    """Return what stands for a stream that whoever has called us closed."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _lost(why: str | None) -> int:
    sys.stderr.write(f"dra-extender: standard output: {why}\n")
    return LOST_STATUS


def _leave_nothing_buffered() -> None:
    """Let what is still buffered go nowhere, or Python would complain at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser(words: Sequence[str] = ()) -> ArgumentParser:
    """Describe the subcommand that *words* name to argparse, or all where they name none."""
    parser = ArgumentParser(prog="dra-extender", description="Allocate DRA devices by topology.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in words[:1] if words and words[0] in SUBCOMMANDS else SUBCOMMANDS:
        module = import_module(f"extender.cli.{name}")
        command = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser
