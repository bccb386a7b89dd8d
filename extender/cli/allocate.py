"""``dra-extender allocate``: which devices the claims of a pod would get on each node, and why not."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from extender.allocation.features import Features, features_by_default
from extender.allocation.result import Release
from extender.allocation.solve import BEST, FIRST, Manner
from extender.cli.answer import NodeAnswer, answers, as_json, in_words_of
from extender.cli.case import Case, case_of
from extender.cli.complaints import ANSWERED, UNREADABLE, complain, refuse
from extender.cli.configured import answers as configured_answers
from extender.cli.documents import piped
from extender.cli.replay import Recording, Unanswerable, case_of_claim, case_of_pod, owned, pod_for, pod_of, recording
from extender.cli.table import aligned, printable, width_shown
from extender.config.combinations import IN_VAIN, is_placed_in_vain
from extender.config.load import Invalid, load
from extender.config.placement_document import document_at
from extender.config.settings import Ownership, Settings
from extender.kube.decoding import decoded
from extender.model.claim import Allocation
from extender.model.names import ObjectKey, is_label_key
from extender.model.parse.fields import Malformed
from extender.topology.document import Document

SUMMARY = "say which devices claims would get on each node"
DESCRIPTION = (
    "Answer questions to the allocator: one JSON object per line is read (name, nodes or node, classes, slices, "
    "claims; optional allocated, taintRules, usedDevices, usedShares, usedCapacity, features) and one is written for "
    "each. With --from, a question out of a recorded cluster; with --config as well, as a service that has these "
    "settings and was started a moment ago answers it: what a running one has promised to other pods, the pools that "
    "it has closed because somebody else allocated from them, the sizes that it has learnt, and what bound pods take "
    "of CPU and memory are not recorded. Exit status: 0 where everything was answered, 1 where a line or an object "
    "could not be read (the others are answered), 2 for wrong usage or a configuration that cannot be used."
)
RELEASES = {f"1.{release.value}": release for release in Release}
MANNERS = {"first": FIRST, "best": BEST}
# Which taint each order does not see: the owner's keeps kube-scheduler away, as it is meant to.
UNSEEN = {"first": "", "best": Ownership().owner_taint}
# What the configuration says, too.
SAID = ("order", "strict", "release", "owner_taint")
# A question, and the answer of each node.
Answered = tuple[Case, Iterator[NodeAnswer]]


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "--order",
        choices=tuple(MANNERS),
        help="first: the devices and errors of kube-scheduler; best, the default: preferred devices, errors reject "
        "single nodes",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="let an error on one node fail the pod, as kube-scheduler does, in any order",
    )
    parser.add_argument(
        "--release",
        # As allocation.release has it.
        type=lambda text: text.removeprefix("v"),
        choices=tuple(RELEASES),
        help="write allocations as this release of Kubernetes does; with --from, only use features that it has on "
        "(default 1.37)",
    )
    parser.add_argument("-f", "--file", type=Path, help="read the questions from FILE, not from standard input")
    parser.add_argument(
        "--from", dest="folder", type=Path, metavar="DIR", help="ask about a claim or a pod of a recorded cluster"
    )
    parser.add_argument(
        "--owner-taint",
        metavar="KEY",
        type=_taint,
        help="with --from: the taint by which an extender keeps others away, ownership.ownerTaint, does not count; "
        f"empty for none (default {UNSEEN['best']}; with --order first none: kube-scheduler heeds it)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="with --from: the configuration file of dra-extender serve, which says all of the above; its flags and "
        "environment are not read",
    )
    parser.add_argument(
        "--placement",
        metavar="FILE",
        help="with --config: the placement document, where it is not the file that placement.file names",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--claim", type=_key, metavar="NS/NAME", help="the claim to ask about, as if it held nothing")
    asked.add_argument("--pod", type=_key, metavar="NS/NAME", help="the pod to ask about")
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), help="table (default on a terminal) or json, with --from"
    )


def _key(text: str) -> ObjectKey:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise ArgumentTypeError(f"{text!r} is not of the form namespace/name")
    return ObjectKey(namespace, name)


def _taint(text: str) -> str:
    if text and not is_label_key(text):
        raise ArgumentTypeError(f"{text!r} is not the key of a taint")
    return text


def run(arguments: Namespace) -> int:
    """Answer, and return the exit status."""
    misuse = _misuse(arguments)
    if misuse:
        return refuse(misuse)
    return _replay(arguments) if arguments.folder else _answer_lines(arguments)


def _misuse(arguments: Namespace) -> str:
    """Say which arguments do not go together."""
    if arguments.config and not arguments.folder:
        return "--config goes with --from DIR"
    if arguments.placement is not None and not arguments.config:
        return "--placement goes with --config"
    if bool(arguments.folder) != bool(arguments.claim or arguments.pod):
        return "--from DIR goes with --claim or --pod"
    told = vars(arguments)
    alone = [name for name in ("output", "owner_taint") if told[name] is not None and not arguments.folder]
    if alone:
        return f"--{alone[0].replace('_', '-')} goes with --from DIR"
    if arguments.file and arguments.folder:
        return "--file goes without --from: the folder has the cluster"
    twice = [name for name in SAID if arguments.config and told[name] not in (None, False)]
    return f"--config says what --{twice[0].replace('_', '-')} would say" if twice else ""


def _replay(arguments: Namespace) -> int:
    try:
        configured = _configured(arguments) if arguments.config else None
        found = recording(arguments.folder)
        # What could not be read may be what is missing.
        complain(*map(printable, found.complaints))
        case, answered = _as_configured(found, arguments, *configured) if configured else _as_asked(found, arguments)
    except Invalid as invalid:
        return refuse(*invalid.complaints)
    except Unanswerable as error:
        return refuse(str(error))
    except OSError as error:
        return refuse(f"{error.filename}: {error.strerror}")
    told = [in_words_of(answer, case) for answer in answered]
    if arguments.output == "json" or (arguments.output is None and not sys.stdout.isatty()):
        line = {"name": case.name, "nodes": {item.node: as_json(item) for item in told}}
        sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    else:
        sys.stdout.buffer.write(_table(told).encode())
    return UNREADABLE if found.complaints else ANSWERED


def _configured(arguments: Namespace) -> tuple[Settings, Document]:
    """Return settings and placement document; raise Invalid with all that is wrong with either."""
    settings = load(arguments.config)
    if settings.ownership.mode == "advisor":
        text = "with advisor it is kube-scheduler that allocates: ask with --order first instead"
        raise Invalid([f"ownership.mode: {text}"])
    file = settings.placement.file if arguments.placement is None else arguments.placement
    if is_placed_in_vain(settings, file):
        raise Invalid([f"--placement {IN_VAIN}"])
    return settings, document_at(file)


def _as_configured(found: Recording, arguments: Namespace, settings: Settings, document: Document) -> Answered:
    case = _case(found, arguments, settings.allocation.features)
    pod = pod_of(found, arguments.pod) if arguments.pod else pod_for(arguments.claim, settings.schedulers[0])
    return case, configured_answers(settings, document, found, case, pod)


def _as_asked(found: Recording, arguments: Namespace) -> Answered:
    release = _release(arguments)
    case = _case(owned(found, _unseen(arguments)), arguments, features_by_default(release))
    return case, answers(case, _manner(arguments), release)


def _case(found: Recording, arguments: Namespace, features: Features) -> Case:
    if arguments.claim:
        return case_of_claim(found, arguments.claim, features)
    return case_of_pod(found, arguments.pod, features)


def _release(arguments: Namespace) -> Release:
    return RELEASES[arguments.release] if arguments.release else Release.V1_37


def _order(arguments: Namespace) -> str:
    return arguments.order or "best"


def _manner(arguments: Namespace) -> Manner:
    manner = MANNERS[_order(arguments)]
    return replace(manner, is_lenient=manner.is_lenient and not arguments.strict)


def _unseen(arguments: Namespace) -> str:
    """Return the key of the taint that does not count."""
    given: str | None = arguments.owner_taint
    return UNSEEN[_order(arguments)] if given is None else given


def _table(told: Sequence[NodeAnswer]) -> str:
    rows = [("NODE", "FITS", "DEVICES, OR WHY NOT"), *((item.node, *_verdict(item)) for item in told)]
    fitting = sum(item.fits is True for item in told)
    return f"{aligned(rows, width_shown())}\n{len(told)} nodes: {fitting} fit\n"


def _verdict(item: NodeAnswer) -> tuple[str, str]:
    if item.fits:
        return "yes", "  ".join(_line(allocation) for allocation in item.allocations)
    word = "error" if item.node_error or item.fatal_error else "no"
    return word, item.fatal_error or item.node_error or str(item.reason)


def _line(allocation: Allocation) -> str:
    return ", ".join(f"{item.request}={'/'.join(item.device)}" for item in allocation.devices)


def _answer_lines(arguments: Namespace) -> int:
    manner, release = _manner(arguments), _release(arguments)
    try:
        source = arguments.file.open("rb") if arguments.file else nullcontext(piped())
    except OSError as error:
        return refuse(f"{error.filename}: {error.strerror}")
    with source as lines:
        told = [_told(line, manner, release) for line in lines if line.strip()]
    return ANSWERED if all(told) else UNREADABLE


def _told(line: bytes, manner: Manner, release: Release) -> bool:
    """Write the answer to one line at once, and tell whether there is one."""
    told = answer(line, manner, release)
    sys.stdout.buffer.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()
    return "error" not in told


def answer(line: bytes, manner: Manner, release: Release = Release.V1_37) -> dict[str, Any]:
    """Answer one line; one that cannot be read gets an ``error`` that names the field."""
    try:
        raw = decoded(line)
    except orjson.JSONDecodeError as error:
        return {"name": "", "error": f"not JSON: {error}"}
    try:
        case = case_of(raw)
    except Malformed as error:
        name = raw.get("name") if isinstance(raw, dict) else ""
        return {"name": name if isinstance(name, str) else "", "error": str(error)}
    return {"name": case.name, "nodes": {told.node: as_json(told) for told in answers(case, manner, release)}}
