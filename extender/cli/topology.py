"""``dra-extender topology``: how the devices of each node are linked, and how that is known."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from extender.cli.complaints import ANSWERED, UNREADABLE, complain, refuse
from extender.cli.drawing import drawn, kind_of
from extender.cli.machines import Machine, machines_of
from extender.cli.sets import best_sets
from extender.cli.slices import Reading
from extender.cli.table import printable, width_shown
from extender.config.load import Invalid
from extender.config.placement_document import document_at
from extender.topology.demand import EXPECTED
from extender.topology.document import Document
from extender.topology.links import grouped, links_of

SUMMARY = "show how devices are linked, and how that is known"
DESCRIPTION = (
    "Show for each node and each kind of device the bandwidth between every two devices, in GB/s one way, and where "
    "each number comes from. Reads ResourceSlices and, for labels and annotations, Nodes: a List, or one object per "
    "line. Exit status: 0 where everything was shown, 1 where an object could not be read (the others are shown), "
    "2 for wrong usage or a placement document that cannot be used."
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("-f", "--file", type=Path, help="read the objects from FILE, not from standard input")
    parser.add_argument("--placement", default="", metavar="FILE", help="the placement document (default: none)")
    parser.add_argument("--sets", type=_size, metavar="K", help="list the best sets of K devices of an empty machine")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="table (default) or json")


def run(arguments: Namespace) -> int:
    """Show, and return the exit status."""
    reading = Reading(arguments.file)
    try:
        document = document_at(arguments.placement)
        machines, elsewhere = machines_of(reading.machines())
    except Invalid as invalid:
        return refuse(*map(printable, invalid.complaints))
    except OSError as error:
        return refuse(printable(f"{arguments.file or 'standard input'}: {error.strerror}"))
    told = [kind for machine in machines for kind in _kinds(machine, document, arguments.sets)]
    idle = (f"{arguments.placement}: {said}" for said in document.idle)
    complain(*map(printable, (*idle, *reading.complaints)))
    sys.stdout.buffer.write(_json(told) if arguments.output == "json" else _text(told, elsewhere).encode())
    return UNREADABLE if reading.complaints else ANSWERED


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError("must be a number of devices, at least 1")
    return int(text)


def _kinds(machine: Machine, document: Document, size: int | None) -> Iterator[dict[str, Any]]:
    for members in grouped(machine.node, machine.members.values(), document.configuration):
        links = links_of(machine.node, members, document.configuration)
        sets = None if size is None else best_sets(links, size, document.demand.others or EXPECTED)
        yield kind_of(machine, links, sets)


def _json(told: list[dict[str, Any]]) -> bytes:
    return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)


def _text(told: list[dict[str, Any]], elsewhere: int) -> str:
    width = width_shown()
    nodes = len({kind["node"] for kind in told})
    count = sum(len(kind["devices"]) for kind in told)
    summary = f"{nodes} nodes, {count} devices" + (f"; {elsewhere} devices are of no one node" if elsewhere else "")
    return "\n".join([*(drawn(kind, width) for kind in told), f"{summary}\n"])
