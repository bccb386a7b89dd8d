"""``dra-extender explain``: what a running extender decided about a pod, and why."""

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

import orjson

from extender.cli.table import aligned, printable
from extender.config.address import address_of
from extender.model.names import is_dns_subdomain

SUMMARY = "say what was decided about a pod, and why"
DESCRIPTION = (
    "Ask a running extender for its last decision about a pod. "
    "Exit status: 0 where there is one, 1 where nothing is remembered or nobody answers, 2 for wrong usage."
)
TOLD, NOTHING, WRONG_USAGE = 0, 1, 2
TIMEOUT_S = 10
MILLION = 1_000_000


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("pod", metavar="NAMESPACE/NAME", help="the pod")
    parser.add_argument("--server", default="127.0.0.1:8888", help="host:port of the extender (127.0.0.1:8888)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")


def run(arguments: Namespace) -> int:
    """Ask, and return the exit status."""
    namespace, _, name = arguments.pod.partition("/")
    if not (is_dns_subdomain(namespace) and is_dns_subdomain(name)):
        return _refuse(f"{arguments.pod!r} is not NAMESPACE/NAME", WRONG_USAGE)
    try:
        address = address_of(arguments.server)
    except ValueError as error:
        return _refuse(f"--server {error}", WRONG_USAGE)
    try:
        status, body = _asked(address.host, address.port, f"/v1/decisions/{namespace}/{name}")
    except (OSError, HTTPException, UnicodeError) as error:
        return _refuse(f"{arguments.server} does not answer: {error}", NOTHING)
    if status != HTTPStatus.OK:
        return _refuse(printable(body.decode(errors="replace").strip()), NOTHING)
    sys.stdout.write(body.decode() + "\n" if arguments.output == "json" else told(orjson.loads(body)))
    return TOLD


def _asked(host: str, port: int, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def told(decision: dict[str, Any]) -> str:
    """Tell *decision* in lines."""
    # Decisions outlive pods: who asks about a pod sees whether this is about that one, and how old it is.
    decided = datetime.fromtimestamp(decision["at"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [f"{decision['pod']}: {decision['outcome']} ({decision['reason']})"]
    lines += [f"decided: {decided}", f"uid: {decision['uid']}"]
    if decision["node"]:
        lines.append(f"node: {decision['node']}")
    lines += [f"device: {item['request']} = {'/'.join(item['device'])}" for item in decision["given"]]
    if decision["detail"]:
        lines.append(f"because: {decision['detail']}")
    text = "\n".join(map(printable, lines)) + "\n"
    if decision["best"]:
        text += "\n" + aligned([("BEST NODES", "SCORE", "WORTH", "FREE DEVICES", "WHY"), *map(_row, decision["best"])])
    if decision["basis"]:
        text += f"\n{printable(decision['basis'])}\n"
    if decision["rejected"]:
        rows = [(str(item["nodes"]), item["word"], item["message"]) for item in decision["rejected"]]
        text += "\n" + aligned([("REJECTED", "REASON", "NEAREST MISS"), *rows])
    return text


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    worth = f"{item['value'] / MILLION:.3f}"
    return item["node"], str(item["score"]), worth, str(item["free_devices"]), item["words"]


def _refuse(message: str, status: int) -> int:
    sys.stderr.write(f"dra-extender: {message}\n")
    return status
