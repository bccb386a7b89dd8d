"""``dra-extender select``: which devices a selector matches, which not, and on which it errs and why."""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import orjson

from extender.allocation.cel import CompileError, Verdict
from extender.cli.complaints import ANSWERED, UNREADABLE, complain, refuse
from extender.cli.outcomes import outcomes
from extender.cli.slices import Reading
from extender.cli.table import aligned, printable, width_shown

SUMMARY = "say which devices a CEL selector matches"
DESCRIPTION = (
    "Evaluate a CEL device selector on the devices of ResourceSlices: a List, one slice, or one object per line. "
    "Exit status: 0 where everything was answered, 1 where an object could not be read (the others are answered), "
    "2 for wrong usage or an expression that does not compile."
)
WORDS = {Verdict.MATCH: "match", Verdict.NO: "no", Verdict.ERROR: "error"}


class Answer(NamedTuple):
    """One line of the output; *error* is empty unless the outcome is one."""

    driver: str
    pool: str
    device: str
    outcome: str
    error: str


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("expression", metavar="CEL", help="the selector, as in a DeviceClass or a claim")
    parser.add_argument("-f", "--file", type=Path, help="read the slices from FILE, not from standard input")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="table (default) or json")


def run(arguments: Namespace) -> int:
    """Answer, and return the exit status."""
    reading = Reading(arguments.file)
    try:
        arguments.expression.encode()
        answers = [
            Answer(*key, WORDS[outcome.verdict], outcome.error)
            for key, outcome in outcomes(arguments.expression, reading.slices())
        ]
    except CompileError as error:
        return refuse(error.pointed(arguments.expression))
    except UnicodeEncodeError:
        return refuse("the expression is not valid UTF-8")
    except OSError as error:
        return refuse(f"{arguments.file or 'standard input'}: {error.strerror}")
    complain(*map(printable, reading.complaints))
    sys.stdout.buffer.write(_json(answers) if arguments.output == "json" else _table(answers).encode())
    return UNREADABLE if reading.complaints else ANSWERED


def _json(answers: list[Answer]) -> bytes:
    return orjson.dumps([answer._asdict() for answer in answers], option=orjson.OPT_APPEND_NEWLINE)


def _table(answers: list[Answer]) -> str:
    header = tuple(name.upper() for name in Answer._fields)
    return f"{aligned([header, *answers], width_shown())}\n{_summary(answers)}\n"


def _summary(answers: list[Answer]) -> str:
    counts = Counter(answer.outcome for answer in answers)
    return f"{len(answers)} devices: " + ", ".join(f"{counts[word]} {word}" for word in WORDS.values())
